"""Actuators that are affine in control, length and velocity, on hinges and slides."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from rsim_jax.modeling.names import label, name
from rsim_jax.modeling.refuse import Refusals
from rsim_jax.structs import HINGE, SLIDE

_JOINTS = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)  # the same for hinge and slide


@dataclass(frozen=True)
class Actuators:
    """force = gain ctrl + bias . (1, length, velocity), length = gear q, clipped to force_range."""

    names: tuple[str, ...]
    dof: tuple[int, ...]
    control: tuple[int, ...]  # MuJoCo's control index of each
    gain: np.ndarray  # (nu,)
    bias: np.ndarray  # (3, nu)
    gear: np.ndarray  # (nu,)
    ctrl_range: np.ndarray  # (2, nu), +-inf when unlimited
    force_range: np.ndarray  # (2, nu)


def read_actuators(compiled: mujoco.MjModel, refusals: Refusals) -> Actuators:
    """Actuators that can be simulated; the others are refused, or left out when their kind is ignored."""
    kept = []
    for i in range(compiled.nactuator):
        fault = _fault(compiled, i)
        if fault is None:
            kept.append(i)
        else:
            remedy = "use a motor, position or velocity actuator on a hinge or slide joint"
            refusals.add("actuator", label(compiled, "actuator", i), fault, remedy)
    kept = np.asarray(kept, int)
    control = compiled.actuator_ctrladr[kept]
    affine = compiled.actuator_biastype[kept] == mujoco.mjtBias.mjBIAS_AFFINE
    bias = np.where(affine, compiled.actuator_biasprm[kept, :3].T, 0.0)
    gain = compiled.actuator_gainprm[kept, 0]
    disabled = np.array([_is_disabled(compiled, i) for i in kept], bool)
    unclamped = bool(compiled.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL)
    return Actuators(
        names=tuple(name(compiled, "actuator", i) for i in kept),
        dof=tuple(int(d) for d in compiled.jnt_dofadr[compiled.actuator_trnid[kept, 0]]),
        control=tuple(int(c) for c in control),
        gain=np.where(disabled, 0.0, gain),
        bias=np.where(disabled, 0.0, bias),
        gear=compiled.actuator_gear[compiled.actuator_outadr[kept], 0],
        ctrl_range=_range(
            compiled.actuator_ctrlrange[control], compiled.actuator_ctrllimited[control] & (not unclamped)
        ),
        force_range=_range(compiled.actuator_forcerange[kept], compiled.actuator_forcelimited[kept]),
    )


def _range(bounds: np.ndarray, limited: np.ndarray) -> np.ndarray:
    """(n, 2) bounds -> (2, n), infinite where not limited."""
    unlimited = np.array([[-np.inf], [np.inf]])
    return np.where(np.asarray(limited, bool), bounds.T, unlimited)


def _is_disabled(compiled: mujoco.MjModel, i: int) -> bool:
    group = int(compiled.actuator_group[i])
    by_group = 0 <= group <= 30 and bool(compiled.opt.disableactuator >> group & 1)
    return by_group or bool(compiled.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_ACTUATION)


def _fault(compiled: mujoco.MjModel, i: int) -> str | None:
    """Why actuator i cannot be simulated, or None."""
    transmission = mujoco.mjtTrn(compiled.actuator_trntype[i])
    if transmission not in _JOINTS:
        return f"transmission to a {_word(transmission)} is not simulated"
    if compiled.jnt_type[compiled.actuator_trnid[i, 0]] not in (HINGE, SLIDE):
        return f"acts on {label(compiled, 'joint', compiled.actuator_trnid[i, 0])}, which is a ball or free joint"
    dynamics = mujoco.mjtDyn(compiled.actuator_dyntype[i])
    if dynamics != mujoco.mjtDyn.mjDYN_NONE or compiled.actuator_actnum[i] > 0:
        return f"activation dynamics ({_word(dynamics)}) is not simulated"
    gain, bias = mujoco.mjtGain(compiled.actuator_gaintype[i]), mujoco.mjtBias(compiled.actuator_biastype[i])
    constant_gain = gain == mujoco.mjtGain.mjGAIN_AFFINE and not np.any(compiled.actuator_gainprm[i, 1:3])
    if gain != mujoco.mjtGain.mjGAIN_FIXED and not constant_gain:
        return f"gain of type {_word(gain)} that depends on the state is not simulated"
    if bias not in (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE):
        return f"bias of type {_word(bias)} is not simulated"
    if compiled.actuator_ctrlnum[i] != 1 or compiled.actuator_outnum[i] != 1:
        return (
            f"{compiled.actuator_ctrlnum[i]} controls and {compiled.actuator_outnum[i]} forces, only one of each works"
        )
    if compiled.actuator_plugin[i] >= 0:
        return "plugins are not run"
    if compiled.actuator_delay[i] > 0:
        return f"delay {compiled.actuator_delay[i]:g} s is not simulated"
    if compiled.actuator_armature[i] or compiled.actuator_damping[i] or np.any(compiled.actuator_dampingpoly[i]):
        return "armature or damping of an actuator is not simulated; give it to the joint"
    return None


def _word(member: object) -> str:
    """`mjtTrn.mjTRN_TENDON` -> `tendon`."""
    return member.name.split("_")[-1].lower()
