"""The shape of the kinematic forest, worked out once per topology.

Two orders are used inside the dynamics:

*tree order of links*: by depth, so that a level (all links of one depth) is a contiguous slice of the item axis and
identical limbs are processed as one array operation;
*tree order of dofs*: by the number of ancestor dofs, so that group g (all dofs with exactly g ancestors) is a
contiguous slice. Every dof of group g has one ancestor in each of the groups 0 ... g-1: its path to the root. Mass
matrix and factor are stored along these paths only, group g as an array (g + 1, n_g, N).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from rsim_jax.structs import BALL, FREE, POSITION_WIDTHS, VELOCITY_WIDTHS, Topology

DEEPEST = 24  # dofs on a path beyond which recursions are rolled and matrices dense


@dataclass(frozen=True)
class Level:
    """Links of one depth: free joints first, then balls, then single-dof joints."""

    joints: tuple[int, ...]  # joint ids
    parents: tuple[int, ...]  # position of each parent in the previous level (0 for roots)
    start: int  # slice in tree order of links
    stop: int


@dataclass(frozen=True)
class Group:
    """Dofs with the same number of ancestor dofs."""

    dofs: tuple[int, ...]  # public dof ids
    links: tuple[int, ...]  # position of each dof's link in tree order
    ancestors: tuple[tuple[int, ...], ...]  # [p][item] = position in group p
    start: int  # slice in tree order of dofs
    stop: int


@dataclass(frozen=True)
class Structure:
    """Levels and groups of a forest, and the permutations between public and tree order."""

    levels: tuple[Level, ...]
    groups: tuple[Group, ...]
    link_order: tuple[int, ...]  # joint id at each tree position
    link_position: tuple[int, ...]  # tree position of each joint id
    dof_order: tuple[int, ...]  # public dof at each tree position
    dof_position: tuple[int, ...]
    link_tree: tuple[int, ...]  # tree of the link at each tree position
    dof_tree: tuple[int, ...]  # tree of the dof at each tree position
    dof_link: tuple[int, ...]  # tree position of the link of the dof at each tree position
    roots: tuple[int, ...]  # tree position of each tree's root link

    @property
    def deep(self) -> bool:
        """Whether paths are too long to be written out."""
        return len(self.groups) > DEEPEST

    @property
    def trunk(self) -> int:
        """Groups of one dof each, from the root on: ancestors of all other dofs. None worth the name below two."""
        widths = [group.stop - group.start for group in self.groups]
        length = next((g for g, width in enumerate(widths) if width > 1), len(widths))
        return length if length > 1 else 0


def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    """The inverse permutation."""
    result = [0] * len(order)
    for position, item in enumerate(order):
        result[item] = position
    return tuple(result)


@functools.lru_cache(maxsize=256)
def structure(topology: Topology) -> Structure:
    """The forest of a topology, in tree order."""
    levels = _levels(topology)
    link_order = tuple(j for level in levels for j in level.joints)
    link_position = inverse(link_order)
    groups = _groups(topology, link_position)
    dof_order = tuple(d for group in groups for d in group.dofs)
    dof_link = tuple(position for group in groups for position in group.links)
    tree_of = _trees(topology)
    roots = tuple(link_position[j] for j in range(topology.njnt) if topology.joint_parent[j] >= topology.njnt)
    return Structure(
        levels=levels,
        groups=groups,
        link_order=link_order,
        link_position=link_position,
        dof_order=dof_order,
        dof_position=inverse(dof_order),
        link_tree=tuple(tree_of[j] for j in link_order),
        dof_tree=tuple(tree_of[link_order[position]] for position in dof_link),
        dof_link=dof_link,
        roots=roots,
    )


def _levels(topology: Topology) -> tuple[Level, ...]:
    depth: list[int] = []
    for j in range(topology.njnt):
        parent = topology.joint_parent[j]
        depth.append(0 if parent >= topology.njnt else depth[parent] + 1)
    levels: list[Level] = []
    start = 0
    for d in range(max(depth, default=-1) + 1):
        joints = [j for j in range(topology.njnt) if depth[j] == d]
        joints.sort(key=lambda j: (min(topology.joint_type[j], 2), j))
        before = levels[-1].joints if levels else ()
        parents = tuple(before.index(topology.joint_parent[j]) if before else 0 for j in joints)
        levels.append(Level(tuple(joints), parents, start, start + len(joints)))
        start += len(joints)
    return tuple(levels)


def _groups(topology: Topology, link_position: tuple[int, ...]) -> tuple[Group, ...]:
    path: dict[int, tuple[int, ...]] = {}  # dof -> its ancestors, root first
    link_path: dict[int, tuple[int, ...]] = {topology.njnt: ()}
    for j in range(topology.njnt):
        dofs = tuple(range(topology.joint_dadr[j], topology.joint_dadr[j] + VELOCITY_WIDTHS[topology.joint_type[j]]))
        inherited = link_path[min(topology.joint_parent[j], topology.njnt)]
        for k, dof in enumerate(dofs):
            path[dof] = inherited + dofs[:k]
        link_path[j] = inherited + dofs
    link_of = {
        topology.joint_dadr[j] + k: j
        for j in range(topology.njnt)
        for k in range(VELOCITY_WIDTHS[topology.joint_type[j]])
    }
    members: list[list[int]] = [[] for _ in range(max((len(p) for p in path.values()), default=-1) + 1)]
    for dof in sorted(path, key=lambda d: (link_position[link_of[d]], d)):
        members[len(path[dof])].append(dof)
    place = {dof: item for dofs in members for item, dof in enumerate(dofs)}
    groups, start = [], 0
    for g, dofs in enumerate(members):
        ancestors = tuple(tuple(place[path[d][p]] for d in dofs) for p in range(g))
        links = tuple(link_position[link_of[d]] for d in dofs)
        groups.append(Group(tuple(dofs), links, ancestors, start, start + len(dofs)))
        start += len(dofs)
    return tuple(groups)


def _trees(topology: Topology) -> list[int]:
    tree: list[int] = []
    count = 0
    for j in range(topology.njnt):
        parent = topology.joint_parent[j]
        if parent >= topology.njnt:
            tree.append(count)
            count += 1
        else:
            tree.append(tree[parent])
    return tree


@dataclass(frozen=True)
class JointRun:
    """Consecutive joints of one kind: "free", "ball" or "scalar" (hinges and slides)."""

    kind: str
    joints: tuple[int, ...]
    q: slice  # their entries in q
    qd: slice


@functools.lru_cache(maxsize=256)
def joint_runs(topology: Topology) -> tuple[JointRun, ...]:
    """All joints in order, split where the kind changes."""
    kinds = ["free" if t == FREE else "ball" if t == BALL else "scalar" for t in topology.joint_type]
    runs: list[JointRun] = []
    start = 0
    for j, kind in enumerate(kinds):
        if j + 1 < len(kinds) and kinds[j + 1] == kind:
            continue
        first, stop = topology.joint_qadr[start], topology.joint_qadr[j] + POSITION_WIDTHS[topology.joint_type[j]]
        dof, end = topology.joint_dadr[start], topology.joint_dadr[j] + VELOCITY_WIDTHS[topology.joint_type[j]]
        runs.append(JointRun(kind, tuple(range(start, j + 1)), slice(first, stop), slice(dof, end)))
        start = j + 1
    return tuple(runs)


def joints_of_type(topology: Topology, joints: tuple[int, ...], kind: str) -> tuple[int, ...]:
    """The free, ball or single-dof joints among `joints`, in order."""
    wanted = {"free": (FREE,), "ball": (BALL,), "single": (2, 3)}[kind]
    return tuple(j for j in joints if topology.joint_type[j] in wanted)
