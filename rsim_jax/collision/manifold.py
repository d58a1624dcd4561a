"""Up to four contacts of two convex shapes: where the faces that look at each other overlap.

Seen along the normal, each face is a convex polygon. The corners of their intersection are ends of edges of one cut
off by the other (Cyrus and Beck 1978), and the gap there is the difference of the two faces' heights, linear over the
intersection. Of the corners those are kept that lie farthest along directions fixed to a shape, so that a body at rest
keeps its contacts in their slots; deep ones count as farther, and the deepest is always kept.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rsim_jax.collision.reduce import largest, pick
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.vectors import cross, dot

STEEP = 0.2  # cosine between a face's normal and the contact's below which the face is too steep to bound a contact
DEEPER = 4.0  # metres of spread that a metre of depth is worth when corners are chosen
SAME = 1e-3  # corners closer than this part of the shapes' size are one contact
OUTSIDE = 2e-5  # part of the size by which an edge may miss a polygon, so that flush edges count

Polygon = tuple[jax.Array, jax.Array]  # outward normal (3, P, N), corners (3, E, P, N), anticlockwise about it


class Corners(NamedTuple):
    """Places of contact in the frame of the normal: two coordinates across it and the heights of both surfaces."""

    across: jax.Array  # (2, C, P, N) m
    low: jax.Array  # (C, P, N) m along the normal, surface of a
    high: jax.Array  # (C, P, N) m, surface of b
    exists: jax.Array  # (C, P, N)


def tangents(normal: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two unit vectors across a normal (3, P, N), the same ones for the same normal up to rounding.

    A vector that is along no axis or diagonal is projected, so that no usual normal is near a change.
    """
    aim = jnp.asarray([0.2093, 0.5477, 0.8101], normal.dtype)[:, None, None]
    other = jnp.asarray([0.9701, -0.1213, 0.2104], normal.dtype)[:, None, None]
    along = dot(normal, jnp.broadcast_to(aim, normal.shape))
    first = cross(normal, jnp.where(along * along > 0.98, other, aim) + jnp.zeros_like(normal))
    first = fence(first * jax.lax.rsqrt(dot(first, first)))
    return first, cross(normal, first)


def face_overlap(
    a: Polygon, b: Polygon, normal: jax.Array, frame: tuple[jax.Array, jax.Array], size: jax.Array
) -> Corners:
    """Corners of the intersection of two faces, seen along the normal; 2 (E_a + E_b) of them.

    Args:
        a, b: faces towards each other, in one frame; size: (P, W) m, for tolerances.
    """
    tolerance = OUTSIDE * size
    seen = [_seen(polygon, normal, frame) for polygon in (a, b)]
    low_a, across_a, own_a, ok_a = seen[0]
    low_b, across_b, own_b, ok_b = seen[1]
    from_a = _cut(across_a, across_b, -1, tolerance)
    from_b = _cut(across_b, across_a, 1, tolerance)
    parts = []
    for (start, end, kept), across, own, other, swap in (
        (from_a, across_a, own_a, low_b, False),
        (from_b, across_b, own_b, low_a, True),
    ):
        for t in (start, end):
            place = fence(across + t * (_next(across) - across))
            mine = own + t * (_next(own) - own)
            theirs = other[0] - other[1] * place[0] - other[2] * place[1]
            low, high = fence((theirs, mine) if swap else (mine, theirs))
            parts.append(Corners(place, low, high, kept & ok_a & ok_b))
    return Corners(
        *(concatenate([getattr(p, name) for p in parts], axis=-3) for name in ("across", "low", "high")),
        jnp.concatenate([p.exists for p in parts], axis=-3),
    )


def _seen(polygon: Polygon, normal: jax.Array, frame: tuple[jax.Array, jax.Array]):
    """The plane as height c0 - c1 u - c2 v, coordinates and heights of the corners, and whether it is not too steep."""
    face, corners = polygon
    slope = dot(face, normal)
    ok = jnp.abs(slope) > STEEP
    inverse = jnp.where(ok, 1 / jnp.where(ok, slope, 1), 0)
    level = dot(face, corners[:, 0])
    plane = fence((level * inverse, dot(face, frame[0]) * inverse, dot(face, frame[1]) * inverse))
    across = stack([dot(t[:, None], corners) for t in frame])
    return plane, across, fence(dot(normal[:, None], corners)), ok


def _next(x: jax.Array) -> jax.Array:
    """The following corner, (..., E, P, N)."""
    return jnp.concatenate([x[..., 1:, :, :], x[..., :1, :, :]], axis=-3)


def _cut(edges: jax.Array, window: jax.Array, turn: int, tolerance: jax.Array):
    """Parts [start, end] of each edge inside a convex window, and whether there is any: (E, P, N) each.

    Args:
        edges: (2, E, P, N) corners; window: (2, F, P, N) corners, anticlockwise for turn 1, clockwise for -1.
    """
    along = fence(_next(window) - window)
    length = along[0] * along[0] + along[1] * along[1]
    inverse = turn * jax.lax.rsqrt(jnp.where(length > 0, length, 1))
    inward = fence((-along[1] * inverse, along[0] * inverse))  # zero where two corners coincide: no bound
    level = fence(inward[0] * window[0] + inward[1] * window[1])
    ahead = _next(edges)
    before, after = (
        inward[0][:, None] * x[0] + inward[1][:, None] * x[1] - level[:, None] + tolerance for x in (edges, ahead)
    )
    before, after = fence((before, after))  # (F, E, P, N)
    crossing = before / jnp.where(before != after, before - after, 1)
    start = jnp.where((before < 0) & (after >= 0), crossing, jnp.where((before < 0) & (after < 0), 2.0, 0.0))
    end = jnp.where((before >= 0) & (after < 0), crossing, 1.0)
    start, end = largest(start)[0], -largest(-end)[0]
    start, end = fence((start, end))
    kept = start <= end
    return jnp.where(kept, start, 0), jnp.where(kept, end, 0), kept


def choose(corners: Corners, directions: jax.Array, size: jax.Array, witness: Corners | None = None) -> Corners:
    """One corner per direction (2, K, P, N), never two at one place, the deepest among them.

    Args:
        corners: C of them; size: (P, W) m; witness: one place, taken where it is deeper than all corners or there are
            none.
    """
    count = directions.shape[1]
    gap = corners.high - corners.low
    far = jnp.finfo(gap.dtype).max
    least, deepest = largest(jnp.where(corners.exists, -gap, -far))
    any_exists = least > -far
    relative = jnp.where(corners.exists, gap + least, 0)
    fields = stack([corners.across[0], corners.across[1], corners.low, corners.high])
    chosen = []
    for k in range(count):
        score = directions[0, k] * corners.across[0] + directions[1, k] * corners.across[1] - DEEPER * relative
        chosen.append(pick(fields, largest(fence(jnp.where(corners.exists, score, -far)))[1]))
    deep = pick(fields, deepest)
    if witness is not None:
        there = stack([witness.across[0, 0], witness.across[1, 0], witness.low[0], witness.high[0]])
        deeper = ~any_exists | (there[3] - there[2] < -least - 1e-3 * SAME * size)
        deep = fence(jnp.where(deeper, there, deep))
    chosen = stack(chosen, axis=1)  # (4, K, P, N)
    centre = (chosen[:2, 0] + chosen[:2, 1] if count == 2 else (chosen[:2, 0] + chosen[:2, 2])) * 0.5
    arm = deep[:2] - centre
    slot = largest(fence(directions[0] * arm[0] + directions[1] * arm[1]))[1]
    slot = fence(jnp.where(any_exists, slot, 0))
    number = jnp.arange(count, dtype=jnp.int32)[:, None, None]
    taken = number == slot
    chosen = fence(jnp.where(taken, deep[:, None], chosen))
    exists = [taken[k] | any_exists for k in range(count)]
    for k in range(count):
        for j in range(k):
            step = chosen[:2, j] - chosen[:2, k]
            same = step[0] * step[0] + step[1] * step[1] < (SAME * size) ** 2
            exists[j] = exists[j] & ~(same & taken[k])
            exists[k] = exists[k] & ~(same & ~taken[k])
    return Corners(chosen[:2], chosen[2], chosen[3], stack(exists))


def flat(x: jax.Array) -> jax.Array:
    """(..., K, P, N) -> (..., P K, N), pair by pair."""
    x = jnp.swapaxes(x, -3, -2)
    return x.reshape(*x.shape[:-3], -1, x.shape[-1])
