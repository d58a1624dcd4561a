"""A trained policy: what evaluation, playback and export need of a training state, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rsim_jax.structs import record
from rsim_jax.training import checkpoint, normalizer, settings, tasks
from rsim_jax.training.config import TrainConfig
from rsim_jax.training.networks import Actor
from rsim_jax.training.normalizer import Moments
from rsim_jax.training.ppo import Trainer, TrainState
from rsim_jax.training.rollout import to_control


class Policy:
    """Deterministic: the mean of the Gaussian. A pytree, so that it can be an argument of compiled code."""

    params: Any
    obs_moments: Moments
    low: Float[Array, " act"]
    high: Float[Array, " act"]
    actor: Actor
    normalize: bool

    def act(self, obs: Float[Array, "d N"]) -> Float[Array, "act N"]:
        """Controls for raw observations; the observation statistics stay as training left them."""
        seen = normalizer.normalize(self.obs_moments, obs.T) if self.normalize else obs.T
        return to_control(self.actor.apply(self.params, seen)[0], self.low, self.high)


Policy = record(Policy, static=("actor", "normalize"))


def of_state(trainer: Trainer, state: TrainState) -> Policy:
    """The policy of a training state, on one device."""
    low, high = trainer.task.task.action_range
    actor, normalize = trainer.learner.actor, trainer.config.ppo.normalize_observations
    policy = Policy(state.params["actor"], state.obs_moments, low, high, actor, normalize)
    # copies: the training state's own arrays are given up by the next update
    return jax.tree.map(lambda x: jnp.array(jax.device_get(x)), policy)


def load_run(run: str | Path) -> tuple[TrainConfig, Any, Policy]:
    """Config, `BatchedTask` and policy of the newest checkpoint of a run folder.

    Raises:
        ConfigError: when the folder, its config or its checkpoint cannot be used.
    """
    path = checkpoint.latest(Path(run))
    config = settings.from_dict(settings.read_yaml(path / checkpoint.SETTINGS))
    trainer = tasks.make_trainer(config)
    return config, trainer.task, of_state(trainer, checkpoint.load(path, trainer.template()))
