"""Spaces and actions at the boundary to Gymnasium."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box

from rsim_jax.envs.core import Task


def observation_space(task: Task) -> Box:
    """Unbounded box of the task's observation size and dtype."""
    return Box(-np.inf, np.inf, (task.observation_size,), np.dtype(task.dtype).type)


def action_space(task: Task) -> Box:
    """Control ranges of the actuators, float32 as in Gymnasium's MuJoCo tasks."""
    low, high = (np.asarray(bound, np.float32) for bound in task.action_range)
    return Box(low, high, dtype=np.float32)


def as_actions(actions: Any, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    """NumPy, JAX and DLPack (torch) arrays or lists as a JAX array of the task's dtype.

    Raises:
        ValueError: for a wrong shape or something that is not numbers; the message gives expected and given.
    """
    if not isinstance(actions, (jax.Array, np.ndarray)) and hasattr(actions, "__dlpack__"):
        actions = jnp.from_dlpack(actions)
    try:
        actions = actions if isinstance(actions, jax.Array) else np.asarray(actions, np.dtype(dtype))
    except (TypeError, ValueError) as error:
        raise ValueError(f"actions must be numbers of shape {shape}: {error}") from None
    if actions.shape != shape:
        raise ValueError(f"actions must have shape {shape}, got {actions.shape}")
    return jnp.asarray(actions, dtype)
