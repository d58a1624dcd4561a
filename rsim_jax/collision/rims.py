"""The direction between the rims of a shape and another solid, in a fixed number of steps.

The signed distance of the rim's points p(w) = centre + radius (w_1 e_1 + w_2 e_2), |w| = 1, is sampled evenly; around
the least sample its slope along the rim is halved to a zero, then secants finish. No angles: the middle of two
directions is their normalised sum. The place is held in derivatives; of a distance that is stationary there, they are
exact all the same.

Shapes that overlap are first moved apart along the best direction n so far, until their gap along n is `lift`. The
closest points then have a direction n' with a separation there of at least lift, which in the true pose makes
s(n') >= n . n' s(n) + (1 - n . n') lift >= s(n) for overlaps: a few PASSES climb to the best direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rsim_jax.collision.extremes import largest
from rsim_jax.lanes.fence import fence
from rsim_jax.lanes.vectors import dot

SAMPLES, HALVINGS, SECANTS = 8, 5, 4
PASSES = 3

Outward = Callable[[jax.Array], tuple[jax.Array, jax.Array]]
Examine = Callable[[jax.Array, jax.Array | None], tuple[jax.Array, ...]]


def closest_on_rim(centre: jax.Array, e1: jax.Array, e2: jax.Array, radius: jax.Array, outward: Outward) -> jax.Array:
    """The direction w (2, ...) on each rim.

    Args:
        centre, e1, e2: (3, ...) m and unit; radius: (...) m.
        outward: points (3, ...) -> signed distance (...) and unit direction away from the solid (3, ...); has to
            accept points with one more axis in front of the others.
    """
    centre, e1, e2, radius = lax.stop_gradient((centre, e1, e2, radius))
    angle = 2 * np.pi * (np.arange(SAMPLES) + 0.3) / SAMPLES
    tried = jnp.asarray(np.stack([np.cos(angle), np.sin(angle)]), centre.dtype)
    tried = tried.reshape(2, SAMPLES, *[1] * (centre.ndim - 1))
    points = centre[:, None] + radius * (tried[0] * e1[:, None] + tried[1] * e2[:, None])
    _, w = largest(-outward(points)[0], tried)
    c, s = math.cos(2 * math.pi / SAMPLES), math.sin(2 * math.pi / SAMPLES)
    low = fence(jnp.stack([c * w[0] + s * w[1], c * w[1] - s * w[0]]))
    high = fence(jnp.stack([c * w[0] - s * w[1], c * w[1] + s * w[0]]))

    def between(k: jax.Array, carry: tuple[jax.Array, ...]) -> jax.Array:
        low, high, g_low, g_high = carry
        share = jnp.where(k < HALVINGS, 0.5, g_low / (g_low - g_high))
        w = fence(low + (high - low) * share)
        return fence(w * lax.rsqrt(w[0] * w[0] + w[1] * w[1]))

    def narrow(k: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        low, high, g_low, g_high = carry
        w = between(k, carry)
        along = fence(w[0] * e2 - w[1] * e1)
        point = fence(centre + radius * (w[0] * e1 + w[1] * e2))
        g = fence(dot(along, outward(point[:, None])[1][:, 0]))
        above = g > 0
        return (
            fence(jnp.where(above, low, w)),
            fence(jnp.where(above, w, high)),
            fence(jnp.where(above, g_low, g)),
            fence(jnp.where(above, g, g_high)),
        )

    ones = jnp.ones(low.shape[1:], low.dtype)
    carry = lax.fori_loop(0, HALVINGS + SECANTS, narrow, (low, high, -ones, ones))
    return lax.stop_gradient(between(HALVINGS, carry))


def best_of_rims(
    normal: jax.Array, gap: jax.Array, lift: jax.Array, examine: Examine, tie: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Improve the best direction so far by those between rims and solids.

    Args:
        normal: (3, P, N) unit, gap: (P, N) separation along it; lift, tie: (P, N) m.
        examine: (move (3, P, N), w or None) -> (w, directions (3, K, P, N), separations (K, P, N) in the true pose,
            numbers of the rims (1, K, 1, 1), their places in the true pose (3, K, P, N)), with the second shape moved
            by `move`.

    Returns:
        direction (3, P, N), separation (P, N), number of the rim or -1 where none is better by more than `tie`,
        place on that rim (3, P, N).
    """

    def move(normal: jax.Array, gap: jax.Array) -> jax.Array:
        return lax.stop_gradient(fence(normal * jnp.maximum(lift - gap, 0)))

    def climb(_: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        normal, gap, by, w = carry
        tried_by = move(normal, gap)
        tried_w, directions, separations, *_ = examine(tried_by, None)
        best, direction = largest(separations, directions)
        better = best > gap + tie
        normal, by = (fence(jnp.where(better, a, b)) for a, b in ((direction, normal), (tried_by, by)))
        return normal, fence(jnp.where(better, best, gap)), by, fence(jnp.where(better, tried_w, w))

    start = lax.stop_gradient((normal, gap))
    by = move(*start)
    shape = jax.eval_shape(lambda: examine(by, None))[0].shape
    carry = (*start, by, jnp.full(shape, math.sqrt(0.5), normal.dtype))
    *_, by, w = lax.stop_gradient(lax.fori_loop(0, PASSES, climb, carry))
    _, directions, separations, numbers, places = examine(by, w)
    best, direction, number, place = largest(separations, directions, numbers, places)
    better = best > gap + tie
    return (
        fence(jnp.where(better, direction, normal)),
        fence(jnp.where(better, best, gap)),
        fence(jnp.where(better, number[0], -1)),
        place,
    )
