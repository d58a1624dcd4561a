"""Tree-sparse factorisation M = L' D L and the solves with its parts.

L is unit lower triangular with the sparsity of the paths: L(k, i) is non-zero only where i is an ancestor of k, and
factorisation from the leaves to the root creates no fill (Featherstone 2008, section 6.5). Group by group:

    D_g = M_g(g),  L_g(p) = M_g(p) / D_g,  M_p(q) -= sum over items of L_g(p) M_g(q)      for q <= p < g

Vectors are in tree order with the dof axis second to last: (..., nv, N).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.dynamics.structure import Structure
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import segment_sum, take
from rsim_jax.structs import record


class Factor:
    """L along the paths, and D."""

    lower: tuple[jax.Array, ...]  # per group: (g, n_g, N)
    inverse_diagonal: jax.Array  # (nv, N), 1 / D in tree order
    inverse_root: jax.Array  # (nv, N), D^-1/2


Factor = record(Factor)


def factorize(tree: Structure, rows: tuple[jax.Array, ...]) -> Factor:
    """Factor the path rows of a mass matrix."""
    count = len(rows)
    lower: list[jax.Array] = [None] * count
    inverse: list[jax.Array] = [None] * count
    reduced: list[jax.Array] = [None] * count
    for p in range(count - 1, -1, -1):
        width = tree.groups[p].stop - tree.groups[p].start
        row = rows[p]
        for g in range(p + 1, count):
            update = lower[g][p] * reduced[g][: p + 1]
            row = row - segment_sum(update, tree.groups[g].ancestors[p], width)
        row = fence(row)
        inverse[p] = fence(1 / row[p])
        reduced[p] = row
        lower[p] = fence(row[:p] * inverse[p])
    diagonal = concatenate(inverse, axis=-2) if count else jnp.zeros((0, 1))
    return Factor(tuple(lower), diagonal, fence(jnp.sqrt(diagonal)))


def solve_transposed(tree: Structure, factor: Factor, x: jax.Array) -> jax.Array:
    """L'^-1 x, from the leaves to the root."""
    parts: list[jax.Array] = [x[..., g.start : g.stop, :] for g in tree.groups]
    for p in range(len(parts) - 2, -1, -1):
        width = tree.groups[p].stop - tree.groups[p].start
        part = parts[p]
        for g in range(p + 1, len(parts)):
            part = part - segment_sum(factor.lower[g][p] * parts[g], tree.groups[g].ancestors[p], width)
        parts[p] = fence(part)
    return concatenate(parts, axis=-2) if parts else x


def solve_lower(tree: Structure, factor: Factor, x: jax.Array) -> jax.Array:
    """L^-1 x, from the root to the leaves."""
    parts: list[jax.Array] = [x[..., g.start : g.stop, :] for g in tree.groups]
    for g in range(1, len(parts)):
        part = parts[g]
        for p in range(g):
            part = part - factor.lower[g][p] * take(parts[p], tree.groups[g].ancestors[p])
        parts[g] = fence(part)
    return concatenate(parts, axis=-2) if parts else x


def solve(tree: Structure, factor: Factor, x: jax.Array) -> jax.Array:
    """M^-1 x."""
    return solve_lower(tree, factor, fence(solve_transposed(tree, factor, x) * factor.inverse_diagonal))


def whiten(tree: Structure, factor: Factor, jacobian: jax.Array) -> jax.Array:
    """Y' = D^-1/2 L'^-1 J' row by row: (rows, nv, N) -> (rows, nv, N), so that J M^-1 J' = Y' Y."""
    return fence(solve_transposed(tree, factor, jacobian) * factor.inverse_root)


def unwhiten(tree: Structure, factor: Factor, z: jax.Array) -> jax.Array:
    """The velocity L^-1 D^-1/2 z of a whitened velocity z (nv, N)."""
    return solve_lower(tree, factor, fence(z * factor.inverse_root))
