"""Unit quaternions (w, x, y, z) with the component axis first: (4, ...)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.trigonometry import sincos


def normalize(quat: jax.Array) -> jax.Array:
    """quat / |quat|; the identity where the length is zero, so that a bad user value never becomes NaN."""
    scale = jnp.max(jnp.abs(quat), axis=0)
    usable = scale > 0
    scaled = [jnp.where(usable, quat[i] / jnp.where(usable, scale, 1), 1.0 if i == 0 else 0.0) for i in range(4)]
    inverse = 1 / jnp.sqrt(sum(c * c for c in scaled))
    return stack([c * inverse for c in scaled])


def multiply(a: jax.Array, b: jax.Array) -> jax.Array:
    """Hamilton product a b: rotate by b, then by a."""
    return stack(
        [
            a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
            a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
        ]
    )


def to_matrix(quat: jax.Array) -> jax.Array:
    """Rotation matrix (3, 3, ...) of a unit quaternion."""
    w, x, y, z = quat[0], quat[1], quat[2], quat[3]
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return stack([stack(row) for row in rows])


def from_matrix(matrix: jax.Array) -> jax.Array:
    """Unit quaternion of a rotation matrix, without branches: the largest of four equivalent forms is chosen."""
    m = matrix
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    candidates = [
        [1 + trace, m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]],
        [m[2, 1] - m[1, 2], 1 + 2 * m[0, 0] - trace, m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]],
        [m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], 1 + 2 * m[1, 1] - trace, m[1, 2] + m[2, 1]],
        [m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], 1 + 2 * m[2, 2] - trace],
    ]
    best, size = candidates[0], candidates[0][0]
    for k in (1, 2, 3):
        larger = candidates[k][k] > size
        best = [jnp.where(larger, candidates[k][i], best[i]) for i in range(4)]
        size = jnp.where(larger, candidates[k][k], size)
    return normalize(stack(best))


def exponential(v: jax.Array) -> jax.Array:
    """Quaternion of the rotation vector v (rad): (cos |v|/2, sin(|v|/2) v/|v|); smooth at v = 0."""
    squared = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    # Below this the next term of the series, angle^4 / 3840, is under float64 resolution of the first.
    small = squared < 1e-6
    angle = jnp.sqrt(jnp.where(small, 1, squared))
    sine, cosine = fence(sincos(fence(0.5 * angle)))
    ratio = jnp.where(small, 0.5 - squared / 48, sine / angle)
    cosine = jnp.where(small, 1 - squared / 8, cosine)
    return normalize(stack([cosine, ratio * v[0], ratio * v[1], ratio * v[2]]))


def logarithm(quat: jax.Array) -> jax.Array:
    """Rotation vector (3, ...) of a unit quaternion, of length at most pi; smooth at the identity."""
    sign = jnp.where(quat[0] < 0, -1.0, 1.0)
    w, x, y, z = (sign * quat[i] for i in range(4))
    squared = x * x + y * y + z * z
    small = squared < 1e-6
    length = jnp.sqrt(jnp.where(small, 1, squared))
    ratio = jnp.where(small, 2 + squared / 3, 2 * jnp.arctan2(length, w) / length)
    return stack([ratio * x, ratio * y, ratio * z])
