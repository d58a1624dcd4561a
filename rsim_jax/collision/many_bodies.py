"""Narrow phase and selection in a scene of many bodies: the shapes of every listed pair are fetched world by world.

The functions of the narrow phase are those of small scenes; they only look shapes up elsewhere. Contacts are kept in
the order of the lists; more than max_contacts within reach set the overflow bit and the last ones are lost.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from rsim_jax.collision import broad_phase
from rsim_jax.collision.bounds import bounds
from rsim_jax.collision.listing import Listing, code, listings
from rsim_jax.collision.narrow_phase import Group, closest
from rsim_jax.collision.poses import GeomPoses
from rsim_jax.collision.selection import material_values
from rsim_jax.lanes import vectors, windows
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.slots import scan_slots
from rsim_jax.lanes.tree import take
from rsim_jax.structs import BOX, CAPSULE, CYLINDER, PLANE, Contacts, Links, LinkVelocity, Model, record

CHUNK = 16  # pairs of one pass of the narrow phase


class Listed:
    """Candidates of the listed pairs, C of them; codes rise."""

    code: jax.Array  # (C, N) int32
    pair: jax.Array  # (C, N) int32
    geoms: jax.Array  # (2, C, N) int32, a < b
    point: jax.Array  # (3, C, N)
    normal: jax.Array  # (3, C, N) from a to b
    gap: jax.Array  # (C, N)
    active: jax.Array  # (C, N) bool: listed and within reach


Listed = record(Listed)


class PairPoses:
    """GeomPoses of listed pairs: items 0 ... P-1 are the first shapes, P ... 2 P-1 the second."""

    def __init__(self, model: Model, poses: GeomPoses, listing: Listing, first: jax.Array, second: jax.Array) -> None:
        self._sides = [
            _fetch(model, poses, shape, members, index)
            for shape, members, index in zip(
                listing.family.shapes, (listing.first, listing.second), (first, second), strict=True
            )
        ]
        self._slots = first.shape[0]

    def _get(self, name: str, items: tuple[int, ...]) -> jax.Array:
        """Items are all of one side."""
        side = 0 if items[0] < self._slots else 1
        return take(self._sides[side][name], tuple(i - side * self._slots for i in items))

    def centre(self, items: tuple[int, ...]) -> jax.Array:
        return self._get("centre", items)

    def axis(self, items: tuple[int, ...]) -> jax.Array:
        return self._get("columns", items)[-1]

    def columns(self, items: tuple[int, ...]) -> jax.Array:
        return self._get("columns", items)

    def size(self, items: tuple[int, ...]) -> jax.Array:
        return self._get("size", items)

    def plane_offset(self, items: tuple[int, ...]) -> jax.Array:
        return self._get("offset", items)[0]


def _fetch(model: Model, poses: GeomPoses, shape: int, members: tuple[int, ...], index: jax.Array) -> dict:
    """Poses and sizes of the members that `index` (P, N) names."""
    centre = poses.centre(members)
    parts = {"centre": centre}
    if shape == PLANE:
        parts |= {"columns": poses.axis(members), "offset": poses.plane_offset(members)[None]}
    elif shape == CAPSULE:
        parts["columns"] = poses.axis(members)
    elif shape in (CYLINDER, BOX):
        parts["columns"] = poses.columns(members).reshape(9, *centre.shape[1:])
    widths = [part.shape[0] for part in parts.values()]
    rows = concatenate([jnp.broadcast_to(p, (p.shape[0], *centre.shape[1:])) for p in parts.values()])
    read = windows.read(windows.windows(rows), index) if len(members) > 1 else _same(rows, index)
    found, start = {}, 0
    for name, width in zip(parts, widths, strict=True):
        found[name] = read[start : start + width]
        start += width
    if "columns" in found:
        found["columns"] = found["columns"].reshape(-1, 3, *index.shape)
    return found | {"size": windows.pick(poses.size(members), index)}


def _same(rows: jax.Array, index: jax.Array) -> jax.Array:
    return jnp.broadcast_to(rows, (rows.shape[0], *index.shape))


def listed_candidates(
    model: Model, links: Links, velocity: LinkVelocity | None, dt: jax.Array, speculative: bool
) -> tuple[Listed, jax.Array]:
    """(candidates of all near pairs, overflow (N,)); `velocity` and `speculative` as in `select_listed`."""
    poses = GeomPoses(model, links)
    around = bounds(model, poses, velocity if speculative else None)
    fields = None if velocity is None else link_windows(velocity)
    found, overflow = [], False
    for listing in listings(model.topology):
        near = broad_phase.near_pairs(listing, around, poses)
        found.append(_of_family(model, poses, listing, near, fields, speculative))
        overflow = overflow | near.overflow
    joined = [concatenate([getattr(f, name) for f in found], axis=-2) for name in Listed.__dataclass_fields__]
    return Listed(*joined), overflow


def _of_family(
    model: Model,
    poses: GeomPoses,
    listing: Listing,
    near: broad_phase.Near,
    fields: jax.Array | None,
    speculative: bool,
) -> Listed:
    """Candidates of one family's list, CHUNK pairs at a time; chunks that no world of the block uses are left out."""
    slots, worlds = near.row.shape
    size = min(CHUNK, slots)
    chunks = -(-slots // size)

    def by_chunk(x: jax.Array) -> jax.Array:
        padded = jnp.pad(x, ((0, chunks * size - slots), (0, 0)))
        return padded.reshape(chunks, size, worlds)

    def one_chunk(_: None, part: broad_phase.Near) -> tuple[None, Listed]:
        return None, _of_pairs(model, poses, listing, part, fields, speculative)

    parts = broad_phase.Near(by_chunk(near.row), by_chunk(near.partner), by_chunk(near.active), near.overflow[None])
    parts = dataclasses.replace(parts, overflow=jnp.broadcast_to(near.overflow, (chunks, worlds)))
    used = jnp.sum(jnp.any(parts.active, axis=(1, 2)).astype(jnp.int32))
    listed = scan_slots(used, one_chunk, None, parts)[1]

    def whole(x: jax.Array) -> jax.Array:
        """(chunk, ..., item, N) -> (..., all items, N)."""
        x = jnp.moveaxis(x, 0, -3)
        return x.reshape(*x.shape[:-3], -1, worlds)[..., : slots * listing.points, :]

    return jax.tree.map(whole, listed)


def _of_pairs(
    model: Model,
    poses: GeomPoses,
    listing: Listing,
    near: broad_phase.Near,
    fields: jax.Array | None,
    speculative: bool,
) -> Listed:
    first, second = (near.row, near.partner) if listing.row_is_first else (near.partner, near.row)
    slots, points = near.row.shape[0], listing.points
    items = tuple(range(2 * slots))
    group = Group(listing.family.name, items[:slots], items[slots:], (False,) * slots, points)
    point, normal, distance = closest(PairPoses(model, poses, listing, first, second), group)
    of_first, of_second = (
        jnp.asarray(members, jnp.int32)[index] for members, index in ((listing.first, first), (listing.second, second))
    )
    pair = jnp.asarray(listing.pair)[near.row, near.partner]
    flip = jnp.where(of_first > of_second, -1, 1).astype(distance.dtype)
    margin = windows.pick(model.pair_margin[None], pair)[0]
    of_a, of_b = jnp.minimum(of_first, of_second), jnp.maximum(of_first, of_second)

    def each(x: jax.Array) -> jax.Array:
        """(..., P, N) -> (..., P points, N)."""
        return jnp.repeat(x, points, axis=-2)

    normal, gap = fence((normal * each(flip), distance - each(margin)))
    reach = gap <= 0 if fields is None else gap < 0
    if fields is not None and speculative:
        owner = jnp.asarray(model.topology.geom_link, jnp.int32)
        a, b = (velocity_at(windows.read(fields, owner[g]), each, point) for g in (of_a, of_b))
        reach = reach | (gap + model.dt * vectors.dot(normal, fence(b - a)) < 0)
    return Listed(
        code=code(model.topology, listing, near.row, near.partner).reshape(-1, near.row.shape[-1]),
        pair=each(pair),
        geoms=each(jnp.stack([of_a, of_b])),
        point=point,
        normal=normal,
        gap=gap,
        active=each(near.active) & reach & ~jnp.isnan(gap),
    )


def select_listed(
    model: Model, links: Links, velocity: LinkVelocity | None, dt: jax.Array, speculative: bool
) -> tuple[Contacts, jax.Array]:
    """(Contacts within reach, the velocity (3, K, N) that prescribed surfaces bring to them).

    `velocity` None: the pose alone, touching shapes only.
    """
    topology = model.topology
    listed, overflow = listed_candidates(model, links, velocity, dt, speculative)
    chosen, available = windows.compact(listed.active, topology.max_contacts)
    active = jnp.arange(topology.max_contacts)[:, None] < available
    last = listed.gap.shape[0] - 1
    chosen = jnp.minimum(chosen, last)
    numbers = windows.windows(concatenate([listed.point, listed.normal, listed.gap[None]]))
    geometry = jnp.where(active, windows.read(numbers, chosen), 0)
    names = windows.windows(jnp.concatenate([listed.code[None], listed.pair[None], listed.geoms]))
    index, pair, a, b = windows.read(names, chosen)
    values = fence(jnp.where(active, windows.pick(material_values(model), pair), 0))
    owner = jnp.asarray(topology.geom_link, jnp.int32)
    contacts = Contacts(
        index=jnp.where(active, index, -1),
        active=active,
        point=geometry[:3],
        normal=geometry[3:6],
        gap=geometry[6],
        friction=values[0],
        restitution=values[1],
        restitution_threshold=values[2],
        static_friction=values[3],
        static_friction_velocity=values[4],
        surface_velocity=values[5:8],
        turning=values[8:],
        side=jnp.zeros((0, *active.shape), listed.gap.dtype),
        links=jnp.where(active, owner[jnp.stack([a, b])], -1),
        overflow=overflow | (available > topology.max_contacts),
    )
    return contacts, _carried(topology, contacts, velocity)


def link_windows(velocity: LinkVelocity) -> jax.Array:
    """(nlink, N, 9): angular, linear, reference."""
    return windows.windows(concatenate([velocity.angular, velocity.linear, velocity.reference]))


def velocity_at(fields: jax.Array, each: Callable[[jax.Array], jax.Array], point: jax.Array) -> jax.Array:
    """Velocity (3, M, N) at points (3, M, N) of links with fields (9, P, N); each: from P to M items."""
    angular, linear, reference = jnp.split(fields, 3)
    return fence(each(linear) + vectors.cross(each(angular), fence(point - each(reference))))


def _carried(topology, contacts: Contacts, velocity: LinkVelocity | None) -> jax.Array:
    """What prescribed surfaces and kinematic bodies bring, B relative to A."""
    total = contacts.surface_velocity
    if velocity is None or not topology.nkin:
        return total
    for side, sign in ((0, -1.0), (1, 1.0)):
        link = contacts.links[side]
        touch = contacts.point + (0.5 * sign) * jnp.maximum(contacts.gap, 0) * contacts.normal
        driven = (link >= topology.njnt) & (link < topology.world)
        fields = windows.read(link_windows(velocity), jnp.maximum(link, 0))
        total = total + jnp.where(driven, sign * velocity_at(fields, lambda x: x, touch), 0)
    return fence(total)
