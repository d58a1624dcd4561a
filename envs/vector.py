"""Gymnasium's vector environment over a batched task."""

from __future__ import annotations

import dataclasses
import functools
import os
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from rsim_jax.envs import outputs
from rsim_jax.envs.batch import BatchedTask, BatchState
from rsim_jax.envs.core import Task
from rsim_jax.envs.pictures import Pictures
from rsim_jax.envs.placement import place
from rsim_jax.envs.registry import make
from rsim_jax.envs.spaces import action_space, as_actions, observation_space

_MODES = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}


class RsimVectorEnv(gym.vector.VectorEnv):
    """Many worlds of one task as a `gymnasium.vector.VectorEnv`; world axis first, as Gymnasium has it.

    Args:
        task: a task's name, or a `Task`.
        num_envs: number of worlds.
        max_episode_steps: time limit: one number, one per world, or None for the task's own.
        autoreset_mode: "next_step" (Gymnasium's default: the step after an episode's end ignores the action and
            returns the reset), "same_step" (the ending step returns the reset observation, the end is in
            `info["final_obs"]` and `info["final_info"]`), "disabled" (reset finished worlds yourself with
            `options={"reset_mask": mask}`); Gymnasium's enum and its values ("NextStep") too.
        output: "numpy" returns writable copies; "jax" returns arrays that stay on the device, without waiting.
        render_mode: None or "rgb_array".
        width, height: picture size in pixels.
        camera_id, camera_name: a camera of the model; by default the one named "track".
        render_env_ids: worlds to draw; the others are black. None draws all.
        episode_statistics: put return and length of finished episodes into `info["episode"]` (leave it off under
            Gymnasium's `RecordEpisodeStatistics`).
        params: the task's parameters when it is given by name.

    Seeds: with an int, world i draws from fold_in(key(seed), i) whatever the number of worlds; with a sequence, world
    i behaves as the only world of an environment seeded with `seed[i]`. `seed=None` continues the streams. Actions are
    not clipped; as in Gymnasium the actuators clamp to their control range while control costs see the action. A world
    whose action or state is not finite terminates with a finite observation and `info["not_finite"]` set.

    Raises:
        ValueError: for a bad number of worlds, mode, output or time limit.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 50, "jax": True}

    def __init__(
        self,
        task: str | Task,
        num_envs: int = 1,
        *,
        max_episode_steps: int | Sequence[int] | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        output: str = "numpy",
        render_mode: str | None = None,
        width: int = 480,
        height: int = 480,
        camera_id: int | None = None,
        camera_name: str | None = None,
        render_env_ids: Sequence[int] | None = None,
        episode_statistics: bool = False,
        **params: Any,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name not in ("self", "params", "__class__")}
        self._arguments = arguments | params  # what pickling rebuilds from
        self.num_envs = _count("num_envs", num_envs)
        if output not in ("numpy", "jax"):
            raise ValueError(f"output is 'numpy' or 'jax', got {output!r}")
        if isinstance(task, Task) and params:
            raise ValueError(f"parameters {sorted(params)} belong to the task, which is given whole: set them there")
        self.task = make(task, **params) if isinstance(task, str) else task
        self.output = output
        self.autoreset_mode = autoreset(autoreset_mode)
        self.max_episode_steps = _time_limit(max_episode_steps, self.task.max_episode_steps, self.num_envs)
        self.episode_statistics = episode_statistics
        self.dt = self.task.dt
        self.device = jax.devices()[0]
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": round(1 / self.dt),
            "autoreset_mode": self.autoreset_mode,
            "jax": True,
        }
        self.single_observation_space = observation_space(self.task)
        self.single_action_space = action_space(self.task)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._pictures = Pictures(self.task, render_mode, width, height, camera_id, camera_name)
        self._drawn = _world_ids(render_env_ids, self.num_envs)
        self._batched = BatchedTask(self.task, self.max_episode_steps)
        self._state: BatchState | None = None
        _hint_at_idle_cores(self.num_envs)

    @property
    def state(self) -> BatchState:
        """The whole state of all worlds, for the functional core (`BatchedTask(env.task, env.max_episode_steps)`)."""
        if self.closed:
            raise ClosedEnvironmentError("the environment is closed: make a new one")
        if self._state is None:
            raise ResetNeeded("call reset() before step() or render()")
        return self._state

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start new episodes, in all worlds or where `options["reset_mask"]` is true; see the class for seeds."""
        if self.closed:
            raise ClosedEnvironmentError("the environment is closed: make a new one")
        super().reset(seed=int(seed) if _is_int(seed) else None)
        mask = None if options is None else options.get("reset_mask")
        if mask is not None:
            mask, state = self._mask(mask), self.state
            keys = state.task.key if seed is None else self._keys(seed)
            state = self._batched.restart_some(state, mask, self._placed(keys))
        else:
            mask = np.ones(self.num_envs, bool)
            state = self._batched.restart_all(self._placed(self._next_keys(seed)))
        self._state = self._placed(state)
        return self._given(outputs.begun(self._batched, self._state, mask))

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step of every world: observations, rewards, terminations, truncations, info."""
        state = self.state
        actions = as_actions(actions, self.action_space.shape, self.task.dtype)
        if self.autoreset_mode is AutoresetMode.DISABLED and self.output == "numpy":
            self._refuse_finished(state)
        after = self._batched.advance(state, actions.T)
        state, transition = outputs.finish(
            self._batched, state, after, self.autoreset_mode, self.episode_statistics, wait=self.output == "numpy"
        )
        self._state = self._placed(state)
        return self._given(transition)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One picture per world, uint8 (height, width, 3); None without a render mode."""
        if self.render_mode is None:
            return None
        drawn = dict(zip(self._drawn, self._pictures.draw(self.state.task.physics, self._drawn), strict=True))
        black = None if len(drawn) == self.num_envs else self._pictures.blank()
        return tuple(drawn.get(i, black) for i in range(self.num_envs))

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """An attribute of the environment or its task, called if it can be, once per world as a tuple."""
        if name == "render":
            return self.render() or (None,) * self.num_envs
        value = getattr(self if hasattr(self, name) else self.task, name)
        value = value(*args, **kwargs) if callable(value) else value
        return (value,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of the environment or its task, once per world."""
        return (getattr(self if hasattr(self, name) else self.task, name),) * self.num_envs

    def set_attr(self, name: str, values: Any) -> None:
        """Set a parameter of the task or an attribute of the environment; worlds share it: a list repeats one value.

        Raises:
            ValueError: for a list of the wrong length or of different values.
        """
        if isinstance(values, (list, tuple)):
            if len(values) != self.num_envs:
                raise ValueError(f"set_attr({name!r}) got {len(values)} values for {self.num_envs} environments")
            if any(not np.array_equal(value, values[0]) for value in values):
                raise ValueError(f"all worlds share the attribute {name!r}: give one value")
            values = values[0]
        if name in (field.name for field in dataclasses.fields(self.task)):
            self.task = dataclasses.replace(self.task, **{name: values})
            self._batched = BatchedTask(self.task, self.max_episode_steps)
        else:
            setattr(self, name, values)

    def close_extras(self, **kwargs: Any) -> None:
        """Free the state and the renderer."""
        self._state = None
        self._pictures.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickling keeps the arguments, not the episode: the copy wants a reset, as with Gymnasium's EzPickle."""
        return _rebuild, (self._arguments,)

    def _next_keys(self, seed: int | Sequence[int] | None) -> jax.Array:
        if seed is None and self._state is not None:
            return self._state.task.key
        return self._keys(int(self.np_random.integers(2**31)) if seed is None else seed)

    def _keys(self, seed: int | Sequence[int]) -> jax.Array:
        if _is_int(seed):
            return outputs.keys_of_seed(outputs.seed_words([seed])[0], self.num_envs)
        if len(seed) != self.num_envs:
            raise ValueError(f"a sequence of seeds needs one for each of {self.num_envs} worlds, got {len(seed)}")
        return outputs.keys_of_seeds(outputs.seed_words(seed))

    def _mask(self, mask: Any) -> jax.Array:
        if not isinstance(mask, (np.ndarray, jax.Array)):
            raise TypeError(f"options['reset_mask'] must be a NumPy or JAX array, got {type(mask).__name__}")
        if mask.dtype != np.bool_:
            raise TypeError(f"options['reset_mask'] must be of dtype bool, got {mask.dtype}")
        if mask.shape != (self.num_envs,):
            raise ValueError(f"options['reset_mask'] must have shape {(self.num_envs,)}, got {mask.shape}")
        if isinstance(mask, np.ndarray) and not mask.any():
            raise ValueError("options['reset_mask'] must be true for at least one world")
        return jnp.asarray(mask)

    def _refuse_finished(self, state: BatchState) -> None:
        finished = np.flatnonzero(np.asarray(state.done))
        if finished.size:
            raise ResetNeeded(
                f"worlds {finished[:8].tolist()}{' ...' if finished.size > 8 else ''} have finished and the autoreset "
                "mode is disabled: call reset(options={'reset_mask': terminated | truncated}) first"
            )

    def _placed(self, tree: Any) -> Any:
        return place(tree, self.num_envs, self.task.block_size)

    def _given(self, tree: Any) -> Any:
        """Arrays as the user asked for them: writable NumPy copies, or JAX arrays."""
        return jax.tree.map(np.array, tree) if self.output == "numpy" else tree


def _rebuild(arguments: dict[str, Any]) -> RsimVectorEnv:
    return RsimVectorEnv(**arguments)


def autoreset(mode: str | AutoresetMode) -> AutoresetMode:
    """The enum for "next_step", "NextStep", "NEXT_STEP" or the enum itself."""
    if isinstance(mode, AutoresetMode):
        return mode
    for name, value in _MODES.items():
        if str(mode).lower().replace("_", "") == name.replace("_", ""):
            return value
    raise ValueError(f"autoreset_mode is one of {', '.join(map(repr, _MODES))}, got {mode!r}")


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _count(what: str, value: Any) -> int:
    if not _is_int(value) or value < 1:
        raise ValueError(f"{what} must be a whole number of at least 1, got {value!r}")
    return int(value)


def _time_limit(limit: Any, own: int | None, num_envs: int) -> int | tuple[int, ...] | None:
    if limit is None:
        return own
    if not isinstance(limit, Sequence):
        return _count("max_episode_steps", limit)
    if len(limit) != num_envs:
        raise ValueError(f"max_episode_steps needs one limit for each of {num_envs} worlds, got {len(limit)}")
    return tuple(_count("max_episode_steps", each) for each in limit)


def _world_ids(ids: Sequence[int] | None, num_envs: int) -> tuple[int, ...]:
    ids = range(num_envs) if ids is None else ids
    for i in ids:
        if not 0 <= i < num_envs:
            raise ValueError(f"render_env_ids must lie in 0 ... {num_envs - 1}, got {i}")
    return tuple(int(i) for i in ids)


@functools.cache
def _hint_once() -> None:
    warnings.warn(
        f"JAX sees one CPU device on {os.cpu_count()} cores, so one core simulates: call rsim_jax.configure() before "
        "anything touches JAX",
        stacklevel=4,
    )


def _hint_at_idle_cores(num_envs: int) -> None:
    if num_envs > 256 and jax.default_backend() == "cpu" and jax.device_count() == 1 and (os.cpu_count() or 1) > 1:
        _hint_once()
