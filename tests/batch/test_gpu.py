"""On a GPU: the same physics as MuJoCo and closed forms give, worlds apart, thousands at once. Run by `.ci/gpu`."""

from __future__ import annotations

import copy

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import rsim_jax as rsim
from rsim_jax.envs.files import model_file
from rsim_jax.modeling import compiled

pytestmark = pytest.mark.gpu

BOX = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 .12"><freejoint/><geom type="box" size=".1 .1 .1" mass="2" friction=".5 0 0"/></body>
  </worldbody></mujoco>"""


@pytest.fixture(scope="module", autouse=True)
def device():
    if jax.default_backend() != "gpu":
        pytest.fail(f"these checks need a GPU, JAX runs on {jax.default_backend()}")


@pytest.fixture(scope="module")
def ant() -> rsim.Model:
    return rsim.load(model_file("ant.xml"), dtype=jnp.float64)


def random_states(model: rsim.Model, worlds: int, height: float) -> tuple[np.ndarray, np.ndarray]:
    """The torso near `height`, legs well inside their limits, everything moving."""
    rng = np.random.default_rng(0)
    q = np.zeros((model.nq, worlds))
    q[:3] = np.array([[0], [0], [height]]) + rng.uniform(-0.1, 0.1, (3, worlds))
    q[3:7] = rng.normal(size=(4, worlds))
    q[3:7] /= np.linalg.norm(q[3:7], axis=0)
    q[7:] = np.asarray(model.joint_range)[:, 1:, 0].mean(axis=0)[:, None] + rng.uniform(-0.2, 0.2, (8, worlds))
    return q, rng.normal(size=(model.nv, worlds))


def test_mass_matrix_bias_and_one_step_equal_mujoco(ant):
    mj, worlds = copy.copy(compiled(ant)), 20
    mj.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    q, qd = random_states(ant, worlds, height=5.0)
    ctrl = np.random.default_rng(1).uniform(-1, 1, (ant.nu, worlds))
    state = rsim.make_state(ant, worlds).replace(q=jnp.asarray(q), qd=jnp.asarray(qd))
    mass, c = np.asarray(rsim.mass_matrix(ant, state)), np.asarray(rsim.bias_force(ant, state))
    after = rsim.step(ant, state, jnp.asarray(ctrl)).qd
    assert next(iter(after.devices())).platform == "gpu"
    data, dense = mujoco.MjData(mj), np.zeros((ant.nv, ant.nv))
    for i in range(worlds):
        mujoco.mj_resetData(mj, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q[:, i], qd[:, i], ctrl[:, i]
        mujoco.mj_forward(mj, data)
        assert data.nefc == 0
        mujoco.mj_fullM(mj, data, dense)
        np.testing.assert_allclose(mass[:, :, i], dense, atol=1e-9 * np.abs(dense).max())
        np.testing.assert_allclose(c[:, i], data.qfrc_bias, atol=1e-9 * np.abs(data.qfrc_bias).max())
        mujoco.mj_step(mj, data)
        np.testing.assert_allclose(np.asarray(after)[:, i], data.qvel, rtol=1e-8, atol=1e-8)


def test_a_box_comes_to_rest_with_its_weight_on_the_ground():
    model = rsim.load(BOX, dtype=jnp.float64)
    state, _ = rsim.rollout(model, rsim.make_state(model, 3), steps=1000, output=lambda s: ())
    np.testing.assert_allclose(np.asarray(state.q[2]), 0.1, atol=1e-4)
    assert np.abs(np.asarray(state.qd)).max() < 1e-6
    force = np.asarray(rsim.net_contact_force(model, state))[:, 1]
    np.testing.assert_allclose(force, [[0], [0], [2 * 9.81]] * np.ones((1, 3)), atol=1e-3)
    assert np.asarray(rsim.solver_residual(model, state)).max() < 1e-6


def test_a_world_that_is_not_finite_leaves_the_others_bits_alone(ant):
    q, qd = random_states(ant, 64, height=0.3)
    start = rsim.make_state(ant, 64).replace(q=jnp.asarray(q), qd=jnp.asarray(qd))
    poisoned = start.replace(qd=start.qd.at[3, 17].set(jnp.nan))
    healthy, _ = rsim.rollout(ant, start, steps=20)
    sick, _ = rsim.rollout(ant, poisoned, steps=20)
    others = np.delete(np.arange(64), 17)
    assert np.array_equal(np.asarray(healthy.q)[:, others], np.asarray(sick.q)[:, others])
    assert np.asarray(sick.status)[17] & rsim.Status.NOT_FINITE


def test_thousands_of_float32_worlds_stay_finite_and_solved():
    model = rsim.load(model_file("ant.xml"))
    rng, worlds = np.random.default_rng(2), 4096
    state = rsim.make_state(model, worlds)
    ctrls = jnp.asarray(np.repeat(rng.uniform(-1, 1, (20, model.nu, worlds)), 5, axis=0), jnp.float32)
    state, residual = rsim.rollout(model, state, ctrls, output=_residual(model))
    assert np.isfinite(np.asarray(state.q)).all() and not (np.asarray(state.status) & rsim.Status.NOT_FINITE).any()
    assert (np.asarray(residual) <= 1e-3).mean() > 0.99


def _residual(model: rsim.Model):
    return lambda state: jnp.max(rsim.solver_residual(model, state), axis=0)


def test_gradients_are_finite(ant):
    q, qd = random_states(ant, 8, height=0.3)
    state = rsim.make_state(ant, 8).replace(q=jnp.asarray(q), qd=jnp.asarray(qd))
    gradient = jax.grad(lambda ctrl: jnp.sum(rsim.step(ant, state, ctrl).qd[0]))(jnp.zeros((ant.nu, 8)))
    assert np.isfinite(np.asarray(gradient)).all() and np.abs(np.asarray(gradient)).max() > 0
