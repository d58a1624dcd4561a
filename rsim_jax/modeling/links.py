"""Joint links: one link per joint, with the frames of links, bodies, geoms and sites in them."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from rsim_jax.structs import FREE


@dataclass(frozen=True)
class LinkTree:
    """Which link carries what, and where; arrays in layout (component, item)."""

    joint_parent: tuple[int, ...]
    body_link: tuple[int, ...]
    kinematic_body: tuple[int, ...]
    joint_offset: np.ndarray  # (3, njnt)
    joint_rotation: np.ndarray  # (3, 3, njnt)
    body_offset: np.ndarray  # (3, nbody) body frame in its link
    body_rotation: np.ndarray  # (3, 3, nbody)


def rotation(quaternion: np.ndarray) -> np.ndarray:
    """Matrix (3, 3) of a quaternion (w, x, y, z), normalised first."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def build_links(compiled: mujoco.MjModel) -> LinkTree:
    """Turn MuJoCo's bodies with joints into links with one joint each.

    The last joint of a body carries it; earlier ones carry nothing. A body without joints rides on its parent's
    link, a mocap body is a kinematic link of its own. A parent precedes its children in MuJoCo's order.
    """
    njnt, nbody = compiled.njnt, compiled.nbody
    kinematic_body = tuple(int(b) for b in np.flatnonzero(compiled.body_mocapid >= 0))
    world = njnt + len(kinematic_body)
    joint_parent = [0] * njnt
    joint_offset, joint_rotation = np.zeros((3, njnt)), np.tile(np.eye(3)[:, :, None], njnt)
    body_link = [world] * nbody
    body_offset, body_rotation = np.zeros((3, nbody)), np.tile(np.eye(3)[:, :, None], nbody)
    for b in range(1, nbody):
        parent = int(compiled.body_parentid[b])
        offset = body_offset[:, parent] + body_rotation[:, :, parent] @ compiled.body_pos[b]
        turned = body_rotation[:, :, parent] @ rotation(compiled.body_quat[b])
        joints = range(compiled.body_jntadr[b], compiled.body_jntadr[b] + compiled.body_jntnum[b])
        if b in kinematic_body:
            body_link[b] = njnt + kinematic_body.index(b)
        elif not joints:
            body_link[b] = body_link[parent]
            body_offset[:, b], body_rotation[:, :, b] = offset, turned
        else:
            for before, j in zip((body_link[parent], *joints), joints, strict=False):
                joint_parent[j] = before
            if compiled.jnt_type[joints[0]] != FREE:
                joint_offset[:, joints[0]], joint_rotation[:, :, joints[0]] = offset, turned
            body_link[b] = joints[-1]
    return LinkTree(
        tuple(joint_parent),
        tuple(body_link),
        kinematic_body,
        joint_offset,
        joint_rotation,
        body_offset,
        body_rotation,
    )


def in_link(
    tree: LinkTree, body: np.ndarray, position: np.ndarray, quaternion: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Frames given in bodies (item first, as MuJoCo stores them) -> offset (3, n) and rotation (3, 3, n) in links."""
    count = len(body)
    offset, turned = np.zeros((3, count)), np.zeros((3, 3, count))
    for i, b in enumerate(body):
        offset[:, i] = tree.body_offset[:, b] + tree.body_rotation[:, :, b] @ position[i]
        turned[:, :, i] = tree.body_rotation[:, :, b] @ rotation(quaternion[i])
    return offset, turned
