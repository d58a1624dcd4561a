"""The tasks by name."""

from __future__ import annotations

import re
from typing import Any

from rsim_jax.envs.ant import Ant
from rsim_jax.envs.core import Task
from rsim_jax.envs.half_cheetah import HalfCheetah
from rsim_jax.envs.hopper import Hopper
from rsim_jax.envs.humanoid import Humanoid
from rsim_jax.envs.inverted_double_pendulum import InvertedDoublePendulum
from rsim_jax.envs.inverted_pendulum import InvertedPendulum
from rsim_jax.envs.walker2d import Walker2d

# Gymnasium's ids, whose version says whose spaces, rewards and terminations these are
TASKS: dict[str, type[Task]] = {
    "InvertedPendulum-v5": InvertedPendulum,
    "InvertedDoublePendulum-v5": InvertedDoublePendulum,
    "HalfCheetah-v5": HalfCheetah,
    "Hopper-v5": Hopper,
    "Walker2d-v5": Walker2d,
    "Ant-v5": Ant,
    "Humanoid-v5": Humanoid,
}


def make(name: str, **params: Any) -> Task:
    """A task by name.

    Args:
        name: "Ant-v5", "rsim/Ant-v5" or "ant".
        params: the keyword arguments of Gymnasium's class of that name, and `options`, `dtype`, `randomize`.

    Raises:
        ValueError: for an unknown name; the message lists the known ones.
        TypeError: for an unknown parameter; the message lists the known ones.
    """
    return TASKS[task_id(name)].load(**params)


def task_id(name: str) -> str:
    """The full id of a task: "HalfCheetah-v5" for "half_cheetah", "HalfCheetah" and "rsim/HalfCheetah-v5"."""
    bare = name.removeprefix("rsim/")
    for known in TASKS:
        if bare in (known, known.removesuffix("-v5"), short_name(known)):
            return known
    short = ", ".join(short_name(known) for known in TASKS)
    raise ValueError(f"no task named {name!r}; there are: {', '.join(TASKS)} (or short: {short})")


def short_name(known: str) -> str:
    """ "half_cheetah" for "HalfCheetah-v5"."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", known.split("-")[0]).lower()
