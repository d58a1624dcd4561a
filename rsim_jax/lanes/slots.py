"""Loops over slots that fill from the first: what no world of the block uses costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def scan_slots(used: jax.Array, fn: Callable[[Any, Any], tuple[Any, Any]], carry: Any, slots: Any) -> tuple[Any, Any]:
    """lax.scan of fn(carry, slot) -> (carry, result) over slots; the ones from `used` on are skipped, result zero.

    Unlike a loop that ends at `used` this has a reverse-mode derivative.
    """
    count = jax.tree.leaves(slots)[0].shape[0]
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), slots)
    shapes = jax.eval_shape(fn, carry, one)[1]

    def skip(carry: Any, slot: Any) -> tuple[Any, Any]:
        del slot
        return carry, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    def body(carry: Any, xs: tuple[jax.Array, Any]) -> tuple[Any, Any]:
        k, slot = xs
        return lax.cond(k < used, fn, skip, carry, slot)

    return lax.scan(body, carry, (jnp.arange(count, dtype=jnp.int32), slots))
