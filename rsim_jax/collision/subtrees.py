"""Which links a dof moves: subtrees of the link tree as ranges of preorder numbers (plain NumPy, at trace time)."""

from __future__ import annotations

import numpy as np

from rsim_jax.structs import Topology


def preorder(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Preorder number of every link and the last one in its subtree, (nlink,) int32; -1 for links no joint moves."""
    children: list[list[int]] = [[] for _ in range(topology.nlink)]
    for joint, parent in enumerate(topology.joint_parent):
        children[parent].append(joint)
    first = np.full(topology.nlink, -1, np.int32)
    last = np.full(topology.nlink, -1, np.int32)
    visited = 0
    pending = [(joint, False) for link in range(topology.njnt, topology.nlink) for joint in children[link]]
    while pending:
        joint, left = pending.pop()
        if left:
            last[joint] = visited - 1
        else:
            first[joint] = visited
            visited += 1
            pending += [(joint, True), *((child, False) for child in children[joint])]
    return first, last


def dof_ranges(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """First and last preorder number of the links that each dof moves, (nv,) int32."""
    first, last = preorder(topology)
    joints = [j for j, kind in enumerate(topology.joint_type) for _ in range((6, 3, 1, 1)[kind])]
    return first[joints], last[joints]
