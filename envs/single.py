"""Gymnasium's single environment: one world of a task."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import jax
import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from rsim_jax.envs import outputs
from rsim_jax.envs.batch import BatchedTask, BatchState
from rsim_jax.envs.core import Task
from rsim_jax.envs.pictures import Pictures
from rsim_jax.envs.registry import make
from rsim_jax.envs.spaces import action_space, as_actions, observation_space


class RsimEnv(gym.Env):
    """One world as a `gymnasium.Env`; `gymnasium.make` adds the time limit.

    Args:
        task: a task's name, or a `Task`.
        render_mode: None or "rgb_array".
        width, height: picture size in pixels.
        camera_id, camera_name: a camera of the model; by default the one named "track".
        params: the task's parameters when it is given by name.

    A seed starts the same episode as in world 0 of `RsimVectorEnv` with that seed.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 50}

    def __init__(
        self,
        task: str | Task,
        *,
        render_mode: str | None = None,
        width: int = 480,
        height: int = 480,
        camera_id: int | None = None,
        camera_name: str | None = None,
        **params: Any,
    ) -> None:
        if isinstance(task, Task) and params:
            raise ValueError(f"parameters {sorted(params)} belong to the task, which is given whole: set them there")
        arguments = {name: value for name, value in locals().items() if name not in ("self", "params", "__class__")}
        self._arguments = arguments | params  # what pickling rebuilds from
        self.task = make(task, **params) if isinstance(task, str) else task
        self.dt = self.task.dt
        self.render_mode = render_mode
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": round(1 / self.dt)}
        self.observation_space = observation_space(self.task)
        self.action_space = action_space(self.task)
        self._pictures = Pictures(self.task, render_mode, width, height, camera_id, camera_name)
        self._batched = BatchedTask(self.task)
        self._state: BatchState | None = None
        self._closed = False

    @property
    def state(self) -> BatchState:
        """The whole state of the one world (N = 1)."""
        if self._closed:
            raise ClosedEnvironmentError("the environment is closed: make a new one")
        if self._state is None:
            raise ResetNeeded("call reset() before step() or render()")
        return self._state

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start a new episode; without a seed the stream of random numbers continues."""
        if self._closed:
            raise ClosedEnvironmentError("the environment is closed: make a new one")
        super().reset(seed=seed)
        if seed is None and self._state is not None:
            keys = self._state.task.key
        else:
            seed = int(self.np_random.integers(2**31)) if seed is None else seed
            keys = outputs.keys_of_seed(outputs.seed_words([seed])[0], 1)
        self._state = self._batched.restart_all(keys)
        obs, info = jax.device_get(outputs.begun(self._batched, self._state, np.ones(1, bool)))
        return np.array(obs[0]), _of_one_world(info)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One step: observation, reward, terminated, truncated (always False here), info."""
        state = self.state
        actions = as_actions(action, self.action_space.shape, self.task.dtype)[None]
        self._state = self._batched.advance(state, actions.T)
        obs, reward, terminated, _, info = jax.device_get(outputs.plain(self._batched, self._state))
        return np.array(obs[0]), float(reward[0]), bool(terminated[0]), False, _of_one_world(info)

    def render(self) -> np.ndarray | None:
        """The picture, uint8 (height, width, 3); None without a render mode."""
        return None if self.render_mode is None else self._pictures.draw(self.state.task.physics, [0])[0]

    def close(self) -> None:
        """Free the state and the renderer; further calls do nothing."""
        self._closed = True
        self._state = None
        self._pictures.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickling keeps the arguments, not the episode: the copy wants a reset."""
        return _rebuild, (self._arguments,)


def _rebuild(arguments: dict[str, Any]) -> RsimEnv:
    return RsimEnv(**arguments)


def _of_one_world(info: dict[str, Any]) -> dict[str, Any]:
    """World 0 of a vector info, numbers as Python and NumPy values, masked keys left out."""
    return {name: info[name][0] for name in info if not name.startswith("_") and info[f"_{name}"][0]}
