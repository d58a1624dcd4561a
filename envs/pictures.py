"""Frames of chosen worlds; the renderer is made when the first one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rsim_jax.envs.core import Task
from rsim_jax.structs import State


class Pictures:
    """Draws worlds of a task.

    Raises:
        ValueError: for an unknown render mode, or a camera given twice.
    """

    def __init__(
        self,
        task: Task,
        render_mode: str | None,
        width: int,
        height: int,
        camera_id: int | None,
        camera_name: str | None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode is None or 'rgb_array', got {render_mode!r}")
        if camera_id is not None and camera_name is not None:
            raise ValueError("give camera_id or camera_name, not both")
        self._task = task
        self._size = (width, height)
        self._camera = camera_name if camera_name is not None else camera_id
        self._renderer: Any = None

    def draw(self, state: State, worlds: Sequence[int]) -> list[np.ndarray]:
        """One uint8 (height, width, 3) picture for each of `worlds`."""
        if self._renderer is None:
            from rsim_jax.modeling import compiled
            from rsim_jax.render import Renderer  # OpenGL is needed only here

            self._renderer = Renderer(compiled(self._task.model), *self._size, camera=self._camera)
        chosen = list(worlds)
        poses = (state.q, state.kinematic_position, state.kinematic_quaternion)
        return self._renderer.frames(*(np.asarray(pose)[..., chosen] for pose in poses))

    def blank(self) -> np.ndarray:
        """The picture of a world that is not drawn."""
        return np.zeros((self._size[1], self._size[0], 3), np.uint8)

    def close(self) -> None:
        """Free the renderer, if there is one."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
