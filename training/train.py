"""A training run: the only module that reads and writes files while learning."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from rsim_jax.training import checkpoint, settings, tasks
from rsim_jax.training.config import ConfigError, TrainConfig
from rsim_jax.training.evaluate import Score, evaluate
from rsim_jax.training.logging import RunLog
from rsim_jax.training.policy import of_state
from rsim_jax.training.ppo import Trainer, TrainState
from rsim_jax.training.progress import Progress

EVAL_SEED = 1_000_003  # apart from the seeds that people choose for training


class TrainingError(RuntimeError):
    """The run cannot go on; the message says what to change."""


@dataclass(frozen=True)
class Result:
    """What a finished run achieved."""

    run: Path
    score: Score
    seconds: float  # wall time of this call, compilation included


def train(config: TrainConfig, task: Any = None) -> Result:
    """Start a new run.

    Args:
        task: a `BatchedTask` to learn instead of the one that the config names.

    Raises:
        ConfigError: when the settings cannot be used.
        OSError: when the run folder cannot be written; nothing is left behind.
        TrainingError: when learning diverges.
    """
    began = time.monotonic()
    trainer = tasks.make_trainer(config, task)
    with _new_folder(config) as run:
        state = trainer.start()
        update = trainer.compile(state)
    return _go_on(trainer, update, run, state, began)


def resume(run: str | Path, task: Any = None) -> Result:
    """Go on from the newest checkpoint of a run, as if it had not been interrupted.

    Raises:
        ConfigError: when the folder holds no checkpoint, a damaged one, or that of a complete run.
    """
    began, run = time.monotonic(), Path(run)
    path = checkpoint.latest(run)
    config = settings.from_dict(settings.read_yaml(path / checkpoint.SETTINGS))
    if int(path.name) >= config.num_updates:
        raise ConfigError(f"{run} is complete after {config.num_updates} updates; score it with: rsim eval {run}")
    trainer = tasks.make_trainer(config, task)
    state = trainer.place(checkpoint.load(path, trainer.template()))
    return _go_on(trainer, trainer.compile(state), run, state, began)


@contextlib.contextmanager
def _new_folder(config: TrainConfig) -> Iterator[Path]:
    """A run folder that holds the resolved config; it appears when the block succeeds, as a whole or not at all."""
    name = config.log.name or f"{config.task}-{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    run = Path(config.log.folder) / name
    if run.exists():
        raise ConfigError(f"{run} exists; choose another --log.name, or go on with --resume {run}")
    partial = run.with_name(f".{name}.partial")
    try:
        partial.mkdir(parents=True, exist_ok=True)
        named = dataclasses.replace(config, log=dataclasses.replace(config.log, name=name))
        (partial / "config.yaml").write_text(settings.dump(named))
        yield run
        partial.rename(run)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _go_on(trainer: Trainer, update: Any, run: Path, state: TrainState, began: float) -> Result:
    config, start = trainer.config, int(state.updates)
    log = RunLog(run, config.log.tensorboard, start)
    try:
        with Progress(f"{config.task} -> {run}", config.num_updates, config.log.progress) as progress:
            progress.say(f"ready after {time.monotonic() - began:.1f} s; run folder {run}")
            loop = _Loop(trainer, run, log, progress, update)
            score = loop.run_to_end(state, start)
            seconds = time.monotonic() - began
            progress.say(f"{score}; wall time {seconds:.1f} s, compilation included")
        log.draw()
    finally:
        log.close()
    return Result(run, score, seconds)


@dataclass
class _Loop:
    """Updates one after another, with what is due after each."""

    trainer: Trainer
    run: Path
    log: RunLog
    progress: Progress
    update: Any

    def run_to_end(self, state: TrainState, start: int) -> Score:
        config = self.trainer.config
        before = self.log.rows[-1]["seconds"] if self.log.rows else 0.0
        clock, score = time.monotonic(), None
        for done in range(start + 1, config.num_updates + 1):
            tick = time.monotonic()
            state, metrics = self.update(state)
            metrics = jax.device_get(metrics)
            now = time.monotonic()
            last = done == config.num_updates
            row = {
                "update": done,
                "env_steps": done * config.steps_per_update,
                "seconds": before + now - clock,
                "steps_per_second": config.steps_per_update / (now - tick),
                **metrics,
            }
            self._check(metrics, done)
            if last or _due(done, config.eval.interval):
                score = self._evaluate(state)
                row |= {"eval/return": score.mean, "eval/length": float(score.lengths.mean())}
            self.log.write(row)
            self.progress.update(self.log.rows[-1])
            if last or _due(done, config.checkpoint.interval):
                self._save(state, done)
        return self._evaluate(state) if score is None else score

    def _evaluate(self, state: TrainState) -> Score:
        policy = of_state(self.trainer, state)
        return evaluate(policy, self.trainer.task, self.trainer.config.eval.episodes, EVAL_SEED)

    def _save(self, state: TrainState, done: int) -> None:
        text = (self.run / "config.yaml").read_text()
        checkpoint.save(self.run / "checkpoints", done, state, text, self.trainer.config.checkpoint.keep)
        self.log.draw()

    def _check(self, metrics: dict[str, Any], done: int) -> None:
        if not np.isfinite(metrics["policy_loss"] + metrics["value_loss"]):
            raise TrainingError(
                f"learning diverged at update {done}: the loss is not finite; lower ppo.learning_rate or "
                f"ppo.max_grad_norm and train again (older checkpoints in {self.run} are whole)"
            )


def _due(done: int, interval: int) -> bool:
    return interval > 0 and done % interval == 0
