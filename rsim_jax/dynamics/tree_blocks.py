"""What a contact row needs of the two trees it touches, when those differ from world to world.

In a scattered scene (see Topology) every tree gets a block of w places, w the dofs of the largest. With (w_i, l_i) the
motion of dof i about the tree's origin o, and Wt the whitening of the tree (Y = J Wt for a row J of its dofs), a
unit impulse along e at point p of a link gives in that block

    Y_m = e . Lt_m + ((p - o) x e) . At_m,    (At, Lt)_m = sum over the dofs i that move the link of (w_i, l_i) Wt_im

so a row costs the same among ten bodies and among a thousand: per link and world one window of 6 w + 15 numbers, the
last twelve the link's velocity at the start of the step and its free velocity.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.dynamics.algebra import algebra
from rsim_jax.dynamics.assembly import Body
from rsim_jax.dynamics.structure import structure
from rsim_jax.lanes import windows
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import take
from rsim_jax.structs import LinkVelocity, Topology, record


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """Where the dofs of every tree are, and which of them move a link."""

    width: int  # w
    dofs: tuple[tuple[int, ...], ...]  # [tree][place] position in tree order of dofs; nv where the tree is narrower
    link_tree: tuple[int, ...]  # of every link; the number of trees for links that no joint moves
    moves: np.ndarray  # (njnt, w) whether place k of a link's tree moves it

    @property
    def count(self) -> int:
        return len(self.dofs)


@functools.lru_cache(maxsize=64)
def tree_layout(topology: Topology) -> TreeLayout:
    """The blocks of a scattered topology."""
    tree = structure(topology)
    dofs: list[list[int]] = [[] for _ in tree.roots]
    for position, owner in enumerate(tree.dof_tree):
        dofs[owner].append(position)
    width = max(map(len, dofs))
    padded = tuple(tuple(d + [topology.nv] * (width - len(d))) for d in dofs)
    links = [tree.link_tree[tree.link_position[j]] for j in range(topology.njnt)]
    link_tree = tuple(links + [len(dofs)] * (topology.nlink - topology.njnt))
    above: list[set[int]] = []
    for j, parent in enumerate(topology.joint_parent):
        above.append({j} | (above[parent] if parent < topology.njnt else set()))
    moves = np.zeros((topology.njnt, width), bool)
    for link in range(topology.njnt):
        for place, dof in enumerate(dofs[link_tree[link]]):
            moves[link, place] = tree.link_order[tree.dof_link[dof]] in above[link]
    return TreeLayout(width, padded, link_tree, moves)


class LinkBlocks:
    """Of every joint link, and a last one of zeros for links that no joint moves: one window per link and world."""

    table: jax.Array  # (njnt + 1, N, 6 w + 15)
    whitening: jax.Array  # (w, w, trees, N)
    width: int  # static


LinkBlocks = record(LinkBlocks, static=("width",))


class LinkView:
    """The two links of one contact slot; second to last axis A, B."""

    angular: jax.Array  # At (3, w, 2, N)
    linear: jax.Array  # Lt (3, w, 2, N)
    origin: jax.Array  # (3, 2, N)
    start: jax.Array  # (6, 2, N) angular and linear velocity about the origin at the start of the step
    free: jax.Array  # (6, 2, N)


LinkView = record(LinkView)


def link_blocks(topology: Topology, body: Body, start: LinkVelocity, free: LinkVelocity) -> LinkBlocks:
    """Pack all links; `start` and `free` velocity fields about the origins of the trees."""
    layout, n, njnt = tree_layout(topology), body.links.position.shape[-1], topology.njnt
    whitening = _whitening(topology, layout, body, n)
    own = take(whitening, layout.link_tree[:njnt])  # (w, w, njnt, N)
    moves = jnp.asarray(layout.moves.T, whitening.dtype)[:, :, None]  # (w, njnt, 1)

    def through(motion: jax.Array) -> jax.Array:
        """(3, nv, N) -> (3, w, njnt, N)."""
        spread = take(_spread(layout, motion), layout.link_tree[:njnt]) * moves
        return fence(sum(spread[:, k, None] * own[k] for k in range(layout.width)))

    joints = slice(0, njnt)
    parts = [
        through(body.subspace.angular).reshape(-1, njnt, n),
        through(body.subspace.linear).reshape(-1, njnt, n),
        free.reference[:, joints],
        *(x[:, joints] for field in (start, free) for x in (field.angular, field.linear)),
    ]
    rows = concatenate([jnp.broadcast_to(part, (part.shape[0], njnt, n)) for part in parts])
    padded = jnp.pad(rows, ((0, 0), (0, 1), (0, 0)))
    return LinkBlocks(fence(windows.windows(padded)), whitening, layout.width)


def view(blocks: LinkBlocks, links: jax.Array) -> LinkView:
    """The links (2, N) of a slot, as `slot_links` gives them."""
    w, n = blocks.width, links.shape[-1]
    rows = windows.read(blocks.table, links)  # (D, 2, N)
    angular, linear, origin, start, free = jnp.split(rows, np.cumsum([3 * w, 3 * w, 3, 6]))
    return LinkView(angular.reshape(3, w, 2, n), linear.reshape(3, w, 2, n), origin, start, free)


def slot_links(topology: Topology, links: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(links (K, 2, N) for `view`, trees (K, 2, N)) of contacts between links (2, K, N), -1 for an inactive slot.

    Two links of one tree share the block of A; B's tree is then the one that stands for the world.
    """
    layout = tree_layout(topology)
    mobile = (links >= 0) & (links < topology.njnt)
    index = jnp.where(mobile, links, topology.njnt)
    a, b = jnp.asarray([*layout.link_tree[: topology.njnt], layout.count], jnp.int32)[index]
    together = (a == b) & (a < layout.count)
    return jnp.swapaxes(index, 0, 1), jnp.stack([a, jnp.where(together, layout.count, b)], axis=1)


def unit_rows(blocks: LinkBlocks, topology: Topology, dofs: tuple[int, ...]) -> tuple[jax.Array, tuple]:
    """(Y (S, 2 w, N) of one row per public dof in the block of its tree, the two trees of each)."""
    layout, position = tree_layout(topology), structure(topology).dof_position
    w, n = blocks.width, blocks.table.shape[1]
    place = {dof: (tree, k) for tree, members in enumerate(layout.dofs) for k, dof in enumerate(members)}
    rows, trees = [jnp.zeros((0, 2 * w, n), blocks.table.dtype)], []
    for dof in dofs:
        tree, k = place[position[dof]]
        own = blocks.whitening[k, :, tree]
        rows.append(jnp.concatenate([own, jnp.zeros_like(own)])[None])
        trees.append((tree, layout.count))
    return concatenate(rows), tuple(trees)


def _whitening(topology: Topology, layout: TreeLayout, body: Body, n: int) -> jax.Array:
    """Wt of all trees (w, w, trees, N), row first: one unit row per place serves all trees at once."""
    tree, nv = structure(topology), topology.nv
    unit = np.zeros((layout.width, nv))
    for dofs in layout.dofs:
        for place, dof in enumerate(dofs):
            if dof < nv:
                unit[place, dof] = 1
    rows = jnp.broadcast_to(jnp.asarray(unit, body.links.position.dtype)[:, :, None], (layout.width, nv, n))
    return _spread(layout, algebra(tree).whiten(tree, body.factor, rows))


def _spread(layout: TreeLayout, x: jax.Array) -> jax.Array:
    """(..., nv, N) in tree order -> (..., w, trees, N)."""
    index = tuple(dofs[place] for place in range(layout.width) for dofs in layout.dofs)
    if max(index) == x.shape[-2]:
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, 1), (0, 0)])
    return take(x, index).reshape(*x.shape[:-2], layout.width, layout.count, x.shape[-1])


def collect(topology: Topology, dz: jax.Array) -> jax.Array:
    """dz by tree (trees + 1, N, w) -> (nv, N) in tree order."""
    layout = tree_layout(topology)
    place = {dof: (tree, k) for tree, dofs in enumerate(layout.dofs) for k, dof in enumerate(dofs)}
    rows = jnp.moveaxis(dz[: layout.count], 1, 2).reshape(-1, dz.shape[1])
    where = (place[dof] for dof in range(topology.nv))
    return fence(take(rows, tuple(tree * layout.width + k for tree, k in where)))
