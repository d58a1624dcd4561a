"""Pins, welds, joint equalities and wires: what files and scenes say of them, brought into one form.

MJCF equality: connect is a pin, weld a pin that also holds the rotation (torquescale 0: does not), joint a polynomial.
solref and solimp are not used: these constraints are exact. MJCF tendons that run straight from one site to another
are wires: an upper range makes a stiff one, stiffness and damping a compliant one; both together are two wires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from rsim_jax.errors import ModelError
from rsim_jax.modeling.links import LinkTree, in_link, rotation
from rsim_jax.modeling.names import label, name
from rsim_jax.modeling.refuse import Refusals

WIRE_KINDS = ("stiff", "compliant", "custom")
WIRE_RESISTS = ("stretch", "compression", "both")
_OFF = mujoco.mjtDisableBit
_STRAIGHT = [mujoco.mjtWrap.mjWRAP_SITE] * 2


@dataclass(frozen=True)
class Pin:
    """Two points that stay together; with a rotation (of b in a) two frames."""

    bodies: tuple[int, int]
    anchors: tuple[np.ndarray, np.ndarray]  # in body frames
    rotation: np.ndarray | None = None


@dataclass(frozen=True)
class JointEquality:
    """q[joint] - ref = polynomial in q[follows] - ref; `follows` is -1 for a constant."""

    joints: tuple[int, int]
    coefficients: np.ndarray  # (5,)


@dataclass(frozen=True)
class Wire:
    """A wire between two points of bodies."""

    bodies: tuple[int, int]
    anchors: tuple[np.ndarray, np.ndarray]  # in body frames
    length: float
    kind: str = "stiff"
    resist: str = "stretch"
    stiffness: float = 0.0
    damping: float = 0.0
    name: str = ""


@dataclass
class Constraints:
    """All of a scene's."""

    pins: list[Pin] = field(default_factory=list)
    equalities: list[JointEquality] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)


def read_constraints(compiled: mujoco.MjModel, tree: LinkTree, refusals: Refusals, added: Constraints) -> Constraints:
    """Those that a scene added, then those of its files; unsupported ones are refused.

    Raises:
        ModelError: for an added one that can never act.
    """
    for what, items in (("pin", added.pins), ("wire", added.wires)):
        for i, item in enumerate(items):
            _check_mobile(f"{refusals.source}: {what} {i}", item.bodies, tree, compiled.njnt)
    found = Constraints(list(added.pins), list(added.equalities), list(added.wires))
    if not compiled.opt.disableflags & (_OFF.mjDSBL_EQUALITY | _OFF.mjDSBL_CONSTRAINT):
        for i in np.flatnonzero(compiled.eq_active0):
            _read_equality(compiled, int(i), refusals, found)
    for t in range(compiled.ntendon):
        found.wires += _read_tendon(compiled, t, refusals)
    return found


def _read_equality(compiled: mujoco.MjModel, i: int, refusals: Refusals, found: Constraints) -> None:
    kind = mujoco.mjtEq(compiled.eq_type[i])
    first, second = int(compiled.eq_obj1id[i]), int(compiled.eq_obj2id[i])
    data = compiled.eq_data[i]
    if kind == mujoco.mjtEq.mjEQ_JOINT:
        found.equalities.append(JointEquality((first, second), data[:5].copy()))
    elif kind not in (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD):
        word = kind.name.removeprefix("mjEQ_").lower()
        if not word.startswith("flex"):  # the flex itself is refused
            refusals.add("equality", label(compiled, "equality", i), f"{word} constraint is not simulated", "remove it")
    elif compiled.eq_objtype[i] == mujoco.mjtObj.mjOBJ_SITE:
        bodies = tuple(int(compiled.site_bodyid[s]) for s in (first, second))
        anchors = tuple(compiled.site_pos[s].copy() for s in (first, second))
        turns = [rotation(compiled.site_quat[s]) for s in (first, second)]
        held = turns[0] @ turns[1].T if _holds_rotation(kind, data) else None
        found.pins.append(Pin(bodies, anchors, held))
    elif kind == mujoco.mjtEq.mjEQ_CONNECT:
        found.pins.append(Pin((first, second), (data[:3].copy(), data[3:6].copy())))
    else:
        held = rotation(data[6:10]) if _holds_rotation(kind, data) else None
        found.pins.append(Pin((first, second), (data[3:6].copy(), data[:3].copy()), held))


def _holds_rotation(kind: mujoco.mjtEq, data: np.ndarray) -> bool:
    return kind == mujoco.mjtEq.mjEQ_WELD and data[10] > 0  # torquescale


def _tendon_effects(compiled: mujoco.MjModel, t: int) -> list[str]:
    """What a tendon does to the motion, by MJCF's names."""
    scalars = ("stiffness", "damping", "armature", "frictionloss", "limited")
    effects = [f for f in scalars if getattr(compiled, f"tendon_{f}")[t]]
    return effects + [f for f in ("stiffnesspoly", "dampingpoly") if np.any(getattr(compiled, f"tendon_{f}")[t])]


def _read_tendon(compiled: mujoco.MjModel, t: int, refusals: Refusals) -> list[Wire]:
    """The wires of a tendon: none, a stiff one, a compliant one, or both."""
    effects = _tendon_effects(compiled, t)
    reasons = _tendon_faults(compiled, t, effects)
    if reasons:
        remedy = "use a straight tendon between two sites with an upper range, stiffness or damping, or remove it"
        refusals.add("tendon", label(compiled, "tendon", t), "; ".join(reasons), remedy)
    if reasons or not effects:
        return []
    sites = [int(compiled.wrap_objid[w]) for w in _wraps(compiled, t)]
    common: dict[str, Any] = {
        "bodies": tuple(int(compiled.site_bodyid[s]) for s in sites),
        "anchors": tuple(compiled.site_pos[s].copy() for s in sites),
        "name": name(compiled, "tendon", t),
    }
    wires, off = [], compiled.opt.disableflags
    if compiled.tendon_limited[t] and not off & (_OFF.mjDSBL_LIMIT | _OFF.mjDSBL_CONSTRAINT):
        wires.append(Wire(length=float(compiled.tendon_range[t, 1] - compiled.tendon_margin[t]), **common))
    if "stiffness" in effects or "damping" in effects:
        shortest, longest = compiled.tendon_lengthspring[t]
        spring = {
            "resist": "both" if shortest == longest else "stretch",
            "stiffness": 0.0 if off & _OFF.mjDSBL_SPRING else float(compiled.tendon_stiffness[t]),
            "damping": 0.0 if off & _OFF.mjDSBL_DAMPER else float(compiled.tendon_damping[t]),
        }
        wires.append(Wire(length=float(longest), kind="compliant", **spring, **common))
    return wires


def _wraps(compiled: mujoco.MjModel, t: int) -> range:
    start = int(compiled.tendon_adr[t])
    return range(start, start + int(compiled.tendon_num[t]))


def _tendon_faults(compiled: mujoco.MjModel, t: int, effects: list[str]) -> list[str]:
    """Why a tendon with these effects is no wire."""
    reasons = []
    unknown = effects
    if [compiled.wrap_type[w] for w in _wraps(compiled, t)] == _STRAIGHT:
        unknown = [e for e in effects if e not in ("stiffness", "damping", "limited")]
    if unknown:
        reasons.append(f"{', '.join(unknown)} of a tendon {'is' if len(unknown) == 1 else 'are'} not simulated")
    if compiled.tendon_limited[t] and compiled.tendon_range[t, 0] > 0:
        reasons.append(f"lower range {compiled.tendon_range[t, 0]:g} is not simulated")
    shortest, longest = compiled.tendon_lengthspring[t]
    springy = "stiffness" in effects or "damping" in effects
    if springy and shortest != longest and (shortest > 0 or "damping" in effects):
        reasons.append(f"springlength {shortest:g} {longest:g} is simulated only from 0 and without damping")
    return reasons


def _check_mobile(owner: str, bodies: tuple[int, int], tree: LinkTree, njnt: int) -> None:
    """Refuse two bodies that no dof moves against each other."""
    a, b = (tree.body_link[body] for body in bodies)
    if a == b or (a >= njnt and b >= njnt):
        raise ModelError(
            f"{owner}: bodies {bodies[0]} and {bodies[1]} cannot move against each other; "
            "join two bodies of which one can move"
        )


def topology_fields(found: Constraints) -> dict[str, Any]:
    """Fields of Topology."""
    return {
        "pin_bodies": tuple(pin.bodies for pin in found.pins),
        "pin_welds": tuple(pin.rotation is not None for pin in found.pins),
        "equality_joints": tuple(equality.joints for equality in found.equalities),
        "wire_names": tuple(wire.name for wire in found.wires),
        "wire_bodies": tuple(wire.bodies for wire in found.wires),
        "wire_kind": tuple(wire.kind for wire in found.wires),
        "wire_resist": tuple(wire.resist for wire in found.wires),
    }


def constraint_leaves(tree: LinkTree, found: Constraints) -> dict[str, np.ndarray]:
    """Leaves of Model: anchors and rotations brought from body to link frames."""
    turns = np.zeros((3, 3, len(found.pins), 1))
    for p, pin in enumerate(found.pins):
        in_a, in_b = (tree.body_rotation[:, :, body] for body in pin.bodies)
        turns[:, :, p, 0] = in_a @ (np.eye(3) if pin.rotation is None else pin.rotation) @ in_b.T
    coefficients = [equality.coefficients for equality in found.equalities]
    return {
        "pin_anchor": _anchors(tree, found.pins),
        "pin_rotation": turns,
        "equality_coefficients": np.array(coefficients).reshape(-1, 5).T[..., None],
        "wire_anchor": _anchors(tree, found.wires),
        "wire_length": np.array([[wire.length] for wire in found.wires]).reshape(-1, 1),
        "wire_stiffness": np.array([[wire.stiffness] for wire in found.wires]).reshape(-1, 1),
        "wire_damping": np.array([[wire.damping] for wire in found.wires]).reshape(-1, 1),
    }


def _anchors(tree: LinkTree, items: Sequence[Pin | Wire]) -> np.ndarray:
    """(3, 2, n, 1) in link frames."""
    result = np.zeros((3, 2, len(items), 1))
    unturned = np.array([[1.0, 0, 0, 0]] * len(items)).reshape(-1, 4)
    for side in (0, 1):
        bodies = np.array([item.bodies[side] for item in items], int)
        points = np.array([item.anchors[side] for item in items]).reshape(-1, 3)
        result[:, side, :, 0] = in_link(tree, bodies, points, unturned)[0]
    return result
