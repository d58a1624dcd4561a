"""Compliant contact against closed forms: rebound, rest depth, creep, order of the integrators, energy."""

from __future__ import annotations

import functools
import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from physics.penalty_scenes import R, ball, moved, slider, worlds
from physics.trials import G, run
from scipy.optimize import brentq

import rsim_jax as rsim

APPROACH = (0.1, 0.2, 0.35, 0.5, 1.0, 2.0, 3.5, 5.0, 10.0)  # d v_i
EXPONENTS = (1.0, 1.5)


def rebound_speed(d, v):
    """v_o of d (v_i + v_o) = ln[(1 + d v_i) / (1 - d v_o)], which holds for every n, kp and mass."""
    return brentq(lambda out: d * (v + out) - np.log((1 + d * v) / (1 - d * out)), 1e-9, min(v, (1 - 1e-12) / d))


def test_the_closed_form_is_that_of_the_published_table():
    known = {0.1: 0.9375, 0.2: 0.8822, 0.5: 0.7484, 1: 0.5936, 2: 0.4107, 5: 0.1970, 10: 0.1000}
    for d, e in known.items():
        assert rebound_speed(d, 1.0) == pytest.approx(e, abs=5e-5)


def test_rebound_speed_does_not_depend_on_exponent_or_stiffness():
    """Nine dissipations with two exponents, and two drops of 0.5 m (d = 1 and 0.1)."""
    d = np.array([*APPROACH, *APPROACH, 1.0, 0.1])
    v = np.array([1.0] * 2 * len(APPROACH) + [np.sqrt(2 * G * 0.5)] * 2)
    n = np.array([e for e in EXPONENTS for _ in APPROACH] + [1.0, 1.0])
    kp = np.where(n == 1, 1e4, 3e5)
    model, state = worlds(ball(), len(d), dt=1e-4, gravity=(0, 0, 0), kp=kp, kc=d * kp, n=n, mu=0)
    seen = run(model, moved(state, q={2: 1e-6}, qd={2: -v}), 0.15)
    exact = np.array([rebound_speed(*pair) for pair in zip(d, v, strict=True)])
    assert (seen.q[-1, 2] > R).all(), "a ball has not left the ground yet"
    np.testing.assert_allclose(seen.qd[-1, 2] / v, exact / v, atol=1e-4)
    np.testing.assert_allclose(seen.qd[-1, 2, -2:], [0.9288, 2.5894], atol=5e-4)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rest_depth(dtype):
    kp, n = np.array([1e5, 1e5, 1e4, 1e5]), np.array([1.0, 1.5, 1.0, 2.0])
    depth = (G / kp) ** (1 / n)
    model, state = worlds(slider(dtype=dtype), 4, kp=kp, kc=kp * 20 / n, n=n, mu=0)
    seen = run(model, moved(state, q={1: -0.9 * depth}), 0.5)
    tolerance = 1e-6 if dtype == "float64" else 1e-3
    np.testing.assert_allclose(-seen.q[-1, 1], depth, rtol=tolerance)
    np.testing.assert_allclose(depth[:2], [98.1e-6, 2.127e-3], rtol=1e-3)
    report = rsim.contact_report(model, seen.state)
    assert report.valid.all() and not report.speculative.any()
    np.testing.assert_allclose(report.contact_force[2, 0], G, rtol=tolerance)
    np.testing.assert_allclose(report.point_pair.depth[0], depth, rtol=tolerance)


def test_a_body_on_a_slope_creeps_with_its_share_of_the_linear_speed():
    """v = v_lin tan(theta) / mu while tan(theta) < mu, and slides as Coulomb has it above: a = g (sin - mu cos)."""
    angle = np.radians([5, 10, 20, 20, 40])
    mu, v_lin = np.array([0.5, 0.5, 0.5, 0.8, 0.5]), np.array([1e-3, 1e-3, 1e-3, 5e-3, 1e-3])
    gravity = G * np.stack([np.sin(angle), 0 * angle, -np.cos(angle)])
    model, state = worlds(slider(), 5, gravity=gravity, kp=1e5, kc=2e6, mu=mu, v_lin=v_lin)
    start = moved(state, q={1: -G * np.cos(angle) / 1e5}, qd={0: [0, 0, 0, 0, 1.0]})
    seen = run(model, start, 0.05)
    np.testing.assert_allclose(seen.qd[-1, 0, :4], (v_lin * np.tan(angle) / mu)[:4], rtol=1e-6)
    slide = 1 + 0.05 * G * (np.sin(angle[4]) - 0.5 * np.cos(angle[4]))
    assert seen.qd[-1, 0, 4] == pytest.approx(slide, rel=1e-9)


def test_a_pushed_body_in_stiction():
    """1 kg, g = 10, pushed with 5 N at mu = 1: (-5, 0, 10) N on it, slip half the linear speed."""
    model, state = worlds(slider(), 2, gravity=(5, 0, -10), kp=1e4, kc=4e5, mu=1, v_lin=1e-3)
    end = run(model, moved(state, q={1: -1e-3}), 0.05).state
    report = rsim.contact_report(model, end)
    np.testing.assert_allclose(report.contact_force[:, 0, 0], [-5, 0, 10], atol=1e-8)
    assert report.slip_speed[0, 0] == pytest.approx(5e-4, rel=1e-9) and abs(report.separation_speed[0, 0]) < 1e-9
    np.testing.assert_allclose(report.point_pair.nhat_BA_W[:, 0, 0], [0, 0, -1], atol=1e-15)


@functools.cache
def inside(integrator, dt):
    """End after 5 ms in contact all the time, sliding and turning, n = 1.5; all worlds alike."""
    model, state = worlds(ball(integrator), 2, dt=dt, kp=1e6, kc=1e5, n=1.5, mu=0.3)
    start = moved(state, q={2: -2e-3}, qd={0: 1.0, 1: 0.4, 2: -0.2, 3: 5, 4: -3, 5: 2})
    seen = run(model, start, 0.005)
    assert seen.q[:, 2].max() < R - 1e-4
    return np.concatenate([seen.q[-1], seen.qd[-1]])[:, 0]


@pytest.mark.parametrize(("integrator", "order"), [("rk4", 4), ("semi_implicit", 1)])
def test_order_of_the_integrators_in_a_smooth_phase(integrator, order):
    """The forces are evaluated at every stage: cached ones would leave rk4 with order one."""
    exact = inside("rk4", 0.005 / 1600)
    coarse, fine = (np.abs(inside(integrator, dt) - exact).max() for dt in (1e-4, 5e-5))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.15)


def kelvin_voigt(parameters, geometry, velocity):
    """A linear spring and damper that never pull; no friction."""
    force = parameters.kp * geometry.depth + parameters.kc * velocity.rate
    return jnp.maximum(0, force), 0 * velocity.slip


def test_a_damper_takes_energy_out_and_never_pulls():
    """B36: k = 1e4 N/m, d = 10 N s/m, dropped from 0.5 m, by a user's law; the second world comes to rest."""
    model, state = worlds(ball("semi_implicit", kelvin_voigt), 2, dt=1e-4, kp=1e4, kc=10)
    seen = run(model, moved(state, q={2: [0.5, 1e-3]}), 1.6)
    height, speed = seen.q[:, 2] - R, seen.qd[:, 2]
    leaving = np.flatnonzero((height[1:, 0] > 0) & (height[:-1, 0] <= 0))
    striking = np.flatnonzero((height[1:, 0] <= 0) & (height[:-1, 0] > 0))
    assert -speed[leaving[0] + 1, 0] / speed[striking[0], 0] == pytest.approx(0.853, abs=0.02)
    bounds = [0, *striking, len(height)]
    apexes = [height[a:b, 0].max() for a, b in itertools.pairwise(bounds)]
    assert len(apexes) >= 3 and apexes[1] == pytest.approx(0.364, abs=0.015)
    assert (np.diff([0.5, *apexes[1:]]) < 0).all()
    assert -height[-1, 1] == pytest.approx(G / 1e4, rel=0.02)
    fell = np.diff(speed, axis=0) + G * 1e-4
    assert fell.min() > -1e-12, "the contact pulled"


def test_friction_stays_in_the_cone_and_opposes_slip():
    rng = np.random.default_rng(0)
    velocity = rng.normal(size=(3, 64)) * [[1], [1], [0.2]] * 10.0 ** rng.uniform(-5, 0, 64)
    model, state = worlds(ball("semi_implicit"), 64, dt=1e-4, kp=1e5, kc=2e4, n=1.5, mu=0.4)
    start = moved(state, q={2: -rng.uniform(1e-4, 3e-3, 64)}, qd=dict(enumerate(velocity)))
    force = np.asarray(rsim.contact_report(model, rsim.step(model, start)).contact_force[:, 0])
    slip = np.hypot(*velocity[:2])
    share = np.minimum(slip / 1e-3, 1)
    np.testing.assert_allclose(np.hypot(*force[:2]), 0.4 * share * force[2], rtol=1e-12)
    np.testing.assert_allclose(np.sum(force[:2] * velocity[:2], 0), -0.4 * share * force[2] * slip, rtol=1e-12)
    assert share.min() < 0.1 and (share == 1).any()


PENDULUM = """
<mujoco><option timestep="1e-4"/><worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <body pos="0 0 0.75"><joint axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0.5 0 0" mass="1"/>
    <body pos="0.5 0 0"><joint axis="0 1 0"/><joint axis="0 0 1"/>
      <geom name="tip" type="capsule" size="0.03" fromto="0 0 0 0.4 0.1 0" mass="0.5"/></body></body>
</worldbody></mujoco>
"""


@pytest.mark.slow
def test_an_elastic_contact_of_a_mechanism_keeps_the_energy():
    """Kinetic + potential + kp p^(n+1)/(n+1) over an impact of a chain of hinges: the forces reach every joint."""
    model = rsim.load(PENDULUM, options=rsim.Options(integrator="rk4"), dtype="float64")
    model = rsim.set_contact_model(model, "floor", "tip", rsim.PenaltyContact(1e5, 0, n=1.5, mu=0))
    state, energies, depths = rsim.make_state(model, 1), [], []
    for _ in range(30):
        state, _ = rsim.rollout(model, state, steps=200)
        depth = np.asarray(rsim.detect(model, state).point_pair.depth)
        kinetic, potential = rsim.energy(model, state)
        energies.append(float(kinetic[0] + potential[0]) + (1e5 / 2.5 * depth**2.5).sum())
        depths.append(depth.max())
    assert max(depths) > 1e-3 and depths[-1] == 0, "the pendulum must have struck and left"
    np.testing.assert_allclose(energies, energies[0], atol=2e-5)  # the law has a kink where the shapes meet


def test_a_moving_kinematic_partner_is_met_where_it_is():
    """A paddle rising at 1 m/s gives a ball at rest what a resting paddle gives a falling one, in its own frame."""
    scene = rsim.Scene(timestep=1e-4, gravity=(0, 0, 0))
    paddle = scene.add_box((1, 1, 0.2), 1.0, kinematic=True)
    scene.add_sphere(R, 1.0, position=(0, 0, 0.2))
    scene.set_contact_model("default", "default", rsim.PenaltyContact(1e5, 2e4, n=1.5, mu=0))
    model = scene.compile(options=rsim.Options(integrator="rk4"), dtype="float64")
    state = rsim.make_state(model, 2)
    state = state.replace(qd=state.qd.at[2, 1].set(-1.0))
    state = rsim.set_kinematic(model, state, paddle, velocity=jnp.asarray([[0, 0], [0, 0], [1.0, 0]]))
    state, _ = rsim.rollout(model, state, steps=500)
    speed = np.asarray(state.qd[2])
    assert speed[0] - 1 == pytest.approx(speed[1], abs=1e-9)
    assert speed[1] == pytest.approx(rebound_speed(0.2, 1.0), abs=1e-4)
