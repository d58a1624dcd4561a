"""Narrow phase: poses of the links -> closest points of every candidate (pair, feature).

The pairs of a family are worked out together as one item axis. The gap is the signed distance of the shapes less the
pair's margin. A margin inflates both shapes alike by half of it, which leaves the midpoint of the witness points where
it is. Normals point from geom a to geom b of the pair, a < b, whichever of them the family calls its first shape.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from rsim_jax.collision import box, plane, rounded
from rsim_jax.collision.directions import perpendicular
from rsim_jax.collision.pair_table import FAMILIES, candidate_pairs, pair_families
from rsim_jax.collision.poses import GeomPoses
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import take
from rsim_jax.structs import Candidates, Links, Model, Topology

FAR = 1e3  # m: the gap of a candidate that does not exist in this pose, such as the second contact of crossed capsules


@dataclasses.dataclass(frozen=True)
class Group:
    """The pairs of one family: geoms by the family's first and second shape, and who of them is geom b."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    flipped: tuple[bool, ...]


Result = tuple[
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
    dtype = links.position.dtype
    if not topology.npair:
        empty = jnp.zeros((3, 0, links.position.shape[-1]), dtype)
        return Candidates(point=empty, normal=empty, gap=empty[0])
    poses = GeomPoses(model, links)
    results = [_signed(_FUNCTIONS[name](poses, group), group) for name, group in _groups(topology)]
    point, normal, distance = (concatenate(parts, axis=-2) for parts in zip(*results, strict=True))
    return Candidates(point, normal, fence(distance - take(model.pair_margin, candidate_pairs(topology))))


def _groups(topology: Topology) -> list[tuple[str, Group]]:
    families = pair_families(topology)
    groups = []
    for index in sorted(set(families)):
        pairs = [p for p, f in zip(topology.pair_geoms, families, strict=True) if f == index]
        flipped = tuple(topology.geom_type[a] != FAMILIES[index].shapes[0] for a, _ in pairs)
        first = tuple(b if flip else a for (a, b), flip in zip(pairs, flipped, strict=True))
        second = tuple(a if flip else b for (a, b), flip in zip(pairs, flipped, strict=True))
        groups.append((FAMILIES[index].name, Group(first, second, flipped)))
    return groups


def _signed(result: Result, group: Group) -> Result:
    """Turn the normals of pairs whose geom a is the family's second shape."""
    point, normal, distance = result
    if any(group.flipped):
        points = distance.shape[-2] // len(group.flipped)
        signs = jnp.asarray([-1 if flip else 1 for flip in group.flipped for _ in range(points)], normal.dtype)
        normal = fence(normal * signs[:, None])
    return point, normal, distance


def _repeat(geoms: tuple[int, ...], count: int) -> tuple[int, ...]:
    return tuple(g for g in geoms for _ in range(count))


def _on_plane(poses: GeomPoses, group: Group, core: jax.Array, radius: jax.Array | None) -> Result:
    """Contacts of core points, several for each plane of the group."""
    planes = _repeat(group.first, core.shape[-2] // len(group.first))
    normal = poses.axis(planes)
    radius = jnp.zeros((), core.dtype) if radius is None else radius
    point, distance = plane.plane_contact(normal, poses.plane_offset(planes), core, radius)
    return point, normal, distance


def _plane_sphere(poses: GeomPoses, group: Group) -> Result:
    return _on_plane(poses, group, poses.centre(group.second), poses.size(group.second)[0])


def _plane_capsule(poses: GeomPoses, group: Group) -> Result:
    size = poses.size(group.second)
    core = plane.capsule_cores(poses.centre(group.second), poses.axis(group.second), size[1])
    return _on_plane(poses, group, core, poses.size(_repeat(group.second, 2))[0])


def _plane_box(poses: GeomPoses, group: Group) -> Result:
    core = plane.box_cores(poses.centre(group.second), poses.columns(group.second), poses.size(group.second))
    return _on_plane(poses, group, core, None)


def _plane_cylinder(poses: GeomPoses, group: Group) -> Result:
    size, normal = poses.size(group.second), poses.axis(group.first)
    core = plane.cylinder_cores(poses.centre(group.second), poses.columns(group.second), size[0], size[1], normal)
    return _on_plane(poses, group, core, None)


def _sphere_sphere(poses: GeomPoses, group: Group) -> Result:
    p, q = poses.centre(group.first), poses.centre(group.second)
    up = jnp.asarray([0, 0, 1], p.dtype)[:, None, None]
    return rounded.rounded_contact(p, poses.size(group.first)[0], q, poses.size(group.second)[0], up)


def _sphere_capsule(poses: GeomPoses, group: Group) -> Result:
    p, size, axis = poses.centre(group.first), poses.size(group.second), poses.axis(group.second)
    q = rounded.closest_on_segment(p, poses.centre(group.second), axis, size[1])
    return rounded.rounded_contact(p, poses.size(group.first)[0], q, size[0], perpendicular(axis))


def _capsule_capsule(poses: GeomPoses, group: Group) -> Result:
    size1, size2 = poses.size(group.first), poses.size(group.second)
    axis1 = poses.axis(group.first)
    p, q, exists = rounded.closest_on_segments(
        poses.centre(group.first), axis1, size1[1],
        poses.centre(group.second), poses.axis(group.second), size2[1],
        size1[0] + size2[0],
    )  # fmt: skip
    twice = _repeat(tuple(range(len(group.first))), 2)
    radius1, radius2 = take(size1[0], twice), take(size2[0], twice)
    point, normal, distance = rounded.rounded_contact(p, radius1, q, radius2, take(perpendicular(axis1), twice))
    return point, normal, fence(jnp.where(exists, distance, FAR))


def _sphere_box(poses: GeomPoses, group: Group) -> Result:
    core, radius = poses.centre(group.first), poses.size(group.first)[0]
    boxes = group.second
    return box.box_contact(core, radius, poses.centre(boxes), poses.columns(boxes), poses.size(boxes))


def _capsule_box(poses: GeomPoses, group: Group) -> Result:
    centre, axis, size = poses.centre(group.first), poses.axis(group.first), poses.size(group.first)
    columns = poses.columns(group.second)
    local = box.to_box(columns, fence(centre - poses.centre(group.second)))
    s, exists = box.capsule_cores(local, box.to_box(columns, axis), size[1], size[0], poses.size(group.second))
    core = fence((centre[:, :, None] + axis[:, :, None] * s).reshape(3, -1, s.shape[-1]))
    boxes = _repeat(group.second, 2)
    point, normal, distance = box.box_contact(
        core, poses.size(_repeat(group.first, 2))[0], poses.centre(boxes), poses.columns(boxes), poses.size(boxes)
    )
    return point, normal, fence(jnp.where(exists.reshape(distance.shape), distance, FAR))


_FUNCTIONS = {
    "plane_sphere": _plane_sphere,
    "plane_capsule": _plane_capsule,
    "plane_box": _plane_box,
    "plane_cylinder": _plane_cylinder,
    "sphere_sphere": _sphere_sphere,
    "sphere_capsule": _sphere_capsule,
    "sphere_box": _sphere_box,
    "capsule_capsule": _capsule_capsule,
    "capsule_box": _capsule_box,
}
