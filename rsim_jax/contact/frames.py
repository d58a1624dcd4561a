"""Contact frames: two tangents for every normal.

A right-handed frame (x, y, z = normal) that is a function of the normal alone, without branches and without a
singular direction (Duff et al., "Building an Orthonormal Basis, Revisited", JCGT 6(1), 2017). The zero normal of an
inactive slot gets the world's x and y.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import stack


def frame(normal: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(x, y, z), each (3, K, N), of unit normals (3, K, N)."""
    nx, ny, nz = normal[0], normal[1], normal[2]
    sign = jnp.where(nz < 0, -1.0, 1.0).astype(normal.dtype)
    a = -1 / (sign + nz)
    b = nx * ny * a
    x = stack([1 + sign * nx * nx * a, sign * b, -sign * nx])
    y = stack([b, sign + ny * ny * a, -ny])
    return x, y, normal


def to_frame(axes: tuple[jax.Array, jax.Array, jax.Array], v: jax.Array) -> jax.Array:
    """World components (3, K, N) to frame components."""
    return stack([vectors.dot(axis, v) for axis in axes])


def to_world(axes: tuple[jax.Array, jax.Array, jax.Array], v: jax.Array) -> jax.Array:
    """Frame components (3, K, N) to world components."""
    x, y, z = axes
    return stack([x[k] * v[0] + y[k] * v[1] + z[k] * v[2] for k in range(3)])
