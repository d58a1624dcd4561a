"""Free rotation: tumbling, symmetric and welded bodies, quaternions of any length, and a heavy top."""

from __future__ import annotations

import functools
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from physics.trials import run

import rsim_jax as rsim

MODELS = Path(__file__).parents[1] / "models"
NO_CONTACTS = rsim.Options(max_contacts=0)
TUMBLING = np.array([0.01, 0.02, 0.03])
SCALES = (1, 0.5, 3, 1 + 1e-3, -1)
ATTITUDE = np.array([0.8, 0.2, -0.4, 0.4])


@functools.cache
def tumbled(seconds, dtype="float64"):
    """Worlds: tumbling slab; symmetric body; one attitude at five scales; zero quaternion; a fast spin."""
    model = rsim.load(str(MODELS / "b15_tumble.xml"), options=NO_CONTACTS, dtype=dtype)
    count = 2 + len(SCALES) + 2
    inertia = np.repeat(np.array(model.body_inertia), count, axis=-1)
    inertia[:3, 1, 1] = 0.02, 0.02, 0.01
    state = rsim.make_state(model, count)
    q, qd = np.array(state.q), np.array(state.qd)
    qd[3:, 0], qd[3:, 1], qd[3:, 2:] = (0.01, 5, 0), (1, 0, 5), np.array([[1], [2], [3]])
    for k, scale in enumerate(SCALES):
        q[3:, 2 + k] = scale * ATTITUDE
    q[3:, 7] = 0
    qd[3:, 8] = 20 * ATTITUDE[1:] / np.linalg.norm(ATTITUDE[1:])
    model = model.replace(body_inertia=inertia)
    state = state.replace(q=jnp.asarray(q, dtype), qd=jnp.asarray(qd, dtype))
    return run(model, state, seconds, every=5)


def check_tumbling(seen, flips):
    rate = seen.qd[:, 4, 0]
    k = np.flatnonzero(rate[:-1] * rate[1:] < 0)[: len(flips)]
    found = seen.time[k] + (seen.time[k + 1] - seen.time[k]) * rate[k] / (rate[k] - rate[k + 1])
    np.testing.assert_allclose(found, flips, rtol=0.01)
    spin = TUMBLING[:, None] * seen.qd[:, 3:, 0].T
    size = np.linalg.norm(spin, axis=0)
    energy = np.sum(spin * seen.qd[:, 3:, 0].T, axis=0) / 2
    assert np.ptp(size) / size[0] < 1e-6
    assert np.ptp(energy) / energy[0] < 1e-3


def test_a_body_turning_about_its_middle_axis_flips():
    """B15: first flip after 2.633028 s, then every 5.266055 s; momentum and energy stay."""
    check_tumbling(tumbled(20), 2.633028 + 5.266055 * np.arange(4))


@pytest.mark.slow
def test_it_flips_for_a_minute():
    check_tumbling(tumbled(60), 2.633028 + 5.266055 * np.arange(11))


def test_a_symmetric_body_precesses_at_its_own_rate():
    """(I3 - I1) / I1 w3 = -2.5 rad/s in body axes."""
    seen = tumbled(20)
    angle = np.unwrap(np.arctan2(seen.qd[:, 4, 1], seen.qd[:, 3, 1]))
    rate = (angle[-1] - angle[0]) / (seen.time[-1] - seen.time[0])
    assert rate == pytest.approx(-2.5, rel=1e-3)


def test_quaternions_of_any_length_give_the_same_motion():
    """B48: scaled or negated quaternions are the same attitude; a zero one is the identity; all stay unit."""
    seen = tumbled(20)
    step = int(np.argmin(np.abs(seen.time - 1.0)))
    same = [seen.q[step, 3:, 2 + k] * np.sign(scale) for k, scale in enumerate(SCALES)]
    for other in same[1:]:
        np.testing.assert_allclose(other, same[0], atol=1e-9)
    assert np.isfinite(seen.q).all()
    assert np.abs(np.linalg.norm(seen.q[:, 3:], axis=1) - 1).max() < 1e-12


def test_a_spinning_body_does_not_care_whether_its_mass_sits_in_a_welded_child():
    """B14: a slender body at 60 rad/s, once as one body, once as a shell with the payload welded on."""
    model = rsim.load(str(MODELS / "b14_nested_spin.xml"), options=NO_CONTACTS, dtype="float64")
    state = rsim.make_state(model, 2)
    rates = np.zeros((model.nv, 2))
    rates[3:6] = rates[9:12] = np.array([[0.5], [60], [0.3]])
    seen = run(model, state.replace(qd=jnp.asarray(rates)), 5, every=5)
    flat, nested = seen.qd[:, 3:6, 0], seen.qd[:, 9:12, 0]
    np.testing.assert_allclose(flat, nested, atol=1e-9)
    assert np.abs(flat[:, 1] - 60).max() < 0.6
    assert np.hypot(flat[:, 0], flat[:, 2]).max() < 0.62
    energy = np.sum(np.array([3e-4, 1.5e-5, 3e-4]) * flat**2, axis=1)
    assert energy.max() <= 1.01 * energy[0]


TOP = """
<mujoco><option timestep="0.001"/><worldbody><body name="top"><joint type="ball"/>
  <inertial pos="0 0 0.1" mass="1" diaginertia="0.0025 0.0025 0.005"/></body></worldbody></mujoco>
"""


@pytest.mark.parametrize(
    ("integrator", "dt", "allowed", "tilt"),
    [
        ("semi_implicit", 0.001, 0.005, 1),
        ("semi_implicit", 0.004, 0.02, 1),
        ("trapezoid", 0.001, 0.005, 1),
        ("rk4", 0.001, 0.005, 1),
        ("rk4", 0.004, 0.02, 1.5),  # body axes turn by 0.8 rad a step; a fourth-order method damps that by 1e-4
    ],
)
def test_a_heavy_top_with_a_level_axis_precesses(integrator, dt, allowed, tilt):
    """Omega = m g r / (I3 w) = 0.981 rad/s, started in steady precession; the axis stays level to a degree a turn."""
    options = rsim.Options(max_contacts=0, integrator=integrator)
    model = rsim.load(TOP, options=options, dtype="float64").replace(dt=dt)
    state = rsim.make_state(model, 2)
    q, rate = np.zeros((4, 2)), np.zeros((3, 2))
    q[0], q[2] = np.sqrt(0.5), np.sqrt(0.5)  # body z along world x
    rate[0], rate[2] = -0.981, 200
    seen = run(model, state.replace(q=jnp.asarray(q), qd=jnp.asarray(rate)), 6.4049, every=5)
    w, x, y, z = seen.q[:, :, 0].T
    axis = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    heading = np.unwrap(np.arctan2(axis[1], axis[0]))
    assert (heading[-1] - heading[0]) / (seen.time[-1] - seen.time[0]) == pytest.approx(0.981, rel=allowed)
    assert np.degrees(np.abs(np.arcsin(axis[2]))).max() < tilt
