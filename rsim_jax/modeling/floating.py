"""Freeing or welding the base of a robot before it is compiled."""

from __future__ import annotations

import mujoco

from rsim_jax.errors import ModelError


def set_floating(spec: mujoco.MjSpec, floating: bool, source: str) -> None:
    """Put the root body on a free joint, or weld roots that have one.

    Raises:
        ModelError: when there is no single body to free.
    """
    roots = [b for b in spec.bodies if b.parent is not None and b.parent.id == spec.worldbody.id and not b.mocap]
    if floating:
        _free(roots, source)
    else:
        for body in roots:
            for joint in body.joints:
                if joint.type == mujoco.mjtJoint.mjJNT_FREE:
                    spec.delete(joint)


def _free(roots: list[mujoco.MjsBody], source: str) -> None:
    loose = [b for b in roots if not b.joints]
    if any(j.type == mujoco.mjtJoint.mjJNT_FREE for b in roots for j in b.joints) and not loose:
        return
    if len(loose) != 1:
        found = ", ".join(f'"{b.name}"' for b in loose) or "none"
        remedy = "write <freejoint/> into the body that should float"
        raise ModelError(f"{source}: floating_base=True needs one root body without joints; found {found}; {remedy}")
    loose[0].add_freejoint()
