"""World-frame inertias of links and of their sub-trees.

In world axes about the tree's origin merging a child into its parent is a plain sum (composite rigid bodies,
Featherstone 2008, chapter 6): I_c(link) = I(link) + sum over children I_c(child).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.dynamics import dense
from rsim_jax.dynamics.structure import Structure, structure
from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.tree import segment_sum, take
from rsim_jax.structs import Model


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
    if tree.deep:
        return dense.sum_subtrees(tree, per_link)
    levels = [per_link[..., level.start : level.stop, :] for level in tree.levels]
    for depth in range(len(levels) - 1, 0, -1):
        level = tree.levels[depth]
        above = tree.levels[depth - 1]
        levels[depth - 1] = fence(
            levels[depth - 1] + segment_sum(levels[depth], level.parents, above.stop - above.start)
        )
    return concatenate(levels, axis=-2) if levels else per_link
