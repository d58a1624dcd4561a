"""Blocks of worlds: the one place that knows about devices and caches.

A program over N worlds is compiled for one block size and runs block after block, the blocks spread over the CPU
devices (one per core). A block's working set fits the core's cache, and every world is computed by the same machine
code whatever N is, so it gets the same bits for N = 1 and N = 4096. N is padded to whole blocks with copies of world
0, never reported. On other backends all worlds run at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rsim_jax.structs import Topology

BLOCK = 256  # worlds: measured best of 64 ... 1024 for robots of 6 to 23 dofs
SMALL_BLOCK = 16
LARGE_MODEL = 32  # dofs beyond which the matrices of 256 worlds outgrow the cache
SCATTERED_BLOCK = 64  # rows by tree have no large matrices


def block_size(topology: Topology) -> int:
    """Worlds per block."""
    if topology.scattered:
        return SCATTERED_BLOCK
    return BLOCK if topology.nv <= LARGE_MODEL else SMALL_BLOCK


def padded_count(count: int, size: int) -> int:
    """Worlds that are computed for `count` worlds: whole blocks, the same number for every device."""
    if jax.default_backend() != "cpu":
        return count
    blocks = -(-count // size)
    devices = _devices(blocks, size)
    return -(-blocks // devices) * devices * size


def per_world(leaf: jax.Array, count: int) -> bool:
    """Whether a leaf of the model has one value per world (count > 1; a count of 1 is shared by definition)."""
    return leaf.ndim > 0 and count > 1 and leaf.shape[-1] == count


def pad(x: jax.Array, total: int) -> jax.Array:
    """Copies of world 0 behind the last world until there are `total`."""
    missing = total - x.shape[-1]
    if missing == 0:
        return x
    return jnp.concatenate([x, jnp.broadcast_to(x[..., :1], (*x.shape[:-1], missing))], axis=-1)


def spread(x: jax.Array, total: int, size: int) -> jax.Array:
    """x placed as the blocks will be computed: over the devices if it has `total` worlds, else a copy on each.

    Compiled programs are kept by the placement of their arguments, so without this a state fresh from `make_state` and
    one that a step left behind would each compile the step.
    """
    devices = _devices(total // size, size)
    if devices == 1:
        return x
    worlds = (*[None] * (x.ndim - 1), "devices") if x.ndim and x.shape[-1] == total else ()
    return lax.with_sharding_constraint(x, NamedSharding(_mesh(devices), PartitionSpec(*worlds)))


def _devices(blocks: int, size: int) -> int:
    """How many devices share the blocks.

    Large models use all of them even for one block: XLA sums over many rows in another order in a program for one
    device than in one for several, and a world would not have the same bits for N = 1.
    """
    if jax.default_backend() != "cpu":
        return 1
    return jax.local_device_count() if size < BLOCK else min(jax.local_device_count(), blocks)


def _mesh(devices: int) -> Mesh:
    return Mesh(np.array(jax.local_devices()[:devices]), ("devices",))


def map_blocks(fn: Callable[[Any, Any], Any], shared: Any, worlds: Any, size: int) -> Any:
    """fn(shared, worlds) over blocks of `size` worlds.

    Args:
        fn: takes the leaves of `shared` and `worlds` with at most `size` worlds on the last axis.
        shared: pytree whose leaves are scalars, or have a last axis of 1 (same for all) or of all worlds.
        worlds: pytree whose leaves all have the worlds last, a multiple of `size`.
        size: worlds per block.
    """
    if jax.default_backend() != "cpu":
        return fn(shared, worlds)
    total = jax.tree.leaves(worlds)[0].shape[-1]
    blocks = total // size
    leaves, treedef = jax.tree.flatten(shared)
    varied = [per_world(leaf, total) for leaf in leaves]

    def split(x: jax.Array) -> jax.Array:
        return jnp.moveaxis(x.reshape(*x.shape[:-1], blocks, size), -2, 0)

    def join(x: jax.Array) -> jax.Array:
        x = jnp.moveaxis(x, 0, -2)
        return x.reshape(*x.shape[:-2], total)

    def run(common: list[jax.Array], own: list[jax.Array], part: Any) -> Any:
        def one(block: tuple[list[jax.Array], Any]) -> Any:
            own, common_left = iter(block[0]), iter(common)
            merged = [next(own) if v else next(common_left) for v in varied]
            return fn(jax.tree.unflatten(treedef, merged), block[1])

        return lax.map(one, (own, part))

    common = [leaf for leaf, v in zip(leaves, varied, strict=True) if not v]
    own = [split(leaf) for leaf, v in zip(leaves, varied, strict=True) if v]
    devices = _devices(blocks, size)
    if devices > 1:
        worlds_of = PartitionSpec("devices")
        specs = (PartitionSpec(), worlds_of, worlds_of)
        run = jax.shard_map(run, mesh=_mesh(devices), in_specs=specs, out_specs=worlds_of, check_vma=False)
    return jax.tree.map(join, run(common, own, jax.tree.map(split, worlds)))
