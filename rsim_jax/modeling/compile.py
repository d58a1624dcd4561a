"""From a compiled MuJoCo model to ours: topology and leaves."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from rsim_jax.errors import ModelError
from rsim_jax.modeling.actuators import Actuators, read_actuators
from rsim_jax.modeling.candidates import Pairs, find_pairs
from rsim_jax.modeling.capacity import default_max_contacts
from rsim_jax.modeling.constraints import Constraints, constraint_leaves, read_constraints, topology_fields
from rsim_jax.modeling.derive import PENALTY_NUMBERS, merged_inertia
from rsim_jax.modeling.hulls import Surfaces, read_surfaces
from rsim_jax.modeling.links import LinkTree, build_links, in_link, rotation
from rsim_jax.modeling.names import names
from rsim_jax.modeling.options import Options
from rsim_jax.modeling.refuse import Refusals, refuse_unsupported
from rsim_jax.modeling.registry import register
from rsim_jax.structs import BALL, FREE, HINGE, SLIDE, Model, Topology

_OFF = mujoco.mjtDisableBit
# Material values that MJCF does not know, as `Material` has them
RESTITUTION_THRESHOLD, STATIC_VELOCITY = 0.01, 1e-3
# All contacts of a file are rigid; see modeling/penalty.py
NO_PENALTY_LEAVES = {name: np.zeros((0, 1)) for name in (*PENALTY_NUMBERS, "penalty_margin")} | {
    "penalty_numbers": np.zeros((5, 0, 1))
}


def compile_model(
    compiled: mujoco.MjModel,
    refusals: Refusals,
    options: Options | None = None,
    dtype: Any = jnp.float32,
    *,
    velocity_limits: Mapping[str, float] | None = None,
    added: Constraints | None = None,
) -> Model:
    """Model of a compiled MuJoCo model, with velocity limits by joint name and constraints that its file cannot hold.

    Raises:
        ModelError: naming every element that has an effect and is not simulated.
    """
    options = options or Options()
    dtype = checked_dtype(dtype)
    tree = build_links(compiled)
    refuse_unsupported(compiled, refusals)
    pairs = find_pairs(compiled, tree.body_link, refusals)
    actuators = read_actuators(compiled, refusals)
    constraints = read_constraints(compiled, tree, refusals, added or Constraints())
    surfaces, pairs = read_surfaces(compiled, pairs, refusals)
    refusals.raise_any()
    fastest = _velocity_limits(compiled, velocity_limits if options.velocity_limits else None)
    if not compiled.opt.timestep > 0:
        raise ModelError(f"{refusals.source}: option timestep {compiled.opt.timestep:g}: give a positive number")
    leaves = {
        **_world_leaves(compiled, options),
        **_body_leaves(compiled, tree),
        **_joint_leaves(compiled, tree),
        **_actuator_leaves(actuators),
        **_geom_leaves(compiled, tree),
        **_pair_leaves(pairs),
        **NO_PENALTY_LEAVES,
        **surfaces.leaves,
        **_other_leaves(compiled, tree, actuators),
        **constraint_leaves(tree, constraints),
        "joint_velocity_limit": fastest[compiled.dof_jntid][:, None],
    }
    arrays = {name: jax.device_put(np.asarray(value, dtype)) for name, value in leaves.items()}
    rule = jax.device_put(pairs.source[:, None].astype(np.int32))
    topology = dataclasses.replace(
        _topology(compiled, tree, pairs, surfaces, actuators, options, refusals.source),
        joint_velocity_limited=tuple(bool(x) for x in np.isfinite(fastest)),
        **topology_fields(constraints),
    )
    model = Model(topology=topology, pair_from_geoms=rule, pair_penalty_model=jnp.zeros((0, 1), jnp.int32), **arrays)
    register(model, compiled)
    return model


def checked_dtype(dtype: Any) -> np.dtype:
    """float32 or float64, the latter only with JAX's x64 mode."""
    try:
        dtype = np.dtype(dtype)
    except TypeError as error:
        raise ModelError(f"dtype={dtype!r}: give jnp.float32 or jnp.float64") from error
    if dtype not in (np.float32, np.float64):
        raise ModelError(f"dtype={dtype}: give jnp.float32 or jnp.float64")
    if dtype == np.float64 and not jax.config.jax_enable_x64:
        raise ModelError('dtype=float64: call jax.config.update("jax_enable_x64", True) first')
    return dtype


def _topology(
    compiled: mujoco.MjModel,
    tree: LinkTree,
    pairs: Pairs,
    surfaces: Surfaces,
    actuators: Actuators,
    options: Options,
    source: str,
) -> Topology:
    capacity = options.max_contacts
    if capacity is None:
        capacity = default_max_contacts(compiled, tree, pairs, options.manifold_points)
    return Topology(
        body_names=names(compiled, "body", compiled.nbody),
        body_parent=_ints(compiled.body_parentid),
        body_link=tree.body_link,
        joint_names=names(compiled, "joint", compiled.njnt),
        joint_type=_ints(compiled.jnt_type),
        joint_body=_ints(compiled.jnt_bodyid),
        joint_parent=tree.joint_parent,
        joint_limited=tuple(bool(x) for x in _limited(compiled)),
        dof_friction=tuple(bool(x) for x in _dry_friction(compiled) > 0),
        nkin=len(tree.kinematic_body),
        kinematic_body=tree.kinematic_body,
        geom_names=names(compiled, "geom", compiled.ngeom),
        geom_type=_ints(compiled.geom_type),
        geom_body=_ints(compiled.geom_bodyid),
        pair_geoms=tuple(map(tuple, pairs.geoms.tolist())),
        actuator_names=actuators.names,
        actuator_dof=actuators.dof,
        site_names=names(compiled, "site", compiled.nsite),
        site_link=tuple(tree.body_link[b] for b in compiled.site_bodyid),
        keyframe_names=names(compiled, "key", compiled.nkey),
        max_contacts=int(capacity),
        sweeps=int(options.sweeps),
        slip_rule=options.slip_rule,
        warm_start=options.warm_start,
        speculative=options.speculative,
        integrator=options.integrator,
        manifold_points=options.manifold_points,
        angular_friction=bool(np.any(pairs.rolling) or np.any(pairs.spinning)),
        source=source,
        geom_hull=surfaces.geom_hull,
        geom_field=surfaces.geom_field,
        field_shape=surfaces.field_shape,
        pair_cells=surfaces.pair_cells,
        field_digest=surfaces.field_digest,
        joint_sprung=tuple(bool(x) for x in _sprung(compiled)),
    )


def _ints(values: np.ndarray) -> tuple[int, ...]:
    return tuple(int(v) for v in values)


def _is_off(compiled: mujoco.MjModel, *flags: mujoco.mjtDisableBit) -> bool:
    """Whether the file disables one of these stages."""
    return any(compiled.opt.disableflags & flag for flag in flags)


def _limited(compiled: mujoco.MjModel) -> np.ndarray:
    scalar = (compiled.jnt_type == HINGE) | (compiled.jnt_type == SLIDE)
    off = _is_off(compiled, _OFF.mjDSBL_LIMIT, _OFF.mjDSBL_CONSTRAINT)
    return compiled.jnt_limited.astype(bool) & scalar & (not off)


def _sprung(compiled: mujoco.MjModel) -> np.ndarray:
    """Ball and free joints with a spring."""
    turning = (compiled.jnt_type == BALL) | (compiled.jnt_type == FREE)
    return turning & (compiled.jnt_stiffness > 0) & (not _is_off(compiled, _OFF.mjDSBL_SPRING))


def _velocity_limits(compiled: mujoco.MjModel, given: Mapping[str, float] | None) -> np.ndarray:
    """(njnt,) m/s or rad/s, infinite where none is given or the joint is a ball or free joint."""
    scalar = (compiled.jnt_type == HINGE) | (compiled.jnt_type == SLIDE)
    limits = [(given or {}).get(name, np.inf) for name in names(compiled, "joint", compiled.njnt)]
    return np.where(scalar, np.array(limits).reshape(-1), np.inf)


def _dry_friction(compiled: mujoco.MjModel) -> np.ndarray:
    off = _is_off(compiled, _OFF.mjDSBL_FRICTIONLOSS, _OFF.mjDSBL_CONSTRAINT)
    return compiled.dof_frictionloss * (not off)


def _world_leaves(compiled: mujoco.MjModel, options: Options) -> dict[str, Any]:
    return {
        "dt": compiled.opt.timestep,
        "gravity": compiled.opt.gravity[:, None] * (not _is_off(compiled, _OFF.mjDSBL_GRAVITY)),
        "tolerance": options.tolerance,
        "erp": options.erp,
        "slop": options.slop,
        "max_correction": options.max_correction,
        "limit_restitution": options.limit_restitution,
    }


def _body_leaves(compiled: mujoco.MjModel, tree: LinkTree) -> dict[str, Any]:
    tensors = np.stack(
        [_tensor(q, moments) for q, moments in zip(compiled.body_iquat, compiled.body_inertia, strict=True)], -1
    )
    six = tensors[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]
    own = {
        "body_offset": tree.body_offset[..., None],
        "body_rotation": tree.body_rotation[..., None],
        "body_mass": compiled.body_mass[:, None],
        "body_com": compiled.body_ipos.T[..., None],
        "body_inertia": six[..., None],
    }
    links = merged_inertia(
        tree.body_link,
        compiled.njnt,
        *(own[f"body_{name}"] for name in ("offset", "rotation", "mass", "com", "inertia")),
    )
    kinematic = list(tree.kinematic_body)
    still = np.zeros((3, len(kinematic), 1))
    return {
        **own,
        **links,
        "kinematic_position": compiled.body_pos[kinematic].T[..., None],
        "kinematic_quaternion": compiled.body_quat[kinematic].T[..., None],
        "kinematic_default_velocity": still,
        "kinematic_default_angular_velocity": still,
    }


def _tensor(quaternion: np.ndarray, moments: np.ndarray) -> np.ndarray:
    turn = rotation(quaternion)
    return turn * moments @ turn.T


def _joint_leaves(compiled: mujoco.MjModel, tree: LinkTree) -> dict[str, Any]:
    unlimited = np.array([[-np.inf], [np.inf]])
    springs = not _is_off(compiled, _OFF.mjDSBL_SPRING)
    dampers = not _is_off(compiled, _OFF.mjDSBL_DAMPER)
    forced = compiled.jnt_actfrclimited.astype(bool)[compiled.dof_jntid]
    return {
        "joint_offset": tree.joint_offset[..., None],
        "joint_rotation": tree.joint_rotation[..., None],
        "joint_anchor": compiled.jnt_pos.T[..., None],
        "joint_axis": compiled.jnt_axis.T[..., None],
        "joint_ref": compiled.qpos0[:, None],
        "joint_spring_ref": compiled.qpos_spring[:, None],
        "joint_stiffness": compiled.jnt_stiffness[compiled.dof_jntid][:, None] * springs,
        "joint_damping": compiled.dof_damping[:, None] * dampers,
        "joint_armature": compiled.dof_armature[:, None],
        "joint_friction": _dry_friction(compiled)[:, None],
        "joint_range": np.where(_limited(compiled), compiled.jnt_range.T, unlimited)[..., None],
        "joint_margin": compiled.jnt_margin[:, None],
        "joint_force_range": np.where(forced, compiled.jnt_actfrcrange[compiled.dof_jntid].T, unlimited)[..., None],
        "default_q": compiled.qpos0[:, None],
        "default_qd": np.zeros((compiled.nv, 1)),
    }


def _actuator_leaves(actuators: Actuators) -> dict[str, Any]:
    return {
        "actuator_gain": actuators.gain[:, None],
        "actuator_bias": actuators.bias[..., None],
        "actuator_gear": actuators.gear[:, None],
        "actuator_ctrl_range": actuators.ctrl_range[..., None],
        "actuator_force_range": actuators.force_range[..., None],
    }


def _geom_leaves(compiled: mujoco.MjModel, tree: LinkTree) -> dict[str, Any]:
    offset, turned = in_link(tree, compiled.geom_bodyid, compiled.geom_pos, compiled.geom_quat)
    return {
        "geom_size": compiled.geom_size.T[..., None],
        "geom_friction": compiled.geom_friction.T[..., None],
        "geom_offset": offset[..., None],
        "geom_rotation": turned[..., None],
        "geom_surface_velocity": _surface_velocity(compiled, turned)[..., None],
    }


def _surface_velocity(compiled: mujoco.MjModel, turned: np.ndarray) -> np.ndarray:
    """(3, ngeom) in world axes; only static geoms can have one."""
    static = compiled.body_weldid[compiled.geom_bodyid] == 0
    return np.einsum("ijg,gj->ig", turned, compiled.geom_surfacevel[:, :3]) * static


def _pair_leaves(pairs: Pairs) -> dict[str, Any]:
    friction = pairs.sliding[:, None]
    return {
        "pair_friction": friction,
        "pair_restitution": np.zeros_like(friction),
        "pair_restitution_threshold": np.full_like(friction, RESTITUTION_THRESHOLD),
        "pair_static_friction": friction,
        "pair_static_friction_velocity": np.full_like(friction, STATIC_VELOCITY),
        "pair_rolling_friction": pairs.rolling[:, None],
        "pair_spinning_friction": pairs.spinning[:, None],
        "pair_lever": np.zeros((2, len(pairs), 1)),
        "pair_margin": pairs.margin[:, None],
    }


def _other_leaves(compiled: mujoco.MjModel, tree: LinkTree, actuators: Actuators) -> dict[str, Any]:
    offset, turned = in_link(tree, compiled.site_bodyid, compiled.site_pos, compiled.site_quat)
    return {
        "site_offset": offset[..., None],
        "site_rotation": turned[..., None],
        "key_time": compiled.key_time,
        "key_q": compiled.key_qpos.T,  # unit quaternions: MuJoCo normalises them
        "key_qd": compiled.key_qvel.T,
        "key_ctrl": compiled.key_ctrl.T[list(actuators.control)],
    }
