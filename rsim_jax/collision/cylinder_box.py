"""A cylinder and a box, in the frame of the box.

The gap is the largest separation s(n) over all directions n, s(n) = n . d - reach of either shape along n (minus the
depth where they overlap). The best n is a normal of the box's faces, the cylinder's axis, the direction between its
axis and the box (its side against a face, an edge or a corner), or that between a rim and an edge or a corner. The
last is a closest-point problem of shapes that are apart; shapes that overlap are moved apart along the best of the
other directions first. Since s bounds the gap from below for every n, a poor candidate does no harm.

A face against a cap or a generator gives as many contacts as carry it, a side along an edge two, else there is one.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rsim_jax.collision import cylinder
from rsim_jax.collision.box import capsule_cores, to_box
from rsim_jax.collision.extremes import largest, turned
from rsim_jax.collision.pair_table import FAR
from rsim_jax.collision.patches import Disc, Rectangle, parallelogram_patch, segment_patch
from rsim_jax.collision.rims import best_of_rims, closest_on_rim
from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.vectors import cross, dot

SNAP = 0.02  # sine: directions closer to a flat face's normal than this are the face's
CAP = 0.7  # cosine of a cylinder's axis with the normal above which its cap faces the other shape, not its side
TIE = 64  # resolutions of the shapes' size within which a face is preferred to a rim
LIFT = 0.02  # of the least size: how far apart shapes are held while their rims are examined


def cylinder_box(
    centre1: jax.Array,
    columns1: jax.Array,
    size1: jax.Array,
    centre2: jax.Array,
    columns2: jax.Array,
    half2: jax.Array,
    slots: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Midpoints of witness points (3, P, slots, N), normals from cylinder to box (3, P, slots, N), distances.

    Args:
        centre1, centre2: (3, P, N) m; columns1, columns2: (axis, 3, P, N) unit.
        size1: (3, P, W) with radius and half length; half2: (3, P, W) m.
        slots: contacts of a face, 4 to 8.
    """
    worlds = centre1.shape[-1]
    size1, half2 = (jnp.broadcast_to(h, (*h.shape[:-1], worlds)) for h in (size1, half2))
    radius, half1 = size1[0], size1[1]
    c = to_box(columns2, fence(centre1 - centre2))
    e1, e2, axis = (to_box(columns2, columns1[k]) for k in range(3))
    normal, gap, side_wins, place, side = _best_direction(c, e1, e2, axis, radius, half1, half2)

    face = _nearest_axis(normal)
    straight = turned(normal, face)
    on_face = straight[0] * straight[0] + straight[1] * straight[1] < SNAP * SNAP
    lean = cross(normal, axis)
    on_cap = ~on_face & (dot(lean, lean) < SNAP * SNAP)
    cap_normal = jnp.where(dot(normal, axis) >= 0, axis, -axis)
    normal = jnp.where(on_face, face * jnp.where(normal >= 0, 1, -1), jnp.where(on_cap, cap_normal, normal))
    normal = fence(normal)

    frame = [turned(x, face) for x in (c, e1, e2, axis, normal, half2)]
    standing = jnp.abs(dot(normal, axis)) > CAP
    cap_point, cap_gap = _cap_patch(*frame, radius, half1, slots)
    line_point, line_gap = _line_patch(*frame, radius, half1, slots)
    flat_point = fence(jnp.where(standing, cap_point, line_point))
    flat_gap = fence(jnp.where(standing, cap_gap, line_gap))
    back = fence(jnp.stack([face[1], face[0], face[2]]))  # turns the face's order back to the box's
    size = radius + half1 + half2[0] + half2[1] + half2[2]
    least = flat_gap[0]
    for k in range(1, slots):
        least = jnp.minimum(least, flat_gap[k])
    flat = fence((on_face | on_cap) & (least <= gap + SNAP * SNAP * size))

    rim = place + normal * (0.5 * gap)
    side_wins = side_wins & (jnp.abs(dot(normal, axis)) < SNAP)  # else a corner of the box is at a rim
    s, exists, below = side
    single = stack([gap, jnp.full_like(gap, FAR)])
    over = [fence(below[:, k] - (c + s[k] * axis)) for k in range(2)]
    reach = [dot(normal, over[k]) for k in range(2)]
    beside = [dot(over[k], over[k]) - reach[k] * reach[k] for k in range(2)]  # of a place beyond the box's end
    exists = exists & stack([jnp.ones_like(side_wins), beside[1] < jnp.square(0.1 * radius)])
    side_gap = jnp.where(exists, stack(reach) - radius, FAR)
    side_point = [c + s[k] * axis + normal * (radius + 0.5 * side_gap[k]) for k in range(2)]
    lone_gap = fence(jnp.where(side_wins, side_gap, single))
    lone = [fence(jnp.where(side_wins, p, rim)) for p in side_point]
    points, gaps = [], []
    for k in range(slots):
        other, other_gap = (lone[k], lone_gap[k]) if k < 2 else (lone[0], jnp.full_like(gap, FAR))
        local = jnp.where(flat, turned(flat_point[:, k], back), other)
        points.append(centre2 + local[0] * columns2[0] + local[1] * columns2[1] + local[2] * columns2[2])
        gaps.append(jnp.where(flat, flat_gap[k], other_gap))
    across = fence(normal[0] * columns2[0] + normal[1] * columns2[1] + normal[2] * columns2[2])
    points = stack(points, axis=-2)
    return points, jnp.broadcast_to(across[:, :, None], points.shape), stack(gaps, axis=-2)


def _nearest_axis(v: jax.Array) -> jax.Array:
    """1 on the axis that v (3, ...) leans on most, else 0."""
    eye = np.eye(3, dtype=v.dtype).reshape(3, 3, *[1] * (v.ndim - 1))
    return largest(jnp.abs(v), eye)[1]


def _box_outward(x: jax.Array, half: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Signed distance of points (3, ...) from a box and the unit direction away from it."""
    outside = fence(x - jnp.clip(x, -half, half))
    apart = cylinder.length(outside)
    beyond = jnp.abs(x) - half
    deepest = jnp.maximum(jnp.maximum(beyond[0], beyond[1]), beyond[2])
    face = jnp.where(beyond == deepest, jnp.where(x >= 0, 1.0, -1.0), 0.0)
    first = jnp.cumsum(jnp.abs(face), axis=0) <= 1  # of several nearest faces the first
    is_outside = apart > 0
    away = jnp.where(is_outside, outside / jnp.where(is_outside, apart, 1), jnp.where(first, face, 0))
    return jnp.where(is_outside, apart, deepest), fence(away)


def _best_direction(
    c: jax.Array,
    e1: jax.Array,
    e2: jax.Array,
    axis: jax.Array,
    radius: jax.Array,
    half1: jax.Array,
    half2: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, tuple[jax.Array, ...]]:
    """Unit normal from cylinder to box, separation along it, whether it is the side's, the place on the rim.

    The last are the side's two places along the axis, whether they exist, and the box's points below them.
    """
    s, exists = capsule_cores(c, axis, half1, radius, half2)
    s, exists = (stack([x[:, 0], x[:, 1]]) for x in (s, exists))
    core = fence(c[:, None] + s * axis[:, None])
    below = fence(jnp.clip(core, -half2[:, None], half2[:, None]))
    _, away = _box_outward(core[:, 0], half2)

    faces = np.eye(3, dtype=c.dtype)[:, :, None, None] * jnp.where(c >= 0, -1, 1)
    cap = jnp.where(dot(c, axis) >= 0, -axis, axis)
    tried = fence(jnp.concatenate([faces, stack([cap, -away], axis=1)], axis=1))
    separation = fence(_separation(tried, c, axis, radius, half1, half2))
    flat_gap, normal = largest(separation, tried)
    side_wins = separation[4] > jnp.maximum(
        jnp.maximum(separation[0], separation[1]), jnp.maximum(separation[2], separation[3])
    )

    least = jnp.minimum(jnp.minimum(radius, half1), jnp.minimum(jnp.minimum(half2[0], half2[1]), half2[2]))
    e1, e2 = e1[:, None], e2[:, None]
    held = lax.stop_gradient(half2)[:, None, None]

    def examine(move: jax.Array, w: jax.Array | None) -> tuple[jax.Array, ...]:
        centres = stack([c - move + half1 * axis, c - move - half1 * axis], axis=1)
        if w is None:
            w = closest_on_rim(centres, e1, e2, radius, lambda x: _box_outward(x, held))
        place = fence(centres + radius * (w[0] * e1 + w[1] * e2))
        directions = -_box_outward(place, half2[:, None])[1]
        separations = _separation(directions, c, axis, radius, half1, half2)
        numbers = jnp.asarray([0.0, 1.0], c.dtype)[None, :, None, None]
        return w, directions, separations, numbers, place + move[:, None]

    size = radius + half1 + half2[0] + half2[1] + half2[2]
    tie = TIE * jnp.finfo(c.dtype).eps * size
    normal, gap, rim, place = best_of_rims(normal, flat_gap, LIFT * least, examine, tie)
    farthest = c + cylinder.farthest_point(normal, axis, radius, half1)
    behind = dot(normal, farthest - place) > 2 * LIFT * least  # the far rim may have found the direction
    place = fence(jnp.where((rim < 0) | behind, farthest, place))
    return normal, gap, fence(side_wins & (rim < 0)), place, (s, exists, below)


def _separation(
    normal: jax.Array, c: jax.Array, axis: jax.Array, radius: jax.Array, half1: jax.Array, half2: jax.Array
) -> jax.Array:
    """s(n) of normals (3, K, P, N) from cylinder to box."""
    box = dot(jnp.abs(normal), half2[:, None])
    axis = jnp.broadcast_to(axis[:, None], normal.shape)
    return -dot(normal, c[:, None]) - box - cylinder.reach(normal, axis, radius, half1)


def _cap_patch(
    c: jax.Array,
    e1: jax.Array,
    e2: jax.Array,
    axis: jax.Array,
    normal: jax.Array,
    half2: jax.Array,
    radius: jax.Array,
    half1: jax.Array,
    slots: int,
) -> tuple[jax.Array, jax.Array]:
    """Cap against the face across the last axis: points (3, slots, P, N), gaps; seen along the normal in the cap."""
    up = jnp.where(dot(normal, axis) >= 0, 1, -1) * axis
    centre = fence(c + half1 * up)
    steep = dot(up, normal)
    inverse = 1 / jnp.where(jnp.abs(steep) > 0.5 * CAP, steep, 1)
    slopes = fence((dot(e1, normal), dot(e2, normal), inverse))

    def seen(x: jax.Array) -> jax.Array:
        height = dot(up, x) * slopes[2]
        return stack([dot(e1, x) - slopes[0] * height, dot(e2, x) - slopes[1] * height, height])

    zero = jnp.zeros_like(half1)
    plane = stack([zero, zero, jnp.where(normal[2] >= 0, -1, 1) * half2[2]])
    u, v = stack([half2[0], zero, zero]), stack([zero, half2[1], zero])
    place, gap = parallelogram_patch(Disc(radius), seen(plane - centre), seen(u), seen(v), slots)
    point = centre[:, None] + place[0] * e1[:, None] + place[1] * e2[:, None] + (0.5 * gap) * normal[:, None]
    return fence(point), gap


def _line_patch(
    c: jax.Array,
    e1: jax.Array,
    e2: jax.Array,
    axis: jax.Array,
    normal: jax.Array,
    half2: jax.Array,
    radius: jax.Array,
    half1: jax.Array,
    slots: int,
) -> tuple[jax.Array, jax.Array]:
    """The generator of the side that is nearest to the face across the last axis; as _cap_patch."""
    side = jnp.where(normal[2] >= 0, -1, 1)
    radial = fence(normal - dot(normal, axis) * axis)
    size = cylinder.length(radial)
    aside = radial / jnp.where(size > 0.1, size, 1)
    middle = c + radius * aside
    above = lambda x, level: stack([x[0], x[1], side * x[2] - level])  # noqa: E731
    place, gap = segment_patch(Rectangle(half2[:2]), above(middle, half2[2]), above(half1 * axis, 0), slots)
    level = side * (half2[2] + 0.5 * gap)
    return fence(jnp.stack([place[0], place[1], level])), gap
