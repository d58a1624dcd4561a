"""What to call an element of a compiled MuJoCo model in a message."""

from __future__ import annotations

import mujoco

OBJECTS = {
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "geom": mujoco.mjtObj.mjOBJ_GEOM,
    "site": mujoco.mjtObj.mjOBJ_SITE,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
    "tendon": mujoco.mjtObj.mjOBJ_TENDON,
    "equality": mujoco.mjtObj.mjOBJ_EQUALITY,
    "flex": mujoco.mjtObj.mjOBJ_FLEX,
    "pair": mujoco.mjtObj.mjOBJ_PAIR,
    "key": mujoco.mjtObj.mjOBJ_KEY,
}


def name(compiled: mujoco.MjModel, what: str, index: int) -> str:
    """The element's name, "" when it has none."""
    return mujoco.mj_id2name(compiled, OBJECTS[what], index) or ""


def names(compiled: mujoco.MjModel, what: str, count: int) -> tuple[str, ...]:
    """Names of the first `count` elements of a kind."""
    return tuple(name(compiled, what, i) for i in range(count))


def label(compiled: mujoco.MjModel, what: str, index: int) -> str:
    """`geom "foot"`, or for an unnamed one `geom 3 of body "shin"`."""
    own = name(compiled, what, index)
    if own:
        return f'{what} "{own}"'
    owner = {"joint": compiled.jnt_bodyid, "geom": compiled.geom_bodyid, "site": compiled.site_bodyid}.get(what)
    suffix = f" of {label(compiled, 'body', int(owner[index]))}" if owner is not None else ""
    return f"{what} {index}{suffix}"
