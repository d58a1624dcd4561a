"""A slow walk over the arrays of a model in float64 NumPy, one body and one world at a time."""

from __future__ import annotations

import numpy as np

FREE, BALL, SLIDE, HINGE = 0, 1, 2, 3


def matrix(q):
    """Rotation matrix of a quaternion (w, x, y, z) by v' = v + 2 u x (u x v + w v)."""
    w, u = q[0] / np.linalg.norm(q), np.asarray(q[1:]) / np.linalg.norm(q)
    return np.stack([v + 2 * np.cross(u, np.cross(u, v) + w * v) for v in np.eye(3)], axis=1)


def axis_angle(axis, angle):
    return matrix(np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * np.asarray(axis)]))


def link_poses(model, q):
    """Rotation and world position of every link, kinematic ones at their default pose."""
    t = model.topology
    poses = [None] * t.nlink
    poses[t.world] = (np.eye(3), np.zeros(3))
    for k in range(t.nkin):
        quat, position = np.asarray(model.kinematic_quaternion[:, k, 0]), np.asarray(model.kinematic_position[:, k, 0])
        poses[t.njnt + k] = (matrix(quat), position)
    for j, kind in enumerate(t.joint_type):
        R, x = poses[t.joint_parent[j]]
        offset, anchor, axis = (np.asarray(getattr(model, f"joint_{n}")[:, j, 0]) for n in ("offset", "anchor", "axis"))
        x, R = x + R @ offset, R @ np.asarray(model.joint_rotation[:, :, j, 0])
        a, ref = t.joint_qadr[j], np.asarray(model.joint_ref[:, 0])
        if kind == FREE:
            x, R = q[a : a + 3], matrix(q[a + 3 : a + 7])
        elif kind == SLIDE:
            x = x + R @ axis * (q[a] - ref[a])
        else:
            turned = R @ (matrix(q[a : a + 4]) if kind == BALL else axis_angle(axis, q[a] - ref[a]))
            x, R = x + R @ anchor - turned @ anchor, turned
        poses[j] = (R, x)
    return poses


def placed(model, what, links, q):
    """World positions (n, 3) and rotations (n, 3, 3) of bodies, geoms or sites carried by `links`."""
    poses = link_poses(model, q)
    offset, rotation = np.asarray(getattr(model, f"{what}_offset")), np.asarray(getattr(model, f"{what}_rotation"))
    position = [poses[link][1] + poses[link][0] @ offset[:, i, 0] for i, link in enumerate(links)]
    turned = [poses[link][0] @ rotation[:, :, i, 0] for i, link in enumerate(links)]
    return np.array(position).reshape(-1, 3), np.array(turned).reshape(-1, 3, 3)
