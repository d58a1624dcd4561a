"""Largest of many values in every world, by halves: a reduction over items does not vectorise over worlds."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.lanes.fence import fence


def largest(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Maximum over the first axis (C, ..., N) -> (..., N) and where it is, int32; of equals, one of them."""
    count = values.shape[0]
    number = jnp.arange(count, dtype=jnp.int32).reshape(count, *(1,) * (values.ndim - 1))
    index = jnp.broadcast_to(number, values.shape)
    while (count := values.shape[0]) > 1:
        half = count // 2
        ahead = values[:half] >= values[half : 2 * half]
        better = jnp.where(ahead, values[:half], values[half : 2 * half])
        where = jnp.where(ahead, index[:half], index[half : 2 * half])
        if count % 2:
            better, where = jnp.concatenate([better, values[-1:]]), jnp.concatenate([where, index[-1:]])
        values, index = fence((better, where)) if count > 8 else (better, where)
    return values[0], index[0]


def pick(table: jax.Array, index: jax.Array) -> jax.Array:
    """Item index (P, N) of a table (..., C, P, W) -> (..., P, N): a gather, from one row when all worlds share it."""
    pairs, worlds = table.shape[-2:]
    if worlds > 1:
        index = index[(None,) * (table.ndim - 2)]
        return jnp.take_along_axis(table, jnp.broadcast_to(index, (*table.shape[:-3], *index.shape[-3:])), axis=-3)[
            ..., 0, :, :
        ]
    return fence(table[..., 0][..., index, jnp.arange(pairs)[:, None]])
