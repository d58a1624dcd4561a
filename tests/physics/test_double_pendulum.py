"""Energy of a double pendulum, released level: what the integrators promise."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from physics.trials import G, run

import rsim_jax as rsim

ARM = '<joint axis="0 1 0"/><inertial pos="0 0 -1" mass="1" diaginertia="1e-13 1e-13 1e-13"/>'
XML = f"""
<mujoco><worldbody><body name="upper">{ARM}<body name="lower" pos="0 0 -1">{ARM}</body></body></worldbody></mujoco>
"""


@functools.cache
def model(integrator):
    return rsim.load(XML, options=rsim.Options(max_contacts=0, integrator=integrator), dtype="float64")


def energy(q, qd):
    """Two unit masses on unit arms; angles from straight down, the second one relative to the first."""
    first, second = q[:, 0], q[:, 0] + q[:, 1]
    w1, w2 = qd[:, 0], qd[:, 0] + qd[:, 1]
    speed = w1**2 + w1**2 + w2**2 + 2 * w1 * w2 * np.cos(first - second)
    return speed / 2 - G * (2 * np.cos(first) + np.cos(second))


@pytest.mark.parametrize(
    ("integrator", "dt", "drift"),
    [
        ("semi_implicit", 0.001, 0.0097),
        ("semi_implicit", 0.002, 0.020),
        ("semi_implicit", 0.004, 0.040),
        ("rk4", 0.001, 1.5e-11),
        ("rk4", 0.004, 3.5e-9),
    ],
)
def test_energy_drift_is_that_of_the_scheme(integrator, dt, drift):
    """Largest |dE| / (3 m g l) in 5 s, measured elsewhere for the same schemes; 1.5 times that fails."""
    here = model(integrator).replace(dt=dt)
    state = rsim.make_state(here, 2).replace(q=jnp.asarray([[np.pi / 2] * 2, [0, 0]]))
    seen = run(here, state, 5.0)
    error = np.abs(energy(seen.q, seen.qd)).max() / (3 * G)
    assert 0.5 * drift < error < 1.5 * drift
