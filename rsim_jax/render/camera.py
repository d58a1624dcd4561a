"""Which way a picture looks."""

from __future__ import annotations

import mujoco


def resolve(model: mujoco.MjModel, camera: str | int | None) -> mujoco.MjvCamera:
    """The view for a camera given by name or index, or a sensible one for None.

    Raises:
        ValueError: when the model has no such camera; lists those it has.
    """
    names = [model.camera(i).name for i in range(model.ncam)]
    if camera is None:
        return _fixed(names.index("track")) if "track" in names else _overview(model)
    index = names.index(camera) if camera in names else camera
    if not isinstance(index, int) or not 0 <= index < model.ncam:
        known = ", ".join(name or str(i) for i, name in enumerate(names)) or "none"
        raise ValueError(f"the model has no camera {camera!r}; it has: {known}")
    return _fixed(index)


def _fixed(index: int) -> mujoco.MjvCamera:
    view = mujoco.MjvCamera()
    view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED.value, index
    return view


def _overview(model: mujoco.MjModel) -> mujoco.MjvCamera:
    """Looks at the whole model; follows the first body that can travel, if any."""
    view = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, view)
    body = _traveller(model)
    if body is not None:
        view.type, view.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING.value, body
    return view


def _traveller(model: mujoco.MjModel) -> int | None:
    """The first body whose first joint leaves it free, or free along an axis without limits."""
    for body in range(1, model.nbody):
        if model.body_jntnum[body] == 0:
            continue
        joint = model.body_jntadr[body]
        unlimited_slide = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE and not model.jnt_limited[joint]
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE or unlimited_slide:
            return body
    return None
