"""The joint-space mass matrix along the paths of the tree, and its factorisation M = L' D L.

    M(k, i) = S_i . I_c(link of k) S_k     for every dof i on the path from k to the root, else zero

rows[g][p, item] = M(dof, its ancestor in group p), p = 0 ... g. L is unit lower triangular with the same sparsity:
factorisation from the leaves to the root creates no fill (Featherstone 2008, section 6.5). Group by group:

    D_g = M_g(g),  L_g(p) = M_g(p) / D_g,  M_p(q) -= sum over items of L_g(p) M_g(q)      for q <= p < g

The first groups often hold one dof each: a floating base, a chain. This trunk is shared by all paths, so its T x T
corner of M is dense: it is updated by whole rows, and L^-1 of it is kept, which turns its part of every solution into
one product. Programs get shorter by half, for a few more multiplications.

Vectors are in tree order with the dof axis second to last: (..., nv, N).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.dynamics.kinematics import Subspace
from rsim_jax.dynamics.structure import Structure, structure
from rsim_jax.lanes import spatial
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.tree import segment_sum, take, total
from rsim_jax.structs import Model, record

PathRows = tuple[jax.Array, ...]  # per group: (g + 1, n_g, N)


class Factor:
    """L along the paths, and D."""

    lower: tuple[jax.Array, ...]  # per group: (g, n_g, N)
    trunk_inverse: jax.Array  # (T, T, N), L^-1 of the trunk
    inverse_diagonal: jax.Array  # (nv, N), 1 / D in tree order
    inverse_root: jax.Array  # (nv, N), D^-1/2


Factor = record(Factor)


def mass_rows(model: Model, subspace: Subspace, composite_inertia: jax.Array) -> PathRows:
    """M along the paths, with armature on the diagonal."""
    tree = structure(model.topology)
    rows = []
    armature = take(model.joint_armature, tree.dof_order)
    links = tuple(link for group in tree.groups for link in group.links)
    motions = (subspace.angular, subspace.linear)
    forces = spatial.momentum(take(composite_inertia, links), motions)
    trunk = tree.trunk
    shared = None  # the dofs of the trunk against every dof
    if trunk:
        shared = fence(spatial.power([x[:, :trunk, None] for x in motions], [x[:, None] for x in forces]))
    for g, group in enumerate(tree.groups):
        dofs = slice(group.start, group.stop)
        motion, force = (tuple(x[:, dofs] for x in pair) for pair in (motions, forces))
        products = [shared[: min(trunk, g), dofs]] if trunk else []
        for p in range(trunk, g):
            above = slice(tree.groups[p].start, tree.groups[p].stop)
            products.append(spatial.power([take(x[:, above], group.ancestors[p]) for x in motions], force)[None])
        own = shared[g : g + 1, dofs] if g < trunk else spatial.power(motion, force)[None]
        rows.append(concatenate([*products, own + armature[dofs]]))
    return tuple(rows)


def diagonal(rows: PathRows) -> jax.Array:
    """Diagonal of M (nv, N), tree order."""
    return concatenate([row[-1] for row in rows], axis=-2)


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


def factorize(tree: Structure, rows: PathRows, weight: jax.Array) -> Factor:
    """Factor the path rows of a mass matrix with weight (nv, N) added to its diagonal."""
    count, trunk = len(rows), tree.trunk
    lower: list[jax.Array] = [None] * count
    inverse: list[jax.Array] = [None] * count
    reduced: list[jax.Array] = [None] * count
    for p in range(count - 1, trunk - 1, -1):
        group = tree.groups[p]
        row = rows[p]
        for g in range(p + 1, count):
            update = lower[g][p] * reduced[g][: p + 1]
            row = row - segment_sum(update, tree.groups[g].ancestors[p], group.stop - group.start)
        reduced[p] = fence(row)
        inverse[p] = fence(1 / (reduced[p][p] + weight[group.start : group.stop]))
        lower[p] = fence(reduced[p][:p] * inverse[p])
    if trunk:
        _factorize_trunk(rows[:trunk], weight, lower, reduced, inverse)
    diagonal = concatenate(inverse, axis=-2) if count else jnp.zeros((0, 1))
    return Factor(tuple(lower), _unit_inverse(lower[:trunk], weight), diagonal, fence(jnp.sqrt(diagonal)))


def _factorize_trunk(
    rows: PathRows, weight: jax.Array, lower: list[jax.Array], reduced: list[jax.Array], inverse: list[jax.Array]
) -> None:
    """Fill in `lower` and `inverse` of the trunk, given those of the branches: its corner of M as a dense matrix."""
    trunk = len(rows)
    corner = stack([concatenate([row[:, 0], *_zeros(row, trunk)]) for row in rows])
    for g in range(trunk, len(lower)):
        corner = corner - total(lower[g][:trunk, None] * reduced[g][None, :trunk])
    corner = fence(corner)
    for p in range(trunk - 1, -1, -1):
        inverse[p] = fence(1 / (corner[p, p : p + 1] + weight[p : p + 1]))
        lower[p] = fence(corner[p, :p] * inverse[p])[:, None]
        corner = fence(corner[:p, :p] - lower[p] * corner[p, :p])


def _zeros(row: jax.Array, width: int) -> list[jax.Array]:
    """What a path row of the trunk lacks to `width` entries."""
    missing = width - row.shape[0]
    return [jnp.zeros((missing, row.shape[-1]), row.dtype)] if missing else []


def _unit_inverse(lower: list[jax.Array], like: jax.Array) -> jax.Array:
    """L^-1 (T, T, N) of the trunk, row by row: e_g - sum over p < g of L_g(p) row_p."""
    trunk, n = len(lower), like.shape[-1]
    rows: list[jax.Array] = []
    for g in range(trunk):
        unit = jnp.broadcast_to(jnp.eye(trunk, dtype=like.dtype)[g][:, None], (trunk, n))
        above = [lower[g][p] * rows[p] for p in range(g)]
        rows.append(fence(unit - sum(above)) if above else unit)
    return stack(rows) if rows else jnp.zeros((0, 0, n), like.dtype)


def solve_transposed(tree: Structure, factor: Factor, x: jax.Array) -> jax.Array:
    """L'^-1 x, from the leaves to the root."""
    trunk = tree.trunk
    parts: list[jax.Array] = [x[..., g.start : g.stop, :] for g in tree.groups[trunk:]]
    below = list(zip(tree.groups[trunk:], factor.lower[trunk:], strict=True))
    for p in range(len(parts) - 2, -1, -1):
        width = below[p][0].stop - below[p][0].start
        part = parts[p]
        for g in range(p + 1, len(parts)):
            group, lower = below[g]
            part = part - segment_sum(lower[trunk + p] * parts[g], group.ancestors[trunk + p], width)
        parts[p] = fence(part)
    if not trunk:
        return concatenate(parts, axis=-2) if parts else x
    root = x[..., :trunk, :]
    for part, (_, lower) in zip(parts, below, strict=True):
        root = root - total(lower[:trunk] * part[..., None, :, :])
    root = _sum_rows(factor.trunk_inverse, fence(root)[..., None, :])
    return concatenate([fence(root), *parts], axis=-2)


def solve_lower(tree: Structure, factor: Factor, x: jax.Array) -> jax.Array:
    """L^-1 x, from the root to the leaves."""
    trunk = tree.trunk
    parts: list[jax.Array] = [x[..., g.start : g.stop, :] for g in tree.groups]
    if trunk:
        root = fence(total(factor.trunk_inverse * x[..., None, :trunk, :]))
    for g in range(trunk, len(parts)):
        part = parts[g]
        if trunk:
            part = part - _sum_rows(factor.lower[g][:trunk], root[..., None, :])
        for p in range(trunk, g):
            part = part - factor.lower[g][p] * take(parts[p], tree.groups[g].ancestors[p])
        parts[g] = fence(part)
    parts = [root, *parts[trunk:]] if trunk else parts
    return concatenate(parts, axis=-2) if parts else x


def _sum_rows(matrix: jax.Array, x: jax.Array) -> jax.Array:
    """Sum over p of matrix (p, item, N) x (..., p, 1, N): (..., item, N)."""
    products = matrix * x
    return sum((products[..., p, :, :] for p in range(1, matrix.shape[0])), products[..., 0, :, :])


def solve(tree: Structure, factor: Factor, x: jax.Array) -> jax.Array:
    """M^-1 x."""
    return solve_lower(tree, factor, fence(solve_transposed(tree, factor, x) * factor.inverse_diagonal))


def whiten(tree: Structure, factor: Factor, jacobian: jax.Array) -> jax.Array:
    """Y' = D^-1/2 L'^-1 J' row by row: (rows, nv, N) -> (rows, nv, N), so that J M^-1 J' = Y' Y."""
    return fence(solve_transposed(tree, factor, jacobian) * factor.inverse_root)


def unwhiten(tree: Structure, factor: Factor, z: jax.Array) -> jax.Array:
    """The velocity L^-1 D^-1/2 z of a whitened velocity z (nv, N)."""
    return solve_lower(tree, factor, fence(z * factor.inverse_root))
