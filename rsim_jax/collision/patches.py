"""Where two flat faces lie on each other: a few points that span the overlap and hold its deepest point.

Seen along the contact normal one face is a region (a rectangle or a disc, in its own plane, centred) and the other a
parallelogram centre + l u + m v with |l|, |m| <= 1, or another disc. The third component of centre, u and v is the
height above the region's plane, measured along the normal, so that the gap at a place x of the overlap is linear,

    gap(x) = height + slope . (x - centre).

The farthest point of the overlap in a direction is the region's own farthest point if that lies in the other face, or
the other way round, else a crossing of the outlines (a linear programme over two convex sets). Evenly spaced
directions, fixed to the region, give the points: a feature keeps its corner while the shapes move. The direction of
steepest descent gives the deepest point; it takes the place of the nearest of the others where it is deeper than all.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.collision.extremes import largest
from rsim_jax.collision.pair_table import FAR
from rsim_jax.lanes.fence import fence, stack

TURN = 0.98  # rad, of the first direction: none is square to an edge of faces that are parallel or at 45 degrees
DISTINCT = 1e-3  # points closer than this part of the region's extent are one contact
ROUNDING = 16  # in units of the float's resolution


@dataclass(frozen=True)
class Rectangle:
    """|x_k| <= half[k], (2, P, N) m."""

    half: jax.Array

    def extent(self) -> jax.Array:
        return self.half[0] + self.half[1]

    def farthest(self, direction: jax.Array) -> jax.Array:
        """(2, F, P, N)"""
        return jnp.where(direction >= 0, 1, -1) * self.half[:, None]

    def clip(self, middle: jax.Array, along: jax.Array) -> tuple[jax.Array, jax.Array]:
        """First and last s in [-1, 1] with middle + s along inside; first > last if there is none."""
        tiny = jnp.finfo(along.dtype).tiny * 1e8
        half = self.half[:, None] * (1 + ROUNDING * jnp.finfo(along.dtype).eps)
        moving = jnp.abs(along) > tiny
        inverse = jnp.where(moving, 1 / jnp.where(moving, along, 1), 0)
        reach = jnp.where(moving, half * jnp.abs(inverse), jnp.where(jnp.abs(middle) <= half, 2.0, -2.0))
        nearest = -middle * inverse
        low, high = nearest - reach, nearest + reach
        first = jnp.maximum(jnp.maximum(low[0], low[1]), -1)
        last = jnp.minimum(jnp.minimum(high[0], high[1]), 1)
        return first, last


@dataclass(frozen=True)
class Disc:
    """|x| <= radius, (P, N) m."""

    radius: jax.Array

    def extent(self) -> jax.Array:
        return self.radius

    def farthest(self, direction: jax.Array) -> jax.Array:
        """(2, F, P, N)"""
        return direction * self.radius

    def clip(self, middle: jax.Array, along: jax.Array) -> tuple[jax.Array, jax.Array]:
        """As for a rectangle."""
        square = along[0] * along[0] + along[1] * along[1]
        long = square > jnp.finfo(along.dtype).tiny * 1e8
        inverse = jnp.where(long, 1 / jnp.where(long, square, 1), 0)
        nearest = -(middle[0] * along[0] + middle[1] * along[1]) * inverse
        miss = [middle[k] + nearest * along[k] for k in range(2)]
        room = (self.radius * self.radius - miss[0] * miss[0] - miss[1] * miss[1]) * inverse
        inside = room > 0
        reach = jnp.where(inside, jnp.sqrt(jnp.where(inside, room, 1)), -2)
        return jnp.maximum(nearest - reach, -1), jnp.minimum(nearest + reach, 1)


def parallelogram_patch(
    region: Rectangle | Disc, centre: jax.Array, u: jax.Array, v: jax.Array, slots: int
) -> tuple[jax.Array, jax.Array]:
    """Contacts of a region with a parallelogram: places x (2, slots, P, N) and gaps (slots, P, N), FAR where none.

    Args:
        region: in its own plane, m.
        centre, u, v: (3, P, N) m, see above; u and v span an area.
    """
    area = u[0] * v[1] - u[1] * v[0]
    inverse = fence(jnp.where(area != 0, 1 / jnp.where(area != 0, area, 1), 0))
    slope = stack([(u[2] * v[1] - v[2] * u[1]) * inverse, (u[0] * v[2] - v[0] * u[2]) * inverse])
    directions = _directions(slope, slots)

    middle = stack([centre[:2] + u[:2], centre[:2] - u[:2], centre[:2] + v[:2], centre[:2] - v[:2]], axis=1)
    along = stack([v[:2], v[:2], u[:2], u[:2]], axis=1)
    first, last = stack(region.clip(middle, along))
    ends = fence(jnp.concatenate([middle + first * along, middle + last * along], axis=1))
    exists = first <= last
    exists = jnp.concatenate([exists, exists])

    corner = fence(region.farthest(directions))
    beside = corner - centre[:2, None]
    share_u = (beside[0] * v[1] - beside[1] * v[0]) * inverse
    share_v = (u[0] * beside[1] - u[1] * beside[0]) * inverse
    whole = 1 + ROUNDING * jnp.finfo(u.dtype).eps
    covered = (jnp.abs(share_u) <= whole) & (jnp.abs(share_v) <= whole)
    place, found = _farthest(directions, [(corner, covered)], ends, exists)
    gap = centre[2] + slope[0] * (place[0] - centre[0]) + slope[1] * (place[1] - centre[1])
    return _reduced(place, gap, found, directions, region.extent())


def disc_patch(
    radius: jax.Array, centre: jax.Array, other: jax.Array, lean: jax.Array, slots: int
) -> tuple[jax.Array, jax.Array]:
    """Contacts of a disc with another one: as parallelogram_patch.

    The other disc is seen as an ellipse, but where the outlines cross it counts as a circle, which it is when the
    discs are parallel.

    Args:
        radius, other: (P, N) m.
        centre: (3, P, N) of the other disc, and its height.
        lean: (2, P, N) components of its unit normal in the plane; the third is at least 0.5.
    """
    rise = jnp.sqrt(jnp.maximum(1 - _square(lean), 0.25))
    slope = fence(-lean / rise)
    directions = _directions(slope, slots)
    squared = _square(centre)
    apart = squared > jnp.finfo(squared.dtype).tiny * 1e8
    inverse = jnp.where(apart, 1 / jnp.where(apart, squared, 1), 0)
    # both outlines at x = a centre +- b (centre turned by a right angle)
    a = 0.5 * (1 + (radius * radius - other * other) * inverse)
    room = radius * radius * inverse - a * a
    crossing = apart & (room > 0)
    b = jnp.where(crossing, jnp.sqrt(jnp.where(crossing, room, 1)), 0)
    a, b = stack([a, b])
    ends = stack(
        [
            stack([a * centre[0] - b * centre[1], a * centre[1] + b * centre[0]]),
            stack([a * centre[0] + b * centre[1], a * centre[1] - b * centre[0]]),
        ],
        axis=1,
    )
    ours = fence(directions * radius)
    tilt = directions[0] * lean[0] + directions[1] * lean[1]
    rim = (directions - tilt * lean[:, None]) * (other / jnp.sqrt(jnp.maximum(1 - tilt * tilt, 0.25)))
    theirs = fence(centre[:2, None] + rim)
    whole = 1 + ROUNDING * jnp.finfo(radius.dtype).eps
    beside = fence(ours - centre[:2, None])
    climb = slope[0] * beside[0] + slope[1] * beside[1]
    covered = _square(beside) + climb * climb <= jnp.square(other * whole)
    covering = _square(theirs) <= jnp.square(radius * whole)
    place, found = _farthest(directions, [(ours, covered), (theirs, covering)], ends, stack([crossing, crossing]))
    gap = centre[2] + slope[0] * (place[0] - centre[0]) + slope[1] * (place[1] - centre[1])
    return _reduced(place, gap, found, directions, jnp.maximum(radius, other))


def segment_patch(region: Rectangle | Disc, middle: jax.Array, along: jax.Array, slots: int):
    """Contacts of a region with a segment middle + s along, |s| <= 1, (3, P, N): the ends of what lies in the region.

    As parallelogram_patch; only the first two slots are used, the second if the part has a length.
    """
    first, last = region.clip(middle[:2, None], along[:2, None])
    first, last = stack([first[0], last[0]])
    s = stack([first, last])
    place = middle[:2, None] + s * along[:2, None]
    gap = middle[2] + s * along[2]
    length = (last - first) * jnp.sqrt(_square(along[:2]) + jnp.finfo(along.dtype).tiny)
    exists = [first <= last, length > DISTINCT * region.extent()]
    gap = [jnp.where(e, gap[k], FAR) for k, e in enumerate(exists)]
    nothing = jnp.full_like(gap[0], FAR)
    places = [place[:, 0], place[:, 1]] + [place[:, 0]] * (slots - 2)
    return stack(places, axis=1), stack(gap + [nothing] * (slots - 2))


def _square(x: jax.Array) -> jax.Array:
    return x[0] * x[0] + x[1] * x[1]


def _directions(slope: jax.Array, slots: int) -> jax.Array:
    """(2, slots + 1, P, N): evenly spaced, then the one of steepest descent."""
    angle = TURN + 2 * np.pi * np.arange(slots) / slots
    fixed = jnp.asarray(np.stack([np.cos(angle), np.sin(angle)]), slope.dtype)[:, :, None, None]
    squared = _square(slope)
    steep = squared > jnp.finfo(slope.dtype).tiny * 1e8
    down = jnp.where(steep, -slope / jnp.sqrt(jnp.where(steep, squared, 1)), fixed[:, 0])
    fixed = jnp.broadcast_to(fixed, (2, slots, *slope.shape[1:]))
    return fence(jnp.concatenate([fixed, down[:, None]], axis=1))


def _farthest(
    directions: jax.Array, own: list[tuple[jax.Array, jax.Array]], ends: jax.Array, exists: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Places (2, F, P, N) farthest in each direction, and whether there is any.

    Args:
        own: a point per direction (2, F, P, N) with whether it is in the overlap.
        ends: (2, E, P, N) points of the overlap for all directions, where they exist (E, P, N).
    """
    low = -jnp.finfo(ends.dtype).max
    count = directions.shape[1]
    points = [point for point, _ in own] + [ends[:, k, None] for k in range(ends.shape[1])]
    valid = [is_valid for _, is_valid in own] + [exists[k, None] for k in range(ends.shape[1])]
    scores = [
        jnp.where(v, directions[0] * p[0] + directions[1] * p[1], low) for p, v in zip(points, valid, strict=True)
    ]
    shape = (2, count, *ends.shape[2:])
    points = stack([jnp.broadcast_to(p, shape) for p in points], axis=1)
    best, place = largest(stack(scores), points)
    return place, best > low


def _reduced(
    place: jax.Array, gap: jax.Array, found: jax.Array, directions: jax.Array, extent: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The deepest point, last of the given ones, takes a slot where it is deeper; equal points keep the first slot."""
    place, gap = fence((place, jnp.where(found, gap, FAR)))
    slots = gap.shape[0] - 1
    least = gap[0]
    likeness = fence(directions[0, :slots] * directions[0, slots] + directions[1, :slots] * directions[1, slots])
    near = likeness[0]
    for k in range(1, slots):
        least, near = jnp.minimum(least, gap[k]), jnp.maximum(near, likeness[k])
    least, near = stack([least, near])
    deeper = gap[slots] < least - ROUNDING * jnp.finfo(gap.dtype).eps * extent
    here = deeper & (likeness == near)
    place = fence(jnp.where(here, place[:, slots:], place[:, :slots]))
    gap = fence(jnp.where(here, gap[slots:], gap[:slots]))
    same = jnp.square(DISTINCT * extent)
    kept = [gap[0]]
    for k in range(1, slots):
        repeats = _square(place[:, :k] - place[:, k : k + 1]) < same
        repeated = repeats[0]
        for other in range(1, k):
            repeated = repeated | repeats[other]
        kept.append(jnp.where(repeated, FAR, gap[k]))
    return place, stack(kept)
