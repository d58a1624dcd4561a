"""3-vectors and 3x3 matrices with the component axis first: (3, ...) and (3, 3, ...).

Everything is written out in components: each component is then one contiguous vector of worlds.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.lanes.fence import fence, stack


def dot(a: jax.Array, b: jax.Array) -> jax.Array:
    """a . b over the leading axis of length 3."""
    p = a * b
    return p[0] + p[1] + p[2]


def cross(a: jax.Array, b: jax.Array) -> jax.Array:
    """a x b."""
    return stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def rotate(matrix: jax.Array, v: jax.Array) -> jax.Array:
    """matrix v, with matrix (3, 3, ...) row first, column by column."""
    return fence(matrix[:, 0] * v[0] + matrix[:, 1] * v[1] + matrix[:, 2] * v[2])


def matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    """a b for (3, 3, ...) matrices, as outer products of the columns of a and the rows of b."""
    outer = [a[:, k, None] * b[None, k] for k in range(3)]
    return fence(outer[0] + outer[1] + outer[2])


def safe_norm(v: jax.Array) -> jax.Array:
    """|v| with derivative 0, not NaN, at v = 0 (double where)."""
    squared = sum(v[i] * v[i] for i in range(v.shape[0]))
    positive = squared > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1)), 0)


def normalize(v: jax.Array, fallback: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(v/|v|, |v|), with `fallback` where |v| underflows; value and derivative stay finite.

    The largest component is scaled to one first, so that lengths far below sqrt(tiny) keep their direction. The result
    does not depend on that scale, so it has no part in the derivative (v / scale^2 would underflow).
    """
    scale = jax.lax.stop_gradient(jnp.maximum(jnp.maximum(jnp.abs(v[0]), jnp.abs(v[1])), jnp.abs(v[2])))
    tiny = jnp.finfo(v.dtype).tiny
    usable = scale > 4 * tiny
    safe = jnp.where(usable, v / jnp.where(usable, scale, 1), fallback)
    length = jnp.sqrt(dot(safe, safe))
    return safe / length, jnp.where(usable, scale * length, 0)
