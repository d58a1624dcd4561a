"""A rod put on a moving body: it reaches the speed of what carries it, and stays there."""

from __future__ import annotations

import numpy as np
import pytest
from physics.trials import EXACT, G, run

import rsim_jax as rsim

MU, SPEED = 0.5, 1.0


@pytest.mark.parametrize("dt", [0.001, 0.004])
def test_a_rod_reaches_the_speed_of_a_moving_kinematic_box(dt):
    """After v / (mu g) seconds and v^2 / (2 mu g) metres of slip; then it does not slip at all."""
    scene = rsim.Scene(timestep=0.001)
    plank = scene.add_box((4, 1, 0.1), 1.0, position=(0, 0, -0.05), kinematic=True, material="plank")
    lying = (np.sqrt(0.5), 0, np.sqrt(0.5), 0)  # along the motion, so that it cannot roll
    scene.add_capsule(0.05, 0.2, 1.0, position=(0, 0, 0.05), quaternion=lying, material="rod")
    scene.set_material_pair("plank", "rod", rsim.Material(friction=MU))
    model = scene.compile(options=EXACT["float64"], dtype="float64").replace(dt=dt)
    state = rsim.set_kinematic(model, rsim.make_state(model, 2), plank, velocity=(SPEED, 0, 0))
    seen = run(model, state, 0.4)
    v = seen.qd[:, 0, 0]
    grips = np.flatnonzero(np.abs(v - SPEED) < 1e-9)[0]
    assert seen.time[grips] == pytest.approx(SPEED / (MU * G), abs=1.01 * dt)
    assert np.abs(v[grips:] - SPEED).max() < 1e-9
    slip = SPEED * seen.time[-1] - seen.q[-1, 0, 0]
    assert slip == pytest.approx(SPEED**2 / (2 * MU * G), rel=0.01, abs=SPEED * dt)
    np.testing.assert_allclose(seen.load, G, atol=1e-6)
    np.testing.assert_allclose(seen.state.kinematic_position[0, 0], SPEED * seen.time[-1], rtol=1e-12)
