"""Blocks of worlds: the one place that knows about devices and caches.

A program over N worlds is compiled for one block size and run block after block, the blocks spread over the CPU
devices (one per core). A block's working set fits the core's cache, and every world is computed by the same machine
code whatever N is, so it gets the same bits for N = 1 and N = 4096. N is padded with copies of world 0, never
reported. On other backends all worlds run at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

BLOCK = 256  # worlds: measured best of 64 ... 1024 for robots of 6 to 23 dofs


def block_size(nv: int) -> int:
    """Worlds per block for a model with nv dofs: less where matrices along a path of nv dofs outgrow the cache."""
    return BLOCK if nv <= 32 else 16


def map_worlds(fn: Callable[[Any, Any], Any], shared: Any, worlds: Any, count: int, size: int) -> Any:
    """fn(shared leaves with their own world axis, worlds) over blocks of the last axis.

    Args:
        fn: (shared, worlds) -> pytree with the world axis last.
        shared: pytree of arrays whose last axis is 1 (same for all worlds) or `count`; scalars stay scalars.
        worlds: pytree of arrays with `count` worlds on the last axis.
        count: number of worlds.
        size: worlds per block.
    """
    if jax.default_backend() != "cpu":
        return fn(shared, worlds)
    devices = len(jax.local_devices())
    blocks = -(-count // size)
    devices = min(devices, blocks)
    blocks = -(-blocks // devices) * devices
    total = blocks * size

    leaves, treedef = jax.tree.flatten(shared)
    varied = [leaf.ndim > 0 and leaf.shape[-1] == count and count > 1 for leaf in leaves]
    if count == 1:
        varied = [False] * len(leaves)

    def split(x: jax.Array) -> jax.Array:
        if total != count:
            filler = jnp.broadcast_to(x[..., :1], (*x.shape[:-1], total - count))
            x = jnp.concatenate([x, filler], axis=-1)
        return jnp.moveaxis(x.reshape(*x.shape[:-1], blocks, size), -2, 0)

    def join(x: jax.Array) -> jax.Array:
        x = jnp.moveaxis(x, 0, -2)
        return x.reshape(*x.shape[:-2], total)[..., :count]

    def one(block: tuple[list[jax.Array], Any]) -> Any:
        own, part = block
        own = iter(own)
        merged = [next(own) if v else leaf for leaf, v in zip(constants, varied, strict=True)]
        return fn(jax.tree.unflatten(treedef, merged), part)

    constants = leaves
    own_blocks = [split(leaf) for leaf, v in zip(leaves, varied, strict=True) if v]
    world_blocks = jax.tree.map(split, worlds)

    def run(own: list[jax.Array], part: Any) -> Any:
        return lax.map(one, (own, part))

    if devices > 1:
        mesh = Mesh(np.array(jax.local_devices()[:devices]), ("devices",))
        spread = PartitionSpec("devices")
        run = jax.shard_map(run, mesh=mesh, in_specs=(spread, spread), out_specs=spread, check_vma=False)
    return jax.tree.map(join, run(own_blocks, world_blocks))
