"""Pictures and video of worlds, with or without a display.

Importing this package needs no display and loads no OpenGL; making a `Renderer` does.
"""

from __future__ import annotations

from typing import Any

from rsim_jax.render.backend import RenderError
from rsim_jax.render.tile import tile
from rsim_jax.render.video import VideoWriter, write_video

__all__ = ["RenderError", "Renderer", "VideoWriter", "tile", "write_video"]


def __getattr__(name: str) -> Any:
    if name == "Renderer":  # late, because it imports mujoco, which reads MUJOCO_GL when it is imported
        from rsim_jax.render.renderer import Renderer

        return Renderer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
