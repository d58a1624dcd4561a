"""Bilateral rows eliminated exactly, before and beside all others.

With whitened rows Y (see `contact/system.py`), one column a loop equation, the equations J u+ = target become
Y' z = target - J u* for the whitened change z of the free velocity u*. Gram-Schmidt gives Y = Q R with orthonormal
columns Q and upper triangular R, so that

    z = Q s,   R' s = target - J u*                  the change that closes the loops by the least work
    y <- y - Q (Q' y)                                of every other row: its impulses cannot open a loop any more
    R lam = s - sum over the other rows of (Q' y) lam_y          the impulses of the loop equations themselves

Every equation is orthogonalised twice, or nearly redundant ones would lose what they share with the others. One whose
remainder is no more than the rounding of its own length says nothing new, or moves nothing: it is dropped, and its
impulse is zero. A loop closed by more equations than it needs (a planar linkage with pins in space) stays finite.
Reference: Giraud et al., "Rounding error analysis of the classical Gram-Schmidt orthogonalization process", Numer.
Math. 101 (2005).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.contact.system import dot_rows
from rsim_jax.lanes.fence import fence
from rsim_jax.lanes.tree import total
from rsim_jax.structs import record

REDUNDANT = {"float32": 1e-4, "float64": 1e-9}  # remainder of a row, relative to the row, below which it is dropped
TINY = 1e-30


class Basis:
    """The space of the loop impulses, E equations."""

    q: jax.Array  # (E, nv, N) orthonormal, zero where an equation is dropped
    above: jax.Array  # (E, E, N): [k, j] = R[j, k] for j < k, else zero
    inverse_diagonal: jax.Array  # (E, N) 1 / R[k, k], zero where dropped
    s: jax.Array  # (E, N)


Basis = record(Basis)


def eliminate(y: jax.Array, error: jax.Array) -> Basis:
    """The basis of whitened rows y (E, nv, N) and `error` = target - J u* (E, N)."""
    count, _, n = y.shape
    tolerance = REDUNDANT[str(y.dtype)] ** 2

    def add(k: jax.Array, basis: Basis) -> Basis:
        row, wish = (fence(lax.dynamic_index_in_dim(x, k, keepdims=False)) for x in (y, error))
        remainder, first = project(basis.q, row[None])
        remainder, second = project(basis.q, remainder)
        remainder, shares = remainder[0], fence((first + second)[0])
        square = dot_rows(remainder, remainder)
        new = square > tolerance * dot_rows(row, row) + TINY
        inverse = fence(jnp.where(new, lax.rsqrt(jnp.where(new, square, 1)), 0))
        s = fence((wish - total(shares * basis.s)) * inverse)
        parts = (remainder * inverse, shares, inverse, s)
        old = (basis.q, basis.above, basis.inverse_diagonal, basis.s)
        return Basis(*(lax.dynamic_update_index_in_dim(x, part, k, 0) for x, part in zip(old, parts, strict=True)))

    scalar = jnp.zeros((count, n), y.dtype)
    return lax.fori_loop(0, count, add, Basis(jnp.zeros_like(y), jnp.zeros((count, count, n), y.dtype), scalar, scalar))


def combine(q: jax.Array, shares: jax.Array) -> jax.Array:
    """Q shares: (E, nv, N), (..., E, N) -> (..., nv, N)."""
    return fence(total(jnp.swapaxes(q * shares[..., None, :], -3, -2)))


def project(q: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(y - Q Q' y, Q' y) of rows y (rows, nv, N): (rows, nv, N), (rows, E, N)."""
    shares = fence(dot_rows(q, y[:, None]))
    return fence(y - combine(q, shares)), shares


def keep_clear(basis: Basis, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`project`, with rows that have no other mobility left at exactly zero."""
    remainder, shares = project(basis.q, y)
    mobile = dot_rows(remainder, remainder) > REDUNDANT[str(y.dtype)] ** 2 * dot_rows(y, y) + TINY
    return fence(jnp.where(mobile[:, None], remainder, 0)), shares


def change(basis: Basis) -> jax.Array:
    """z (nv, N) that closes the loops before other rows act."""
    return combine(basis.q, basis.s)


def loop_impulses(basis: Basis, taken: jax.Array) -> jax.Array:
    """lam (E, N) of the loop equations; `taken` (E, N) = sum of (Q' y) lam_y over all other rows."""
    count = basis.s.shape[0]

    def back(i: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        right, lam = carry
        k = count - 1 - i
        one = lax.dynamic_index_in_dim(right, k, keepdims=False)
        one = one * lax.dynamic_index_in_dim(basis.inverse_diagonal, k, keepdims=False)
        right = right - lax.dynamic_index_in_dim(basis.above, k, keepdims=False) * one
        return fence(right), lax.dynamic_update_index_in_dim(lam, one, k, 0)

    return lax.fori_loop(0, count, back, (fence(basis.s - taken), jnp.zeros_like(basis.s)))[1]
