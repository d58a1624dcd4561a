"""Reading and writing at a place that differs from world to world, and lists of what is present in each.

Scenes of many bodies cannot write out every pair; a row then names the bodies it touches, world by world. XLA's CPU
backend reads a whole window fast when it is contiguous, so what is indexed this way is stored (item, world, component):
12 values read and written at two places cost 50 ns, one by one in (component, item, world) order 140 ns.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.lanes.fence import fence


def windows(x: jax.Array) -> jax.Array:
    """(component, item, world) -> (item, world, component)."""
    return jnp.moveaxis(x, 0, -1)


def read(table: jax.Array, index: jax.Array) -> jax.Array:
    """table (item, world, component) at index (..., world) -> (component, ..., world)."""
    worlds = jnp.arange(index.shape[-1])
    return fence(jnp.moveaxis(table[index, worlds], -1, 0))


def write(table: jax.Array, index: jax.Array, value: jax.Array) -> jax.Array:
    """The table with value (component, world) at index (world,)."""
    worlds = jnp.arange(index.shape[-1])
    return table.at[index, worlds].set(jnp.moveaxis(value, 0, -1), unique_indices=True, mode="promise_in_bounds")


def add(table: jax.Array, index: jax.Array, value: jax.Array) -> jax.Array:
    """The table with value (component, world) added at index (world,)."""
    worlds = jnp.arange(index.shape[-1])
    return table.at[index, worlds].add(jnp.moveaxis(value, 0, -1), unique_indices=True, mode="promise_in_bounds")


def running_sum(counts: jax.Array) -> jax.Array:
    """Sums of counts (item, world) up to and including each item, by doubling."""
    reach = 1
    while reach < counts.shape[0]:
        counts = fence(counts + jnp.pad(counts[:-reach], ((reach, 0), (0, 0))))
        reach *= 2
    return counts


def compact(flags: jax.Array, slots: int) -> tuple[jax.Array, jax.Array]:
    """(index (slots, world) of the first set flags in order, items where there are fewer; number set (world,))."""
    items, worlds = flags.shape
    if not items:
        return jnp.zeros((slots, worlds), jnp.int32), jnp.zeros(worlds, jnp.int32)
    count = running_sum(flags.astype(jnp.int32))
    return first_reaching(count, slots), count[-1]


def first_reaching(count: jax.Array, slots: int) -> jax.Array:
    """Where a nondecreasing count (item, world) first reaches 1 ... slots: (slots, world), items where it does not."""
    items, worlds = count.shape
    wanted = jnp.arange(1, slots + 1, dtype=jnp.int32)[:, None]
    low = jnp.zeros((slots, worlds), jnp.int32)
    high = jnp.full((slots, worlds), items, jnp.int32)
    for _ in range(items.bit_length()):
        middle = (low + high) // 2
        there = jnp.take_along_axis(count, jnp.minimum(middle, items - 1), axis=0) >= wanted
        low, high = fence((jnp.where(there | (middle >= high), low, middle + 1), jnp.where(there, middle, high)))
    return high


def find(keys: jax.Array, wanted: jax.Array) -> jax.Array:
    """Where `wanted` (M, world) stands in ascending keys (item, world); items where it does not."""
    items = keys.shape[0]
    low = jnp.zeros(wanted.shape, jnp.int32)
    high = jnp.full(wanted.shape, items, jnp.int32)
    for _ in range(items.bit_length()):
        middle = (low + high) // 2
        below = jnp.take_along_axis(keys, jnp.minimum(middle, items - 1), axis=0) < wanted
        open_ = middle < high
        low, high = fence(
            (jnp.where(below & open_, middle + 1, low), jnp.where(below, high, jnp.minimum(middle, high)))
        )
    found = jnp.take_along_axis(keys, jnp.minimum(low, items - 1), axis=0) == wanted
    return jnp.where((low < items) & found, low, items)


def pick(values: jax.Array, index: jax.Array) -> jax.Array:
    """values (component, item, W) at index (slots, world): (component, slots, world); the last beyond the end."""
    index = jnp.minimum(index, values.shape[1] - 1)
    if values.shape[-1] == 1:
        return fence(values[:, :, 0][:, index])
    return read(windows(values), index)
