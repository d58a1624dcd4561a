"""Delassus blocks to try a contact solver on: arbitrary ones, and those of a robot's feet."""

from __future__ import annotations

import mujoco
import numpy as np


def arbitrary(count, rng, rank=3):
    """(count, 3, 3) symmetric positive semi-definite, scales and shapes of all kinds."""
    factor = rng.normal(size=(count, 3, rank)) * 10 ** rng.uniform(-1, 1, (count, 1, 1))
    return factor @ factor.transpose(0, 2, 1)


def of_feet(path, count, rng, states=200, planar=False):
    """(count, 3, 3) blocks J M^-1 J' of random points on the last link of every limb, in random contact frames.

    Planar robots (x-z plane) get frames whose second tangent is y, across their plane.
    """
    compiled = mujoco.MjModel.from_xml_path(str(path))
    data, blocks = mujoco.MjData(compiled), []
    leaves = [b for b in range(1, compiled.nbody) if b not in compiled.body_parentid]
    mass = np.zeros((compiled.nv, compiled.nv))
    while len(blocks) < count:
        data.qpos[:] = compiled.qpos0 + rng.uniform(-0.5, 0.5, compiled.nq)
        mujoco.mj_forward(compiled, data)
        mujoco.mj_fullM(compiled, data, mass)
        for _ in range(-(-count // states)):
            body = rng.choice(leaves)
            rows = np.zeros((3, compiled.nv))
            mujoco.mj_jac(compiled, data, rows, None, data.xpos[body] + rng.uniform(-0.2, 0.2, 3), body)
            rows = (_planar_frame(rng) if planar else np.linalg.qr(rng.normal(size=(3, 3)))[0]) @ rows
            blocks.append(rows @ np.linalg.solve(mass, rows.T))
    return np.array(blocks[:count])


def _planar_frame(rng):
    angle = rng.uniform(-np.pi, np.pi)
    return np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
