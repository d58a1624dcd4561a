"""Rolling and spinning friction: torques bounded by the normal force, inside the sweep."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics.trials import G, run

import rsim_jax as rsim
from rsim_jax.errors import ModelError

RADIUS, MASS = 0.1, 1.0


def ball(rolling, spinning, friction=0.8, count=1, dtype=jnp.float64, **options):
    """Balls on the ground, far from each other; more than six of them are kept by tree."""
    scene = rsim.Scene(timestep=0.001)
    scene.add_ground()
    for k in range(count):
        scene.add_sphere(RADIUS, MASS, position=(0, 10.0 * k, RADIUS))
    material = rsim.Material(friction=friction, rolling_friction=rolling, spinning_friction=spinning)
    scene.set_material_pair("default", "default", material)
    return scene.compile(options=rsim.Options(sweeps=40, **options), dtype=dtype)


def moving(model, worlds=1, velocity=(0, 0, 0), spin=(0, 0, 0)):
    state = rsim.make_state(model, worlds)
    one = jnp.asarray([*velocity, *spin], model.dtype)[:, None]
    return state.replace(qd=jnp.tile(one, (model.nv // 6, worlds)))


@pytest.mark.parametrize(("count", "dtype"), [(1, jnp.float64), (7, jnp.float64), (1, jnp.float32)])
def test_a_ball_that_rolls_is_slowed_by_the_torque_at_its_contact(count, dtype):
    """Torque mu_r r N: v' = -(5/7) g mu_r (bank 12 with mu_r r = 1e-3 m), and it rests without turning back."""
    model = ball(0.01, 0.0, count=count, dtype=dtype)
    assert model.topology.scattered == (count > 1)
    start = 0.1
    seen = run(model, moving(model, velocity=(start, 0, 0), spin=(0, start / RADIUS, 0)), 2.0)
    slowing = 5 / 7 * G * 0.01
    early = round(1.0 / 0.001) - 1
    np.testing.assert_allclose(seen.qd[early, 0], start - slowing * seen.time[early], rtol=2e-3)
    np.testing.assert_allclose(seen.qd[early, 4], seen.qd[early, 0] / RADIUS, rtol=2e-3)
    assert np.abs(seen.qd[-1]).max() < (1e-9 if dtype == jnp.float64 else 1e-4)
    assert seen.qd[:, 0].min() > -1e-4
    stop = start**2 / (2 * slowing)
    np.testing.assert_allclose(seen.q[-1, 0], stop, rtol=5e-3)


@pytest.mark.parametrize("count", [1, 7])
def test_a_ball_that_spins_about_its_normal_stops(count):
    """Torque mu_s r N about z at mu = 0: w0 / t = mu_s r m g / I (bank 13); nothing sinks or lifts."""
    model = ball(0.0, 0.1, friction=0.0, count=count)
    seen = run(model, moving(model, spin=(0, 0, 10.0)), 0.5)
    stop = 2 * RADIUS * 10.0 / (5 * 0.1 * G)
    still = seen.time[np.argmax(np.abs(seen.qd[:, 5, 0]) < 1e-6)]
    assert abs(still - stop) <= 0.0021
    assert np.abs(seen.q[:, 2] - RADIUS).max() < 1e-6


def test_without_coefficients_nothing_resists_and_no_rows_are_made():
    model = ball(0.0, 0.0)
    assert not model.topology.angular_friction
    seen = run(model, moving(model, velocity=(1, 0, 0), spin=(0, 10.0, 3.0)), 0.5)
    np.testing.assert_allclose(seen.qd[-1, :, 0], [1, 0, 0, 0, 10, 3], atol=1e-6)


def test_a_coefficient_given_later_makes_rows_and_may_differ_per_world():
    model = ball(0.0, 0.0)
    values = jnp.asarray([[0.0, 0.01, 0.02]], model.dtype)
    rough = model.replace(pair_rolling_friction=values)
    assert rough.topology.angular_friction and not model.topology.angular_friction
    seen = run(rough, moving(rough, 3, velocity=(1, 0, 0), spin=(0, 10.0, 0)), 0.2)
    np.testing.assert_allclose(1 - seen.qd[-1, 0], 5 / 7 * G * values[0] * seen.time[-1], atol=1e-4)
    with pytest.raises(ModelError, match="rolling and spinning friction within a jitted"):
        jax.jit(lambda x: model.replace(pair_rolling_friction=x).pair_friction)(values)


LENGTHS = """
<mujoco><option timestep="0.001"/><worldbody>
  <geom type="plane" size="9 9 1" condim="{condim}" friction="0.8 0.01 0.002"/>
  <body pos="0 0 0.1"><freejoint/><geom size="0.1" mass="1" friction="0.1 0 0"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize(("condim", "rolls", "spins"), [(3, False, False), (4, False, True), (6, True, True)])
def test_mjcf_condim_gives_lengths(condim, rolls, spins):
    """condim 4 resists spinning, 6 rolling too: coefficients are lengths, mixed as MuJoCo mixes them."""
    model = rsim.load(LENGTHS.format(condim=condim), dtype=jnp.float64)
    rolling = moving(model, velocity=(1, 0, 0), spin=(0, 10.0, 0))
    spinning = moving(model, spin=(0, 0, 5.0))
    state = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=-1), rolling, spinning)
    seen = run(model, state, 0.1)
    linear = 5 / 7 * G * 0.002 / RADIUS * seen.time[-1] * rolls
    angular = 0.01 * G / (0.4 * RADIUS**2) * seen.time[-1] * spins
    np.testing.assert_allclose(1 - seen.qd[-1, 0, 0], linear, atol=1e-5)
    np.testing.assert_allclose(5 - seen.qd[-1, 5, 1], angular, rtol=1e-3, atol=1e-9)


def test_a_turntable_takes_a_ball_along_by_spinning_friction():
    """The spin of a kinematic partner enters: a ball at its centre ends up with it, mu = 0."""
    scene = rsim.Scene(timestep=0.001)
    scene.add_cylinder(0.5, 0.1, 1.0, kinematic=True, angular_velocity=(0, 0, 2.0), material="table")
    scene.add_sphere(RADIUS, MASS, position=(0, 0, 0.05 + RADIUS))
    scene.set_material_pair("table", "default", rsim.Material(friction=0.0, spinning_friction=0.1))
    model = scene.compile(dtype=jnp.float64)
    seen = run(model, rsim.make_state(model, 1), 0.3)
    np.testing.assert_allclose(seen.qd[-1, 5, 0], 2.0, atol=1e-6)


@pytest.mark.slow
def test_the_derivative_of_a_step_with_turning_contacts_matches_differences():
    model = ball(0.01, 0.05)

    def after(x):
        state = rsim.make_state(model, 1).replace(qd=x[:, None])
        return rsim.step(model, state).qd[:, 0]

    x = jnp.asarray([0.3, 0.1, -0.05, -1.0, 3.0, 2.0], jnp.float64)
    exact = jax.jacfwd(after)(x)
    h = 1e-6
    differences = jnp.stack([(after(x + h * e) - after(x - h * e)) / (2 * h) for e in jnp.eye(6)], axis=1)
    np.testing.assert_allclose(exact, differences, atol=1e-6)
