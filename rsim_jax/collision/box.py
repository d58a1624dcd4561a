"""Spheres and capsules against boxes, in the frame of the box.

A sphere meets the closest point of the box, or leaves through the nearest face once its centre is inside. A capsule
gets up to two such spheres, where it rests: the two ends of the part of its axis that is closest to the box, when
that part has a length (it lies on a face or along an edge), else its closest point and the far end of the part that
faces the same face, which is ready to touch as the capsule lies down.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from rsim_jax.collision.directions import direction
from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.vectors import dot

DISTINCT = 0.02  # two points of an axis closer than this part of the radius are one contact


def to_box(columns: jax.Array, v: jax.Array) -> jax.Array:
    """Components (3, P, N) of a world vector along the box's axes, columns (axis, 3, P, N)."""
    return stack([dot(columns[k], v) for k in range(3)])


def box_contact(
    core: jax.Array, radius: jax.Array, centre: jax.Array, columns: jax.Array, half_size: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Midpoint of the witness points, normal from the sphere to the box, signed distance.

    Args:
        core: (3, C, N) centres of spheres of radius (C, W); the rest describes the boxes.
    """
    local = to_box(columns, fence(core - centre))
    side = jnp.where(local >= 0, jnp.ones_like(local), -1)
    beyond = fence(jnp.abs(local) - half_size)
    deepest, face = _nearest_face(beyond)
    outward, length = direction(fence(side * jnp.maximum(beyond, 0)), fence(side * face))
    distance = fence(length + jnp.minimum(deepest, 0))  # from the surface of the box, negative inside
    normal = stack(
        [-(columns[0][i] * outward[0] + columns[1][i] * outward[1] + columns[2][i] * outward[2]) for i in range(3)]
    )
    point = fence(core + normal * (0.5 * (radius + distance)))
    return point, normal, fence(distance - radius)


def capsule_cores(
    local: jax.Array, axis: jax.Array, half_length: jax.Array, radius: jax.Array, half_size: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Where along a capsule's axis its two contacts with a box are, and whether they exist.

    Args:
        local, axis: (3, P, N) centre and unit axis in the frame of the box.
        half_length, radius: (P, W) m; half_size: (3, P, W) m.

    Returns:
        s (P, 2, N) m and exists (P, 2, N)
    """
    s = _resting_points(local, axis, half_length, radius, half_size)
    distinct = jnp.abs(s[:, 1] - s[:, 0]) > DISTINCT * radius
    return s, stack([jnp.ones_like(distinct), distinct], axis=-2)


@jax.custom_jvp
def _resting_points(
    local: jax.Array, axis: jax.Array, half_length: jax.Array, radius: jax.Array, half_size: jax.Array
) -> jax.Array:
    """The two places s (P, 2, N).

    The squared distance of the axis point x(s) from the box is convex, and g(s) = a . (x - clamp(x)), half its
    derivative, is piecewise linear with its kinks at the faces' planes: the zero is found exactly from the values
    there. The zeros of g + tau and g - tau, with tau at rounding level, bound the closest part.
    """
    moving = jnp.abs(axis) > jnp.finfo(axis.dtype).eps  # otherwise a coordinate is constant to rounding
    inverse = fence(jnp.where(moving, 1 / jnp.where(moving, axis, 1), 0))
    kinks = [
        jnp.clip((sign * half_size[k] - local[k]) * inverse[k], -half_length, half_length)
        for k in range(3)
        for sign in (-1, 1)
    ]
    s = stack([*kinks, -half_length, half_length])
    slope = fence(sum(axis[k] * _beyond(local[k] + s * axis[k], half_size[k]) for k in range(3)))
    tau = 64 * jnp.finfo(axis.dtype).eps * radius
    first, last = stack([_zero(s, slope, -tau, half_length), _zero(s, slope, tau, half_length)])
    far = _far_end(first, local, axis, inverse, half_length, half_size)
    return stack([first, jnp.where(last - first > DISTINCT * radius, last, far)], axis=-2)


@_resting_points.defjvp
def _resting_points_jvp(primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
    """Implicit derivative of g(s) = 0; ends of the capsule, and places where g is flat, keep their share of it."""
    local, axis, half_length, _, half_size = (x[..., None, :] for x in primals)
    d_local, d_axis, d_half_length, _, d_half_size = (x[..., None, :] for x in tangents)
    s = _resting_points(*primals)
    at = local + s * axis
    beyond = _beyond(at, half_size)
    active = beyond != 0
    curvature = jnp.sum(jnp.where(active, axis * axis, 0), axis=0)
    free = (curvature > 0) & (jnp.abs(s) < half_length)
    d_beyond = jnp.where(active, d_local + s * d_axis - jnp.sign(at) * d_half_size, 0)
    d_slope = jnp.sum(d_axis * beyond + axis * d_beyond, axis=0)
    share = s / jnp.where(half_length > 0, half_length, 1)
    return s, jnp.where(free, -d_slope / jnp.where(free, curvature, 1), share * d_half_length)


def _beyond(x: jax.Array, half_size: jax.Array) -> jax.Array:
    return x - jnp.clip(x, -half_size, half_size)


def _nearest_face(beyond: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Largest of |x| - h (P, N), and 1 on its axis (3, P, N); the first axis where several are equal."""
    x, y, z = beyond[0], beyond[1], beyond[2]
    is_x = (x >= y) & (x >= z)
    is_y = ~is_x & (y >= z)
    faces = [is_x, is_y, ~is_x & ~is_y]
    return jnp.maximum(jnp.maximum(x, y), z), stack([f.astype(beyond.dtype) for f in faces])


def _zero(s: jax.Array, slope: jax.Array, level: jax.Array, half_length: jax.Array) -> jax.Array:
    """Where the nondecreasing piecewise linear function through (s, slope) (8, P, N) leaves `level`."""
    below = slope <= level
    huge = jnp.finfo(s.dtype).max
    s_low, s_high, g_low, g_high = stack(
        [
            _fold(jnp.maximum, jnp.where(below, s, -half_length)),
            _fold(jnp.minimum, jnp.where(below, half_length, s)),
            _fold(jnp.maximum, jnp.where(below, slope, -huge)),
            _fold(jnp.minimum, jnp.where(below, huge, slope)),
        ]
    )
    inside = (g_low > -huge) & (g_high < huge)  # else s_low = s_high, one end of the capsule
    rise = jnp.where(inside, g_high - g_low, 1)
    part = jnp.where(inside, level - g_low, 0) / jnp.where(rise > 0, rise, 1)
    return s_low + (s_high - s_low) * jnp.clip(part, 0, 1)


def _fold(function: Callable[[jax.Array, jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    result = x[0]
    for k in range(1, x.shape[0]):
        result = function(result, x[k])
    return result


def _far_end(
    s: jax.Array, local: jax.Array, axis: jax.Array, inverse: jax.Array, half_length: jax.Array, half_size: jax.Array
) -> jax.Array:
    """The end farther from s of the part of the axis that stays within the box across its face nearest to x(s).

    Where x(s) itself is outside across the face (it touches an edge or a corner), its own coordinate is the bound.
    """
    at = fence(local + s * axis)
    beyond = fence(jnp.abs(at) - half_size)
    _, face = _nearest_face(beyond)
    bound = half_size + jnp.maximum(beyond, 0)
    bounded = (face == 0) & (inverse != 0)
    ends = [(-bound - local) * inverse, (bound - local) * inverse]
    lows = fence(jnp.where(bounded, jnp.minimum(*ends), -half_length))
    highs = fence(jnp.where(bounded, jnp.maximum(*ends), half_length))
    low = jnp.clip(_fold(jnp.maximum, lows), -half_length, s)
    high = jnp.clip(_fold(jnp.minimum, highs), s, half_length)
    low, high = stack([low, high])
    return fence(jnp.where(s - low > high - s, low, high))
