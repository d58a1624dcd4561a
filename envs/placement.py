"""Where the arrays of many worlds live: spread over the CPU devices as the physics spreads its blocks.

Compiled programs are kept by the placement of their arguments. A state fresh from a reset must therefore lie where a
step leaves its own, or the second step would compile everything again.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rsim_jax.lanes import blocks


def place(tree: Any, num_worlds: int, size: int) -> Any:
    """The same arrays, worlds spread over the devices that step them; traced ones and single devices stay as they are.

    Args:
        tree: arrays with the worlds last.
        num_worlds: N.
        size: worlds per block.
    """
    devices = _devices(num_worlds, size)
    if devices == 1 or any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree)):
        return tree
    return jax.device_put(tree, jax.tree.map(lambda leaf: _sharding(devices, num_worlds, leaf.ndim), tree))


def _devices(num_worlds: int, size: int) -> int:
    if jax.default_backend() != "cpu":
        return 1
    return min(jax.local_device_count(), blocks.padded_count(num_worlds, size) // size)


@functools.cache
def _sharding(devices: int, num_worlds: int, ndim: int) -> NamedSharding:
    """Worlds spread where they divide evenly, else a copy everywhere."""
    mesh = Mesh(np.array(jax.local_devices()[:devices]), ("devices",))
    spread = (*[None] * (ndim - 1), "devices") if num_worlds % devices == 0 else ()
    return NamedSharding(mesh, PartitionSpec(*spread))
