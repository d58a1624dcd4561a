"""Projected Gauss-Seidel over rows, forward and backward in turn, with the pairs of sweeps extrapolated.

A visit solves its own row exactly with the others held (`contact/visit.py`; one-dimensional rows clip). What converges
slowly is the load shared between rows that push on the same light body: one or two modes that shrink by a fixed factor
from pair to pair. Anderson's rule of depth one removes the slowest: with x the impulses before a pair, y after it,
f = y - x and the previous pair's (y', f'),

    x_next = y - g (y - y'),   g = (f - f') . f / |f - f'|^2     weighted by the rows' blocks

The last pair is never extrapolated, so impulses are always admissible. Measured on 2,560 row problems of a tumbling
ant at 20 sweeps, share with a residual below 1e-3 m/s: projected rows 92.8 %, exact visits 94.9 %, extrapolated
99.96 %. Reference: Walker, Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49 (2011).

A world whose visits changed no row's velocity by the tolerance in a pair stops; the loop ends when all have.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.contact.system import Impulses, RowSystem, dot_rows, unpack_contact, velocity_change
from rsim_jax.contact.visit import exact_contact, inverses, reciprocal
from rsim_jax.lanes.fence import fence, stack

LONGEST_STEP = 20.0  # bound of the extrapolation g
ROLLED_SCALARS = 48  # scalar rows beyond which a sweep loops over them instead of writing them out

Carry = tuple[jax.Array, jax.Array, jax.Array]  # contact impulses (K, 3, N), scalar ones (S, N), dz (nv, N)


def sweep_rows(system: RowSystem, start: Impulses, sweeps: int, slip_rule: str) -> Impulses:
    """Impulses after at most `sweeps` sweeps from `start`."""
    if start.contact.shape[0] + start.scalar.shape[0] == 0 or sweeps == 0:
        return start
    inverse = inverses(system)
    inverse_scalar = fence(reciprocal(system.scalar_block, system.scalar_block))

    def forward(carry: Carry) -> Carry:
        contact, scalar, dz = carry
        scalar, dz = _scalar_visits(system, inverse_scalar, scalar, dz, reverse=False)
        contact, dz = _contact_visits(system, inverse, contact, dz, slip_rule, reverse=False)
        return contact, scalar, dz

    def backward(carry: Carry) -> Carry:
        contact, scalar, dz = carry
        contact, dz = _contact_visits(system, inverse, contact, dz, slip_rule, reverse=True)
        scalar, dz = _scalar_visits(system, inverse_scalar, scalar, dz, reverse=True)
        return contact, scalar, dz

    carry = (start.contact, start.scalar, velocity_change(system, start))
    if sweeps > 1:
        carry = _pairs(system, carry, lambda x: backward(forward(x)), sweeps // 2)
    if sweeps % 2:
        carry = forward(carry)
    return Impulses(carry[0], carry[1])


def _pairs(system: RowSystem, carry: Carry, pair, count: int) -> Carry:
    """`count` pairs of sweeps, each but the last extrapolated."""
    n = carry[2].shape[-1]
    running = jnp.ones((n,), bool)

    def unfinished(loop):
        return (loop[0] < count) & jnp.any(loop[5])

    def body(loop):
        k, x, last, change, settled, running = loop
        y = pair(x)
        f = fence(tuple(a - b for a, b in zip(y[:2], x[:2], strict=True)))
        g = jnp.where(k > 0, _step_length(system, f, change), 0)
        largest = _largest_velocity(system, f)
        still = running & ~(largest < system.tolerance)
        g = jnp.where(still & (k < count - 1), g, 0)
        ahead = tuple(fence(a - g * (a - b)) for a, b in zip(y, last, strict=True))
        settled = tuple(jnp.where(running, a, b) for a, b in zip(y, settled, strict=True))
        return k + 1, ahead, y, f, settled, still

    zero = tuple(jnp.zeros_like(part) for part in carry[:2])
    loop = (jnp.zeros((), jnp.int32), carry, carry, zero, carry, running)
    return lax.while_loop(unfinished, body, loop)[4]


def _step_length(system: RowSystem, f: tuple[jax.Array, jax.Array], before: tuple[jax.Array, jax.Array]) -> jax.Array:
    """g = (f - f') . f / |f - f'|^2, bounded; 0 where nothing changes."""
    top = jnp.zeros(f[0].shape[-1:], f[0].dtype)
    bottom = top
    for weight, now, old in (*_contact_parts(system, f[0], before[0]), (system.scalar_block, f[1], before[1])):
        turn = now - old
        top, bottom = top + _total(weight * turn * now), bottom + _total(weight * turn * turn)
    usable = bottom > jnp.finfo(bottom.dtype).tiny
    return fence(jnp.clip(jnp.where(usable, top / jnp.where(usable, bottom, 1), 0), -LONGEST_STEP, LONGEST_STEP))


def _contact_parts(system: RowSystem, now: jax.Array, old: jax.Array):
    tangential = system.block[:, 0] + system.block[:, 1]
    for r, weight in ((0, tangential), (1, tangential), (2, system.block[:, 2])):
        yield weight, now[:, r], old[:, r]


def _total(x: jax.Array) -> jax.Array:
    """Sum over rows (R, N) -> (N,), written out."""
    if x.shape[0] > 64:
        return jnp.sum(x, axis=0)
    return sum((x[k] for k in range(x.shape[0])), jnp.zeros(x.shape[-1:], x.dtype))


def _largest_velocity(system: RowSystem, f: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Largest change of a row's velocity by its own impulse in the last pair (N,), m/s."""
    largest = jnp.zeros(f[0].shape[-1:], f[0].dtype)
    for weight, now, _ in (*_contact_parts(system, f[0], f[0]), (system.scalar_block, f[1], f[1])):
        moved = fence(jnp.abs(weight * now))
        for k in range(moved.shape[0]):
            largest = jnp.maximum(largest, moved[k])
    return fence(largest)


def _contact_visits(system, inverse, contact, dz, slip_rule, reverse):
    """Visit the used contact slots in order; rolled, so that slots no world uses cost nothing."""
    if contact.shape[0] == 0:
        return contact, dz
    used = system.used

    def visit(i, state):
        contact, dz = state
        k = used - 1 - i if reverse else i
        row, own, lam = (
            fence(lax.dynamic_index_in_dim(x, k, keepdims=False)) for x in (system.contact, inverse, contact)
        )
        y, c, target, mu, block = unpack_contact(row, system.nv)
        xx, yy, zz, xy, xz, yz = (block[e] for e in range(6))
        cc = stack(
            [
                dot_rows(y[0], dz) + c[0] - (xx * lam[0] + xy * lam[1] + xz * lam[2]),
                dot_rows(y[1], dz) + c[1] - (xy * lam[0] + yy * lam[1] + yz * lam[2]),
                dot_rows(y[2], dz) + (c[2] - target) - (xz * lam[0] + yz * lam[1] + zz * lam[2]),
            ]
        )
        new = exact_contact(cc, mu, block, own, slip_rule)
        change = [new[r] - lam[r] for r in range(3)]
        dz = fence(dz + y[0] * change[0] + y[1] * change[1] + y[2] * change[2])
        return lax.dynamic_update_index_in_dim(contact, new, k, 0), dz

    return lax.fori_loop(0, used, visit, (contact, dz))


def _scalar_visits(system, inverse, scalar, dz, reverse):
    """Visit the one-dimensional rows in order."""
    count = scalar.shape[0]

    def visit(s, lam, dz):
        y = system.scalar_y[s]
        error = dot_rows(y, dz) + system.scalar_c[s] - system.scalar_target[s]
        new = fence(jnp.clip(lam - error * inverse[s], system.low[s], system.high[s]))
        return new, fence(dz + y * (new - lam))

    if count > ROLLED_SCALARS:

        def rolled(i, state):
            scalar, dz = state
            s = count - 1 - i if reverse else i
            new, dz = visit(s, scalar[s], dz)
            return lax.dynamic_update_index_in_dim(scalar, new, s, 0), dz

        return lax.fori_loop(0, count, rolled, (scalar, dz))
    parts = [scalar[s] for s in range(count)]
    for s in reversed(range(count)) if reverse else range(count):
        parts[s], dz = visit(s, parts[s], dz)
    return (stack(parts) if parts else scalar), dz
