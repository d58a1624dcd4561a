"""`rsim bench --validation`: the scenes of `bench_scenes.py` here and in MuJoCo with both of its friction cones."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import rsim_jax as rsim
from rsim_jax.cli.bench_scenes import SCENES, Scene, Trajectory
from rsim_jax.cli.table import table

CONES = ("pyramidal", "elliptic")


def validate() -> list[dict[str, Any]]:
    """Runs every scene at the shipped options, prints a table and returns its rows."""
    rows = []
    for scene in SCENES:
        found = {"rsim_jax": _ours(scene)} | {f"mujoco {cone}": _mujoco(scene, cone) for cone in CONES}
        for figure, (exact, measure) in scene.figures.items():
            values = {name: measure(trajectory) for name, trajectory in found.items()}
            rows.append({"scene": scene.name, "figure": figure, "exact": exact, **values})
    columns = list(rows[0])
    print("\n" + table(columns, [[row[name] for name in columns] for row in rows]))
    return rows


def _ours(scene: Scene) -> Trajectory:
    model = rsim.load(scene.xml("pyramidal"))
    start = scene.start(np.asarray(model.default_q, np.float64)[:, 0], model.nv)
    q, qd = (jnp.asarray(x, model.dtype) for x in start)
    state = rsim.make_state(model, q.shape[1]).replace(q=q, qd=qd)
    advance = jax.jit(lambda model, state: rsim.rollout(model, state, steps=scene.every, output=lambda s: ())[0])
    moments = [(np.asarray(q), np.asarray(qd))]
    for _ in range(_count(scene)):
        state = advance(model, state)
        moments.append((np.asarray(state.q), np.asarray(state.qd)))
    return _stacked(moments)


def _mujoco(scene: Scene, cone: str) -> Trajectory:
    import mujoco

    model = mujoco.MjModel.from_xml_string(scene.xml(cone))
    q, qd = scene.start(model.qpos0.copy(), model.nv)
    worlds = []
    for i in range(q.shape[1]):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = q[:, i], qd[:, i]
        moments = [(data.qpos.copy(), data.qvel.copy())]
        for _ in range(_count(scene)):
            mujoco.mj_step(model, data, scene.every)
            moments.append((data.qpos.copy(), data.qvel.copy()))
        worlds.append(_stacked(moments))
    return tuple(np.stack([world[k] for world in worlds], axis=-1) for k in range(2))


def _count(scene: Scene) -> int:
    return round(scene.seconds / (scene.timestep * scene.every))


def _stacked(moments: list[tuple[np.ndarray, np.ndarray]]) -> Trajectory:
    return tuple(np.stack([moment[k] for moment in moments]).astype(np.float64) for k in range(2))
