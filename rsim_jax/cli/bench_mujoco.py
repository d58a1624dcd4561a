"""C MuJoCo through `mujoco.rollout`, the yardstick of the speed comparison."""

from __future__ import annotations

import numpy as np

from rsim_jax.cli.bench_cases import ROWS, Case, mean_contacts

_OUTPUT_BYTES = 200e6  # rollout returns every state; its array is kept below this


class MujocoRunner:
    """Advances N worlds of a case on a pool of threads, Euler, MuJoCo's own solver to its tolerance."""

    label = "mujoco"
    grain = 1

    def __init__(self, case: Case, worlds: int, threads: int) -> None:
        import mujoco
        from mujoco import rollout

        self._case, self._model, self.threads = case, case.mj, threads
        full = mujoco.mjtState.mjSTATE_FULLPHYSICS
        size = mujoco.mj_stateSize(case.mj, full)
        q, qd = case.start(worlds)
        self._state = np.zeros((worlds, size))
        self._state[:, 1 : 1 + case.mj.nq] = q.T
        self._state[:, 1 + case.mj.nq : 1 + case.mj.nq + case.mj.nv] = qd.T
        self._controls = case.controls(worlds).astype(np.float64).transpose(2, 0, 1)  # (N, ROWS, nu)
        self._pool = rollout.Rollout(nthread=threads)
        self._datas = [mujoco.MjData(case.mj) for _ in range(threads)]
        self._period = 0
        self._most = max(1, int(_OUTPUT_BYTES / (worlds * size * 8 * case.frame_skip)))
        self._buffers: dict[int, np.ndarray] = {}

    def advance(self, periods: int) -> None:
        """Runs that many control periods of `frame_skip` steps in every world."""
        while periods > 0:
            chunk = min(periods, self._most)
            self._chunk(chunk)
            periods -= chunk

    def _chunk(self, periods: int) -> None:
        skip, (worlds, size) = self._case.frame_skip, self._state.shape
        steps = periods * skip
        rows = (self._period + np.arange(steps) // skip) % ROWS
        ctrl = np.ascontiguousarray(self._controls[:, rows]) if self._model.nu else None
        buffer = self._buffers.setdefault(steps, np.empty((worlds, steps, size)))
        states, _ = self._pool.rollout(self._model, self._datas, self._state, ctrl, nstep=steps, state=buffer)
        self._state = states[:, -1].copy()
        self._period += periods

    def contacts(self) -> float:
        """Mean number of contacts of a world now."""
        return mean_contacts(self._model, self._state[:, 1 : 1 + self._model.nq].T)

    def finite(self) -> bool:
        return bool(np.isfinite(self._state).all())

    def close(self) -> None:
        self._pool.close()
