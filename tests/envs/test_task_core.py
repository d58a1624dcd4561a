"""The functional core on physics: fresh kinematics after resets, streams of random numbers, one program, bad worlds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arm import LENGTHS, XML, Arm

import rsim_jax as rsim
from rsim_jax import pipeline
from rsim_jax.envs import BatchedTask, RsimVectorEnv, make, outputs


@pytest.fixture(scope="module")
def arm():
    return Arm(model=rsim.load(XML), frame_skip=2)


@pytest.fixture(scope="module")
def batched(arm):
    return BatchedTask(arm, 5)


def tip_of(angles):
    """Forward kinematics by hand: (N, 2) -> (N, 3)."""
    first, both = angles[:, 0], angles.sum(axis=1)
    x = LENGTHS[0] * np.cos(first) + LENGTHS[1] * np.cos(both)
    y = LENGTHS[0] * np.sin(first) + LENGTHS[1] * np.sin(both)
    return np.stack([x, y, 0 * x], axis=1)


def test_observations_after_a_reset_use_the_reset_pose(arm):
    envs = RsimVectorEnv(arm, 6, max_episode_steps=100, autoreset_mode="disabled")
    envs.reset(seed=0)
    for _ in range(10):
        before = envs.step(np.ones((6, 2)))[0]
    np.testing.assert_allclose(before[:, 2:], tip_of(before[:, :2]), atol=1e-5)
    mask = np.array([True, False] * 3)
    obs, _ = envs.reset(options={"reset_mask": mask})
    np.testing.assert_allclose(obs[:, 2:], tip_of(obs[:, :2]), atol=1e-5)
    assert (obs[~mask] == before[~mask]).all() and (obs[mask] != before[mask]).any(axis=1).all()


def test_automatic_resets_use_the_reset_pose(arm):
    envs = RsimVectorEnv(arm, 4, max_episode_steps=(2, 3, 4, 5), autoreset_mode="same_step")
    envs.reset(seed=0)
    for _ in range(8):
        obs, *_, info = envs.step(np.ones((4, 2)))
        for rows in (obs, info["final_obs"]):
            np.testing.assert_allclose(rows[:, 2:], tip_of(rows[:, :2]), atol=1e-5)


def test_step_and_reset_agree_on_every_leaf(batched):
    """Same structure, shape, dtype and weak type from reset, step and automatic reset: one compilation, scan works."""
    step = jax.jit(lambda b, s, a: b.step(s, a))
    state = jax.jit(lambda b, k: b.reset(k, 3))(batched, jax.random.key(0))
    first = jax.tree.map(jax.typeof, state)
    action = jnp.zeros((2, 3), jnp.float32)
    for _ in range(7):  # past the time limit of 5
        state = step(batched, state, action)
        assert jax.tree.map(jax.typeof, state) == first
        assert not any(leaf.weak_type for leaf in jax.tree.leaves(first))
    assert step._cache_size() == 1
    _, rewards = jax.jit(
        lambda b, s: jax.lax.scan(lambda s, _: ((n := b.step(s, action)), n.reward), s, None, length=6)
    )(batched, state)
    assert rewards.shape == (6, 3)


def test_one_physics_program_across_devices_steps_and_resets(arm):
    """With worlds spread over several CPU devices a state after a reset lies where a step leaves its own."""
    envs = RsimVectorEnv(arm, 512, max_episode_steps=3)
    physics = pipeline._rollout_blocks._cache_size()
    compiled = []

    def listen(event: str, *args, **kwargs):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(len(steps))

    jax.monitoring.register_event_duration_secs_listener(listen)
    steps = []
    for seed in (0, None, 1, None):
        envs.reset(seed=seed)
        for _ in range(4):
            steps.append(envs.step(np.zeros((512, 2), np.float32)))
    jax.monitoring.unregister_event_duration_listener(listen)
    assert pipeline._rollout_blocks._cache_size() == physics + 1
    assert compiled and max(compiled) <= 4  # nothing new once a step, an end and a reset have been seen


def test_scan_equals_single_steps(batched):
    state = batched.reset(jax.random.key(1), 3)
    actions = jax.random.uniform(jax.random.key(2), (8, 2, 3), minval=-1, maxval=1)
    rolled, rows = jax.jit(lambda b, s: jax.lax.scan(lambda s, a: ((n := b.step(s, a)), n.final_obs), s, actions))(
        batched, state
    )
    for t, action in enumerate(actions):
        state = batched.step(state, action)
        np.testing.assert_allclose(state.final_obs, rows[t], atol=1e-6)
    np.testing.assert_allclose(state.obs, rolled.obs, atol=1e-6)
    np.testing.assert_array_equal(state.running_length, rolled.running_length)


def test_final_observation_and_statistics(batched):
    """The batch layer reports the true last observation; totals restart with the episode."""
    state = batched.reset(jax.random.key(0), 3)
    action = jnp.full((2, 3), 0.5)
    sums = np.zeros(3)
    for t in range(1, 12):
        state = batched.step(state, action)
        sums += np.asarray(state.reward)
        assert (np.asarray(state.episode_length) == (t - 1) % 5 + 1).all()
        np.testing.assert_allclose(state.episode_return, sums, rtol=1e-5)
        assert bool(state.truncated.all()) == (t % 5 == 0)
        np.testing.assert_allclose(state.final_obs.T[:, 2:], tip_of(np.asarray(state.final_obs.T[:, :2])), atol=1e-5)
        if t % 5 == 0:
            assert (state.obs != state.final_obs).any() and (state.running_length == 0).all()
            sums[:] = 0
        else:
            np.testing.assert_array_equal(state.obs, state.final_obs)


def test_a_world_that_stops_being_finite_ends_alone(arm):
    """NaN velocity in world 1, NaN action in world 2: both end with finite rows, the others keep their bits."""
    batched = BatchedTask(arm, 100)
    clean = sick = batched.reset(jax.random.key(0), 4)
    action = jnp.full((2, 4), 0.3)
    for t in range(6):
        clean = batched.step(clean, action)
        if t == 2:
            physics = sick.task.physics
            sick = sick.replace(task=sick.task.replace(physics=physics.replace(qd=physics.qd.at[0, 1].set(jnp.nan))))
        sick = batched.step(sick, action.at[1, 2].set(jnp.nan) if t == 2 else action)
        ended = [False, t == 2, t == 2, False]
        assert sick.terminated.tolist() == ended and sick.info["not_finite"].tolist() == ended
        assert all(np.isfinite(x).all() for x in (sick.obs, sick.final_obs, sick.reward, sick.terms["reach"]))
        for a, b in ((clean.obs, sick.obs), (clean.task.physics.q, sick.task.physics.q), (clean.reward, sick.reward)):
            np.testing.assert_array_equal(np.asarray(a)[..., [0, 3]], np.asarray(b)[..., [0, 3]])
    assert sick.running_length.tolist() == [6, 3, 3, 6] and (sick.task.physics.status == 0).all()


def test_randomised_masses_differ_by_world_and_episode(arm):
    task = Arm(model=arm.model, randomize=(("body_mass", 0.5, 1.5),))
    batched = BatchedTask(task, 3)
    state = batched.reset(jax.random.key(0), 64)
    masses = np.asarray(state.task.parameters["body_mass"])
    assert masses.shape == (3, 64) and np.unique(masses[1]).size == 64
    ratio = masses[1:] / np.asarray(arm.model.body_mass)[1:]
    assert 0.5 <= ratio.min() < 0.6 and 1.4 < ratio.max() <= 1.5
    np.testing.assert_array_equal(batched.reset(jax.random.key(0), 5).task.parameters["body_mass"], masses[:, :5])
    for _ in range(3):
        state = batched.step(state, jnp.full((2, 64), 1.0))
    assert (np.asarray(state.task.parameters["body_mass"])[1] != masses[1]).all()


def test_a_heavier_arm_turns_more_slowly(arm):
    """The randomised leaves reach the physics: without damping, velocity after a push goes as 1 / inertia."""
    light, heavy = (
        Arm(model=arm.model, randomize=(("body_mass", s, s), ("body_inertia", s, s), ("joint_damping", 0.0, 0.0)))
        for s in (1.0, 4.0)
    )
    gains = []
    for task in (light, heavy):
        state = task.restart(outputs.keys_of_seed(np.array([0, 0], np.uint32), 2))
        rest = jnp.zeros_like(state.physics.q)
        state = state.replace(physics=state.physics.replace(q=rest, qd=rest))
        gains.append(np.asarray(task.step(state, jnp.array([[1.0, 1.0], [0.0, 0.0]])).physics.qd[0]))
    np.testing.assert_allclose(gains[0] / gains[1], 4.0, rtol=1e-3)


def test_wrong_action_shapes_are_refused(arm):
    state = arm.reset(jax.random.key(0), 3)
    with pytest.raises(ValueError, match=r"action has shape \(3, 2\), expected \(nu, N\) = \(2, 3\)"):
        arm.step(state, jnp.zeros((3, 2)))


def test_double_precision():
    task = make("inverted_pendulum", dtype="float64")
    assert task.reset(jax.random.key(0), 2).obs.dtype == jnp.float64
    envs = RsimVectorEnv(task, 2)
    obs, _ = envs.reset(seed=0)
    assert obs.dtype == np.float64 and envs.observation_space.contains(obs)
