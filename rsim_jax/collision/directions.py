"""Unit directions that stay finite, in value and derivative, where a distance vanishes."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.lanes.fence import stack
from rsim_jax.lanes.vectors import dot

# Two points closer than this (m) count as one: far below any geometry that is simulated, and its square is still a
# normal float32 number, so that neither 1/distance nor its derivative can overflow.
COINCIDENT = 1e-9


def direction(v: jax.Array, fallback: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(v/|v|, |v|) of displacements v (3, ...), m; where |v| < COINCIDENT the unit vector `fallback` and v . fallback.

    Value and derivative are finite everywhere: at coincidence they are those of a motion along the fallback.
    """
    squared = dot(v, v)
    apart = squared >= COINCIDENT * COINCIDENT
    length = jnp.where(apart, jnp.sqrt(jnp.where(apart, squared, 1)), 0)
    inverse = jnp.where(apart, 1 / jnp.sqrt(jnp.where(apart, squared, 1)), 0)
    length, inverse = stack([length, inverse])
    apart = length > 0
    return jnp.where(apart, v * inverse, fallback), jnp.where(apart, length, dot(v, fallback))


def perpendicular(u: jax.Array) -> jax.Array:
    """A unit vector (3, ...) perpendicular to the unit vector u: u x e, with e the axis that u leans on least."""
    x, y, z = u[0], u[1], u[2]
    along_z = (jnp.abs(z) <= jnp.abs(x)) & (jnp.abs(z) <= jnp.abs(y))
    along_y = ~along_z & (jnp.abs(y) <= jnp.abs(x))
    inverse = 1 / jnp.sqrt(jnp.where(along_z, x * x + y * y, jnp.where(along_y, x * x + z * z, y * y + z * z)))
    return stack(
        [
            jnp.where(along_z, y, jnp.where(along_y, -z, 0)) * inverse,
            jnp.where(along_z, -x, jnp.where(along_y, 0, z)) * inverse,
            jnp.where(along_z, 0, jnp.where(along_y, x, -y)) * inverse,
        ]
    )
