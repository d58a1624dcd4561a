"""The joint-space mass matrix along the paths of the tree, and its factorisation M = L' D L.

    M(k, i) = S_i . I_c(link of k) S_k     for every dof i on the path from k to the root, else zero

rows[g][p, item] = M(dof, its ancestor in group p), p = 0 ... g. L is unit lower triangular with the same sparsity:
factorisation from the leaves to the root creates no fill (Featherstone 2008, section 6.5). Group by group:

    D_g = M_g(g),  L_g(p) = M_g(p) / D_g,  M_p(q) -= sum over items of L_g(p) M_g(q)      for q <= p < g

Vectors are in tree order with the dof axis second to last: (..., nv, N).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.dynamics.kinematics import Subspace
from rsim_jax.dynamics.structure import Structure, structure
from rsim_jax.lanes import spatial
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import segment_sum, take
from rsim_jax.structs import Model, record

PathRows = tuple[jax.Array, ...]  # per group: (g + 1, n_g, N)


class Factor:
    """L along the paths, and D."""

    lower: tuple[jax.Array, ...]  # per group: (g, n_g, N)
    inverse_diagonal: jax.Array  # (nv, N), 1 / D in tree order
    inverse_root: jax.Array  # (nv, N), D^-1/2


Factor = record(Factor)


def mass_rows(model: Model, subspace: Subspace, composite_inertia: jax.Array) -> PathRows:
    """M along the paths, with armature on the diagonal."""
    tree = structure(model.topology)
    rows = []
    armature = take(model.joint_armature, tree.dof_order)
    links = tuple(link for group in tree.groups for link in group.links)
    forces = spatial.momentum(take(composite_inertia, links), (subspace.angular, subspace.linear))
    for g, group in enumerate(tree.groups):
        dofs = slice(group.start, group.stop)
        motion = (subspace.angular[:, dofs], subspace.linear[:, dofs])
        force = tuple(part[:, dofs] for part in forces)
        trunk = _trunk(tree, g)
        products = []
        if trunk:  # dofs 0 ... trunk - 1 against every item
            shared = tuple(part[:, :trunk, None] for part in (subspace.angular, subspace.linear))
            products.append(spatial.power(shared, tuple(part[:, None] for part in force)))
        for p in range(trunk, g):
            above = slice(tree.groups[p].start, tree.groups[p].stop)
            ancestors = (
                take(subspace.angular[:, above], group.ancestors[p]),
                take(subspace.linear[:, above], group.ancestors[p]),
            )
            products.append(spatial.power(ancestors, force)[None])
        products.append((spatial.power(motion, force) + armature[dofs])[None])
        rows.append(concatenate(products))
    return tuple(rows)


def _trunk(tree: Structure, g: int) -> int:
    """Groups before the g-th that hold one dof only, from the root on: ancestors that all items share."""
    widths = [group.stop - group.start for group in tree.groups[:g]]
    return next((p for p, width in enumerate(widths) if width > 1), g)


def diagonal(rows: PathRows) -> jax.Array:
    """Diagonal of M (nv, N), tree order."""
    return concatenate([row[-1] for row in rows], axis=-2)


def add_diagonal(tree: Structure, rows: PathRows, weight: jax.Array) -> PathRows:
    """M with weight (nv, N) added to its diagonal."""
    result = []
    for group, row in zip(tree.groups, rows, strict=True):
        last = row[-1:] + weight[group.start : group.stop]
        result.append(concatenate([row[:-1], last]) if row.shape[0] > 1 else fence(last))
    return tuple(result)


def full_matrix(model: Model, rows: PathRows) -> jax.Array:
    """M (nv, nv, N) in public order (for users and tests, not for the step)."""
    tree = structure(model.topology)
    nv = model.nv
    n = rows[0].shape[-1] if rows else 1
    matrix = jnp.zeros((nv, nv, n), rows[0].dtype if rows else model.dtype)
    for g, group in enumerate(tree.groups):
        dofs = jnp.asarray(group.dofs)
        for p in range(g + 1):
            above = group.dofs if p == g else tuple(tree.groups[p].dofs[a] for a in group.ancestors[p])
            matrix = matrix.at[dofs, jnp.asarray(above)].set(rows[g][p])
            matrix = matrix.at[jnp.asarray(above), dofs].set(rows[g][p])
    return matrix


def factorize(tree: Structure, rows: PathRows) -> Factor:
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
