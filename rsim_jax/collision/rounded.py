"""Spheres and capsules against each other: radii around two closest points of points or segments.

Two capsules get two contacts while they are nearly parallel, at the ends of their overlap, or the upper one would
tip. As the angle grows from FULL to NONE (sines) both slide to the one closest pair of points, where the second
ceases to exist: nothing jumps, and two contacts at one point act like one.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.collision.directions import direction
from rsim_jax.lanes.fence import stack
from rsim_jax.lanes.vectors import cross, dot

FULL = 2e-3  # sine of the angle between axes below which the contacts are at the very ends of the overlap
NONE = 1e-2  # sine above which there is one; the depth that the ends can miss stays near (length * NONE)^2 / diameter
DISTINCT = 1e-3  # two points of a pair closer than this part of its radii are one contact


def closest_on_segment(point: jax.Array, centre: jax.Array, axis: jax.Array, half_length: jax.Array) -> jax.Array:
    """The point of a segment closest to `point`, all (3, P, N)."""
    along = dot(axis, point - centre)
    return centre + axis * jnp.clip(along, -half_length, half_length)


def closest_on_segments(
    centre1: jax.Array,
    axis1: jax.Array,
    half1: jax.Array,
    centre2: jax.Array,
    axis2: jax.Array,
    half2: jax.Array,
    radii: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Up to two pairs of closest points of two segments.

    With p(s) on the first and q(t) on the second, the general pair solves s sin^2 = (d x u2) . (u1 x u2), clamped to
    the segments; cross products keep it accurate for small angles.

    Args:
        centre1, axis1, centre2, axis2: (3, P, N); half1, half2, radii (the sum): (P, W) m.

    Returns:
        points p and q, (3, 2 P, N) each, pair by pair, and whether each exists, (2 P, N).
    """
    d = centre2 - centre1
    normal = cross(axis1, axis2)
    cosine, d1, d2, sine2, line = stack(
        [dot(axis1, axis2), dot(d, axis1), dot(d, axis2), dot(normal, normal), dot(cross(d, axis2), normal)]
    )
    general = sine2 > FULL * FULL
    s = jnp.clip(jnp.where(general, line / jnp.where(general, sine2, 1), 0), -half1, half1)
    t = jnp.clip(cosine * s - d2, -half2, half2)
    reach = half2 * jnp.abs(cosine)
    share = jnp.clip((NONE**2 - sine2) / (NONE**2 - FULL**2), 0, 1)
    closest, low, high, share = stack(
        [
            jnp.clip(cosine * t + d1, -half1, half1),
            jnp.maximum(-half1, d1 - reach),
            jnp.minimum(half1, d1 + reach),
            share * share * (3 - 2 * share),
        ]
    )
    share = jnp.where(high > low, share, 0)
    s = stack([closest + share * (low - closest), closest + share * (high - closest)], axis=-2)
    t = jnp.clip(cosine[:, None] * s - d2[:, None], -half2[:, None], half2[:, None])
    p = centre1[:, :, None] + axis1[:, :, None] * s
    q = centre2[:, :, None] + axis2[:, :, None] * t
    second = s[:, 1] - s[:, 0] > DISTINCT * radii
    exists = stack([jnp.ones_like(second), second], axis=-2)
    return _flat(p), _flat(q), _flat(exists)


def rounded_contact(
    p: jax.Array, radius1: jax.Array, q: jax.Array, radius2: jax.Array, fallback: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Midpoint of the witness points, normal from p to q and signed distance |q - p| - radius1 - radius2.

    Args:
        p, q: (3, C, N); radius1, radius2: (C, W); fallback: (3, C, N) unit, the normal where p and q coincide.

    Returns:
        (3, C, N), (3, C, N) and (C, N)
    """
    normal, length = direction(q - p, fallback)
    point = 0.5 * (p + q) + 0.5 * (radius1 - radius2) * normal
    return point, normal, length - radius1 - radius2


def _flat(x: jax.Array) -> jax.Array:
    """(..., P, 2, N) -> (..., 2 P, N)."""
    return x.reshape(*x.shape[:-3], -1, x.shape[-1])
