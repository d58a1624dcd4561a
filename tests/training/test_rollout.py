"""Acting: what is recorded at the end of an episode, and actions as controls."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import point_mass

from rsim_jax.training.rollout import collect, to_control


def zero_policy(obs, key):
    return jnp.zeros((obs.shape[0], 1), obs.dtype), jnp.zeros(obs.shape[0], obs.dtype)


def test_final_observation_is_from_before_the_reset():
    """Under zero force the mass drifts: x grows by dt v up to and including the step that the time limit cuts."""
    task = point_mass.batched(max_episode_steps=5)
    env = task.reset(jax.random.key(0), 8)
    keys = jax.random.split(jax.random.key(1), 12)
    env, steps, report = jax.jit(lambda e, k: collect(task, e, zero_policy, lambda x: x, k))(env, keys)
    drifted = steps.obs[..., 0] + point_mass.DT * steps.obs[..., 1]
    np.testing.assert_allclose(steps.final_obs[..., 0], drifted, rtol=1e-6)
    np.testing.assert_array_equal(steps.final_obs[..., 1], steps.obs[..., 1])
    cut = np.flatnonzero(steps.truncated.all(1))
    assert cut.tolist() == [4, 9]
    assert not np.any(np.isclose(steps.obs[5, :, 0], drifted[4]))  # the next observation is a new start
    np.testing.assert_array_equal(steps.final_obs[:4], steps.obs[1:5])
    np.testing.assert_array_equal(report.episode_length[4], 5)
    np.testing.assert_allclose(report.episode_return[4], steps.reward[:5].sum(0), rtol=1e-5)


def test_actions_are_scaled_to_the_range():
    low, high = jnp.array([-2.0, 1.0, -jnp.inf]), jnp.array([2.0, 3.0, jnp.inf])
    action = jnp.array([[0.0, 0.0, 5.0], [1.0, -1.0, -7.0], [9.0, 0.5, 0.0]])
    expected = [[0.0, 2.0, 5.0], [2.0, 1.0, -7.0], [2.0, 2.5, 0.0]]
    np.testing.assert_allclose(to_control(action, low, high).T, expected)
