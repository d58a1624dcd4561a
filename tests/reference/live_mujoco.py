"""MuJoCo itself as the oracle of smooth dynamics: one world at a time, float64, whatever the file says."""

from __future__ import annotations

import mujoco
import numpy as np

FREE, BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)


def read(path):
    """MuJoCo's own reading of a file, nothing switched off."""
    compiled = mujoco.MjModel.from_xml_path(str(path))
    compiled.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    return compiled


def random_states(compiled, worlds, seed=0, spread=1.0):
    """q (nq, N) and qd (nv, N): quaternions uniform, limited joints well inside their range, velocities normal."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-spread, spread, (compiled.nq, worlds)) + compiled.qpos0[:, None]
    for j in range(compiled.njnt):
        start, kind = compiled.jnt_qposadr[j], compiled.jnt_type[j]
        if kind in (FREE, BALL):
            start += 3 if kind == FREE else 0
            quaternion = rng.normal(size=(4, worlds))
            q[start : start + 4] = quaternion / np.linalg.norm(quaternion, axis=0)
        elif compiled.jnt_limited[j]:
            low, high = compiled.jnt_range[j]
            q[start] = rng.uniform(low + 0.2 * (high - low), high - 0.2 * (high - low), worlds)
    return q, spread * rng.normal(size=(compiled.nv, worlds))


def quantities(compiled, q, qd, body, offset):
    """Everything that rsim_jax's queries report, world last, by mj_forward.

    The Jacobian is that of the point `offset` away (world axes) from the origin of `body`.
    """
    data, columns = mujoco.MjData(compiled), []
    for n in range(q.shape[1]):
        data.qpos[:], data.qvel[:] = q[:, n], qd[:, n]
        mujoco.mj_forward(compiled, data)
        columns.append(_quantities_of(compiled, data, body, offset[:, n]))
    return {name: np.stack([c[name] for c in columns], axis=-1) for name in columns[0]}


def _quantities_of(compiled, data, body, offset):
    mass = np.zeros((compiled.nv, compiled.nv))
    mujoco.mj_fullM(compiled, data, mass)
    velocity = np.zeros((compiled.nbody, 6))
    for b in range(compiled.nbody):
        mujoco.mj_objectVelocity(compiled, data, mujoco.mjtObj.mjOBJ_XBODY, b, velocity[b], 0)
    linear, angular = np.zeros((3, compiled.nv)), np.zeros((3, compiled.nv))
    mujoco.mj_jac(compiled, data, linear, angular, data.xpos[body] + offset, body)
    mujoco.mj_subtreeVel(compiled, data)
    momentum = data.subtree_linvel[0] * compiled.body_subtreemass[0]
    return {
        "mass_matrix": mass,
        "bias_force": data.qfrc_bias.copy(),
        "position": data.xpos.T.copy(),
        "rotation": data.xmat.reshape(-1, 3, 3).transpose(1, 2, 0).copy(),
        "linear_velocity": velocity[:, 3:].T.copy(),
        "angular_velocity": velocity[:, :3].T.copy(),
        "jacobian": np.concatenate([angular, linear]),
        "potential": data.energy[0],
        "kinetic": data.energy[1],
        "momentum": momentum,
        "angular_momentum": data.subtree_angmom[0] + np.cross(data.subtree_com[0], momentum),
    }


def free_steps(compiled, q, qd, ctrl, integrator):
    """(q, qd) after one step of MuJoCo without contacts, limits and dry friction."""
    flags = mujoco.mjtDisableBit
    compiled.opt.disableflags |= flags.mjDSBL_CONTACT | flags.mjDSBL_LIMIT | flags.mjDSBL_FRICTIONLOSS
    compiled.opt.integrator = integrator
    data = mujoco.MjData(compiled)
    q_after, qd_after = np.zeros_like(q), np.zeros_like(qd)
    for n in range(q.shape[1]):
        mujoco.mj_resetData(compiled, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q[:, n], qd[:, n], ctrl[:, n]
        mujoco.mj_step(compiled, data)
        q_after[:, n], qd_after[:, n] = data.qpos, data.qvel
    return q_after, qd_after
