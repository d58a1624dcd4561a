"""The row problem that the solver sees: rows, blocks and bounds, no bodies.

Whitened rows. With M = L' D L and J the Jacobian of a row, Y = D^-1/2 L'^-1 J' turns the Delassus matrix into Y' Y and
a velocity change into dz, with M^-1 J' lam = L^-1 D^-1/2 (Y lam). A row's velocity is c + Y' dz, c its velocity before
any impulse; dz collects the impulses of all rows. The sweep never touches L, D or J.

All that a contact's visits read lies in one array, slot first, so that a loop over slots copies one slice; slots fill
from the first, and loops skip the ones that no world of the block uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.contact.visit import inverse_block
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.tree import total
from rsim_jax.structs import record

# Columns of RowSystem.contact behind the 3 nv of Y.
C, TARGET, FRICTION, BLOCK, INVERSE, WIDTH = 0, 3, 4, 5, 11, 18


class RowSystem:
    """K contact rows (three components each, z along the normal) and S one-dimensional rows."""

    contact: jax.Array  # (K, 3 nv + WIDTH, N): Y row by row, c, b, mu, block, its inverse; zero if unused
    used: jax.Array  # () int32, slots that any world of the block uses
    scalar_y: jax.Array  # (S, nv, N)
    scalar_c: jax.Array  # (S, N)
    scalar_target: jax.Array  # (S, N)
    scalar_block: jax.Array  # (S, N)
    scalar_softness: jax.Array  # (S, N) velocity that an impulse costs beyond the block; (0, N) where no row is soft
    low: jax.Array  # (S, N) bounds of the impulse
    high: jax.Array  # (S, N)
    tolerance: jax.Array  # () m/s

    @property
    def slots(self) -> int:
        return self.contact.shape[0]

    @property
    def nv(self) -> int:
        return (self.contact.shape[1] - WIDTH) // 3

    @property
    def worlds(self) -> int:
        return self.contact.shape[-1]

    @property
    def soft(self) -> bool:
        """Whether any scalar row is soft."""
        return self.scalar_softness.shape[0] > 0

    def soften(self, velocity: jax.Array, impulse: jax.Array) -> jax.Array:
        """Scalar row velocities (S, N) plus softness times impulse: what the targets of soft rows are about."""
        return velocity + self.scalar_softness * impulse if self.soft else velocity

    @property
    def scalar_stiffness(self) -> jax.Array:
        """(S, N): velocity per impulse, softness included."""
        return self.scalar_block + self.scalar_softness if self.soft else self.scalar_block

    def column(self, start: int, width: int) -> jax.Array:
        """(K, width, N): columns behind Y."""
        first = 3 * self.nv + start
        return self.contact[:, first : first + width]

    @property
    def c(self) -> jax.Array:
        return self.column(C, 3)

    @property
    def target(self) -> jax.Array:
        return self.column(TARGET, 1)[:, 0]

    @property
    def friction(self) -> jax.Array:
        return self.column(FRICTION, 1)[:, 0]

    @property
    def block(self) -> jax.Array:
        return self.column(BLOCK, 6)


RowSystem = record(RowSystem)


class Impulses:
    """Impulses of all rows."""

    contact: jax.Array  # (K, 3, N)
    scalar: jax.Array  # (S, N)


Impulses = record(Impulses)


def pack_contact(y: jax.Array, c: jax.Array, target: jax.Array, friction: jax.Array) -> jax.Array:
    """One slot of RowSystem.contact (3 nv + WIDTH, N) from Y (3, nv, N), c (3, N), b (N,), mu (N,)."""
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    block = stack([dot_rows(y[a], y[b]) for a, b in pairs])
    return concatenate([y.reshape(-1, y.shape[-1]), c, stack([target, friction]), block, inverse_block(block)])


def unpack_contact(row: jax.Array, nv: int) -> tuple[jax.Array, ...]:
    """(Y as three (nv, N), c (3, N), b, mu, block xx yy zz xy xz yz (6, N), inverse (7, N)) of one slot."""
    rest = row[3 * nv :]
    y = [row[r * nv : (r + 1) * nv] for r in range(3)]
    return y, rest[C : C + 3], rest[TARGET], rest[FRICTION], rest[BLOCK:INVERSE], rest[INVERSE:WIDTH]


def scan_slots(used: jax.Array, fn: Callable[[Any, Any], tuple[Any, Any]], carry: Any, slots: Any) -> tuple[Any, Any]:
    """lax.scan of fn(carry, slot) -> (carry, result) over slots; the ones from `used` on are skipped, result zero.

    Unlike a loop that ends at `used` this has a reverse-mode derivative.
    """
    count = jax.tree.leaves(slots)[0].shape[0]
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), slots)
    shapes = jax.eval_shape(fn, carry, one)[1]

    def skip(carry: Any, slot: Any) -> tuple[Any, Any]:
        del slot
        return carry, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    def body(carry: Any, xs: tuple[jax.Array, Any]) -> tuple[Any, Any]:
        k, slot = xs
        return lax.cond(k < used, fn, skip, carry, slot)

    return lax.scan(body, carry, (jnp.arange(count, dtype=jnp.int32), slots))


def dot_rows(y: jax.Array, z: jax.Array) -> jax.Array:
    """Sum over dofs of y (..., nv, N) z (nv, N)."""
    return total(y * z)


def velocity_change(system: RowSystem, impulses: Impulses) -> jax.Array:
    """dz (nv, N) = sum of Y lam over all rows."""
    nv = system.nv
    dz = jnp.zeros((nv, system.worlds), system.contact.dtype)
    for s in range(system.scalar_y.shape[0]):
        dz = dz + system.scalar_y[s] * impulses.scalar[s]

    def add(dz: jax.Array, slot: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        row, lam = slot
        y, *_ = unpack_contact(row, nv)
        return dz + y[0] * lam[0] + y[1] * lam[1] + y[2] * lam[2], None

    return scan_slots(system.used, add, fence(dz), (system.contact, impulses.contact))[0]


def velocities(system: RowSystem, dz: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Row velocities after dz: contact (K, 3, N), zero in unused slots; scalar (S, N)."""
    nv = system.nv
    scalar = fence(dot_rows(system.scalar_y, dz) + system.scalar_c)

    def row_velocity(carry: None, row: jax.Array) -> tuple[None, jax.Array]:
        y, c, *_ = unpack_contact(row, nv)
        return carry, stack([dot_rows(y[r], dz) + c[r] for r in range(3)])

    return scan_slots(system.used, row_velocity, None, system.contact)[1], scalar
