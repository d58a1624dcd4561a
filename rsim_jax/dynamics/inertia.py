"""World-frame inertias and the tree-sparse joint-space mass matrix.

Composite rigid bodies (Featherstone 2008, chapter 6) in world axes about the tree's origin, so that merging a child
into its parent is a plain sum:

    I_c(link) = I(link) + sum over children I_c(child)
    M(k, i) = S_i . I_c(link of k) S_k     for every dof i on the path from k to the root

M is stored by groups along these paths: rows[g][p, item] = M(dof, its ancestor in group p), p = 0 ... g.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.dynamics.kinematics import Subspace
from rsim_jax.dynamics.structure import Structure, structure
from rsim_jax.lanes import spatial, vectors
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.tree import segment_sum, take
from rsim_jax.structs import Model

PathRows = tuple[jax.Array, ...]  # per group: (g + 1, n_g, N)


def link_inertia(model: Model, rotation: jax.Array, position: jax.Array, tree_origin: jax.Array) -> jax.Array:
    """(10, njnt, N) in tree order, about each link's tree origin, world axes."""
    tree = structure(model.topology)
    mass = take(model.link_mass, tree.link_order)
    com = vectors.rotate(rotation, take(model.link_com, tree.link_order))
    c = fence(position + com - take(tree_origin, tree.link_tree))
    xx, yy, zz, xy, xz, yz = take(model.link_inertia, tree.link_order)
    r = rotation
    # rows of R I, then the six entries of (R I) R'
    columns = [(xx, xy, xz), (xy, yy, yz), (xz, yz, zz)]
    ri = [stack([r[i, 0] * col[0] + r[i, 1] * col[1] + r[i, 2] * col[2] for col in columns]) for i in range(3)]
    mx, my, mz = mass * c[0], mass * c[1], mass * c[2]
    diagonal = stack(
        [
            vectors.dot(ri[0], r[0]) + my * c[1] + mz * c[2],
            vectors.dot(ri[1], r[1]) + mx * c[0] + mz * c[2],
            vectors.dot(ri[2], r[2]) + mx * c[0] + my * c[1],
        ]
    )
    products = stack(
        [
            vectors.dot(ri[0], r[1]) - mx * c[1],
            vectors.dot(ri[0], r[2]) - mx * c[2],
            vectors.dot(ri[1], r[2]) - my * c[2],
        ]
    )
    first = stack([jnp.broadcast_to(mass, mx.shape), mx, my, mz])
    return concatenate([first, diagonal, products])


def composite(tree: Structure, per_link: jax.Array) -> jax.Array:
    """Sums over every link's sub-tree: (..., njnt, N) -> the same shape, both in tree order."""
    levels = [per_link[..., level.start : level.stop, :] for level in tree.levels]
    for depth in range(len(levels) - 1, 0, -1):
        level = tree.levels[depth]
        above = tree.levels[depth - 1]
        levels[depth - 1] = fence(
            levels[depth - 1] + segment_sum(levels[depth], level.parents, above.stop - above.start)
        )
    return concatenate(levels, axis=-2) if levels else per_link


def mass_rows(model: Model, subspace: Subspace, composite_inertia: jax.Array) -> PathRows:
    """M along the paths, with armature on the diagonal."""
    tree = structure(model.topology)
    rows = []
    armature = take(model.joint_armature, tree.dof_order)
    for g, group in enumerate(tree.groups):
        dofs = slice(group.start, group.stop)
        motion = (subspace.angular[:, dofs], subspace.linear[:, dofs])
        force = spatial.momentum(take(composite_inertia, group.links), motion)
        products = []
        for p in range(g):
            above = slice(tree.groups[p].start, tree.groups[p].stop)
            products.append(
                spatial.power(
                    (
                        take(subspace.angular[:, above], group.ancestors[p]),
                        take(subspace.linear[:, above], group.ancestors[p]),
                    ),
                    force,
                )
            )
        products.append(spatial.power(motion, force) + armature[dofs])
        rows.append(stack(products))
    return tuple(rows)


def dense(model: Model, rows: PathRows) -> jax.Array:
    """The full symmetric matrix (nv, nv, N) in public dof order (for users and tests, not for the step)."""
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
