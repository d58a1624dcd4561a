"""Features with a physical effect that are not simulated: found, named and refused together, or dropped knowingly."""

from __future__ import annotations

from collections.abc import Iterable

import mujoco
import numpy as np

from rsim_jax.errors import ModelError
from rsim_jax.modeling.names import label
from rsim_jax.structs import BALL

KINDS = {  # what `ignore` accepts, and what ignoring does
    "tendon": "unsupported tendons have no effect",
    "equality": "unsupported equality constraints have no effect",
    "fluid": "no drag or buoyancy",
    "gravcomp": "no gravity compensation",
    "limit": "limits of ball joints have no effect",
    "spring": "only the linear, elastic part of springs and dampers acts",
    "mesh": "mesh geoms without a usable convex hull touch nothing",
    "hfield": "shapes that are too large for the grid of a height field do not touch it",
    "sdf": "signed-distance geoms touch nothing",
    "pair": "unsupported combinations of shapes touch nothing",
    "friction": "the first of two tangential coefficients acts in all directions",
    "adhesion": "contacts do not stick",
    "surfacevel": "only static geoms move their surface, in a straight line",
    "override": "each geom keeps its own contact parameters",
    "flex": "flexible objects have no effect",
    "plugin": "plugins have no effect",
    "actuator": "unsupported actuators are removed, with their controls",
    "keyframe": "keyframes do not move kinematic bodies",
    "mimic": "unsupported mimic joints move on their own",
}


class Refusals:
    """Collects refusals of one file; kinds in `ignore` are let through.

    Raises:
        ModelError: for an `ignore` kind that does not exist.
    """

    def __init__(self, source: str, ignore: Iterable[str] = ()) -> None:
        kinds = (ignore,) if isinstance(ignore, str) else tuple(ignore)
        unknown = [k for k in kinds if k not in KINDS]
        if unknown:
            raise ModelError(f"ignore={kinds!r}: unknown kind {unknown[0]!r}; there are: {', '.join(KINDS)}")
        self.source = source
        self._ignored = frozenset(kinds)
        self._lines: list[str] = []

    def add(self, kind: str, element: str, value: str, remedy: str) -> None:
        """Refuse an element unless its kind is ignored."""
        if kind not in self._ignored:
            self._lines.append(f"{self.source}: {element}: {value}; {remedy}, or load with ignore=({kind!r},)")

    def raise_any(self) -> None:
        """Raise one ModelError with a line per refused element, if there are any."""
        if self._lines:
            raise ModelError("\n".join(self._lines))


def refuse_unsupported(compiled: mujoco.MjModel, refusals: Refusals) -> None:
    """Check everything but contacts, actuators, equality constraints and tendons, which know what they accept."""
    _check_options(compiled, refusals)
    _check_joints(compiled, refusals)
    _check_bodies_and_geoms(compiled, refusals)
    for i in range(compiled.nflex):
        refusals.add("flex", label(compiled, "flex", i), "flexible objects are not simulated", "remove it")
    _check_keyframes(compiled, refusals)


def _check_options(compiled: mujoco.MjModel, refusals: Refusals) -> None:
    option = compiled.opt
    if option.density > 0 or option.viscosity > 0:
        value = f"density {option.density:g}, viscosity {option.viscosity:g}: fluid forces are not simulated"
        refusals.add("fluid", "option", value, "set both to 0")
    if option.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE:
        refusals.add("override", "option flag", 'override="enable" is not supported', "set the values on the geoms")


def _check_joints(compiled: mujoco.MjModel, refusals: Refusals) -> None:
    for j in range(compiled.njnt):
        name = label(compiled, "joint", j)
        if compiled.jnt_type[j] == BALL and compiled.jnt_limited[j]:
            angle = float(compiled.jnt_range[j, 1])
            value = f"range {angle:g} rad on a ball joint is not simulated"
            refusals.add("limit", name, value, "use three limited hinges or remove the range")
        dofs = compiled.dof_jntid == j
        nonlinear = np.any(compiled.jnt_stiffnesspoly[j]) or np.any(compiled.dof_dampingpoly[dofs])
        if nonlinear or compiled.jnt_plasticadr[j] >= 0:
            value = "nonlinear stiffness or damping, or springyield, is not simulated"
            refusals.add("spring", name, value, "give one coefficient each")


def _check_bodies_and_geoms(compiled: mujoco.MjModel, refusals: Refusals) -> None:
    weightless = compiled.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY or not np.any(compiled.opt.gravity)
    for b in range(compiled.nbody):
        if compiled.body_gravcomp[b] and compiled.body_mass[b] and not weightless:
            value = f"gravcomp {compiled.body_gravcomp[b]:g} is not simulated"
            refusals.add("gravcomp", label(compiled, "body", b), value, "set it to 0")
        if compiled.body_plugin[b] >= 0:
            refusals.add("plugin", label(compiled, "body", b), "plugins are not run", "remove it")
    for g in range(compiled.ngeom):
        if compiled.geom_plugin[g] >= 0:
            refusals.add("plugin", label(compiled, "geom", g), "plugins are not run", "remove it")
        static = compiled.body_weldid[compiled.geom_bodyid[g]] == 0
        velocity = compiled.geom_surfacevel[g]
        if np.any(velocity[3:]) or (np.any(velocity) and not static):
            value = "surfacevel that turns, or of a body that can move, is not simulated"
            refusals.add("surfacevel", label(compiled, "geom", g), value, "set it to 0")


def _check_keyframes(compiled: mujoco.MjModel, refusals: Refusals) -> None:
    mocap = compiled.body_mocapid >= 0
    order = np.argsort(compiled.body_mocapid[mocap])
    position, quaternion = compiled.body_pos[mocap][order], compiled.body_quat[mocap][order]
    for k in range(compiled.nkey):
        moved = np.abs(compiled.key_mpos[k].reshape(-1, 3) - position).max(initial=0) > 1e-9
        turned = np.abs(compiled.key_mquat[k].reshape(-1, 4) - quaternion).max(initial=0) > 1e-9
        if moved or turned:
            value = "mpos or mquat of kinematic bodies is not applied"
            refusals.add("keyframe", label(compiled, "key", k), value, "place them with set_kinematic")
