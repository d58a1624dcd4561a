"""Stage boundaries for XLA's CPU backend.

A producer that several fusions read is recomputed inside each of them; unrolled small-vector algebra then blows up.
Closing a stacked result with an optimization barrier makes it a value in memory, computed once. Other backends
schedule this well on their own, so there the fence is the identity.
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
    return lax.optimization_barrier(tree) if jax.default_backend() == "cpu" else tree


def stack(parts: Sequence[jax.Array], axis: int = 0) -> jax.Array:
    """Broadcast the parts against each other, stack them, at most MAX_OPERANDS in one concatenate, and fence."""
    shape = jnp.broadcast_shapes(*(p.shape for p in parts))
    parts = [jnp.broadcast_to(p, shape) for p in parts]
    return concatenate([jnp.expand_dims(p, axis) for p in parts], axis)


def concatenate(parts: Sequence[jax.Array], axis: int = 0) -> jax.Array:
    """Concatenate in groups of at most MAX_OPERANDS, each fenced; parts of size 0 along the axis are dropped."""
    parts = [p for p in parts if p.shape[axis]] or list(parts[:1])
    while len(parts) > 1:
        groups = [parts[i : i + MAX_OPERANDS] for i in range(0, len(parts), MAX_OPERANDS)]
        parts = [fence(jnp.concatenate(g, axis)) if len(g) > 1 else g[0] for g in groups]
    return parts[0]
