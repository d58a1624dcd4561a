"""The best of a few items in every world, and what belongs to it, without sorting or indexing over worlds."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.lanes.fence import fence


def largest(score: jax.Array, *values: jax.Array) -> tuple[jax.Array, ...]:
    """The largest score (K, ...) -> (...), and of each of `values` (A, K, ...) the item that has it, (A, ...).

    Ties go to the first item. The maximum is a value in memory before items are compared with it: a chain that
    carries both would compute each link of itself twice.
    """
    score = fence(score)
    best = score[0]
    for k in range(1, score.shape[0]):
        best = jnp.maximum(best, score[k])
    best = fence(best)
    chosen = []
    for value in values:
        result = value[:, -1]
        for k in range(score.shape[0] - 2, -1, -1):
            result = jnp.where(score[k] == best, value[:, k], result)
        chosen.append(fence(result))
    return best, *chosen


def turned(x: jax.Array, axis: jax.Array) -> jax.Array:
    """x (3, ...) with its items in cyclic order so that the one `axis` (3, ...) marks with 1 comes last."""
    first, second = axis[0] > 0, axis[1] > 0
    orders = ((1, 2, 0), (2, 0, 1), (0, 1, 2))
    return fence(
        jnp.stack([jnp.where(first, x[a], jnp.where(second, x[b], x[c])) for a, b, c in zip(*orders, strict=True)])
    )
