"""What a training run is made of: frozen, typed records, read from YAML and from command-line options.

Both ways end in the same check, so a wrong name or type gets the same sentence wherever it was
written. `settings.py` does that.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal


class ConfigError(ValueError):
    """A setting that cannot be used; the message names the setting, the value and what is allowed."""


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation (Schulman et al. 2017), clipped objective, diagonal Gaussian policy."""

    num_envs: int = 256
    """Worlds that are stepped together."""
    unroll_length: int = 64
    """Environment steps per world and update."""
    total_steps: int = 2_000_000
    """Environment steps of the whole run, all worlds together; rounded up to whole updates."""
    learning_rate: float = 3e-4
    """Step size of Adam at the start."""
    anneal_learning_rate: bool = True
    """Let the step size fall linearly to zero over the run; off keeps it constant."""
    gamma: float = 0.99
    """Discount per environment step."""
    gae_lambda: float = 0.95
    """Decay of the advantage estimator: 0 trusts the critic, 1 the returns."""
    clip: float = 0.2
    """Largest relative change of an action's probability that is still rewarded."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus; raise it when exploration dies early."""
    value_coef: float = 0.5
    """Weight of the critic's loss."""
    epochs: int = 10
    """Passes over the data of one update."""
    minibatches: int = 8
    """Parts into which the data of one update is cut, each one optimiser step."""
    max_grad_norm: float = 0.5
    """The gradient is scaled down to this Euclidean norm."""
    target_kl: float | None = None
    """Stop the passes of one update once the policy moved this far (nats); null never stops."""
    normalize_observations: bool = True
    """Shift and scale observations by their running mean and spread, clipped to +-10."""
    normalize_rewards: bool = True
    """Scale rewards by the running spread of the discounted return, clipped to +-10."""
    hidden_sizes: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers, of the actor and of the critic."""
    log_std_init: float = 0.0
    """Logarithm of the policy's initial standard deviation (actions are scaled to [-1, 1])."""


@dataclass(frozen=True)
class EvalConfig:
    """Deterministic episodes during and after training."""

    interval: int = 0
    """Updates between evaluations; 0 evaluates only at the end."""
    episodes: int = 32
    """Episodes per evaluation, one per world."""


@dataclass(frozen=True)
class CheckpointConfig:
    """When the run is saved."""

    interval: int = 50
    """Updates between checkpoints; the last update is always saved. 0 saves only the last."""
    keep: int = 2
    """Newest checkpoints that stay on disk."""


@dataclass(frozen=True)
class LogConfig:
    """Where the run is written and what it shows."""

    folder: str = "runs"
    """Folder that holds all runs."""
    name: str = ""
    """Name of this run; empty makes one from task, seed and time."""
    tensorboard: bool = True
    """Write TensorBoard events besides metrics.jsonl."""
    progress: bool = True
    """Show live progress; off prints one line per evaluation and at the end."""


@dataclass(frozen=True)
class TrainConfig:
    """Everything that determines a training run."""

    task: str
    """Task to learn, for example hopper or Hopper-v5."""
    task_params: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of the task, for example healthy_reward."""
    seed: int = 0
    """Seed of every random number of the run."""
    dtype: Literal["float32", "float64"] = "float32"
    """Precision of simulation and learning; float64 is for studies."""
    ppo: PPOConfig = PPOConfig()
    eval: EvalConfig = EvalConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    log: LogConfig = LogConfig()

    @property
    def steps_per_update(self) -> int:
        """Environment steps of one update."""
        return self.ppo.num_envs * self.ppo.unroll_length

    @property
    def num_updates(self) -> int:
        """Updates of the whole run."""
        return -(-self.ppo.total_steps // self.steps_per_update)


def check_ranges(config: TrainConfig) -> TrainConfig:
    """The same config, if its numbers make sense together.

    Raises:
        ConfigError: naming the setting, its value and the remedy.
    """
    ppo = config.ppo
    for name in ("num_envs", "unroll_length", "total_steps", "epochs", "minibatches"):
        if getattr(ppo, name) < 1:
            raise ConfigError(f"ppo.{name} is {getattr(ppo, name)}; it must be at least 1")
    for name in ("learning_rate", "clip", "max_grad_norm"):
        if not getattr(ppo, name) > 0:
            raise ConfigError(f"ppo.{name} is {getattr(ppo, name)}; it must be above 0")
    for name in ("gamma", "gae_lambda"):
        if not 0 <= getattr(ppo, name) <= 1:
            raise ConfigError(f"ppo.{name} is {getattr(ppo, name)}; it must lie between 0 and 1")
    if ppo.target_kl is not None and not ppo.target_kl > 0:
        raise ConfigError(f"ppo.target_kl is {ppo.target_kl}; it must be above 0, or null")
    if not ppo.hidden_sizes or min(ppo.hidden_sizes) < 1:
        raise ConfigError(f"ppo.hidden_sizes is {list(ppo.hidden_sizes)}; give at least one width, each at least 1")
    if config.steps_per_update % ppo.minibatches:
        raise ConfigError(
            f"ppo.minibatches is {ppo.minibatches}, which does not divide num_envs x unroll_length = "
            f"{config.steps_per_update}"
        )
    for name, value in (("eval.interval", config.eval.interval), ("checkpoint.interval", config.checkpoint.interval)):
        if value < 0:
            raise ConfigError(f"{name} is {value}; it must be at least 0")
    for name, value in (("eval.episodes", config.eval.episodes), ("checkpoint.keep", config.checkpoint.keep)):
        if value < 1:
            raise ConfigError(f"{name} is {value}; it must be at least 1")
    return config


def to_dict(config: Any) -> dict[str, Any]:
    """Nested dictionary of plain values, in the order of the fields, for YAML."""
    plain = dataclasses.asdict(config)
    plain["ppo"]["hidden_sizes"] = list(config.ppo.hidden_sizes)
    return plain
