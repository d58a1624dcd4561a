"""Two cylinders: the candidates of cylinder_box with another cylinder in place of the box.

The largest separation s(n) is sought among both axes (caps), the direction between the closest points of the axes
(sides), and the directions between each rim and the other cylinder, with overlapping shapes moved apart first.

A cap against a cap or a side that lies on it gives as many contacts as carry it, parallel sides two, else there is one.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.collision import cylinder
from rsim_jax.collision.cylinder_box import LIFT, SNAP, TIE
from rsim_jax.collision.directions import direction, perpendicular
from rsim_jax.collision.extremes import largest
from rsim_jax.collision.pair_table import FAR
from rsim_jax.collision.patches import Disc, disc_patch, segment_patch
from rsim_jax.collision.rims import best_of_rims, closest_on_rim
from rsim_jax.collision.rounded import closest_on_segments
from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.vectors import cross, dot


def cylinder_cylinder(
    centre1: jax.Array,
    columns1: jax.Array,
    size1: jax.Array,
    centre2: jax.Array,
    columns2: jax.Array,
    size2: jax.Array,
    slots: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Midpoints of witness points (3, P, slots, N), normals from the first (3, P, slots, N), distances.

    Args:
        centre1, centre2: (3, P, N) m; columns1, columns2: (axis, 3, P, N) unit.
        size1, size2: (3, P, W) with radius and half length, m.
        slots: contacts of a face, 4 to 8.
    """
    worlds = centre1.shape[-1]
    size1, size2 = (jnp.broadcast_to(h, (*h.shape[:-1], worlds)) for h in (size1, size2))
    d = fence(centre2 - centre1)
    normal, gap, winner, place, sides = _best_direction(d, columns1, columns2, size1, size2)
    axis1, axis2 = columns1[2], columns2[2]
    lean1, lean2 = (cross(normal, axis) for axis in (axis1, axis2))
    on_cap1 = dot(lean1, lean1) < SNAP * SNAP
    on_cap = on_cap1 | (dot(lean2, lean2) < SNAP * SNAP)
    axis = jnp.where(on_cap1, axis1, axis2)
    normal = fence(jnp.where(on_cap, axis * jnp.where(dot(normal, axis) >= 0, 1, -1), normal))

    # the cylinder whose cap it is, and the other one as seen from there
    frame = fence(jnp.where(on_cap1, columns1, columns2))
    own, other = fence((jnp.where(on_cap1, size1, size2), jnp.where(on_cap1, size2, size1)))
    other_axis = fence(jnp.where(on_cap1, axis2, axis1))
    up = fence(jnp.where(on_cap1, normal, -normal))
    offset = fence(jnp.where(on_cap1, d, -d))
    flat_point, flat_gap = _cap_patch(frame, up, own, offset, other_axis, other, slots)
    flat_point = flat_point + jnp.where(on_cap1, 0, d)[:, None]
    least = flat_gap[0]
    for k in range(1, slots):
        least = jnp.minimum(least, flat_gap[k])
    size = size1[0] + size1[1] + size2[0] + size2[1]
    flat = fence(on_cap & (least <= gap + SNAP * SNAP * size))

    p, q, exists = sides
    between = stack([dot(normal, q[:, k] - p[:, k]) for k in range(2)])
    side_gap = jnp.where(exists, between - size1[0] - size2[0], FAR)
    half = 0.5 * gap * normal
    rim = place + jnp.where(winner == RIM_OF_SECOND, -half, half)
    level = jnp.maximum(jnp.abs(dot(normal, axis1)), jnp.abs(dot(normal, axis2)))
    is_side = (winner == SIDE) & (level < SNAP)  # else an end of one axis is nearest: a rim
    lone_gap = fence(jnp.where(is_side, side_gap, stack([gap, jnp.full_like(gap, FAR)])))
    lone = fence(jnp.where(is_side, 0.5 * (p + q) + (0.5 * (size1[0] - size2[0]) * normal)[:, None], rim[:, None]))
    points, gaps = [], []
    for k in range(slots):
        other_point, other_gap = (lone[:, k], lone_gap[k]) if k < 2 else (lone[:, 0], jnp.full_like(gap, FAR))
        points.append(centre1 + jnp.where(flat, flat_point[:, k], other_point))
        gaps.append(jnp.where(flat, flat_gap[k], other_gap))
    points = stack(points, axis=-2)
    return points, jnp.broadcast_to(normal[:, :, None], points.shape), stack(gaps, axis=-2)


PARALLEL = 0.98  # cosine of the axes above which two caps face each other, not a cap and a generator
FLAT, SIDE, RIM_OF_FIRST, RIM_OF_SECOND = 0, 1, 2, 3  # whose direction is the best


def _best_direction(
    d: jax.Array, columns1: jax.Array, columns2: jax.Array, size1: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, tuple[jax.Array, ...]]:
    """Unit normal from the first, separation along it, its kind, the place on the rim relative to the first's centre.

    The last are the closest points of the axes (3, 2, P, N) twice, and whether they exist (2, P, N).
    """
    axis1, axis2 = columns1[2], columns2[2]
    origin = jnp.zeros_like(d)
    p, q, exists = closest_on_segments(origin, axis1, size1[1], d, axis2, size2[1], size1[0] + size2[0])
    pairs, worlds = d.shape[1:]
    p, q = (x.reshape(3, pairs, 2, worlds).swapaxes(1, 2) for x in (p, q))
    exists = exists.reshape(pairs, 2, worlds).swapaxes(0, 1)
    across, _ = direction(cross(axis1, axis2), perpendicular(axis1))
    across = jnp.where(dot(across, d) >= 0, across, -across)
    side, _ = direction(fence(q[:, 0] - p[:, 0]), across)
    caps = [jnp.where(dot(d, axis) >= 0, axis, -axis) for axis in (axis1, axis2)]
    tried = stack([*caps, side, across], axis=1)
    separation = fence(_separation(tried, d, axis1, axis2, size1, size2))
    flat_gap, normal = largest(separation, tried)
    cap_gap = jnp.maximum(separation[0], separation[1])

    size = size1[0] + size1[1] + size2[0] + size2[1]
    least = jnp.minimum(jnp.minimum(size1[0], size1[1]), jnp.minimum(size2[0], size2[1]))
    e1, e2 = (stack([columns1[k], columns1[k], columns2[k], columns2[k]], axis=1) for k in range(2))
    radius = stack([size1[0], size1[0], size2[0], size2[0]])
    solid_axis = stack([axis2, axis2, axis1, axis1], axis=1)
    solid_size = stack([size2[:2], size2[:2], size1[:2], size1[:2]], axis=1)
    sign = jnp.asarray([-1, -1, 1, 1], d.dtype)[:, None, None]  # away from the second is towards the first
    numbers = jnp.asarray([RIM_OF_FIRST, RIM_OF_FIRST, RIM_OF_SECOND, RIM_OF_SECOND], d.dtype)[None, :, None, None]
    held_axis, held_size = lax.stop_gradient((solid_axis, solid_size))

    def examine(move: jax.Array, w: jax.Array | None) -> tuple[jax.Array, ...]:
        moved = d + move
        centres = stack(
            [size1[1] * axis1, -size1[1] * axis1, moved + size2[1] * axis2, moved - size2[1] * axis2], axis=1
        )
        solid = stack([moved, moved, origin, origin], axis=1)
        if w is None:
            held = lax.stop_gradient(solid)[:, None]
            outward = lambda x: cylinder.outward(x - held, held_axis[:, None], *held_size)  # noqa: E731
            w = closest_on_rim(centres, e1, e2, radius, outward)
        place = fence(centres + radius * (w[0] * e1 + w[1] * e2))
        directions = fence(sign * cylinder.outward(place - solid, solid_axis, *solid_size)[1])
        places = place - jnp.where(sign > 0, move[:, None], 0)
        return w, directions, _separation(directions, d, axis1, axis2, size1, size2), numbers, places

    tie = TIE * jnp.finfo(d.dtype).eps * size
    normal, gap, rim, place = best_of_rims(normal, flat_gap, LIFT * least, examine, tie)
    kind = jnp.where(rim >= 0, rim, jnp.where(flat_gap > cap_gap, float(SIDE), float(FLAT)))
    first = cylinder.farthest_point(normal, axis1, size1[0], size1[1])
    second = d + cylinder.farthest_point(-normal, axis2, size2[0], size2[1])
    farthest = jnp.where(rim == RIM_OF_SECOND, second, first)
    behind = jnp.abs(dot(normal, farthest - place)) > 2 * LIFT * least  # the far rim may have found the direction
    place = fence(jnp.where((rim < 0) | behind, farthest, place))
    return normal, gap, fence(kind), place, (p, q, exists)


def _separation(
    normal: jax.Array, d: jax.Array, axis1: jax.Array, axis2: jax.Array, size1: jax.Array, size2: jax.Array
) -> jax.Array:
    """s(n) of normals (3, K, P, N) from the first to the second."""
    axis1, axis2 = (jnp.broadcast_to(axis[:, None], normal.shape) for axis in (axis1, axis2))
    first = cylinder.reach(normal, axis1, size1[0], size1[1])
    return dot(normal, d[:, None]) - first - cylinder.reach(normal, axis2, size2[0], size2[1])


def _cap_patch(
    frame: jax.Array, up: jax.Array, own: jax.Array, offset: jax.Array, axis: jax.Array, other: jax.Array, slots: int
) -> tuple[jax.Array, jax.Array]:
    """A cap against the cap or the generator of another cylinder: points (3, slots, P, N) from its centre, and gaps.

    Args:
        frame: (axis, 3, P, N) of the cap's cylinder; up: its normal out of the cap.
        own, other: (3, P, N) radius and half length; offset, axis: of the other cylinder.
    """
    steep = dot(up, axis)
    standing = jnp.abs(steep) > PARALLEL
    along = jnp.where(steep >= 0, 1, -1) * axis
    radial = up - steep * axis
    size = cylinder.length(radial)
    aside = radial / jnp.where(size > 0.1, size, 1)
    axes = stack([frame[0], frame[1], up])

    def seen(x: jax.Array) -> jax.Array:
        return stack([dot(axes[k], x) for k in range(3)])

    middle = offset - own[1] * up
    lean = seen(along)[:2]
    place, gap = disc_patch(own[0], seen(middle - other[1] * along), other[0], lean, slots)
    line_place, line_gap = segment_patch(Disc(own[0]), seen(middle - other[0] * aside), seen(other[1] * along), slots)
    place, gap = fence((jnp.where(standing, place, line_place), jnp.where(standing, gap, line_gap)))
    height = own[1] + 0.5 * gap
    point = place[0] * axes[0][:, None] + place[1] * axes[1][:, None] + height * axes[2][:, None]
    return fence(point), gap
