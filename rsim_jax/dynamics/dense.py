"""The mass matrix of deep trees, dense.

A path as long as the tree leaves no sparsity to use, and written-out recursions over hundreds of levels would not
compile in reasonable time. This module has the interface of `paths` (see there), with LAPACK's Cholesky below it:
M = U U', U upper triangular, from the factorisation of M with its rows and columns reversed.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from rsim_jax.dynamics.kinematics import Subspace
from rsim_jax.dynamics.structure import Structure, structure
from rsim_jax.lanes import spatial
from rsim_jax.lanes.tree import take
from rsim_jax.structs import Model, record


class DenseFactor:
    """U of M = U U', batch first (N, nv, nv), tree order."""

    upper: jax.Array


DenseFactor = record(DenseFactor)


def subtree_mask(tree: Structure) -> np.ndarray:
    """(links, links) bool, tree order: [i, k] whether link k lies in the sub-tree of link i."""
    count = len(tree.link_order)
    mask = np.eye(count, dtype=bool)
    for depth in range(1, len(tree.levels)):
        level, above = tree.levels[depth], tree.levels[depth - 1]
        for item, parent in enumerate(level.parents):
            mask[:, level.start + item] |= mask[:, above.start + parent]
    return mask


def sum_subtrees(tree: Structure, per_link: jax.Array) -> jax.Array:
    """Sums over every link's sub-tree: (..., links, N) -> the same shape."""
    return _multiply(subtree_mask(tree), per_link)


def sum_ancestors(tree: Structure, per_link: jax.Array) -> jax.Array:
    """Sums over every link and its ancestors: (..., links, N) -> the same shape."""
    return _multiply(subtree_mask(tree).T, per_link)


def _multiply(mask: np.ndarray, x: jax.Array) -> jax.Array:
    return jnp.einsum("ik,...kn->...in", jnp.asarray(mask, x.dtype), x, precision="highest")


def mass_rows(model: Model, subspace: Subspace, composite_inertia: jax.Array) -> jax.Array:
    """M (nv, nv, N) in tree order, with armature."""
    tree = structure(model.topology)
    motion = (subspace.angular, subspace.linear)
    force = spatial.momentum(take(composite_inertia, tree.dof_link), motion)
    products = sum(jnp.einsum("cin,ckn->ikn", m, f, precision="highest") for m, f in zip(motion, force, strict=True))
    descends = subtree_mask(tree)[np.ix_(tree.dof_link, tree.dof_link)]
    order = np.arange(len(tree.dof_link))
    upper = descends & (order[:, None] <= order[None])  # the composite of the later dof's link is the right one
    half = jnp.where(jnp.asarray(upper)[:, :, None], products, 0)
    diagonal = jnp.eye(model.nv, dtype=half.dtype)[:, :, None]
    full = half + jnp.swapaxes(half, 0, 1) - half * diagonal
    return full + diagonal * take(model.joint_armature, tree.dof_order)


def diagonal(rows: jax.Array) -> jax.Array:
    """Diagonal of M (nv, N)."""
    return jnp.moveaxis(jnp.diagonal(rows, axis1=0, axis2=1), -1, 0)


def full_matrix(model: Model, rows: jax.Array) -> jax.Array:
    """M (nv, nv, N) in public order."""
    order = jnp.asarray(structure(model.topology).dof_position)
    return rows[order][:, order]


def factorize(tree: Structure, rows: jax.Array, weight: jax.Array) -> DenseFactor:
    """U by the Cholesky factor of the reversed matrix with weight (nv, N) added to its diagonal."""
    del tree
    rows = rows + jnp.eye(rows.shape[0], dtype=rows.dtype)[:, :, None] * weight
    reversed_matrix = jnp.moveaxis(rows, -1, 0)[:, ::-1, ::-1]
    return DenseFactor(jnp.linalg.cholesky(reversed_matrix)[:, ::-1, ::-1])


def _solve(factor: DenseFactor, x: jax.Array, transposed: bool) -> jax.Array:
    """U^-1 x or U'^-1 x for x (..., nv, N)."""
    flat = jnp.moveaxis(x.reshape(-1, *x.shape[-2:]), (0, 1, 2), (2, 1, 0))  # (N, nv, rows)
    solved = solve_triangular(factor.upper, flat, lower=False, trans=1 if transposed else 0)
    return jnp.moveaxis(solved, (0, 1, 2), (2, 1, 0)).reshape(x.shape)


def solve(tree: Structure, factor: DenseFactor, x: jax.Array) -> jax.Array:
    """M^-1 x."""
    del tree
    return _solve(factor, _solve(factor, x, transposed=False), transposed=True)


def whiten(tree: Structure, factor: DenseFactor, jacobian: jax.Array) -> jax.Array:
    """Y' of J: U^-1 J' row by row (rows, nv, N)."""
    del tree
    return _solve(factor, jacobian, transposed=False)


def unwhiten(tree: Structure, factor: DenseFactor, z: jax.Array) -> jax.Array:
    """The velocity U'^-1 z of a whitened velocity z (nv, N)."""
    del tree
    return _solve(factor, z, transposed=True)
