"""Leaves that users may replace, and the ones that follow from them."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.errors import ModelError
from rsim_jax.structs import BALL, FREE, VELOCITY_WIDTHS, Model, Topology

_ANY, _NONNEGATIVE, _FRACTION = (-np.inf, np.inf), (0.0, np.inf), (0.0, 1.0)
_POSITIVE = (float(np.finfo(np.float32).tiny), np.inf)
# public leaf -> (shape before the world axis, smallest and largest value); names are counts of the topology
PUBLIC: dict[str, tuple[tuple[int | str, ...], tuple[float, float]]] = {
    "gravity": ((3,), _ANY),
    "body_mass": (("nbody",), _NONNEGATIVE),
    "body_com": ((3, "nbody"), _ANY),
    "body_inertia": ((6, "nbody"), _ANY),
    "joint_damping": (("nv",), _NONNEGATIVE),
    "joint_armature": (("nv",), _NONNEGATIVE),
    "joint_stiffness": (("nv",), _NONNEGATIVE),
    "joint_friction": (("nv",), _NONNEGATIVE),
    "joint_range": ((2, "njnt"), _ANY),
    "joint_velocity_limit": (("nv",), _NONNEGATIVE),
    "wire_length": (("nwire",), _NONNEGATIVE),
    "wire_stiffness": (("nwire",), _NONNEGATIVE),
    "wire_damping": (("nwire",), _NONNEGATIVE),
    "actuator_gain": (("nu",), _ANY),
    "actuator_bias": ((3, "nu"), _ANY),
    "geom_size": ((3, "ngeom"), _NONNEGATIVE),
    "geom_friction": ((3, "ngeom"), _NONNEGATIVE),
    "field_height": (("nheight",), _ANY),
    "pair_friction": (("npair",), _NONNEGATIVE),
    "pair_restitution": (("npair",), _FRACTION),
    "pair_restitution_threshold": (("npair",), _NONNEGATIVE),
    "pair_static_friction": (("npair",), _NONNEGATIVE),
    "pair_static_friction_velocity": (("npair",), _NONNEGATIVE),
    "pair_rolling_friction": (("npair",), _NONNEGATIVE),
    "pair_spinning_friction": (("npair",), _NONNEGATIVE),
    "pair_penalty_model": (("npenalty",), _NONNEGATIVE),
    "pair_penalty_kp": (("npenalty",), _NONNEGATIVE),
    "pair_penalty_kc": (("npenalty",), _NONNEGATIVE),
    "pair_penalty_n": (("npenalty",), _POSITIVE),
    "pair_penalty_mu": (("npenalty",), _NONNEGATIVE),
    "pair_penalty_v_lin": (("npenalty",), _POSITIVE),
}
PENALTY_NUMBERS = ("pair_penalty_kp", "pair_penalty_kc", "pair_penalty_n", "pair_penalty_mu", "pair_penalty_v_lin")
SCALARS = {  # public leaves without a world axis
    "dt": _NONNEGATIVE,
    "tolerance": _NONNEGATIVE,
    "erp": _NONNEGATIVE,
    "slop": _NONNEGATIVE,
    "max_correction": _NONNEGATIVE,
    "limit_restitution": _FRACTION,
}
_MASS = ("body_mass", "body_com", "body_inertia")
_STRUCTURAL = ("joint_friction", "joint_stiffness", "joint_velocity_limit", "wire_stiffness", "wire_damping")
_UNBOUNDED = ("joint_range", "joint_velocity_limit")  # may be infinite
_TURNING = ("pair_rolling_friction", "pair_spinning_friction")


def replace_leaves(model: Model, leaves: dict[str, Any]) -> Model:
    """A copy of the model with new public leaves; inertial properties of links and pair frictions follow.

    `pair_friction` follows `geom_friction` where a pair takes it from its geoms, unless it is given itself;
    `pair_static_friction` keeps its excess over `pair_friction` unless it is given itself. The numbers of a
    penalty pair follow `pair_penalty_model` unless they are given themselves. Values may be traced.

    Args:
        leaves: name -> array of the leaf's shape with a last axis of 1 (shared) or N (per world), or a scalar for dt
            and the solver numbers.

    Raises:
        ModelError: for a name that is not a public leaf, or a value of wrong shape or out of range.
    """
    new = {name: _checked(model, name, value) for name, value in leaves.items()}
    if any(name in new for name in _MASS):
        inertial = [new.get(name, getattr(model, name)) for name in _MASS]
        new.update(
            merged_inertia(model.topology.body_link, model.njnt, model.body_offset, model.body_rotation, *inertial)
        )
    if "geom_friction" in new and "pair_friction" not in new:
        new["pair_friction"] = _mixed_friction(model, new["geom_friction"])
    if "pair_friction" in new and "pair_static_friction" not in new:
        _, (new_friction, friction, static) = _numeric(
            new["pair_friction"], model.pair_friction, model.pair_static_friction
        )
        new["pair_static_friction"] = new_friction + (static - friction)
    if "pair_penalty_model" in new:
        new = {**_penalty_numbers(model, new["pair_penalty_model"]), **new}
    new = {name: as_leaf(value, getattr(model, name).dtype) for name, value in new.items()}
    changed = dataclasses.replace(model, **new, topology=_with_angular_friction(model, new))
    world_count(changed)
    return changed


def _with_angular_friction(model: Model, new: dict[str, Any]) -> Topology:
    """The topology, which gets rows for rolling and spinning friction with the first such coefficient."""
    given = [new[name] for name in _TURNING if name in new]
    if model.topology.angular_friction or not given:
        return model.topology
    if any(isinstance(value, jax.core.Tracer) for value in given):
        raise ModelError(
            "model.replace: rolling and spinning friction within a jitted function: give some pair a coefficient first"
        )
    wanted = any(np.any(np.asarray(value)) for value in given)
    return dataclasses.replace(model.topology, angular_friction=True) if wanted else model.topology


def world_count(model: Model) -> int:
    """N of the leaves that differ per world, 1 when all are shared.

    Raises:
        ModelError: when two leaves disagree.
    """
    count, owner = 1, ""
    for name in PUBLIC:
        last = getattr(model, name).shape[-1]
        if last != 1 and count not in (1, last):
            raise ModelError(f"{name} is given for {last} worlds but {owner} for {count}: use one number of worlds")
        if last != 1:
            count, owner = last, name
    return count


def merged_inertia(
    body_link: tuple[int, ...], njnt: int, offset: Any, rotation: Any, mass: Any, com: Any, inertia: Any
) -> dict[str, Any]:
    """link_mass, link_com and link_inertia: the bodies of each joint link combined by the parallel-axis rule.

    A link without mass gets zeros. Plain values are combined in float64 NumPy, traced ones stay traced.

    Args:
        body_link: link of each body.
        njnt: number of joint links; bodies on other links do not count.
        offset: (3, nbody, 1), body frames in their links.
        rotation: (3, 3, nbody, 1).
        mass: (nbody, W), kg.
        com: (3, nbody, W), m, in body frames.
        inertia: (6, nbody, W), kg m^2 about the centre of mass in body axes: xx yy zz xy xz yz.
    """
    xp, (offset, rotation, mass, com, inertia) = _numeric(offset, rotation, mass, com, inertia)
    links = np.minimum(body_link, njnt)  # all that is not a joint link shares the last place

    def by_link(x: Any) -> Any:
        total = xp.zeros((*x.shape[:-2], njnt + 1, x.shape[-1]), x.dtype)
        if xp is jnp:
            return total.at[..., links, :].add(x)
        np.add.at(total, (..., links, slice(None)), x)
        return total

    centre = offset + (rotation * com).sum(1)
    link_mass = by_link(mass)
    link_com = by_link(mass * centre) / xp.where(link_mass > 0, link_mass, 1)
    d = centre - link_com[:, links]
    turned = (rotation[:, :, None] * _symmetric(xp, inertia)[None]).sum(1)  # R I
    turned = (turned[:, None] * rotation[None]).sum(2)  # R I R'
    shift = mass * (xp.eye(3)[:, :, None, None] * (d * d).sum(0) - d[:, None] * d[None])
    tensor = by_link(turned + shift)
    entries = [tensor[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    merged = {"link_mass": link_mass, "link_com": link_com, "link_inertia": xp.stack(entries)}
    return {name: value[..., :njnt, :] for name, value in merged.items()}


def _symmetric(xp: ModuleType, six: Any) -> Any:
    """xx yy zz xy xz yz -> (3, 3, ...)."""
    xx, yy, zz, xy, xz, yz = (six[i] for i in range(6))
    return xp.stack([xp.stack([xx, xy, xz]), xp.stack([xy, yy, yz]), xp.stack([xz, yz, zz])])


def _mixed_friction(model: Model, geom_friction: Any) -> Any:
    """(npair, W): sliding friction of the pairs' geoms by their rule, own values kept."""
    xp, (sliding, own) = _numeric(geom_friction[0], model.pair_friction)
    pairs = np.asarray(model.topology.pair_geoms, int).reshape(-1, 2)
    a, b = sliding[pairs[:, 0]], sliding[pairs[:, 1]]
    rule = model.pair_from_geoms
    return xp.where(rule == 0, own, xp.where(rule == 1, xp.maximum(a, b), xp.where(rule == 2, a, b)))


def _penalty_numbers(model: Model, chosen: Any) -> dict[str, Any]:
    """The numbers (npenalty, W) of the penalty models `chosen` (npenalty, W)."""
    _, (chosen, table) = _numeric(chosen, model.penalty_numbers)
    chosen = chosen.astype(int)
    return {name: table[k, :, 0][chosen] for k, name in enumerate(PENALTY_NUMBERS)} if chosen.shape[0] else {}


def as_leaf(value: Any, dtype: Any) -> jax.Array:
    """Cast in NumPy where the value is not traced: JAX would compile a conversion for every shape."""
    return value.astype(dtype) if isinstance(value, jax.core.Tracer) else jax.device_put(np.asarray(value, dtype))


def _numeric(*values: Any) -> tuple[ModuleType, list[Any]]:
    """NumPy and float64 copies of plain values, or jax.numpy and the values themselves when one is traced."""
    if any(isinstance(v, jax.core.Tracer) for v in values):
        return jnp, [jnp.asarray(v) for v in values]
    return np, [np.asarray(v, np.float64) for v in values]


def _checked(model: Model, name: str, value: Any) -> Any:
    """The value, once its name, shape and, where it is not traced, its numbers are in order."""
    if name not in PUBLIC and name not in SCALARS:
        raise ModelError(f"model.replace: {name!r} is not a public leaf; there are: {', '.join((*PUBLIC, *SCALARS))}")
    traced = isinstance(value, jax.core.Tracer)
    try:
        value = value if traced else np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"model.replace: {name} is not an array of numbers: {error}") from error
    _check_shape(model, name, np.shape(value))
    if not traced:
        _check_numbers(model, name, value)
    return value


def _check_shape(model: Model, name: str, shape: tuple[int, ...]) -> None:
    if name in SCALARS:
        if shape != ():
            raise ModelError(f"model.replace: {name} has shape {shape}; give one number for all worlds")
        return
    counts = PUBLIC[name][0]
    lead = tuple(c if isinstance(c, int) else getattr(model.topology, c) for c in counts)
    if len(shape) != len(lead) + 1 or shape[:-1] != lead or shape[-1] < 1:
        expected = "(" + ", ".join(map(str, lead)) + ", 1 or N)"
        raise ModelError(f"model.replace: {name} has shape {shape}; expected {expected}, the last axis is the world")


def _check_numbers(model: Model, name: str, value: np.ndarray) -> None:
    low, high = SCALARS[name] if name in SCALARS else PUBLIC[name][1]
    finite = ~np.isnan(value) if name in _UNBOUNDED else np.isfinite(value)
    if not finite.all():
        raise ModelError(f"model.replace: {name} contains {value[~finite].flat[0]}; give finite numbers")
    if value.size and (value.min() < low or value.max() > high):
        worst = value.min() if value.min() < low else value.max()
        raise ModelError(f"model.replace: {name} contains {worst:g}; it must lie in [{low:g}, {high:g}]")
    if name == "dt" and value <= 0:
        raise ModelError(f"model.replace: dt is {value:g}; give a positive time step")
    if name == "pair_penalty_model" and np.any((value % 1 != 0) | (value >= model.penalty_numbers.shape[1])):
        count = model.penalty_numbers.shape[1]
        raise ModelError(
            f"model.replace: {name} contains {value.max():g}; this model has penalty models 0 ... {count - 1}"
        )
    if name in _STRUCTURAL:
        _check_structure(model, name, value)


def _check_structure(model: Model, name: str, value: np.ndarray) -> None:
    """Refuse a value where the compiled program has no place for it."""
    t = model.topology
    what, has_effect = "dof", value != 0
    if name == "joint_friction":
        fixed = [not row for row in t.dof_friction]
        reason = "it has no friction row; load a file in which its frictionloss is positive"
    elif name == "joint_velocity_limit":
        limited = {t.joint_dadr[j] for j in t.limited_joints}
        fixed, has_effect = [i not in limited for i in range(t.nv)], np.isfinite(value)
        reason = "it has no limit row; give its joint a range, or a velocity limit in a URDF (Options.velocity_limits)"
    elif name.startswith("wire_"):
        what, fixed = "wire", [kind != "compliant" for kind in t.wire_kind]
        reason = "it is not compliant; build it with kind='compliant'"
    else:
        loose = [kind in (FREE, BALL) and not sprung for kind, sprung in zip(t.joint_type, t.joint_sprung, strict=True)]
        fixed = [
            is_loose for kind, is_loose in zip(t.joint_type, loose, strict=True) for _ in range(VELOCITY_WIDTHS[kind])
        ]
        reason = "a ball or free joint without a spring; load a file in which its stiffness is positive"
    wrong = [i for i, is_fixed in enumerate(fixed) if is_fixed and np.any(has_effect[i])]
    if wrong:
        raise ModelError(f"model.replace: {name} of {what} {wrong[0]}: {reason}")
