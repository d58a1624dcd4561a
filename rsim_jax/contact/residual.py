"""How far a row solution is from exact, in m/s, per world.

    normal       |min(v_z - b, G_zz lam_z)|             (scalar rows: the same with their bounds; soft ones with
                 G (lam - wish), wish the impulse that the row itself asks for)
    cone         G_tt max(|lam_t| - mu lam_z, 0)
    dissipation  |min(|v_t|, G_tt mu lam_z) (v_t / |v_t| + lam_t / |lam_t|)|

G_tt is the largest eigenvalue of the tangential block. Zero for the exact solution of the "coulomb" rule; the
dissipation residual of the "energy" rule measures how far its friction is from opposing slip.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.contact.system import Impulses, RowSystem
from rsim_jax.contact.visit import reciprocal
from rsim_jax.lanes.fence import fence, stack


def residuals(system: RowSystem, impulses: Impulses, contact: jax.Array, scalar: jax.Array) -> jax.Array:
    """(3, N) from the rows, their impulses and their velocities after the solve (K, 3, N), (S, N)."""
    n = system.worlds
    zero = jnp.zeros((1, n), system.contact.dtype)
    lam, v = impulses.contact, contact
    xx, yy, zz, xy = (system.block[:, k] for k in range(4))
    half, spread = 0.5 * (xx + yy), 0.5 * (xx - yy)
    tangential = half + jnp.sqrt(spread * spread + xy * xy)
    normal = jnp.where(zz > 0, jnp.abs(jnp.minimum(v[:, 2] - system.target, zz * lam[:, 2])), 0)
    size = jnp.sqrt(lam[:, 0] * lam[:, 0] + lam[:, 1] * lam[:, 1])
    speed = jnp.sqrt(v[:, 0] * v[:, 0] + v[:, 1] * v[:, 1])
    size, speed, tangential, normal = fence((size, speed, tangential, normal))
    bound = system.friction * lam[:, 2]
    cone = tangential * jnp.maximum(size - bound, 0)
    tiny = jnp.finfo(v.dtype).tiny
    by_speed, by_size = 1 / jnp.maximum(speed, tiny), 1 / jnp.maximum(size, tiny)
    dx = v[:, 0] * by_speed + lam[:, 0] * by_size
    dy = v[:, 1] * by_speed + lam[:, 1] * by_size
    dissipation = jnp.minimum(speed, tangential * jnp.maximum(bound, 0)) * jnp.sqrt(dx * dx + dy * dy)
    cone, dissipation = fence((cone, dissipation))
    error = scalar - system.scalar_target
    block = system.scalar_block
    if system.soft:
        share = fence(block * reciprocal(system.scalar_stiffness, system.scalar_stiffness))
        error = share * system.soften(error, impulses.scalar)
    wish = jnp.clip(block * impulses.scalar - error, block * system.low, block * system.high)
    # no mobility: block = 0 and its bounds may be infinite
    bounded = jnp.where(block > 0, jnp.abs(block * impulses.scalar - wish), 0)
    return stack([worst([normal, bounded, zero]), worst([cone, zero]), worst([dissipation, zero])])


def worst(parts: list[jax.Array]) -> jax.Array:
    """Maximum over the items of all parts: (N,), written out over items."""
    result = None
    for part in parts:
        for k in range(part.shape[0]):
            result = part[k] if result is None else jnp.maximum(result, part[k])
    return fence(result)
