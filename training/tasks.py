"""The task that a config names, with episodes and time limit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

import rsim_jax as rsim
from rsim_jax.envs import registry
from rsim_jax.envs.batch import BatchedTask
from rsim_jax.training.config import ConfigError, TrainConfig
from rsim_jax.training.ppo import Trainer, build

OURS = ("options", "randomize")  # parameters of our tasks that Gymnasium's do not have


def make_task(config: TrainConfig) -> BatchedTask:
    """The task in the config's precision.

    `task_params` may also hold `max_episode_steps` (null: none) and `options`, a mapping of simulator options.

    Raises:
        ConfigError: for an unknown task or parameter.
    """
    if config.dtype == "float64" and not jax.config.jax_enable_x64:
        raise ConfigError("dtype float64 needs double precision in JAX: set the environment variable JAX_ENABLE_X64=1")
    params = {name: _hashable(value) for name, value in config.task_params.items()}
    name = registry.task_id(config.task)
    limit = params.pop("max_episode_steps", registry.TASKS[name].max_episode_steps)
    try:
        if "options" in params:
            params["options"] = rsim.Options(**params["options"])
        task = registry.make(name, dtype=jnp.dtype(config.dtype), **params)
    except TypeError as error:
        raise ConfigError(f"task_params of {name}: {error}") from None
    return BatchedTask(task, limit)


def make_trainer(config: TrainConfig, task: BatchedTask | None = None) -> Trainer:
    """The trainer of a config, on the task that it names or on another one."""
    task = make_task(config) if task is None else task
    return build(config, task, devices_for(task, config.ppo.num_envs))


def devices_for(task: BatchedTask, num_envs: int) -> list[jax.Device]:
    """The local devices over which the simulator spreads that many worlds; learning uses the same ones."""
    size = task.task.block_size
    return jax.local_devices()[: -(-num_envs // size)]


def gymnasium_params(config: TrainConfig) -> dict[str, Any]:
    """The parameters that Gymnasium's own task of the same name takes too."""
    return {name: _hashable(value) for name, value in config.task_params.items() if name not in OURS}


def _hashable(value: Any) -> Any:
    """YAML's lists as tuples: parameters of a task are part of the compiled program's key."""
    return tuple(_hashable(item) for item in value) if isinstance(value, list) else value
