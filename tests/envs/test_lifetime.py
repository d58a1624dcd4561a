"""Environments keep nothing alive: not across steps, not after they are closed."""

from __future__ import annotations

import gc

import jax
import numpy as np
import psutil
import pytest
from drifter import Drifter

from rsim_jax.envs import RsimVectorEnv, outputs


def alive() -> int:
    gc.collect()
    return len(jax.live_arrays())


def run(task, worlds, steps, watch):
    """Live arrays and resident bytes, looked at `watch` times over a run with automatic resets."""
    envs = RsimVectorEnv(task, worlds, max_episode_steps=50, autoreset_mode="same_step", output="jax")
    envs.reset(seed=0)
    action = np.zeros(envs.action_space.shape, np.float32)
    counts, memory = [], []
    for t in range(steps):
        envs.step(action)
        if (t + 1) % (steps // watch) == 0:
            counts.append(alive())
            memory.append(psutil.Process().memory_info().rss)
    envs.close()
    return np.array(counts), np.array(memory)


def test_steps_leave_no_arrays_behind():
    counts, _ = run(Drifter(), 64, 300, 3)
    assert np.ptp(counts[1:]) <= 5


def test_closed_environments_leave_no_arrays_and_no_programs_behind():
    run(Drifter(), 64, 5, 1)
    start, programs = alive(), outputs.finish_with._cache_size()
    for _ in range(20):
        envs = RsimVectorEnv(Drifter(), 64, max_episode_steps=50, autoreset_mode="same_step", output="jax")
        envs.reset(seed=0)
        envs.step(np.zeros((64, 1), np.float32))
        envs.close()
    assert abs(alive() - start) <= 5
    assert outputs.finish_with._cache_size() == programs


@pytest.mark.slow
def test_memory_over_many_steps():
    counts, memory = run("inverted_pendulum", 64, 5000, 50)
    assert np.ptp(counts[10:]) <= 5
    assert memory[10:].max() < 1.01 * memory[10]
