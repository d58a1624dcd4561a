"""The K smallest of C keys in every world, in order, and what belongs to them: no sort, no scatter over worlds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from rsim_jax.lanes.fence import fence

# Up to this many items a chain of whole-row selections copies faster than a gather (13 values for each of 8 slots out
# of 25 items, one CPU core, 256 worlds: 105 against 145 ns a world; out of 200 items for 16 slots 7,200 against 660).
FEW = 48


def smallest(key: jax.Array, count: int, rounds: jax.Array) -> jax.Array:
    """Indices (count, N) int32 of the smallest entries of key (C, N), ascending, ties by index.

    Each round takes the next in the order (key, index): two minima over all items, 2 C comparisons. Comparing
    everything with everything costs C^2 and is slower from C = 25 on.

    Args:
        key: not NaN.
        count: slots.
        rounds: scalar, as many slots as any world needs; later slots, and those beyond C, hold C.
    """
    items, worlds = key.shape
    key = lax.stop_gradient(key)
    number = np.arange(items, dtype=np.int32)[:, None]

    def take_next(slot: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        last, item, index = carry
        value = _least(jnp.where((key > last) | ((key == last) & (number > item)), key, jnp.inf))
        item = _least(jnp.where((key == value) & ((value > last) | (number > item)), number, items))
        return value, item, lax.dynamic_update_slice_in_dim(index, item[None], slot, 0)

    start = (jnp.full(worlds, -jnp.inf, key.dtype), jnp.full(worlds, -1, jnp.int32))
    index = jnp.full((count, worlds), items, jnp.int32)
    return lax.fori_loop(0, jnp.minimum(rounds, min(count, items)), take_next, (*start, index))[2]


def _least(x: jax.Array) -> jax.Array:
    """Minimum over items (C, N) -> (N,), by halves: a reduction over the items does not vectorise over worlds."""
    x = fence(x)
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        rest = x[2 * half :]
        x = jnp.minimum(x[:half], x[half : 2 * half])
        x = jnp.concatenate([x, rest]) if rest.shape[0] else x
    return fence(x[0])


def look_up(values: jax.Array, starts: tuple[int, ...], index: jax.Array) -> jax.Array:
    """values[:, m] with m the last of `starts` that is not above index: (A, M, W), (K, N) -> (A, K, N).

    Copies, never products with a mask: values keep their bits, and a NaN stays where it is. `starts` begins with 0
    and increases; index is not negative.
    """
    if len(starts) > FEW:
        return _gathered(values, starts, index)
    result = values[:, :1]
    for m in range(1, len(starts)):
        result = jnp.where(index >= starts[m], values[:, m : m + 1], result)
    return fence(jnp.broadcast_to(result, (values.shape[0], *index.shape)))


def _gathered(values: jax.Array, starts: tuple[int, ...], index: jax.Array) -> jax.Array:
    if starts != tuple(range(len(starts))):
        spans = np.diff([*starts, starts[-1] + 1])
        index = jnp.asarray(np.repeat(np.arange(len(starts), dtype=np.int32), spans))[jnp.minimum(index, starts[-1])]
    index = jnp.clip(index, 0, len(starts) - 1)
    if values.shape[-1] == 1:
        return fence(values[:, :, 0][:, index])
    return fence(jnp.take_along_axis(values, index[None], axis=1))
