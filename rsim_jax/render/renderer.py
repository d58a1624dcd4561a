"""Pictures of worlds through MuJoCo's renderer, off-screen."""

from __future__ import annotations

import atexit
import copy
import weakref
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

from rsim_jax.render import backend
from rsim_jax.render.camera import resolve

_MAX_GEOMS = 10_000  # objects in one picture, lights' shadows and decorations included
_SHADOW_SIZE = 2048  # MuJoCo's default of 4096 costs a software renderer more than the rest of the picture
_OPEN: weakref.WeakSet[Renderer] = weakref.WeakSet()


class Renderer:
    """Draws worlds of one model, each from its own state.

    Args:
        mj_model: the compiled MuJoCo model (`rsim_jax.modeling.compiled(model)`).
        width, height: size of a picture in pixels.
        camera: a camera of the model by name or index; None takes the one named "track", else looks at the whole
            model and follows its first floating body.

    Raises:
        ValueError: for a size below 1 or a camera that the model does not have.
        RenderError: when no OpenGL draws here.
    """

    def __init__(self, mj_model: mujoco.MjModel, width: int, height: int, camera: str | int | None = None) -> None:
        self._context = self._buffers = None
        if width < 1 or height < 1:
            raise ValueError(f"a picture needs at least one pixel, got width {width} and height {height}")
        self.width, self.height = int(width), int(height)
        self._model = copy.copy(mj_model)  # ours alone: the caller's stays as it is
        self._model.vis.quality.shadowsize = min(_SHADOW_SIZE, mj_model.vis.quality.shadowsize)
        self._data = mujoco.MjData(self._model)
        self._camera = resolve(self._model, camera)
        self._options = mujoco.MjvOption()
        self._scene = mujoco.MjvScene(self._model, maxgeom=_MAX_GEOMS)
        self._rect = mujoco.MjrRect(0, 0, self.width, self.height)
        self._open()

    def _open(self) -> None:
        self._context = backend.make_context(self.width, self.height)
        if not _OPEN:  # registered after the context's own exit hook, so it runs before it
            atexit.unregister(_close_all)
            atexit.register(_close_all)
        _OPEN.add(self)
        self._context.make_current()
        self._buffers = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_150.value)
        mujoco.mjr_resizeOffscreen(self.width, self.height, self._buffers)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._buffers)
        self._buffers.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR.value
        self._check_draws()

    def _check_draws(self) -> None:
        """Paints a known colour and reads it back: a driver that draws nothing must not pass for a dark scene."""
        picture = np.zeros((self.height, self.width, 3), np.uint8)
        mujoco.mjr_rectangle(self._rect, 1.0, 0.0, 1.0, 1.0)
        mujoco.mjr_readPixels(picture, None, self._rect, self._buffers)
        if not (picture == (255, 0, 255)).all():
            self.close()
            raise backend.RenderError(
                f"OpenGL backend {backend.choose()} returns blank pictures: choose another with MUJOCO_GL=egl or osmesa"
            )

    def frames(self, q: Any, kinematic_position: Any = None, kinematic_quaternion: Any = None) -> list[np.ndarray]:
        """One picture of each world, drawn from exactly the state given.

        Args:
            q: positions (nq, N), as `State.q`.
            kinematic_position, kinematic_quaternion: (3, nkin, N) and (4, nkin, N); None keeps the model's default.

        Returns:
            N pictures (height, width, 3), uint8, top row first.

        Raises:
            ValueError: for a wrong shape or a position that is not finite.
        """
        return [self._read_colour() for _ in self._worlds(q, kinematic_position, kinematic_quaternion)]

    def depth(self, q: Any, kinematic_position: Any = None, kinematic_quaternion: Any = None) -> list[np.ndarray]:
        """Distance along the camera's axis, one (height, width) float32 picture in metres per world; see `frames`."""
        return [self._read_depth() for _ in self._worlds(q, kinematic_position, kinematic_quaternion)]

    def _worlds(self, q: Any, position: Any, quaternion: Any) -> Iterator[int]:
        """Poses the scene for one world after another."""
        if self._context is None:
            raise ValueError("this renderer is closed")
        model, data = self._model, self._data
        q = _checked("q", q, (model.nq,))
        n = q.shape[-1]
        position = None if position is None else _checked("kinematic_position", position, (3, model.nmocap), n)
        quaternion = None if quaternion is None else _checked("kinematic_quaternion", quaternion, (4, model.nmocap), n)
        self._context.make_current()
        for i in range(n):
            mujoco.mj_resetData(model, data)
            data.qpos[:] = q[:, i]
            if position is not None:
                data.mocap_pos[:] = position[:, :, i].T
            if quaternion is not None:
                data.mocap_quat[:] = quaternion[:, :, i].T
            mujoco.mj_forward(model, data)
            everything = mujoco.mjtCatBit.mjCAT_ALL.value
            mujoco.mjv_updateScene(model, data, self._options, None, self._camera, everything, self._scene)
            yield i

    def _read_colour(self) -> np.ndarray:
        picture = np.empty((self.height, self.width, 3), np.uint8)
        mujoco.mjr_render(self._rect, self._scene, self._buffers)
        mujoco.mjr_readPixels(picture, None, self._rect, self._buffers)
        return np.ascontiguousarray(picture[::-1])

    def _read_depth(self) -> np.ndarray:
        """z = near far / (near + d (far - near)) for the buffer's d, 1 at the near plane and 0 at the far one."""
        flags, buffer = self._scene.flags, np.empty((self.height, self.width), np.float32)
        # flat colours switch anti-aliasing off, which would blend the depths of an edge
        flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = True
        mujoco.mjr_render(self._rect, self._scene, self._buffers)
        mujoco.mjr_readPixels(None, buffer, self._rect, self._buffers)
        flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = False
        planes, extent = self._model.vis.map, self._model.stat.extent
        near, far = planes.znear * extent, planes.zfar * extent
        return (near * far / (near + buffer[::-1].astype(np.float64) * (far - near))).astype(np.float32)

    def close(self) -> None:
        """Frees the OpenGL context; safe to call twice."""
        context, buffers = self._context, self._buffers
        self._context = self._buffers = None
        _OPEN.discard(self)
        if context is None:
            return
        if buffers is not None:
            with context.as_current():
                buffers.free()
        context.free()

    def __enter__(self) -> Renderer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def _checked(name: str, value: Any, leading: tuple[int, ...], worlds: int | None = None) -> np.ndarray:
    value = np.asarray(value, np.float64)
    if value.shape[:-1] != leading or value.ndim == 0 or worlds not in (None, value.shape[-1]):
        expected = ", ".join(str(n) for n in (*leading, "N" if worlds is None else worlds))
        raise ValueError(f"{name} must have shape ({expected}), got {value.shape}")
    bad = np.flatnonzero(~np.isfinite(value).reshape(-1, value.shape[-1]).all(axis=0))
    if bad.size:
        raise ValueError(f"{name} of world {bad[0]} is not finite; {bad.size} of {value.shape[-1]} worlds are not")
    return value


def _close_all() -> None:
    for renderer in list(_OPEN):
        renderer.close()
