"""Reads, writes and lists that differ from world to world, against NumPy."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from rsim_jax.lanes import windows

RNG = np.random.default_rng(3)


def test_a_window_is_read_and_written_where_each_world_says():
    table = RNG.normal(size=(5, 4, 3))
    index = np.array([[0, 4, 2, 2], [1, 0, 3, 4]])
    seen = windows.read(jnp.asarray(table), jnp.asarray(index))
    expected = np.stack([[table[i, w] for w, i in enumerate(row)] for row in index])
    np.testing.assert_array_equal(seen, np.moveaxis(expected, -1, 0))
    value = RNG.normal(size=(3, 4))
    written, added = table.copy(), table.copy()
    for w, i in enumerate(index[0]):
        written[i, w] = value[:, w]
        added[i, w] += value[:, w]
    np.testing.assert_array_equal(windows.write(jnp.asarray(table), index[0], jnp.asarray(value)), written)
    np.testing.assert_array_equal(windows.add(jnp.asarray(table), index[0], jnp.asarray(value)), added)


@pytest.mark.parametrize("items", [1, 2, 7, 8, 33])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_compact_lists_what_is_set_in_order(items, share):
    flags = RNG.random((items, 6)) < share
    index, count = windows.compact(jnp.asarray(flags), 5)
    np.testing.assert_array_equal(count, flags.sum(0))
    for w in range(6):
        found = np.flatnonzero(flags[:, w])[:5]
        np.testing.assert_array_equal(index[:, w], [*found, *[items] * (5 - len(found))])


@pytest.mark.parametrize("items", [1, 2, 5, 16, 31])
def test_find_tells_where_a_key_stands(items):
    keys = np.sort(RNG.choice(200, (items, 4), replace=False), axis=0)
    wanted = np.concatenate([keys, RNG.integers(0, 200, (10, 4))])
    where = np.asarray(windows.find(jnp.asarray(keys), jnp.asarray(wanted)))
    for w in range(4):
        place = {k: i for i, k in enumerate(keys[:, w])}
        assert [place.get(k, items) for k in wanted[:, w]] == list(where[:, w])


@pytest.mark.parametrize("shared", [True, False])
def test_pick_takes_columns_of_shared_or_own_values(shared):
    values = RNG.normal(size=(2, 6, 1 if shared else 3))
    index = RNG.integers(0, 6, (4, 3))
    full = np.broadcast_to(values, (2, 6, 3))
    expected = np.stack([[full[:, index[k, w], w] for w in range(3)] for k in range(4)])
    np.testing.assert_array_equal(windows.pick(jnp.asarray(values), jnp.asarray(index)), np.moveaxis(expected, 2, 0))
