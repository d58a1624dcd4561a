"""The hook for forces: called in every derivative evaluation, with the state and the time of that evaluation."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from physics.trials import PIECE

import rsim_jax as rsim

XML = """
<mujoco><option gravity="0 0 0"/><worldbody>
  <body><joint type="slide" axis="1 0 0"/><geom size="0.1" mass="1" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>
"""
K, W = 100.0, 7.0


def driven(model, state):
    """A spring to the origin, and a push that changes with time."""
    return -K * state.q + 3 * jnp.cos(W * state.time)


def after(integrator, dt, seconds=0.5):
    model = rsim.load(XML, options=rsim.Options(integrator=integrator), dtype="float64").replace(dt=dt)
    state = rsim.make_state(model, 1)
    state = state.replace(q=state.q + 0.2)
    for _ in range(round(seconds / dt / PIECE)):
        state, _ = rsim.rollout(model, state, steps=PIECE, force_fn=driven)
    return float(state.q[0, 0])


def exact(t):
    """x'' = -k x + 3 cos(w t)."""
    forced = 3 / (K - W * W)
    return (0.2 - forced) * np.cos(np.sqrt(K) * t) + forced * np.cos(W * t)


@pytest.mark.parametrize(("integrator", "order"), [("rk4", 4), ("semi_implicit", 1)])
def test_order_with_a_force_of_state_and_time(integrator, order):
    coarse, fine = (abs(after(integrator, dt) - exact(0.5)) for dt in (0.01, 0.005))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.15)
