"""Narrow phase: poses of the links -> closest points of every candidate (pair, feature).

The pairs of a family are worked out together as one item axis, and the last formulas, which several families share,
for all of them at once. The gap is the signed distance of the shapes less the pair's margin. A margin inflates both
shapes alike by half of it, which leaves the midpoint of the witness points where it is. Normals point from geom a to
geom b of the pair, a < b, whichever of them the family calls its first shape.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from rsim_jax.collision import box, lookup, plane, rounded
from rsim_jax.collision.box_box import box_box
from rsim_jax.collision.cylinder import capsule_cylinder, sphere_cylinder
from rsim_jax.collision.cylinder_box import cylinder_box
from rsim_jax.collision.cylinder_cylinder import cylinder_cylinder
from rsim_jax.collision.directions import perpendicular
from rsim_jax.collision.pair_table import FAMILIES, FAR, candidate_pairs, pair_families, penalty_topology
from rsim_jax.collision.poses import GeomPoses
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import take
from rsim_jax.structs import ELLIPSOID, HFIELD, MESH, Candidates, Links, Model, Topology


@dataclass(frozen=True)
class Group:
    """The pairs of one family, by its first and second shape."""

    name: str
    first: tuple[int, ...]
    second: tuple[int, ...]
    flipped: tuple[bool, ...]  # the first shape is geom b of the pair
    points: int

    def each(self, geoms: tuple[int, ...]) -> tuple[int, ...]:
        """One entry per candidate instead of one per pair."""
        return tuple(g for g in geoms for _ in range(self.points))


Contact = tuple[
    jax.Array, jax.Array, jax.Array
]  # midpoint (3, C, N), normal from first to second shape, distance (C, N)


def detect(model: Model, links: Links) -> Candidates:
    """Closest points of all candidate pairs.

    Args:
        model: geoms and pairs.
        links: poses relative to links.origin.

    Returns:
        Candidates with C entries, ordered by pair, then feature; C = 0 without pairs.
    """
    topology = model.topology
    if not topology.npair:
        empty = jnp.zeros((3, 0, links.position.shape[-1]), links.position.dtype)
        return Candidates(point=empty, normal=empty, gap=empty[0])
    poses = GeomPoses(model, links)
    contacts, order = [], []
    for finish, cores in _FINISHES:
        groups = [g for g in _groups(topology) if g.name in cores]
        if groups:
            contacts.append(_signed(finish(poses, groups, [cores[g.name](poses, g) for g in groups]), groups))
            order += [g.name for g in groups]
    point, normal, distance = (_in_order(parts, order, topology) for parts in zip(*contacts, strict=True))
    return Candidates(point, normal, fence(distance - take(model.pair_margin, candidate_pairs(topology))))


def closest(poses: GeomPoses, group: Group) -> Contact:
    """Closest points of the pairs of one family, whatever its shapes are called by."""
    finish, cores = next((finish, cores) for finish, cores in _FINISHES if group.name in cores)
    return finish(poses, [group], [cores[group.name](poses, group)])


def detect_penalty(model: Model, links: Links) -> Candidates:
    """Closest points of the pairs with compliant contact; C = topology.penalty_candidates."""
    topology = penalty_topology(model.topology)
    return detect(dataclasses.replace(model, topology=topology, pair_margin=model.penalty_margin), links)


def _groups(topology: Topology) -> list[Group]:
    families = pair_families(topology)
    groups = []
    for index in sorted(set(families)):
        family = FAMILIES[index]
        pairs = [p for p, f in zip(topology.pair_geoms, families, strict=True) if f == index]
        flipped = tuple(topology.geom_type[a] != family.shapes[0] for a, _ in pairs)
        first = tuple(b if flip else a for (a, b), flip in zip(pairs, flipped, strict=True))
        second = tuple(a if flip else b for (a, b), flip in zip(pairs, flipped, strict=True))
        groups.append(Group(family.name, first, second, flipped, family.count(topology.manifold_points)))
    return groups


def _signed(contact: Contact, groups: list[Group]) -> Contact:
    """Turn the normals of pairs whose geom a is the family's second shape."""
    point, normal, distance = contact
    signs = [-1 if flip else 1 for g in groups for flip in g.flipped for _ in range(g.points)]
    if min(signs) < 0:
        normal = normal * jnp.asarray(signs, normal.dtype)[:, None]
    return point, normal, distance


def _in_order(parts: list[jax.Array], names: list[str], topology: Topology) -> jax.Array:
    """One array with the families in canonical order."""
    joined = concatenate(parts, axis=-2) if len(parts) > 1 else fence(parts[0])
    sizes = {g.name: len(g.first) * g.points for g in _groups(topology)}
    starts = {name: sum(sizes[n] for n in names[:i]) for i, name in enumerate(names)}
    return take(joined, tuple(starts[name] + i for name in sizes for i in range(sizes[name])))


def _joined(parts: list[jax.Array], axis: int = -2) -> jax.Array:
    """Concatenate along the items, worlds of width 1 and N mixed."""
    worlds = max(p.shape[-1] for p in parts)
    return concatenate([jnp.broadcast_to(p, (*p.shape[:-1], worlds)) for p in parts], axis)


# planes: core points and their radius


def _on_planes(poses: GeomPoses, groups: list[Group], cores: list[tuple[jax.Array, jax.Array]]) -> Contact:
    planes = tuple(p for g in groups for p in g.each(g.first))
    normal = poses.axis(planes)
    core, radius = (_joined(list(parts)) for parts in zip(*cores, strict=True))
    point, distance = plane.plane_contact(normal, poses.plane_offset(planes), core, radius)
    return point, normal, distance


def _sphere_cores(poses: GeomPoses, group: Group) -> tuple[jax.Array, jax.Array]:
    return poses.centre(group.second), poses.size(group.second)[0]


def _capsule_cores(poses: GeomPoses, group: Group) -> tuple[jax.Array, jax.Array]:
    size = poses.size(group.second)
    core = plane.capsule_cores(poses.centre(group.second), poses.axis(group.second), size[1])
    return core, poses.size(group.each(group.second))[0]


def _box_cores(poses: GeomPoses, group: Group) -> tuple[jax.Array, jax.Array]:
    core = plane.box_cores(poses.centre(group.second), poses.columns(group.second), poses.size(group.second))
    return core, jnp.zeros((core.shape[1], 1), core.dtype)


def _cylinder_cores(poses: GeomPoses, group: Group) -> tuple[jax.Array, jax.Array]:
    size, normal = poses.size(group.second), poses.axis(group.first)
    core = plane.cylinder_cores(poses.centre(group.second), poses.columns(group.second), size[0], size[1], normal)
    return core, jnp.zeros((core.shape[1], 1), core.dtype)


# spheres and capsules: two points, a direction for when they coincide, and which of them exist


def _between_rounded(poses: GeomPoses, groups: list[Group], cores: list[tuple[jax.Array, ...]]) -> Contact:
    p, q, fallback, exists = (_joined(list(parts)) for parts in zip(*cores, strict=True))
    radius1, radius2 = (
        poses.size(tuple(x for g in groups for x in g.each(getattr(g, shape))))[0] for shape in ("first", "second")
    )
    point, normal, distance = rounded.rounded_contact(p, radius1, q, radius2, fallback)
    return point, normal, jnp.where(exists, distance, FAR)


def _sphere_sphere(poses: GeomPoses, group: Group) -> tuple[jax.Array, ...]:
    p, q = poses.centre(group.first), poses.centre(group.second)
    up = jnp.broadcast_to(jnp.asarray([0, 0, 1], p.dtype)[:, None, None], p.shape)
    return p, q, up, jnp.ones(p.shape[1:], bool)


def _sphere_capsule(poses: GeomPoses, group: Group) -> tuple[jax.Array, ...]:
    p, axis = poses.centre(group.first), poses.axis(group.second)
    q = rounded.closest_on_segment(p, poses.centre(group.second), axis, poses.size(group.second)[1])
    return p, q, perpendicular(axis), jnp.ones(p.shape[1:], bool)


def _capsule_capsule(poses: GeomPoses, group: Group) -> tuple[jax.Array, ...]:
    size1, size2 = poses.size(group.first), poses.size(group.second)
    p, q, exists = rounded.closest_on_segments(
        poses.centre(group.first), poses.axis(group.first), size1[1],
        poses.centre(group.second), poses.axis(group.second), size2[1],
        size1[0] + size2[0],
    )  # fmt: skip
    return p, q, perpendicular(poses.axis(group.each(group.first))), exists


# boxes: points on the axis of a capsule or the centre of a sphere, and which of them exist


def _on_boxes(poses: GeomPoses, groups: list[Group], cores: list[tuple[jax.Array, jax.Array]]) -> Contact:
    core, exists = (_joined(list(parts)) for parts in zip(*cores, strict=True))
    rounds, boxes = (tuple(x for g in groups for x in g.each(getattr(g, shape))) for shape in ("first", "second"))
    point, normal, distance = box.box_contact(
        core, poses.size(rounds)[0], poses.centre(boxes), poses.columns(boxes), poses.size(boxes)
    )
    return point, normal, jnp.where(exists, distance, FAR)


def _sphere_box(poses: GeomPoses, group: Group) -> tuple[jax.Array, jax.Array]:
    core = poses.centre(group.first)
    return core, jnp.ones(core.shape[1:], bool)


def _capsule_box(poses: GeomPoses, group: Group) -> tuple[jax.Array, jax.Array]:
    centre, axis, size = poses.centre(group.first), poses.axis(group.first), poses.size(group.first)
    columns = poses.columns(group.second)
    local = box.to_box(columns, centre - poses.centre(group.second))
    s, exists = box.capsule_cores(local, box.to_box(columns, axis), size[1], size[0], poses.size(group.second))
    core = centre[:, :, None] + axis[:, :, None] * s
    return core.reshape(3, -1, core.shape[-1]), exists.reshape(-1, exists.shape[-1])


# cylinders and pairs of flat faces: each family's function gives whole contacts


def _whole(_: GeomPoses, groups: list[Group], contacts: list[Contact]) -> Contact:
    point, normal, distance = (_joined(list(parts)) for parts in zip(*contacts, strict=True))
    return point, normal, distance


def _items(point: jax.Array, normal: jax.Array, distance: jax.Array) -> Contact:
    """(..., P, F, N) -> (..., P F, N)."""
    flat = [x.reshape(*x.shape[:-3], -1, x.shape[-1]) for x in (point, normal, distance)]
    return flat[0], flat[1], flat[2]


def _framed(poses: GeomPoses, geoms: tuple[int, ...]) -> tuple[jax.Array, jax.Array, jax.Array]:
    return poses.centre(geoms), poses.columns(geoms), poses.size(geoms)


def _box_box(poses: GeomPoses, group: Group) -> Contact:
    return _items(*box_box(*_framed(poses, group.first), *_framed(poses, group.second), group.points))


def _cylinder_box(poses: GeomPoses, group: Group) -> Contact:
    return _items(*cylinder_box(*_framed(poses, group.first), *_framed(poses, group.second), group.points))


def _cylinder_cylinder(poses: GeomPoses, group: Group) -> Contact:
    return _items(*cylinder_cylinder(*_framed(poses, group.first), *_framed(poses, group.second), group.points))


def _sphere_cylinder(poses: GeomPoses, group: Group) -> Contact:
    centre2, columns2, size2 = _framed(poses, group.second)
    return sphere_cylinder(poses.centre(group.first), poses.size(group.first)[0], centre2, columns2[2], size2)


def _capsule_cylinder(poses: GeomPoses, group: Group) -> Contact:
    g = group.first
    centre2, columns2, size2 = _framed(poses, group.second)
    return _items(*capsule_cylinder(poses.centre(g), poses.axis(g), poses.size(g), centre2, columns2[2], size2))


_FINISHES: list[tuple[Callable[..., Contact], dict[str, Callable[..., tuple[jax.Array, ...]]]]] = [
    (
        _on_planes,
        {
            "plane_sphere": _sphere_cores,
            "plane_capsule": _capsule_cores,
            "plane_box": _box_cores,
            "plane_cylinder": _cylinder_cores,
            "plane_ellipsoid": lookup.ellipsoid_core,
        },
    ),
    (
        _between_rounded,
        {"sphere_sphere": _sphere_sphere, "sphere_capsule": _sphere_capsule, "capsule_capsule": _capsule_capsule},
    ),
    (_on_boxes, {"sphere_box": _sphere_box, "capsule_box": _capsule_box}),
    (
        _whole,
        {
            "sphere_cylinder": _sphere_cylinder,
            "capsule_cylinder": _capsule_cylinder,
            "cylinder_cylinder": _cylinder_cylinder,
            "cylinder_box": _cylinder_box,
            "box_box": _box_box,
            "plane_mesh": lookup.plane_hull,
            **{f.name: lookup.searched for f in FAMILIES if f.shapes[0] in (ELLIPSOID, MESH)},
            **{f.name: lookup.on_field for f in FAMILIES if f.shapes[0] == HFIELD},
        },
    ),
]
