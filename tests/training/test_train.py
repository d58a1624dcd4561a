"""A whole run on a light task: the files it leaves, and what happens when they cannot be written."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import point_mass
import pytest

from rsim_jax.training import settings, train
from rsim_jax.training.config import ConfigError
from rsim_jax.training.logging import RunLog, read_rows


def config(folder, **ppo):
    base = point_mass.config(**{"total_steps": 4 * 1024, **ppo})
    log = dataclasses.replace(base.log, folder=str(folder), name="run")
    return dataclasses.replace(base, log=log, eval=dataclasses.replace(base.eval, interval=2, episodes=3))


def test_run_folder(tmp_path, capsys):
    result = train.train(config(tmp_path), point_mass.batched(20))
    run = result.run
    assert run == tmp_path / "run"
    rows = read_rows(run / "metrics.jsonl")
    assert [row["update"] for row in rows] == [1, 2, 3, 4]
    assert [row["env_steps"] for row in rows] == [1024, 2048, 3072, 4096]
    assert [row["update"] for row in rows if "eval/return" in row] == [2, 4]
    assert rows[-1]["eval/return"] == result.score.mean
    assert all((row["episode_return"] is None) == (row["episodes"] == 0) for row in rows)
    assert 16 < rows[1]["episode_length"] <= 20
    assert rows[-1]["terms/near"] + rows[-1]["terms/slow"] == pytest.approx(rows[-1]["reward"], rel=1e-5)
    assert settings.from_dict(settings.read_yaml(run / "config.yaml")) == config(tmp_path)
    assert (run / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert list((run / "tensorboard").glob("events*"))
    assert [p.name for p in (run / "checkpoints").iterdir()] == ["00000004"]
    assert not list(run.rglob("*partial*"))
    assert "wall time" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"complete after 4 updates.*rsim eval"):
        train.resume(run, point_mass.batched(20))


def test_existing_run_is_not_overwritten(tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(ConfigError, match="exists"):
        train.train(config(tmp_path), point_mass.batched())
    assert not list((tmp_path / "run").iterdir())


def test_unwritable_folder_leaves_nothing(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(OSError, match="file"):
        train.train(config(blocked), point_mass.batched())
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_disk_error_while_the_folder_is_made(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(OSError, match="No space left"):
        train.train(config(tmp_path), point_mass.batched())
    assert not list(tmp_path.iterdir())


def test_failure_before_the_first_update_leaves_nothing(tmp_path, monkeypatch):
    def broken(self, state, action):
        raise ValueError("action has shape (3, 1)")

    monkeypatch.setattr(point_mass.PointMass, "step", broken)
    with pytest.raises(ValueError, match="shape"):
        train.train(config(tmp_path), point_mass.batched())
    assert not list(tmp_path.iterdir())


def test_divergence_is_reported(tmp_path):
    task = point_mass.batched(reward_scale=float("inf"))
    with pytest.raises(train.TrainingError, match=r"diverged at update 1.*learning_rate"):
        train.train(config(tmp_path, normalize_rewards=False), task)


def test_rows_after_the_checkpoint_are_dropped(tmp_path):
    lines = [json.dumps({"update": n, "env_steps": n, "seconds": n}) for n in (1, 2, 3, 4)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + '\n{"update": 5, "env')  # the last write was cut
    log = RunLog(tmp_path, tensorboard=False, start=2)
    log.write({"update": 3, "env_steps": 30, "loss": np.float32("nan"), "seconds": 3.5})
    log.close()
    rows = read_rows(tmp_path / "metrics.jsonl")
    assert [row["env_steps"] for row in rows] == [1, 2, 30]
    assert rows[-1]["loss"] is None
