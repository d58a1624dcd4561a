"""Stage boundaries for XLA's CPU backend.

A producer that several fusions read is recomputed inside each of them; a chain of such producers costs exponentially.
XLA drops optimization barriers before it fuses, so a barrier alone stops nothing (a sweep of 17 rows took 400 times
longer). What fusion does not duplicate are concatenates and pads: a stacked result is a value in memory, and any other
array becomes one when it is padded by a row that nobody reads. The barrier only keeps the simplifier from taking the
padding away again. Other backends schedule this well on their own, so there the fence is the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax

T = TypeVar("T")

MAX_OPERANDS = 8  # XLA's CPU fusion refuses larger concatenates: each operand would become its own kernel and a copy


def fence(tree: T) -> T:
    """The same values, computed here and once (CPU only)."""
    return jax.tree.map(_materialize, tree) if jax.default_backend() == "cpu" else tree


def _materialize(x: jax.Array) -> jax.Array:
    if x.ndim == 0 or x.size == 0:
        return x
    if x.ndim == 1:
        return _materialize(x[None])[0]
    axis = max(range(x.ndim - 1), key=lambda k: x.shape[k])
    row = [(0, int(k == axis), 0) for k in range(x.ndim)]
    padded = lax.optimization_barrier(lax.pad(x, jnp.zeros((), x.dtype), row))
    return lax.slice_in_dim(padded, 0, x.shape[axis], axis=axis)


def stack(parts: Sequence[jax.Array], axis: int = 0) -> jax.Array:
    """Broadcast the parts against each other and stack them, at most MAX_OPERANDS in one concatenate."""
    shape = jnp.broadcast_shapes(*(p.shape for p in parts))
    parts = [jnp.broadcast_to(p, shape) for p in parts]
    return concatenate([jnp.expand_dims(p, axis) for p in parts], axis)


def concatenate(parts: Sequence[jax.Array], axis: int = 0) -> jax.Array:
    """Concatenate in groups of at most MAX_OPERANDS; the result is a value in memory, parts of size 0 are dropped."""
    parts = [p for p in parts if p.shape[axis]] or list(parts[:1])
    while len(parts) > 1:
        groups = [parts[i : i + MAX_OPERANDS] for i in range(0, len(parts), MAX_OPERANDS)]
        parts = [lax.optimization_barrier(jnp.concatenate(g, axis)) if len(g) > 1 else g[0] for g in groups]
    return parts[0]
