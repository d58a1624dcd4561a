"""Convex hulls of meshes and heights of terrain: tables that the narrow phase looks up.

A hull's faces are its triangles merged where they lie in one plane. Hulls of one model share arrays; shorter lists are
filled up with copies of their first entry, which change no maximum and no intersection.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from scipy.spatial import ConvexHull, QhullError

from rsim_jax.errors import ModelError
from rsim_jax.modeling import checks
from rsim_jax.modeling.candidates import Pairs
from rsim_jax.modeling.links import rotation
from rsim_jax.modeling.names import label
from rsim_jax.modeling.refuse import Refusals
from rsim_jax.structs import CAPSULE, HFIELD, MESH, SPHERE

MAX_VERTICES = 200  # of a hull; a search looks at all of them some twenty times
MAX_CELLS = 24  # of a field under one shape, along x or y
REACH = 1.1  # of a window over the size of its shape
MAX_CORNERS = 16  # kept of a face: enough to choose four contacts from
COPLANAR = 2e-5  # sine of the angle below which neighbouring triangles are one face
FLAT = 1e-6  # thickness as part of the size below which a hull counts as flat


@dataclass(frozen=True)
class Hull:
    """One convex polyhedron, rows first."""

    vertices: np.ndarray  # (V, 3)
    normals: np.ndarray  # (F, 3)
    offsets: np.ndarray  # (F,)
    polygons: list[np.ndarray]  # F of (corners, 3)
    edges: np.ndarray  # (E, 4, 3) direction, a point, two normals
    centroid: np.ndarray  # (3,) of a homogeneous body


class HullError(ValueError):
    """Points without a usable hull: the fault and its remedy."""

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(f"{fault}; {remedy}")
        self.fault, self.remedy = fault, remedy


def hull_of(points: np.ndarray) -> Hull:
    """The convex hull of points (n, 3).

    Raises:
        HullError: where they are too few or flat, or the hull has too many corners.
    """
    thinnest = np.linalg.svd(points - points.mean(0), compute_uv=False)[-1] if len(points) > 3 else 0.0
    size = np.ptp(points, axis=0).max() if len(points) else 0.0
    if thinnest <= FLAT * size:
        raise HullError(f"{len(points)} points in one plane have no volume", "give a solid or a thin box")
    try:
        found = ConvexHull(points)
    except QhullError as error:
        raise HullError(f"no convex hull: {str(error).splitlines()[0]}", "give a solid") from error
    if len(found.vertices) > MAX_VERTICES:
        fault = f"its convex hull has {len(found.vertices)} vertices, more than {MAX_VERTICES}"
        raise HullError(fault, f'set maxhullvert="{MAX_VERTICES}" or less on the mesh asset, or simplify the mesh')
    triangles, planes = found.simplices, found.equations
    group = _merged(planes[:, :3], found.neighbors)
    members = [np.flatnonzero(group == g) for g in range(group.max() + 1)]
    normals = np.array([_unit(planes[m, :3].sum(0)) for m in members])
    corners = [_around(points, np.unique(triangles[m]), n) for m, n in zip(members, normals, strict=True)]
    offsets = np.array([(points[c] @ n).max() for c, n in zip(corners, normals, strict=True)])
    order = _spread(normals)
    return Hull(
        vertices=points[found.vertices],
        normals=normals[order],
        offsets=offsets[order],
        polygons=[points[_thinned(corners[f])] for f in order],
        edges=_edges(points, triangles, found.neighbors, group, normals),
        centroid=_centroid(points, triangles),
    )


def mesh_hull(owner: str, vertices_or_path: Any) -> Hull:
    """Hull of points (n, 3), or of those in a file that MuJoCo reads.

    Raises:
        ModelError: names the owner, the fault and the remedy.
    """
    if isinstance(vertices_or_path, str | os.PathLike):
        points = _read_vertices(owner, Path(vertices_or_path))
    else:
        points = checks.points(owner, "vertices_or_path", vertices_or_path)
    try:
        return hull_of(points)
    except HullError as error:
        raise ModelError(f"{owner}: {error}") from error


def _read_vertices(owner: str, path: Path) -> np.ndarray:
    """Vertices (n, 3) as written in a file."""
    if not path.is_file():
        raise ModelError(f"{owner}: {path}: no such file; give the path of an .obj or .stl file, or (n, 3) vertices")
    spec = mujoco.MjSpec()
    spec.add_mesh(name="mesh", file=str(path.resolve()), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh")
    try:
        compiled = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(f"{owner}: {path}: {' '.join(str(error).split())}; give a readable solid") from error
    return compiled.mesh_vert.astype(np.float64) @ rotation(compiled.mesh_quat[0]).T + compiled.mesh_pos[0]


def _merged(normals: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """Number of the face that each triangle belongs to: neighbours in one plane share theirs."""
    group = np.full(len(normals), -1)
    count = 0
    for start in range(len(normals)):
        if group[start] >= 0:
            continue
        group[start], pending = count, [start]
        while pending:
            for other in neighbors[pending.pop()]:
                if group[other] < 0 and np.linalg.norm(normals[other] - normals[start]) < COPLANAR:
                    group[other] = count
                    pending.append(other)
        count += 1
    return group


def _around(points: np.ndarray, corners: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Corners of a face anticlockwise about its normal."""
    arms = points[corners] - points[corners].mean(0)
    across = np.cross(normal, arms[0])
    return corners[np.argsort(np.arctan2(arms @ across, arms @ arms[0]))]


def _thinned(corners: np.ndarray) -> np.ndarray:
    count = min(len(corners), MAX_CORNERS)
    return corners[np.arange(count) * len(corners) // count]


def _spread(normals: np.ndarray) -> np.ndarray:
    """An order in which each normal is as far as can be from those before it."""
    order = [0]
    nearest = normals @ normals[0]
    for _ in range(1, len(normals)):
        order.append(int(nearest.argmin()))
        nearest = np.maximum(nearest, normals @ normals[order[-1]])
        nearest[order] = np.inf
    return np.array(order)


def _edges(points, triangles, neighbors, group, normals) -> np.ndarray:
    """Edges between two faces, (E, 4, 3)."""
    rows = []
    for t, others in enumerate(neighbors):
        for other in others:
            if t < other and group[t] != group[other]:
                ends = points[np.intersect1d(triangles[t], triangles[other])]
                rows.append([_unit(ends[1] - ends[0]), ends.mean(0), normals[group[t]], normals[group[other]]])
    return np.array(rows)


def _centroid(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Mean of the centroids of tetrahedra over an inner point, weighted by volume."""
    inner = points.mean(0)
    corners = points[triangles] - inner
    volume = np.abs(np.linalg.det(corners))
    return inner + volume @ corners.mean(1) * 0.75 / volume.sum()


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v)


@dataclass(frozen=True)
class Surfaces:
    """Hulls and height fields of the geoms that take part in pairs."""

    geom_hull: tuple[int, ...]  # of every geom, -1 where it has none
    geom_field: tuple[int, ...]
    field_shape: tuple[tuple[int, int], ...]  # rows (along y) and columns (along x) of every field
    pair_cells: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    field_digest: str  # of all heights in the file: scenes with other terrain are other models
    leaves: dict[str, Any]


def read_surfaces(compiled: mujoco.MjModel, pairs: Pairs, refusals: Refusals) -> tuple[Surfaces, Pairs]:
    """Tables of the hulls and fields that the pairs need, and the pairs without those that are refused and ignored."""
    hulls, broken = _read_hulls(compiled, pairs, refusals)
    cells, wide = _windows(compiled, pairs, refusals)
    kept = np.array([p for p in range(len(pairs)) if p not in wide and not broken & set(pairs.geoms[p].tolist())], int)
    pairs = pairs.take(kept)
    used = [int(g) for g in np.unique(pairs.geoms)]
    meshes = [g for g in used if compiled.geom_type[g] == MESH]
    fields = [g for g in used if compiled.geom_type[g] == HFIELD]
    terrain = sorted({int(compiled.geom_dataid[g]) for g in fields})
    heights = [_heights(compiled, f) for f in terrain]
    flat = np.concatenate([h.ravel() for h in heights]) if heights else np.zeros(0)
    surfaces = Surfaces(
        geom_hull=_numbered(compiled, meshes, list(hulls)),
        geom_field=_numbered(compiled, fields, terrain),
        field_shape=tuple((int(compiled.hfield_nrow[f]), int(compiled.hfield_ncol[f])) for f in terrain),
        pair_cells=tuple(cells[p] for p in kept) if heights else (),
        field_digest=hashlib.sha1(flat.tobytes()).hexdigest() if heights else "",
        leaves={
            **_hull_leaves(list(hulls.values())),
            "field_height": flat[:, None],
            "field_half_size": compiled.hfield_size[terrain, :2].T[..., None],
        },
    )
    return surfaces, pairs


def _read_hulls(compiled: mujoco.MjModel, pairs: Pairs, refusals: Refusals) -> tuple[dict[int, Hull], set[int]]:
    """Hulls by mesh, and the geoms whose mesh has none."""
    meshes = [int(g) for g in np.unique(pairs.geoms) if compiled.geom_type[g] == MESH]
    hulls, broken = {}, set()
    for mesh in sorted({int(compiled.geom_dataid[g]) for g in meshes}):
        owners = [g for g in meshes if compiled.geom_dataid[g] == mesh]
        try:
            hulls[mesh] = hull_of(_hull_points(compiled, mesh))
        except HullError as error:
            broken.update(owners)
            refusals.add("mesh", label(compiled, "geom", owners[0]), error.fault, error.remedy)
    return hulls, broken


def _windows(compiled: mujoco.MjModel, pairs: Pairs, refusals: Refusals):
    """Windows of every pair, see Topology.pair_cells, and the pairs that would need too many cells."""
    cells, wide = [], set()
    for p, geoms in enumerate(pairs.geoms.tolist()):
        fields = [g for g in geoms if compiled.geom_type[g] == HFIELD]
        if not fields:
            cells.append(((0, 0), (0, 0)))
            continue
        shape = geoms[1 - geoms.index(fields[0])]
        field = int(compiled.geom_dataid[fields[0]])
        counts = np.array([compiled.hfield_ncol[field], compiled.hfield_nrow[field]])
        spacing = 2 * compiled.hfield_size[field, :2] / (counts - 1)
        round_ = compiled.geom_type[shape] in (SPHERE, CAPSULE)
        needed = [
            tuple(int(c) for c in np.minimum(np.maximum(np.ceil(2 * REACH * radius / spacing) + 1, 2), counts - 1))
            for radius in (compiled.geom_size[shape, 0] if round_ else 0.0, compiled.geom_rbound[shape])
        ]
        cells.append(tuple(needed))
        if max(map(max, needed)) > MAX_CELLS:
            wide.add(p)
            value = f"{max(map(max, needed))} cells across under {label(compiled, 'geom', shape)}, at most {MAX_CELLS}"
            refusals.add("hfield", label(compiled, "geom", fields[0]), value, "use a coarser grid or smaller shapes")
    return cells, wide


def _numbered(compiled: mujoco.MjModel, geoms: list[int], assets: list[int]) -> tuple[int, ...]:
    chosen = {g: assets.index(int(compiled.geom_dataid[g])) for g in geoms}
    return tuple(chosen.get(g, -1) for g in range(compiled.ngeom))


def _hull_points(compiled: mujoco.MjModel, mesh: int) -> np.ndarray:
    """Vertices of MuJoCo's own hull, which obeys maxhullvert; all vertices where it made none."""
    first, count = compiled.mesh_vertadr[mesh], compiled.mesh_vertnum[mesh]
    vertices = compiled.mesh_vert[first : first + count].astype(np.float64)
    start = compiled.mesh_graphadr[mesh]
    if start < 0:
        return vertices
    corners = compiled.mesh_graph[start]
    return vertices[compiled.mesh_graph[start + 2 + corners : start + 2 + 2 * corners]]


def _heights(compiled: mujoco.MjModel, field: int) -> np.ndarray:
    rows, columns = compiled.hfield_nrow[field], compiled.hfield_ncol[field]
    start = compiled.hfield_adr[field]
    data = compiled.hfield_data[start : start + rows * columns].reshape(rows, columns)
    return data.astype(np.float64) * compiled.hfield_size[field, 2]


def _hull_leaves(hulls: list[Hull]) -> dict[str, np.ndarray]:
    """Stacked hulls with the item axes of each part before the hull's own, (..., hull, 1)."""
    if not hulls:
        empty = np.zeros((3, 0, 0, 1))
        return {
            "hull_vertices": empty,
            "hull_normals": empty,
            "hull_offsets": empty[0],
            "hull_polygons": np.zeros((3, 0, 0, 0, 1)),
            "hull_edges": np.zeros((3, 4, 0, 0, 1)),
            "hull_extent": np.zeros((0, 1)),
        }
    corners = max(len(p) for h in hulls for p in h.polygons)
    polygons = [np.stack([_filled(p, corners) for p in h.polygons]) for h in hulls]
    return {
        "hull_vertices": _stacked([h.vertices for h in hulls]).transpose(2, 1, 0)[..., None],
        "hull_normals": _stacked([h.normals for h in hulls]).transpose(2, 1, 0)[..., None],
        "hull_offsets": _stacked([h.offsets for h in hulls]).T[..., None],
        "hull_polygons": _stacked(polygons).transpose(3, 2, 1, 0)[..., None],
        "hull_edges": _stacked([h.edges for h in hulls]).transpose(3, 2, 1, 0)[..., None],
        "hull_extent": np.array([[np.linalg.norm(h.vertices, axis=1).max()] for h in hulls]),
    }


def _stacked(parts: list[np.ndarray]) -> np.ndarray:
    longest = max(len(p) for p in parts)
    return np.stack([_filled(p, longest) for p in parts])


def _filled(rows: np.ndarray, count: int) -> np.ndarray:
    return np.concatenate([rows, np.repeat(rows[:1], count - len(rows), axis=0)])
