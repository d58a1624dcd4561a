"""Ids in Gymnasium's registry: rsim/<Name>-v5, for `gym.make` and `gym.make_vec`."""

from __future__ import annotations

import gymnasium as gym

from rsim_jax.envs.registry import TASKS

NAMESPACE = "rsim"


def register_all() -> None:
    """Register every task that is not registered yet."""
    for known, cls in TASKS.items():
        name = f"{NAMESPACE}/{known}"
        if name in gym.registry:
            continue
        gym.register(
            name,
            entry_point="rsim_jax.envs.single:RsimEnv",
            vector_entry_point="rsim_jax.envs.vector:RsimVectorEnv",
            max_episode_steps=cls.max_episode_steps,
            reward_threshold=cls.reward_threshold,
            kwargs={"task": known},
        )
