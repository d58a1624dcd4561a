"""The work that every simulator of the speed comparison gets: one model, settled worlds, one table of controls."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import mujoco

FRAME_SKIP = {  # physics steps per action of Gymnasium's tasks; other models get 4
    "ant": 5,
    "half_cheetah": 5,
    "hopper": 4,
    "humanoid": 5,
    "inverted_double_pendulum": 5,
    "inverted_pendulum": 2,
    "reacher": 2,
    "swimmer": 4,
    "walker2d": 4,
}
ROWS = 64  # controls per world before the table repeats
DISTINCT = 1024  # different start states; more worlds repeat them
SETTLE = 300  # MuJoCo steps before the comparison starts
NOISE = 0.005  # on the start positions, m and rad
SHOWN = 64  # worlds over which contacts are counted


@dataclass(frozen=True)
class Case:
    """A model and how it is driven; `mj` has MuJoCo's Euler integrator and is otherwise as in the file."""

    name: str
    path: Path
    frame_skip: int
    seed: int
    mj: mujoco.MjModel
    q: np.ndarray  # (nq, n) settled positions, n <= DISTINCT
    qd: np.ndarray  # (nv, n)

    def start(self, worlds: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions (nq, N) and velocities (nv, N), the settled states repeated."""
        index = np.arange(worlds) % self.q.shape[1]
        return self.q[:, index], self.qd[:, index]

    def controls(self, worlds: int) -> np.ndarray:
        """(ROWS, nu, N) float32, uniform over the control range, each row held for `frame_skip` steps."""
        return control_table(self.mj, worlds, self.seed)


def prepare(path: Path, seed: int, most_worlds: int, threads: int | None = None) -> Case:
    """Loads a model and lets up to DISTINCT worlds settle under random controls in MuJoCo."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    frame_skip = FRAME_SKIP.get(path.stem.removesuffix("_v5"), 4)
    states = settle(model, min(most_worlds, DISTINCT), frame_skip, seed, threads or os.cpu_count())
    q, qd = states[:, 1 : 1 + model.nq].T, states[:, 1 + model.nq : 1 + model.nq + model.nv].T
    return Case(path.stem, path, frame_skip, seed, model, q.copy(), qd.copy())


def control_table(model: mujoco.MjModel, worlds: int, seed: int) -> np.ndarray:
    """(ROWS, nu, N) float32 controls, uniform over each actuator's range, +-1 where it has none."""
    limited = model.actuator_ctrllimited.astype(bool)
    low = np.where(limited, model.actuator_ctrlrange[:, 0], -1.0)[:, None]
    high = np.where(limited, model.actuator_ctrlrange[:, 1], 1.0)[:, None]
    draw = np.random.default_rng(seed).random((ROWS, model.nu, worlds))
    return (low + (high - low) * draw).astype(np.float32)


def settle(model: mujoco.MjModel, worlds: int, frame_skip: int, seed: int, threads: int) -> np.ndarray:
    """(worlds, nstate) full physics states after SETTLE steps from the default pose with a little noise."""
    import mujoco
    from mujoco import rollout

    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    data, noise = mujoco.MjData(model), np.random.default_rng(seed + 1)
    start = np.zeros((worlds, mujoco.mj_stateSize(model, full)))
    for state in start:
        mujoco.mj_resetData(model, data)
        data.qpos[:] += noise.uniform(-NOISE, NOISE, model.nq)
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_getState(model, data, state, full)
    table = control_table(model, worlds, seed + 2).astype(np.float64)
    rows = np.arange(SETTLE) // frame_skip % ROWS
    with rollout.Rollout(nthread=threads) as pool:
        datas = [mujoco.MjData(model) for _ in range(threads)]
        ctrl = np.ascontiguousarray(table[rows].transpose(2, 0, 1)) if model.nu else None
        states, _ = pool.rollout(model, datas, start, ctrl, nstep=SETTLE)
    return states[:, -1]


def mean_contacts(model: mujoco.MjModel, q: np.ndarray) -> float:
    """Contacts that reach MuJoCo's solver, mean over the first SHOWN worlds of q (nq, N)."""
    import mujoco

    data, counts = mujoco.MjData(model), []
    for i in range(min(SHOWN, q.shape[1])):
        data.qpos[:] = q[:, i]
        mujoco.mj_fwdPosition(model, data)
        counts.append(data.ncon)
    return float(np.mean(counts))
