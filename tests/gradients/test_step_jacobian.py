"""Jacobians of one whole step, forward and reverse, at the edge of contact and where shapes coincide."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rsim_jax as rsim

MODELS = Path(__file__).parents[1] / "models"
GAPS = np.array([-1e-4, -1e-8, 0, 1e-8, 1e-4])
DT = 0.002


def after_step(model, state, q, qd):
    """(nq + nv, N) after one step."""
    after = rsim.step(model, state.replace(q=q, qd=qd))
    return jnp.concatenate([after.q, after.qd])


@pytest.fixture(scope="module")
def lifting_ball():
    """(forward, reverse) Jacobians (13, 13, N) of a ball at five gaps, once at rest and once leaving at 1 m/s.

    Worlds do not touch each other: one direction for all worlds at once gives a column of every world's Jacobian.
    """
    model = rsim.load(str(MODELS / "b46_ball_drop.xml"), dtype="float64")
    n = 2 * len(GAPS)
    state = rsim.make_state(model, n)
    q = state.q.at[2].set(jnp.asarray(0.1 + np.tile(GAPS, 2)))
    qd = state.qd.at[2].set(jnp.repeat(jnp.asarray([1.0, 0.0]), len(GAPS)))
    x = jnp.concatenate([q, qd])

    def step(x):
        return after_step(model, state, x[:7], x[7:])

    @jax.jit
    def forward(x):
        columns = jax.vmap(lambda e: jax.jvp(step, (x,), (jnp.broadcast_to(e[:, None], x.shape),))[1])
        return jnp.swapaxes(columns(jnp.eye(13)), 0, 1)

    @jax.jit
    def reverse(x):
        return jax.jacrev(lambda x: step(x).sum(axis=-1))(x)

    return np.asarray(forward(x)), np.asarray(reverse(x))


def test_jacobians_are_finite_and_both_modes_agree(lifting_ball):
    """B47: a body that just leaves the ground."""
    forward, reverse = lifting_ball
    assert np.isfinite(forward).all() and np.isfinite(reverse).all()
    np.testing.assert_allclose(forward, reverse, rtol=1e-6, atol=1e-9)


def test_a_ball_in_the_air_has_the_jacobian_of_free_flight(lifting_ball):
    forward, _ = lifting_ball
    free = forward[:, :, len(GAPS) - 1]  # gap 1e-4, leaving
    assert free[2, 2] == pytest.approx(1, abs=1e-9)
    assert free[2, 9] == pytest.approx(DT, abs=1e-9)
    np.testing.assert_allclose(free[7:10, 7:10], np.eye(3), atol=1e-9)


@pytest.mark.parametrize(("gap", "by_height"), [(-1e-4, -0.3 / DT), (-1e-8, 0), (0, 0), (1e-8, -1 / DT)])
def test_a_resting_ball_answers_to_its_height_not_to_its_velocity(lifting_ball, gap, by_height):
    """v_z' is the row's target: a share of the penetration beyond the slop, zero within it, gap / dt above."""
    forward, _ = lifting_ball
    resting = forward[:, :, len(GAPS) + GAPS.tolist().index(gap)]
    assert resting[9, 9] == pytest.approx(0, abs=1e-8)  # the linear solve is shifted by 1e-9
    assert resting[9, 2] == pytest.approx(by_height, abs=1e-5)
    assert resting[2, 2] == pytest.approx(1 + by_height * DT, abs=1e-8)


def test_gradient_at_coincident_spheres_is_finite():
    """B26: no direction of contact is better than another, but a derivative must not divide by the distance."""
    model = rsim.load(str(MODELS / "b26_coincident_spheres.xml"), dtype="float64")
    state = rsim.make_state(model, 3)
    q = state.q.at[7].add(jnp.asarray([0.0, 1e-12, 1e-20]))

    @jax.jit
    def gradient(q):
        return jax.grad(lambda q: after_step(model, state, q, state.qd)[0].sum())(q)

    found = np.asarray(gradient(q))
    assert np.isfinite(found).all()
    assert np.abs(found).max() > 0
