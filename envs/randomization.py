"""Randomised model leaves: a fresh robot for every world and every episode."""

from __future__ import annotations

import jax
from jaxtyping import Array, Key

from rsim_jax.structs import Model

Ranges = tuple[tuple[str, float, float], ...]


def draw_leaves(model: Model, ranges: Ranges, keys: Key[Array, " N"]) -> dict[str, Array]:
    """Model leaves multiplied by random factors, last axis N, for `model.replace`.

    Every item (body, dof, actuator ...) of a leaf has its own factor, uniform in [low, high] and shared by the item's
    components, so that an inertia stays one that a body can have.

    Args:
        ranges: ((leaf name, low, high), ...).
        keys: one per world.
    """
    leaves = {}
    for n, (name, low, high) in enumerate(ranges):
        leaf = getattr(model, name)

        def factors(key: Array, n: int = n, items: int = leaf.shape[-2], low: float = low, high: float = high) -> Array:
            return jax.random.uniform(jax.random.fold_in(key, n), (items,), model.dtype, low, high)

        leaves[name] = leaf * jax.vmap(factors, out_axes=-1)(keys)
    return leaves
