"""The row problem that the solver sees: rows, blocks and bounds, no bodies.

Whitened rows. With M = L' D L and J the Jacobian of a row, Y = D^-1/2 L'^-1 J' turns the Delassus matrix into Y' Y and
a velocity change into dz, with M^-1 J' lam = L^-1 D^-1/2 (Y lam). A row's velocity is c + Y' dz, c its velocity before
any impulse; dz collects the impulses of all rows. The sweep never touches L, D or J.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.lanes.fence import fence, stack
from rsim_jax.structs import record


class RowSystem:
    """K contact rows (three components each, z along the normal) and S one-dimensional rows."""

    y: jax.Array  # (K, 3, nv, N) whitened contact rows; zero where inactive
    c: jax.Array  # (K, 3, N) velocity before impulses, surface velocity included
    target: jax.Array  # (K, N) b
    friction: jax.Array  # (K, N)
    block: jax.Array  # (K, 6, N) Delassus block: xx yy zz xy xz yz
    scalar_y: jax.Array  # (S, nv, N)
    scalar_c: jax.Array  # (S, N)
    scalar_target: jax.Array  # (S, N)
    scalar_block: jax.Array  # (S, N)
    low: jax.Array  # (S, N) bounds of the impulse
    high: jax.Array  # (S, N)
    tolerance: jax.Array  # () m/s


RowSystem = record(RowSystem)


class Impulses:
    """Impulses of all rows."""

    contact: jax.Array  # (K, 3, N)
    scalar: jax.Array  # (S, N)


Impulses = record(Impulses)


def dot_rows(y: jax.Array, z: jax.Array) -> jax.Array:
    """Sum over dofs of y (..., nv, N) z (nv, N), written out: reductions do not vectorise over worlds."""
    if y.shape[-2] > 64:
        return jnp.sum(y * z, axis=-2)
    total = y[..., 0, :] * z[..., 0, :]
    for i in range(1, y.shape[-2]):
        total = total + y[..., i, :] * z[..., i, :]
    return total


def delassus_blocks(y: jax.Array) -> jax.Array:
    """(K, 6, N) diagonal blocks of Y' Y."""
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    return stack([dot_rows(y[:, a], y[:, b]) for a, b in pairs], axis=1)


def velocity_change(system: RowSystem, impulses: Impulses) -> jax.Array:
    """dz (nv, N) = sum of Y lam over all rows."""
    y, n = system.y, system.y.shape[-1]
    dz = jnp.zeros((y.shape[-2], n), y.dtype)
    for k in range(y.shape[0]):
        dz = fence(dz + _apply(y[k], impulses.contact[k]))
    for s in range(system.scalar_y.shape[0]):
        dz = fence(dz + system.scalar_y[s] * impulses.scalar[s])
    return dz


def _apply(y: jax.Array, lam: jax.Array) -> jax.Array:
    return y[0] * lam[0] + y[1] * lam[1] + y[2] * lam[2]


def velocities(system: RowSystem, dz: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Row velocities after dz: contact (K, 3, N), scalar (S, N)."""
    contact = stack([dot_rows(system.y[:, r], dz) for r in range(3)], axis=1) + system.c
    scalar = dot_rows(system.scalar_y, dz) + system.scalar_c
    return fence((contact, scalar))
