"""Every task through Gymnasium's checker and ours, and what only the single environment has."""

from __future__ import annotations

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils.env_checker import check_env

from rsim_jax.envs import RsimVectorEnv, check_vector_env
from rsim_jax.envs.registry import TASKS

NAMES = list(TASKS)


@pytest.mark.parametrize("name", NAMES)
def test_single_environment_passes_gymnasiums_checker(name):
    env = gym.make(f"rsim/{name}")
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("name", NAMES)
def test_vector_environment_passes_our_checker(name, mode):
    envs = gym.make_vec(f"rsim/{name}", num_envs=3, autoreset_mode=mode, max_episode_steps=6)
    check_vector_env(envs)
    envs.close()


def test_one_world_equals_world_zero_of_many():
    env = gym.make("rsim/Hopper-v5")
    envs = gym.make_vec("rsim/Hopper-v5", num_envs=3)
    obs, info = env.reset(seed=4)
    many, infos = envs.reset(seed=4)
    np.testing.assert_allclose(obs, many[0], atol=1e-6)
    assert info["x_position"] == infos["x_position"][0] and "reward_ctrl" not in info
    for t in range(5):
        action = np.full((3, 3), np.sin(t), np.float32)
        obs, reward, terminated, truncated, info = env.step(action[0])
        many, rewards, *_ = envs.step(action)
        np.testing.assert_allclose(obs, many[0], atol=1e-5)
        np.testing.assert_allclose(reward, rewards[0], atol=1e-5)
        assert isinstance(reward, float) and isinstance(terminated, bool) and isinstance(truncated, bool)
    assert {"x_velocity", "reward_forward", "reward_ctrl", "reward_survive", "not_finite"} <= set(info)


def test_time_limit_of_the_registered_ids():
    env = gym.make("rsim/HalfCheetah-v5", max_episode_steps=3)
    env.reset(seed=0)
    flags = [env.step(np.zeros(6))[2:4] for _ in range(3)]
    assert flags == [(False, False), (False, False), (False, True)]
    assert gym.make_vec("rsim/HalfCheetah-v5", num_envs=2).unwrapped.max_episode_steps == 1000


def test_parameters_reach_the_task_through_gymnasium():
    env = gym.make("rsim/Ant-v5", include_cfrc_ext_in_observation=False, healthy_z_range=[0.1, 2.0])
    assert env.observation_space.shape == (27,) and env.unwrapped.task.healthy_z_range == (0.1, 2.0)
    envs = gym.make_vec("rsim/Ant-v5", num_envs=2, include_cfrc_ext_in_observation=False)
    assert envs.single_observation_space.shape == (27,)


def test_order_of_calls_and_pickling():
    env = gym.make("rsim/InvertedPendulum-v5").unwrapped
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(1))
    copy = pickle.loads(pickle.dumps(env))
    np.testing.assert_array_equal(env.reset(seed=1)[0], copy.reset(seed=1)[0])
    with pytest.raises(ValueError, match=r"actions must have shape \(1,\), got \(2,\)"):
        env.step(np.zeros(2))
    env.close()
    env.close()
    with pytest.raises(ClosedEnvironmentError):
        env.step(np.zeros(1))


def test_pictures():
    envs = gym.make_vec(
        "rsim/InvertedPendulum-v5", num_envs=3, render_mode="rgb_array", width=64, height=48, render_env_ids=[0, 2]
    )
    envs.reset(seed=0)
    frames = envs.render()
    assert isinstance(frames, tuple) and len(frames) == 3
    assert all(f.shape == (48, 64, 3) and f.dtype == np.uint8 for f in frames)
    assert frames[0].std() > 0 and frames[2].std() > 0 and not frames[1].any()
    assert len(envs.call("render")) == 3
    envs.close()
    env = gym.make("rsim/InvertedPendulum-v5", render_mode="rgb_array", width=64, height=48)
    env.reset(seed=0)
    assert env.render().shape == (48, 64, 3)
    env.close()


def test_pictures_show_each_worlds_own_state():
    envs = RsimVectorEnv("inverted_pendulum", 3, render_mode="rgb_array", width=64, height=48, reset_noise_scale=0.5)
    envs.reset(seed=0)
    a, b, c = envs.render()
    assert (a != b).any() and (b != c).any()
    envs.close()
