"""The shipped preset of the inverted pendulum learns, resumes bit for bit on the simulator, and needs two minutes."""

from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import pytest

from rsim_jax.envs.registry import task_id
from rsim_jax.training import checkpoint, settings, tasks
from rsim_jax.training.evaluate import evaluate_in_gymnasium
from rsim_jax.training.policy import load_run
from rsim_jax.training.train import resume, train


def short(folder, **ppo):
    config = settings.load_config("inverted_pendulum", [f"--log.folder={folder}", "--log.name=run"])
    return dataclasses.replace(config, ppo=dataclasses.replace(config.ppo, **ppo))


@pytest.mark.slow
def test_preset_keeps_the_pole_up_here_and_in_gymnasium(tmp_path):
    result = train(short(tmp_path))
    assert result.score.mean >= 950
    config, _, policy = load_run(result.run)
    score = evaluate_in_gymnasium(policy, task_id(config.task), {}, episodes=3, seed=0)
    assert score.mean >= 950


@pytest.mark.slow
def test_resumed_simulation_equals_an_uninterrupted_one(tmp_path):
    """The simulator's whole state is in the checkpoint: warm starts, clocks, random streams of the worlds."""
    config = short(tmp_path, total_steps=4 * 8192)
    config = dataclasses.replace(config, checkpoint=dataclasses.replace(config.checkpoint, interval=2))
    run = train(config).run
    whole = checkpoint.latest(run)
    template = tasks.make_trainer(config).template()
    expected = checkpoint.load(whole, template)
    shutil.rmtree(whole)
    resume(run)
    found = checkpoint.load(checkpoint.latest(run), template)
    pairs = zip(*(checkpoint._named(checkpoint._raw(state)) for state in (expected, found)), strict=True)
    for (name, one), (_, other) in pairs:
        np.testing.assert_array_equal(one, other, err_msg=name)
