"""A training loop that uses nothing but Gymnasium's public API learns on our environments."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import public_ppo
import pytest
from gymnasium.wrappers.vector import ClipAction, NormalizeObservation, NormalizeReward, RecordEpisodeStatistics


def test_advantages_by_hand():
    """Two worlds, three steps: one terminates at t = 1, the other is truncated there and bootstraps."""
    rewards = np.array([[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]])
    values = np.array([[0.5, 0.5], [1.0, 1.0], [4.0, 4.0], [2.0, 2.0]])
    terminated = np.array([[False, False], [True, False], [False, False]])
    done = np.array([[False, False], [True, True], [False, False]])
    result = public_ppo.advantages(rewards, values, terminated, done, 0.5, 0.5)
    np.testing.assert_allclose(result[1], [2 - 1, 2 + 0.5 * 4 - 1])
    np.testing.assert_allclose(result[0], [1 + 0.5 - 0.5 + 0.25 * 1, 1 + 0.5 - 0.5 + 0.25 * 3])


def test_inverted_pendulum_improves():
    envs = RecordEpisodeStatistics(gym.make_vec("rsim/InvertedPendulum-v5", num_envs=64))
    scores = public_ppo.train(envs, updates=25, steps=32)
    envs.close()
    assert np.mean(scores[:3]) < 30  # an untrained policy falls within a second
    assert max(scores[-5:]) > 100


@pytest.mark.slow
def test_hopper_learns():
    envs = RecordEpisodeStatistics(gym.make_vec("rsim/Hopper-v5", num_envs=256))
    envs = ClipAction(NormalizeReward(NormalizeObservation(envs), gamma=0.995))
    scores = public_ppo.train(envs, updates=100, steps=64, rate=1e-3, epochs=10, minibatches=16, gamma=0.995)
    envs.close()
    assert np.mean(scores[-10:]) > 1000 and np.mean(scores[:2]) < 100
