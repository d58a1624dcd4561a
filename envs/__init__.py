"""Reinforcement-learning tasks on the simulator.

`make` gives a task of the functional core, `BatchedTask` adds time limits and resets, `RsimVectorEnv` and `RsimEnv`
are Gymnasium's views of it. Importing registers rsim/<Name>-v5 with Gymnasium.
"""

from __future__ import annotations

if __name__ != "rsim_jax.envs":
    raise ImportError("import rsim_jax.envs, not the checkout's folder envs")

from rsim_jax.envs.batch import BatchedTask, BatchState
from rsim_jax.envs.checker import check_vector_env
from rsim_jax.envs.core import Outcome, Task, TaskState, task_class
from rsim_jax.envs.registration import register_all
from rsim_jax.envs.registry import TASKS, make, short_name, task_id
from rsim_jax.envs.single import RsimEnv
from rsim_jax.envs.vector import RsimVectorEnv

__all__ = [
    "TASKS",
    "BatchState",
    "BatchedTask",
    "Outcome",
    "RsimEnv",
    "RsimVectorEnv",
    "Task",
    "TaskState",
    "check_vector_env",
    "make",
    "short_name",
    "task_class",
    "task_id",
]

register_all()
