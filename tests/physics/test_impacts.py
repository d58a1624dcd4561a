"""Impacts: a cradle, a robot hit by a ball, walls that give back what they get."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from physics.bank_scenes import CRADLE, entry, pairs_of, per_world, sliders
from physics.trials import ball_on_plane, run, worlds

import rsim_jax as rsim

SPEED, DT = 1.0, 0.001


@functools.cache
def cradle():
    """World 0 with gaps of three steps of flight, world 1 without; 2 and 3 the same at e = 0.5."""
    model = sliders()
    n, pairs = 4, pairs_of(model, "cradle")
    restitution, threshold = (
        np.repeat(np.array(x), n, axis=-1) for x in (model.pair_restitution, model.pair_restitution_threshold)
    )
    restitution[pairs], threshold[pairs] = [1, 1, 0.5, 0.5], 0
    model = per_world(model, n, pair_restitution=restitution, pair_restitution_threshold=threshold)
    state = rsim.make_state(model, n)
    q, qd = np.array(state.q), np.array(state.qd)
    gap = 3 * SPEED * DT * np.array([1, 0, 1, 0])
    for k in range(CRADLE):
        q[entry(model, f"cradle{k}")[0]] = k * gap
    qd[entry(model, "cradle0")[1]] = SPEED
    seen = run(model, state.replace(q=jnp.asarray(q), qd=jnp.asarray(qd)), 0.05)
    return seen.qd[:, [entry(model, f"cradle{k}")[1] for k in range(CRADLE)]]


def test_only_the_last_ball_of_a_cradle_with_gaps_moves():
    """e = 1: the speed goes from ball to ball."""
    speed = cradle()[..., 0]
    np.testing.assert_allclose(speed[-1], [0, 0, 0, 0, SPEED], atol=1e-9)
    assert (speed**2).sum(axis=1).max() <= SPEED**2 * (1 + 1e-9)


def test_a_cradle_without_gaps_keeps_momentum_and_gains_no_energy():
    """Newton's law in all contacts at once does not say which balls move (-1/3, 2/3, 2/3 for three): not compared."""
    speed = cradle()
    np.testing.assert_allclose(speed[:, :, 1].sum(axis=1), SPEED, rtol=1e-9)
    assert (speed[-1, :, 1] ** 2).sum() <= SPEED**2 * (1 + 1e-9)
    np.testing.assert_allclose(speed[:, :, 2:].sum(axis=1), SPEED, rtol=1e-9)


ROBOT = """
<mujoco><option timestep="0.001" gravity="0 0 0"/><worldbody>
  <body name="base"><freejoint/><inertial pos="0.01 0 0.02" mass="5" diaginertia="0.06 0.05 0.04"/>
    <body name="upper" pos="0.2 0 0"><joint name="shoulder" axis="0 1 0"/>
      <inertial pos="0.15 0 0" mass="1.5" diaginertia="0.001 0.01 0.01"/>
      <body name="fore" pos="0.3 0 0"><joint name="elbow" axis="0 0.6 0.8"/>
        <inertial pos="0.1 0 0" mass="1" diaginertia="0.001 0.004 0.004"/>
        <geom name="hand" type="sphere" size="0.05" pos="0.25 0 0" mass="0.2" conaffinity="2"/></body></body></body>
  <body name="ball" pos="0.76 0.02 -1"><freejoint/>
    <geom name="ball" type="sphere" size="0.1" mass="10" contype="2" conaffinity="1"/></body>
</worldbody></mujoco>"""


@functools.cache
def hit(dt, seconds):
    """(model, q (nq, T), qd (nv, T)) from the start: the ball flies at 5 m/s into the hand, nothing pulls."""
    model = rsim.load(ROBOT, dtype="float64").replace(dt=dt)
    state = rsim.make_state(model, 2)
    qd = np.array(state.qd)
    qd[entry(model, "ball")[1] + 2] = 5
    state = state.replace(qd=jnp.asarray(qd))
    seen = run(model, state, seconds, every=1 if seconds < 1 else 10)
    q = np.concatenate([np.asarray(state.q)[None, :, 0], seen.q[:, :, 0]]).T
    return model, q, np.concatenate([qd[None, :, 0], seen.qd[:, :, 0]]).T


def total_momentum(model, q, qd):
    """(3, T)."""
    state = rsim.make_state(model, q.shape[1]).replace(q=jnp.asarray(q), qd=jnp.asarray(qd))
    return np.asarray(rsim.momentum(model, state)[0])


@pytest.mark.slow
def test_a_ball_and_the_robot_it_hits_keep_their_momentum():
    """50 N s before and after, to 1e-9 across the impact, which acts where the bodies are at the start of its step."""
    model, q, qd = hit(0.001, 0.2)
    elbow = qd[entry(model, "elbow")[1]]
    struck = int(np.argmax(np.abs(elbow) > 1e-3))
    assert 100 < struck < 200 and np.abs(elbow[struck]) > 1
    before, after = total_momentum(model, q[:, struck - 1 :][:, [0, 0]], qd[:, [struck - 1, struck]]).T
    np.testing.assert_allclose(before, [0, 0, 50], atol=1e-12)
    np.testing.assert_allclose(after, before, atol=50e-9)


@pytest.mark.slow
def test_momentum_of_a_tumbling_robot_drifts_with_the_step():
    """Ten seconds after the hit: a drift of first order in the step."""
    ends = [(model, q[:, -1:], qd[:, -1:]) for model, q, qd in (hit(0.002, 10), hit(0.001, 10))]
    drift = [np.abs(total_momentum(*end)[:, 0] - [0, 0, 50]).max() for end in ends]
    assert drift[1] < 0.5
    assert drift[1] < 0.7 * drift[0] or drift[0] < 1e-6


WALL = 13  # worlds, as many as in other tests of the ball


@pytest.mark.parametrize("dt", [1 / 240, 1 / 1000])
def test_a_wall_gives_back_what_it_gets(dt):
    """B31: head-on at 1, 0.3, 0.05 m/s with e = 1 and 0.8; at 45 degrees with e = 1; no friction, threshold 0."""
    n = WALL
    inward = np.resize([1, 0.3, 0.05, 1, 0.3, 0.05, np.sqrt(0.5)], n)
    e = np.resize([1, 1, 1, 0.8, 0.8, 0.8, 1], n)
    along = np.resize([0, 0, 0, 0, 0, 0, np.sqrt(0.5)], n)
    size = np.repeat(np.array(ball_on_plane("float64").geom_size), n, axis=-1)
    size[0, 1] = 0.2
    model, state = worlds(
        ball_on_plane("float64"),
        n,
        dt,
        velocity=np.stack([along, 0 * along, -inward]),
        height=np.full(n, 0.1 + 0.0217),
        gravity=np.zeros((3, n)),
        geom_size=size,
        pair_friction=np.zeros(n),
        pair_restitution=e,
    )
    seen = run(model, state, 0.6)
    np.testing.assert_allclose(seen.qd[-1, 2], e * inward, rtol=0.02)
    assert (seen.qd[:, 2] <= 1.005 * e * inward).all()
    np.testing.assert_allclose(seen.qd[-1, 0], along, rtol=0.005, atol=1e-12)
