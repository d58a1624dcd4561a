"""Every option changes what it says it changes: both values are run, and the difference has the right sign."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import rsim_jax as rsim

XML = """
<mujoco><option timestep="0.002"/><worldbody>
  <geom type="plane" size="0 0 1" friction="0.5 0 0"/>
  <body name="box" pos="0 0 0.1">
    <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
    <joint name="z" type="slide" axis="0 0 1"/>
    <joint name="turn" axis="0 1 0"/>
    <geom type="box" size="0.1 0.1 0.1" mass="1" friction="0.5 0 0"/>
  </body>
  <body name="arm" pos="0 0 2">
    <joint name="arm" axis="0 1 0" range="0 90"/><inertial pos="0 0 -1" mass="1" diaginertia="0.01 0.01 0.01"/>
  </body>
</worldbody></mujoco>
"""
STEPS = 10
X, Y, Z, TURN, ARM = range(5)  # entries of q and qd
# Worlds: skidding on one edge; falling at 20 m/s from 1 cm; 5 mm inside the ground; skidding flat; resting flat; the
# arm at its stop; falling freely.
EDGE, FAST, SUNK, FLAT, RESTING, STOP, FREE = range(7)


def kept(state):
    return state.q, state.qd, state.rows.impulse, state.residual


@functools.cache
def outcome(**options):
    """(q, qd, impulse, residual) of every step, and the last state."""
    model = rsim.load(XML, options=rsim.Options(**options), dtype="float64")
    q, qd = np.zeros((5, 7)), np.zeros((5, 7))
    q[TURN, EDGE], q[Z, EDGE] = 0.3, 0.1 * (np.cos(0.3) + np.sin(0.3) - 1)
    qd[X, [EDGE, FLAT]], qd[Y, [EDGE, FLAT]], qd[TURN, EDGE] = 2, 1, 1
    q[Z, FAST], qd[Z, FAST] = 0.01, -20
    q[Z, SUNK] = -0.005
    q[Z, [STOP, FREE]] = 1
    q[ARM] = 0.5
    q[ARM, STOP], qd[ARM, STOP] = 0.001, -2
    state = rsim.make_state(model, 7).replace(q=jnp.asarray(q), qd=jnp.asarray(qd))
    end, seen = rsim.rollout(model, state, steps=STEPS, output=kept)
    return [np.asarray(x) for x in seen], end


def test_sweeps():
    (_, _, _, few), _ = outcome(sweeps=1)
    (_, _, _, many), _ = outcome()
    assert many[0, :, FLAT].max() < 0.1 * few[0, :, FLAT].max()


def test_tolerance():
    (_, few, _, residual), _ = outcome(tolerance=0.5)
    (_, many, _, exact), _ = outcome()
    assert residual[0, :, FLAT].max() > exact[0, :, FLAT].max()
    assert not np.array_equal(few, many)


def test_erp():
    (left, _, _, _), _ = outcome(erp=0.0)
    (pushed, _, _, _), _ = outcome(erp=1.5)
    assert left[-1, Z, SUNK] == pytest.approx(-0.005, abs=1e-9)
    assert pushed[0, Z, SUNK] == pytest.approx(-0.005 + 0.3 * (0.005 - 1e-5), abs=1e-9)


def test_slop():
    (q, _, _, _), _ = outcome(slop=0.004)
    assert q[0, Z, SUNK] == pytest.approx(-0.005 + 0.3 * 0.001, abs=1e-9)


def test_max_correction():
    (_, qd, _, _), _ = outcome(max_correction=0.01)
    assert qd[0, Z, SUNK] == pytest.approx(0.01, abs=1e-9)


def test_slip_rule():
    (_, coulomb, _, _), _ = outcome()
    (_, energy, _, _), _ = outcome(slip_rule="energy")
    assert np.abs(coulomb[0, :, EDGE] - energy[0, :, EDGE]).max() > 1e-6
    np.testing.assert_allclose(coulomb[:, :, RESTING], energy[:, :, RESTING], atol=1e-6)


def test_warm_start():
    (_, _, _, cold), _ = outcome(sweeps=1, warm_start=False)
    (_, _, _, warm), _ = outcome(sweeps=1)
    assert warm[-1, :, RESTING].max() < 0.5 * cold[-1, :, RESTING].max()


def test_speculative():
    (ahead, _, _, _), _ = outcome()
    (late, _, _, _), _ = outcome(speculative=False)
    assert ahead[:, Z, FAST].min() > -1e-6
    assert late[:, Z, FAST].min() < -0.02


def test_limit_restitution():
    (_, dead, _, _), _ = outcome()
    (_, lively, _, _), _ = outcome(limit_restitution=0.5)
    assert abs(dead[0, ARM, STOP]) < 1
    assert lively[0, ARM, STOP] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("integrator", "fall"), [("semi_implicit", 1.0), ("trapezoid", 0.5), ("rk4", 0.5)])
def test_integrator(integrator, fall):
    """The first step of a fall is g dt^2 or half of it."""
    (q, _, _, _), _ = outcome(integrator=integrator)
    assert q[0, Z, FREE] - 1 == pytest.approx(-fall * 9.81 * 0.002**2, abs=1e-9)


def test_max_contacts():
    _, few = outcome(max_contacts=1)
    _, enough = outcome()
    overflow = int(rsim.Status.CONTACT_OVERFLOW)
    assert int(few.status[RESTING]) & overflow
    assert not int(enough.status[RESTING]) & overflow
