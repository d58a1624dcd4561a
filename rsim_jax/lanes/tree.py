"""Static gathers and sums along the item axis (axis -2): what tree recursions are made of.

The index maps are Python tuples, known at trace time, so every form below is slices, broadcasts and additions:
no gather, no scatter.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.lanes.fence import concatenate

HALVED = 64  # rows beyond which a sum by halves would be no faster than a reduction
MANY = 64  # items beyond which written-out slices would only lengthen compilation


def take(x: jax.Array, index: tuple[int, ...]) -> jax.Array:
    """Items `index` of x (..., item, world) -> (..., len(index), world)."""
    n = x.shape[-2]
    if index == tuple(range(n)):
        return x
    if not index:
        return x[..., :0, :]
    parts = runs(index)
    if n == 1:
        return jnp.broadcast_to(x, (*x.shape[:-2], len(index), x.shape[-1]))
    if len(parts) <= 16:
        return concatenate([x[..., start:stop, :] for start, stop in parts], axis=-2)
    return x[..., jnp.asarray(index), :]


def by_item(x: jax.Array, count: int) -> jax.Array:
    """(count width, world), item after item -> (width, count, world)."""
    return jnp.moveaxis(x.reshape(count, -1, x.shape[-1]), 1, 0)


def in_rows(x: jax.Array) -> jax.Array:
    """(width, count, world) -> (count width, world), item after item."""
    return jnp.moveaxis(x, 0, 1).reshape(-1, x.shape[-1])


def segment_sum(x: jax.Array, segment: tuple[int, ...], count: int) -> jax.Array:
    """Sum items that share a segment: (..., len(segment), world) -> (..., count, world)."""
    if segment == tuple(range(count)):
        return x
    if count == 1 and len(segment) > MANY:
        return jnp.sum(x, axis=-2, keepdims=True)
    members = [[i for i, s in enumerate(segment) if s == k] for k in range(count)]
    if len(segment) > MANY:
        summed = jnp.zeros((*x.shape[:-2], count, x.shape[-1]), x.dtype)
        return summed.at[..., jnp.asarray(segment), :].add(x)
    zero = jnp.zeros((*x.shape[:-2], 1, x.shape[-1]), x.dtype)
    parts = [sum((x[..., i : i + 1, :] for i in m[1:]), x[..., m[0] : m[0] + 1, :]) if m else zero for m in members]
    return concatenate(parts, axis=-2)


def total(x: jax.Array) -> jax.Array:
    """Sum over the item axis: (..., item, world) -> (..., world), by halves.

    XLA's reductions do not vectorise over worlds; written out item by item, the sum would be most of the program.
    """
    if x.shape[-2] > HALVED or x.shape[-2] == 0:
        return jnp.sum(x, axis=-2)
    axis, odd = x.ndim - 2, None
    while (n := x.shape[-2]) > 1:
        half = n // 2
        if n % 2:
            last = lax.slice_in_dim(x, n - 1, n, axis=axis)
            odd = last if odd is None else odd + last
        x = lax.slice_in_dim(x, 0, half, axis=axis) + lax.slice_in_dim(x, half, 2 * half, axis=axis)
    return lax.squeeze(x if odd is None else x + odd, (axis,))


def runs(index: tuple[int, ...]) -> list[tuple[int, int]]:
    """Maximal runs of consecutive indices, as (start, stop)."""
    found: list[tuple[int, int]] = []
    for i in index:
        if found and found[-1][1] == i:
            found[-1] = (found[-1][0], i + 1)
        else:
            found.append((i, i + 1))
    return found
