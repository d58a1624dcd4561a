"""Scenes with compliant contact whose worlds differ in parameters and start, so that few programs serve many trials."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
from physics.trials import G

import rsim_jax as rsim

R = 0.1
NUMBERS = {"kp": 1e5, "kc": 0.0, "n": 1.0, "mu": 0.5, "v_lin": 1e-3}
SLIDER = """
<mujoco><option timestep="1e-4"/><worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <body pos="0 0 0.1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
    <geom name="ball" size="0.1" mass="1"/></body>
</worldbody></mujoco>
"""


@functools.cache
def ball(integrator="rk4", law=None, dtype="float64"):
    """A free 1 kg ball of radius 0.1, just touching the ground."""
    scene = rsim.Scene(timestep=1e-4)
    scene.add_ground()
    scene.add_sphere(R, 1.0, position=(0, 0, R))
    scene.set_contact_model("default", "default", rsim.PenaltyContact(1e4, 0.0, law=law))
    return scene.compile(options=rsim.Options(integrator=integrator), dtype=dtype)


@functools.cache
def slider(integrator="rk4", dtype="float64"):
    """A 1 kg ball that moves along x and z but cannot turn; q = (x, height above touching)."""
    model = rsim.load(SLIDER, options=rsim.Options(integrator=integrator), dtype=dtype)
    return rsim.set_contact_model(model, "floor", "ball", rsim.PenaltyContact(1e4, 0.0))


def worlds(model, count, dt=None, gravity=(0, 0, -G), **numbers):
    """(model, state) with the penalty numbers and gravity per world, given or not, so that programs are shared."""
    gravity = np.asarray(gravity, float)
    gravity = np.broadcast_to(gravity if gravity.ndim == 2 else gravity[:, None], (3, count))
    leaves = {
        f"pair_penalty_{name}": np.broadcast_to(np.asarray(numbers.get(name, default), float), (1, count))
        for name, default in NUMBERS.items()
    }
    model = model.replace(gravity=gravity, **leaves, **({} if dt is None else {"dt": dt}))
    return model, rsim.make_state(model, count)


def moved(state, q=None, qd=None):
    """The state with rows of q and qd added to or set: {row: values}."""
    new_q, new_qd = np.array(state.q), np.array(state.qd)
    for row, value in (q or {}).items():
        new_q[row] += value
    for row, value in (qd or {}).items():
        new_qd[row] = value
    return state.replace(q=jnp.asarray(new_q), qd=jnp.asarray(new_qd))
