"""What a user may write, and the sentence for what not."""

from __future__ import annotations

import dataclasses

import pytest
import yaml

from rsim_jax.envs import registry
from rsim_jax.training import settings, tasks
from rsim_jax.training.config import ConfigError, PPOConfig, TrainConfig


def test_yaml_round_trip():
    ppo = PPOConfig(num_envs=32, hidden_sizes=(8, 4, 2), target_kl=0.02, learning_rate=1e-3)
    config = TrainConfig(task="hopper", task_params={"frame_skip": 2}, seed=7, ppo=ppo)
    assert settings.from_dict(yaml.safe_load(settings.dump(config))) == config


def test_options_win_over_the_file(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("task: hopper\nseed: 3\nppo:\n  num_envs: 16\n  learning_rate: 3e-4\n")
    options = ["--ppo.num-envs", "1e2", "--ppo.hidden_sizes=8,4", "--task_params.frame_skip", "2", "--ppo.gamma=1"]
    config = settings.load_config(str(path), [*options, "--ppo.anneal_learning_rate", "false"])
    assert (config.seed, config.ppo.num_envs, config.ppo.learning_rate) == (3, 100, 3e-4)
    assert config.ppo.hidden_sizes == (8, 4)
    assert config.task_params == {"frame_skip": 2}
    assert config.ppo.anneal_learning_rate is False
    assert isinstance(config.ppo.gamma, float)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ppo.num_env", "3"], ["ppo.num_env", "did you mean num_envs", "unroll_length"]),
        (["--sead", "3"], ["unknown setting sead", "seed", "task_params"]),
        (["--task.x", "3"], ["task.x", "task has no parts"]),
        (["--ppo.epochs", "many"], ["ppo.epochs", "'many'", "whole number"]),
        (["--ppo.epochs", "2.5"], ["ppo.epochs", "2.5", "whole number"]),
        (["--ppo.gamma", "nan"], ["ppo.gamma", "a number"]),
        (["--ppo.gamma", "1.5"], ["ppo.gamma is 1.5", "between 0 and 1"]),
        (["--ppo.num_envs", "0"], ["ppo.num_envs is 0", "at least 1"]),
        (["--ppo.learning_rate", "-1"], ["ppo.learning_rate", "above 0"]),
        (["--ppo.minibatches", "7"], ["ppo.minibatches is 7", "does not divide"]),
        (["--ppo.hidden_sizes", "[]"], ["ppo.hidden_sizes", "at least one"]),
        (["--ppo.target_kl", "-1"], ["ppo.target_kl", "above 0"]),
        (["--ppo.anneal_learning_rate", "maybe"], ["anneal_learning_rate", "true or false"]),
        (["--dtype", "float16"], ["dtype", "float32", "float64"]),
        (["--ppo", "3"], ["ppo", "must hold settings"]),
        (["--checkpoint.keep", "0"], ["checkpoint.keep", "at least 1"]),
        (["--eval.interval", "-1"], ["eval.interval", "at least 0"]),
        (["--seed"], ["--seed", "needs a value"]),
        (["7"], ["unexpected argument '7'"]),
    ],
)
def test_mistakes_are_named(options, words):
    with pytest.raises(ConfigError) as caught:
        settings.load_config("hopper", options)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize("text", ["task: [", "- a\n- b\n", "", "seed: 1\n"])
def test_unusable_files(tmp_path, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        settings.load_config(str(path), [])
    assert "\n" not in str(caught.value)


def test_unknown_task_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"no task named 'hoper'.*hopper"):
        settings.load_config("hoper", [])


def test_unknown_task_parameter():
    config = TrainConfig(task="inverted_pendulum", task_params={"mass": 3})
    with pytest.raises(ConfigError, match="mass"):
        tasks.make_task(config)


@pytest.mark.parametrize("name", list(registry.TASKS))
def test_every_task_has_a_preset(name):
    """All spellings of a task lead to the same settings, and those name the task."""
    short = registry.short_name(name)
    config = settings.load_config(short, [])
    assert config == settings.load_config(name, []) == settings.load_config(f"rsim/{name}", [])
    assert registry.task_id(config.task) == name
    assert config != TrainConfig(task=config.task), "no preset is shipped"


def test_help_names_every_setting():
    text = settings.help_text()
    for field in dataclasses.fields(PPOConfig):
        assert f"--ppo.{field.name.replace('_', '-')}" in text
