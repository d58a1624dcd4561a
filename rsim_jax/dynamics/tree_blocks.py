"""What a contact row needs of the two trees it touches, when those differ from world to world.

A scene is *scattered* when a dense row over all its dofs would mostly hold zeros. Every tree then gets a block of w
places, w the dofs of the largest, and the factor of each tree is written out as a w x w matrix

    Wt[k, m] = entry m of Y for a unit row at dof k        so that a row's Y in this block is J Wt

Free bodies have w = 6: a row costs the same among ten bodies and among a thousand.
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
from rsim_jax.structs import ELLIPSOID, HFIELD, MESH, Topology, record

_TABLES = (HFIELD, ELLIPSOID, MESH)
DENSE_MARGIN = 24  # dofs beyond those of two trees up to which a dense row costs less than reading and writing two


@dataclass(frozen=True)
class TreeLayout:
    """Where the dofs of every tree are, and which of them move a link."""

    width: int  # w
    dofs: tuple[tuple[int, ...], ...]  # [tree][place] position in tree order of dofs; nv where the tree is narrower
    link_tree: tuple[int, ...]  # of every link; the number of trees for links that no joint moves
    moves: np.ndarray | None  # (nlink, w) whether place k of a link's tree moves it; None: always

    @property
    def count(self) -> int:
        return len(self.dofs)

    __hash__ = object.__hash__


def scattered(topology: Topology) -> bool:
    """Whether rows are kept by tree; never with loops and wires, whose rows join trees, or shapes given by tables."""
    if (
        topology.nloop
        or topology.nwire
        or any(topology.geom_type[g] in _TABLES for p in topology.pair_geoms for g in p)
    ):
        return False
    widths = _widths(topology)
    return len(widths) > 1 and sum(widths) > 2 * max(widths) + DENSE_MARGIN


def _widths(topology: Topology) -> list[int]:
    tree = structure(topology)
    return np.bincount(np.asarray(tree.dof_tree, int), minlength=len(tree.roots)).tolist() if tree.dof_tree else []


@functools.lru_cache(maxsize=64)
def tree_layout(topology: Topology) -> TreeLayout:
    """The blocks of a scattered topology."""
    tree, width = structure(topology), max(_widths(topology))
    dofs: list[list[int]] = [[] for _ in tree.roots]
    for position, owner in enumerate(tree.dof_tree):
        dofs[owner].append(position)
    padded = tuple(tuple(d + [topology.nv] * (width - len(d))) for d in dofs)
    links = [tree.link_tree[tree.link_position[j]] for j in range(topology.njnt)]
    link_tree = tuple(links + [len(dofs)] * (topology.nlink - topology.njnt))
    return TreeLayout(width, padded, link_tree, _moves(topology, dofs, link_tree, width))


def _moves(topology: Topology, dofs: list[list[int]], link_tree: tuple[int, ...], width: int) -> np.ndarray | None:
    tree = structure(topology)
    if len(tree.levels) == 1:  # every tree is one body
        return None
    above: dict[int, set[int]] = {}
    for j in range(topology.njnt):
        parent = topology.joint_parent[j]
        above[j] = {j} | (above[parent] if parent < topology.njnt else set())
    moves = np.zeros((topology.nlink, width), bool)
    for link in range(topology.njnt):
        for place, dof in enumerate(dofs[link_tree[link]]):
            moves[link, place] = tree.link_order[tree.dof_link[dof]] in above[link]
    return moves


class TreeBlocks:
    """Of every tree, the last for links that no joint moves: one window per tree and world."""

    table: jax.Array  # (trees + 1, N, 6 w + 3 + w w + 2 w)
    width: int  # static


TreeBlocks = record(TreeBlocks, static=("width",))


class TreeView:
    """The two trees of one contact slot side by side, as one small system."""

    angular: jax.Array  # (3, 2 w, N)
    linear: jax.Array  # (3, 2 w, N)
    origin: jax.Array  # (3, 2, N)
    whitening: jax.Array  # (w, 2, w, N)
    start: jax.Array  # (2 w, N)
    free: jax.Array  # (2 w, N)


TreeView = record(TreeView)


def tree_blocks(topology: Topology, body: Body, start: jax.Array, free: jax.Array) -> TreeBlocks:
    """Pack all trees; `start` and `free` velocity (nv, N) in tree order."""
    layout, n = tree_layout(topology), start.shape[-1]
    parts = [
        _spread(layout, body.subspace.angular),
        _spread(layout, body.subspace.linear),
        body.subspace.tree_origin[:, None],
        _whitening(topology, layout, body, n),
        _spread(layout, start)[None],
        _spread(layout, free)[None],
    ]
    rows = concatenate([part.reshape(-1, layout.count, n) for part in parts])
    padded = jnp.pad(rows, ((0, 0), (0, 1), (0, 0)))
    return TreeBlocks(fence(windows.windows(padded)), layout.width)


def view(blocks: TreeBlocks, trees: jax.Array) -> TreeView:
    """The trees (2, N) of a slot."""
    w, n = blocks.width, trees.shape[-1]
    rows = windows.read(blocks.table, trees)  # (D, 2, N)
    sizes = np.cumsum([3 * w, 3 * w, 3, w * w, w])
    angular, linear, origin, whitening, start, free = jnp.split(rows, sizes)

    def side_by_side(x: jax.Array) -> jax.Array:
        """(c w, 2, N) -> (c, 2 w, N)."""
        return jnp.moveaxis(x.reshape(-1, w, 2, n), 2, 1).reshape(-1, 2 * w, n)

    return TreeView(
        angular=side_by_side(angular),
        linear=side_by_side(linear),
        origin=origin,
        whitening=jnp.moveaxis(whitening.reshape(w, w, 2, n), 2, 1),
        start=side_by_side(start)[0],
        free=side_by_side(free)[0],
    )


def whiten(view: TreeView, jacobian: jax.Array) -> jax.Array:
    """Y of a row from J, both (..., 2 w, N)."""
    w, n = view.whitening.shape[0], jacobian.shape[-1]
    split = jacobian.reshape(*jacobian.shape[:-2], 2, w, n)
    y = sum(split[..., k : k + 1, :] * view.whitening[k] for k in range(w))
    return fence(y).reshape(jacobian.shape)


def unit_rows(blocks: TreeBlocks, topology: Topology, dofs: tuple[int, ...]) -> tuple[jax.Array, tuple]:
    """(Y (S, 2 w, N) of one row per public dof in the block of its tree, the two trees of each)."""
    layout, position = tree_layout(topology), structure(topology).dof_position
    w, n = blocks.width, blocks.table.shape[1]
    place = {dof: (tree, k) for tree, members in enumerate(layout.dofs) for k, dof in enumerate(members)}
    rows, trees = [jnp.zeros((0, 2 * w, n), blocks.table.dtype)], []
    for dof in dofs:
        tree, k = place[position[dof]]
        first = 6 * w + 3 + k * w
        own = blocks.table[tree, :, first : first + w].T
        rows.append(jnp.concatenate([own, jnp.zeros_like(own)])[None])
        trees.append((tree, layout.count))
    return concatenate(rows), tuple(trees)


def slot_trees(topology: Topology, links: jax.Array, dtype: jnp.dtype) -> tuple[jax.Array, jax.Array]:
    """(trees (K, 2, N), side (2 w, K, N)) of contacts between links (2, K, N), -1 for an inactive slot.

    side is -1 where a dof moves A and +1 where it moves B. Links of one tree share the block of A.
    """
    layout = tree_layout(topology)
    table = jnp.asarray([*layout.link_tree, layout.count], jnp.int32)
    a, b = table[jnp.where(links < 0, topology.nlink, links)]
    together = (a == b) & (a < layout.count)
    trees = jnp.stack([a, jnp.where(together, layout.count, b)], axis=1)
    moves_a, moves_b = (_moved(topology, layout, link, tree) for link, tree in zip(links, (a, b), strict=True))
    of_a = jnp.where(together, moves_b, 0) - moves_a
    return trees, fence(jnp.concatenate([of_a, jnp.where(together, 0, moves_b)]).astype(dtype))


def _moved(topology: Topology, layout: TreeLayout, link: jax.Array, tree: jax.Array) -> jax.Array:
    """(w, K, N) 1.0 where the place of the link's tree moves it."""
    mobile = tree < layout.count
    if layout.moves is None:
        return jnp.broadcast_to(mobile, (layout.width, *link.shape)).astype(jnp.float32)
    table = jnp.asarray(layout.moves, jnp.float32)
    return jnp.moveaxis(jnp.where(mobile[..., None], table[jnp.maximum(link, 0)], 0), -1, 0)


def _whitening(topology: Topology, layout: TreeLayout, body: Body, n: int) -> jax.Array:
    """Wt of all trees (w, w, trees, N): one unit row per place serves all trees at once."""
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
