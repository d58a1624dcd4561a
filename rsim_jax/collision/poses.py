"""Poses of the geoms that take part in pairs, each worked out once however many pairs it is in."""

from __future__ import annotations

import jax

from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.tree import take
from rsim_jax.lanes.vectors import dot
from rsim_jax.structs import BOX, CAPSULE, CYLINDER, ELLIPSOID, HFIELD, MESH, PLANE, Links, Model, Topology

_AXIS_SHAPES = (PLANE, CAPSULE)  # of these only the z axis matters
_FRAME_SHAPES = (CYLINDER, BOX, ELLIPSOID, MESH, HFIELD)
_FRAME_PARTNERS = (ELLIPSOID, MESH, HFIELD)  # what touches these is seen in its own frame, whatever it is


class GeomPoses:
    """Centres, axes and rotations in world axes, relative to links.origin, looked up by tuples of geom ids."""

    def __init__(self, model: Model, links: Links) -> None:
        topology = model.topology
        used = sorted({g for pair in topology.pair_geoms for g in pair})
        self.model, self.topology = model, topology
        self._size = model.geom_size
        self._where = {g: i for i, g in enumerate(used)}
        rotation = take(links.rotation, tuple(topology.geom_link[g] for g in used))
        position = take(links.position, tuple(topology.geom_link[g] for g in used))
        offset = take(model.geom_offset, tuple(used))
        self._centre = stack([position[i] + dot(rotation[i], offset) for i in range(3)])

        with_axis = [g for g in used if topology.geom_type[g] in _AXIS_SHAPES]
        self._axis_where = {g: i for i, g in enumerate(with_axis)}
        self._axis = self._columns(model, rotation, with_axis, (2,))[0] if with_axis else None

        framed = {g for pair in topology.pair_geoms if _needs_frames(topology, pair) for g in pair}
        with_frame = [g for g in used if topology.geom_type[g] in _FRAME_SHAPES or g in framed]
        self._frame_where = {g: i for i, g in enumerate(with_frame)}
        self._frame = self._columns(model, rotation, with_frame, (0, 1, 2)) if with_frame else None

    def _columns(self, model: Model, rotation: jax.Array, geoms: list[int], columns: tuple[int, ...]) -> jax.Array:
        """Columns of the geoms' rotations in world axes, (column, 3, item, N)."""
        link = take(rotation, tuple(self._where[g] for g in geoms))
        local = take(model.geom_rotation, tuple(geoms))
        return stack([stack([dot(link[i], local[:, k]) for i in range(3)]) for k in columns])

    def centre(self, geoms: tuple[int, ...]) -> jax.Array:
        """(3, item, N) m."""
        return _take(self._centre, tuple(self._where[g] for g in geoms))

    def axis(self, geoms: tuple[int, ...]) -> jax.Array:
        """z axes of planes and capsules, (3, item, N), unit."""
        return _take(self._axis, tuple(self._axis_where[g] for g in geoms))

    def columns(self, geoms: tuple[int, ...]) -> jax.Array:
        """x, y and z axes of shapes that have more than one, (axis, 3, item, N), unit."""
        return _take(self._frame, tuple(self._frame_where[g] for g in geoms))

    def size(self, geoms: tuple[int, ...]) -> jax.Array:
        """MuJoCo's three size numbers, (3, item, W) m."""
        return take(self._size, geoms)

    def cells(self, fields: tuple[int, ...], geoms: tuple[int, ...]) -> tuple[tuple[int, int], tuple[int, int]]:
        """Windows (cells along x, along y) that cover every point with its radius, and every shape."""
        pairs = dict(zip(self.topology.pair_geoms, self.topology.pair_cells, strict=True))
        windows = [pairs[min(p), max(p)] for p in zip(fields, geoms, strict=True)]
        of_points, of_body = (tuple(max(w[i][k] for w in windows) for k in range(2)) for i in range(2))
        return of_points, of_body

    def plane_offset(self, geoms: tuple[int, ...]) -> jax.Array:
        """n . (a point of the plane), (item, N) m.

        Taken once per plane, so that far from the world's origin large numbers meet only the normal's exact zeros.
        """
        planes = tuple(sorted(set(geoms)))
        offset = fence(dot(self.axis(planes), self.centre(planes)))
        return _take(offset, tuple(planes.index(g) for g in geoms))


def _needs_frames(topology: Topology, pair: tuple[int, int]) -> bool:
    types = [topology.geom_type[g] for g in pair]
    return PLANE not in types and any(t in _FRAME_PARTNERS for t in types)


def _take(x: jax.Array, index: tuple[int, ...]) -> jax.Array:
    """Items `index`; one geom in all pairs, such as the ground, costs no copy."""
    if len(set(index)) == 1:
        x, index = x[..., index[0] : index[0] + 1, :], (0,) * len(index)
    return take(x, index)
