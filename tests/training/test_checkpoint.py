"""Saved runs go on bit for bit, and damage is noticed."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import point_mass
import pytest

from rsim_jax.training import checkpoint, ppo
from rsim_jax.training.config import ConfigError
from rsim_jax.training.evaluate import evaluate
from rsim_jax.training.logging import read_rows
from rsim_jax.training.policy import of_state
from rsim_jax.training.tasks import make_trainer
from rsim_jax.training.train import resume, train

# a short time limit, so that resets, episode statistics and reward normalisation all matter after the checkpoint
LIMIT = 7


def settings(folder, name="run"):
    config = point_mass.config()
    log = dataclasses.replace(config.log, folder=str(folder), name=name, tensorboard=False, progress=False)
    return dataclasses.replace(config, log=log, checkpoint=dataclasses.replace(config.checkpoint, interval=10))


def arrays(path, trainer):
    state = checkpoint.load(path, trainer.template())
    return {name: np.asarray(leaf) for name, leaf in checkpoint._named(checkpoint._raw(state))}


@pytest.fixture(scope="module")
def trainer():
    return make_trainer(settings("unused"), point_mass.batched(LIMIT))


@pytest.fixture(scope="module")
def halfway(trainer):
    """Compiled update and the states after 0, 10 and 20 updates."""
    states = [trainer.start()]
    update = trainer.compile(states[0])
    for _ in range(2):
        state = jax.tree.map(jnp.copy, states[-1])  # the update gives its argument's memory away
        for _ in range(10):
            state, _ = update(state)
        states.append(state)
    return update, states


KILLED_RUN = """
import os, sys
import point_mass, test_checkpoint
from rsim_jax.training import checkpoint
from rsim_jax.training.train import train

whole_save = checkpoint.save
def save_and_die(*args):
    whole_save(*args)
    os._exit(9)
checkpoint.save = save_and_die
train(test_checkpoint.settings(sys.argv[1], "killed"), point_mass.batched(test_checkpoint.LIMIT))
"""
RESUMED_RUN = """
import sys
import point_mass, test_checkpoint
from rsim_jax.training.train import resume
resume(sys.argv[1] + "/killed", point_mass.batched(test_checkpoint.LIMIT))
"""


def in_new_process(code, folder):
    env = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent),
        "JAX_ENABLE_X64": str(int(jax.config.jax_enable_x64)),
    }
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_killed_and_resumed_in_a_new_process_equals_uninterrupted(tmp_path, trainer):
    train(settings(tmp_path, "whole"), trainer.task)
    killed = in_new_process(KILLED_RUN, tmp_path)
    assert killed.returncode == 9, killed.stderr[-2000:]
    assert [p.name for p in checkpoint.checkpoints(tmp_path / "killed" / "checkpoints")] == ["00000010"]
    resumed = in_new_process(RESUMED_RUN, tmp_path)
    assert resumed.returncode == 0, resumed.stderr[-2000:]

    whole, again = (arrays(checkpoint.latest(tmp_path / name), trainer) for name in ("whole", "killed"))
    for name in whole:
        np.testing.assert_array_equal(again[name], whole[name], err_msg=name)
    rows = [read_rows(tmp_path / name / "metrics.jsonl") for name in ("whole", "killed")]
    timeless = [[{k: v for k, v in row.items() if "second" not in k} for row in run] for run in rows]
    assert timeless[0] == timeless[1]
    assert [row["update"] for row in rows[1]] == list(range(1, 21))
    assert rows[1][10]["seconds"] > rows[1][9]["seconds"]


@pytest.mark.parametrize("part", [field.name for field in dataclasses.fields(ppo.TrainState)])
def test_every_part_of_the_checkpoint_matters(part, halfway):
    """Had a checkpoint left out one part, so that it restarts fresh, the resumed run would differ."""
    update, (start, middle, end) = halfway
    state = jax.tree.map(jnp.copy, dataclasses.replace(middle, **{part: getattr(start, part)}))
    for _ in range(10):
        state, _ = update(state)
    equal = jax.tree.map(lambda a, b: np.array_equal(a, b), state.params, end.params)
    assert not jax.tree.all(equal)


def test_file_holds_every_leaf(tmp_path, trainer, halfway):
    _, (_, middle, _) = halfway
    path = checkpoint.save(tmp_path, 10, middle, "", keep=1)
    loaded = arrays(path, trainer)
    assert {name.split(".")[0] for name in loaded} == {field.name for field in dataclasses.fields(ppo.TrainState)}
    for name, leaf in checkpoint._named(checkpoint._raw(middle)):
        assert loaded[name].dtype == leaf.dtype
        np.testing.assert_array_equal(loaded[name], leaf)
    assert int(loaded["updates"]) == 10
    assert int(loaded["obs_moments.count"]) == 10 * 1024
    assert int(loaded["optimizer.1.count"]) == 10 * 16


def test_a_relative_path_will_do(tmp_path, trainer, halfway, monkeypatch):
    """`rsim play runs/first` gives one."""
    checkpoint.save(tmp_path / "run" / "checkpoints", 10, halfway[1][1], "", 1)
    monkeypatch.chdir(tmp_path)
    loaded = checkpoint.load(checkpoint.latest(Path("run")), trainer.template())
    assert jax.tree.structure(loaded) == jax.tree.structure(halfway[1][1])


def test_loaded_state_needs_no_second_compilation(tmp_path, trainer, halfway):
    """The program compiled for the start accepts the loaded state, and does the same to it."""
    update, (_, middle, _) = halfway
    loaded = trainer.place(checkpoint.load(checkpoint.save(tmp_path, 10, middle, "", 1), trainer.template()))
    program = trainer.program(middle, donate=False)
    for state in (middle, loaded):
        program(state, trainer.task)
    assert program._cache_size() == 1
    one, two = (update(jax.tree.map(jnp.copy, state))[0].params for state in (middle, loaded))
    assert jax.tree.all(jax.tree.map(lambda a, b: np.array_equal(a, b), one, two))


def test_statistics_survive_and_evaluation_leaves_them_alone(tmp_path):
    """Observations around [100, -5] with spreads [10, 0.1]: playback must use the statistics of training."""
    task = point_mass.batched(offset=(100.0, -5.0), scale=(10.0, 0.1))
    trainer = make_trainer(settings("unused"), task)
    state = trainer.start()
    update = trainer.compile(state)
    for _ in range(5):
        state, _ = update(state)
    np.testing.assert_allclose(state.obs_moments.mean, [100.0, -5.0], atol=3.0)
    assert 1 < float(state.obs_moments.var[0]) < 200
    assert 1e-4 < float(state.obs_moments.var[1]) < 2e-2
    obs = jax.random.normal(jax.random.key(3), (2, 100), jnp.float32) * jnp.array([[10.0], [0.1]], "float32")
    obs = obs + jnp.array([[100.0], [-5.0]], "float32")

    policy = of_state(trainer, state)
    loaded = checkpoint.load(checkpoint.save(tmp_path, 5, state, "", 1), trainer.template())
    again = of_state(trainer, loaded)
    evaluate(again, task, 4, 0)
    np.testing.assert_array_equal(again.act(obs), policy.act(obs))
    np.testing.assert_array_equal(again.obs_moments.mean, state.obs_moments.mean)
    assert int(loaded.obs_moments.count) == 5 * 1024
    assert float(jnp.std(policy.act(obs))) > 1e-3  # the actions depend on the observations at all
    assert int(trainer.compile(loaded)(trainer.place(loaded))[0].obs_moments.count) == 6 * 1024


def damage(path, how):
    files = [p for p in path.rglob("*") if p.is_file() and p.name != checkpoint.FILES]
    largest = max(files, key=lambda p: p.stat().st_size)
    data = largest.read_bytes()
    if how == "cut":
        largest.write_bytes(data[: len(data) // 2])
    elif how == "flipped":
        largest.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    elif how == "missing":
        largest.unlink()
    elif how == "list cut":
        (path / checkpoint.FILES).write_text((path / checkpoint.FILES).read_text()[:40])
    elif how == "list missing":
        (path / checkpoint.FILES).unlink()


@pytest.mark.parametrize("how", ["cut", "flipped", "missing", "list cut", "list missing"])
def test_damage_is_one_readable_line(tmp_path, trainer, halfway, how):
    path = checkpoint.save(tmp_path, 10, halfway[1][1], "", 1)
    damage(path, how)
    with pytest.raises(ConfigError) as caught:
        checkpoint.load(path, trainer.template())
    message = str(caught.value)
    assert "\n" not in message and "damaged" in message and "delete" in message and str(path) in message


def test_other_task_is_refused(tmp_path, trainer, halfway):
    path = checkpoint.save(tmp_path, 10, halfway[1][1], "", 1)
    wider = make_trainer(point_mass.config(hidden_sizes=(16, 32)), trainer.task)
    deeper = make_trainer(point_mass.config(hidden_sizes=(16, 16, 16)), trainer.task)
    for other in (wider, deeper):
        with pytest.raises(ConfigError, match="does not fit"):
            checkpoint.load(path, other.template())


def test_old_ones_are_deleted_and_leftovers_ignored(tmp_path, halfway):
    (tmp_path / ".00000004.partial").mkdir()
    for update in (1, 2, 3, 4):
        checkpoint.save(tmp_path, update, halfway[1][0], "", keep=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["00000003", "00000004"]
    (tmp_path / ".00000005.partial").mkdir()
    assert checkpoint.checkpoints(tmp_path)[-1].name == "00000004"


def test_resume_without_a_checkpoint(tmp_path):
    with pytest.raises(ConfigError, match="there is no run folder"):
        resume(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="holds no checkpoint"):
        resume(tmp_path)


def test_nothing_is_pickled(tmp_path, halfway):
    path = checkpoint.save(tmp_path, 1, halfway[1][0], "", 1)
    assert json.loads((path / checkpoint.FILES).read_text())
    for file in path.rglob("*"):
        assert file.is_dir() or not file.read_bytes().startswith(b"\x80")
    shutil.rmtree(path)
