"""Poses, velocities, Jacobians, mass matrix, bias, energy and momentum of a state; also forces at points.

All of them evaluate the kinematics of the state's own q: nothing is cached, so nothing is stale.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from rsim_jax.dynamics import bias, forces, inertia
from rsim_jax.dynamics.algebra import algebra
from rsim_jax.dynamics.kinematics import Subspace, link_poses, motion_subspace
from rsim_jax.dynamics.structure import Structure, structure
from rsim_jax.lanes import quaternions, spatial, vectors
from rsim_jax.lanes.tree import take
from rsim_jax.structs import Links, Model, State, record


class Moment:
    """Kinematics of one moment; motion vectors in tree order."""

    links: Links
    subspace: Subspace
    inertia: jax.Array  # (10, njnt, N) per link, tree order


Moment = record(Moment)


def _moment(model: Model, state: State) -> tuple[Structure, Moment]:
    links, rotation, position = link_poses(model, state.q, state.kinematic_position, state.kinematic_quaternion)
    subspace = motion_subspace(model, rotation, position)
    per_link = inertia.link_inertia(model, rotation, position, subspace.tree_origin)
    return structure(model.topology), Moment(links, subspace, per_link)


def _mass_rows(model: Model, tree: Structure, moment: Moment) -> Any:
    return algebra(tree).mass_rows(model, moment.subspace, inertia.composite(tree, moment.inertia))


@jax.jit
def mass_matrix(model: Model, state: State) -> jax.Array:
    """M(q) (nv, nv, N), with armature, without implicit terms."""
    tree, moment = _moment(model, state)
    return algebra(tree).full_matrix(model, _mass_rows(model, tree, moment))


@jax.jit
def bias_force(model: Model, state: State) -> jax.Array:
    """c(q, qd) (nv, N) of M qdd + c = tau: gravity, Coriolis and centrifugal forces."""
    tree, moment = _moment(model, state)
    motions = bias.joint_motions(tree, moment.subspace, take(state.qd, tree.dof_order))
    velocity = bias.link_velocities(tree, motions)
    c = bias.bias_force(model, moment.subspace, moment.inertia, motions, velocity, model.gravity)
    return take(c, tree.dof_position)


@jax.jit
def body_pose(model: Model, state: State) -> tuple[jax.Array, jax.Array]:
    """World position (3, nbody, N) and quaternion (4, nbody, N) of every body frame, welded bodies too."""
    links, _, _ = link_poses(model, state.q, state.kinematic_position, state.kinematic_quaternion)
    rotation, position = _body_frames(model, links)
    return position + links.origin[:, None], quaternions.from_matrix(rotation)


def _body_frames(model: Model, links: Links) -> tuple[jax.Array, jax.Array]:
    """Rotation and position relative to the origin of every body frame."""
    owner = take(links.rotation, model.topology.body_link)
    position = take(links.position, model.topology.body_link) + vectors.rotate(owner, model.body_offset)
    return vectors.matmul(owner, model.body_rotation), position


@jax.jit
def body_velocity(model: Model, state: State) -> tuple[jax.Array, jax.Array]:
    """Linear velocity at the body frame's origin and angular velocity, (3, nbody, N) each, world axes."""
    topology = model.topology
    tree, moment = _moment(model, state)
    motions = bias.joint_motions(tree, moment.subspace, take(state.qd, tree.dof_order))
    joint_angular, joint_linear = (take(v, tree.link_position) for v in bias.link_velocities(tree, motions))
    n = state.q.shape[-1]
    still = jnp.zeros((3, 1, n), state.q.dtype)
    angular = jnp.concatenate([joint_angular, state.kinematic_angular_velocity, still], axis=1)
    linear = jnp.concatenate([joint_linear, state.kinematic_velocity, still], axis=1)
    order = tuple(tree.link_tree[tree.link_position[j]] for j in range(model.njnt))
    origins = moment.subspace.tree_origin
    joints = take(origins, order) if order else origins[:, :0]
    reference = jnp.concatenate([joints, moment.links.position[:, model.njnt :]], axis=1)
    _, position = _body_frames(model, moment.links)
    omega = take(angular, topology.body_link)
    arm = position - take(reference, topology.body_link)
    return take(linear, topology.body_link) + vectors.cross(omega, arm), omega


def jacobian(model: Model, state: State, body: int | str, point: jax.Array) -> jax.Array:
    """(6, nv, N): angular rows, then linear rows of the velocity of `point`, fixed to `body`; world axes.

    Args:
        model: the scene.
        state: N worlds.
        body: id or name.
        point: (3,) or (3, N) in world coordinates.
    """
    body = model.body_id(body) if isinstance(body, str) else body
    return _jacobian(model, state, body, _points(state, point))


@partial(jax.jit, static_argnums=2)
def _jacobian(model: Model, state: State, body: int, point: jax.Array) -> jax.Array:
    topology = model.topology
    tree, moment = _moment(model, state)
    moved = _moving_links(topology, topology.body_link[body])
    mask = jnp.asarray([[float(tree.link_order[link] in moved)] for link in tree.dof_link], state.q.dtype)
    mask = mask.reshape(model.nv, 1)
    origins = take(moment.subspace.tree_origin, tree.dof_tree)
    arm = (point - moment.links.origin)[:, None] - origins
    linear = moment.subspace.linear + vectors.cross(moment.subspace.angular, arm)
    rows = jnp.concatenate([moment.subspace.angular * mask, linear * mask])
    return take(rows, tree.dof_position)


def _moving_links(topology, link: int) -> set[int]:
    """The link and its ancestors."""
    moved = set()
    while link < topology.njnt:
        moved.add(link)
        link = topology.joint_parent[link]
    return moved


def _points(state: State, value: jax.Array) -> jax.Array:
    value = jnp.asarray(value, state.q.dtype)
    count = state.q.shape[-1]
    if value.shape not in ((3,), (3, count)):
        raise ValueError(f"expected shape (3,) or (3, {count}), got {value.shape}")
    return jnp.broadcast_to(value[:, None] if value.ndim == 1 else value, (3, count))


def apply_force(
    model: Model,
    state: State,
    body: int | str,
    force: jax.Array,
    torque: jax.Array | None = None,
    point: jax.Array | None = None,
) -> State:
    """Adds a force (and torque) on a body to the next step; world axes; calls add up.

    Args:
        model: the scene.
        state: N worlds.
        body: id or name.
        force: (3,) or (3, N), N.
        torque: (3,) or (3, N), N m.
        point: where the force acts, world coordinates; the body's centre of mass by default.

    Raises:
        ValueError: for a wrong shape.
    """
    body = model.body_id(body) if isinstance(body, str) else body
    force = _points(state, force)
    torque = jnp.zeros_like(force) if torque is None else _points(state, torque)
    point = center_of_mass(model, state)[:, body] if point is None else _points(state, point)
    rows = _jacobian(model, state, body, point)
    wrench = jnp.concatenate([torque, force])
    return state.replace(force=state.force + jnp.sum(rows * wrench[:, None], axis=0))


@jax.jit
def center_of_mass(model: Model, state: State) -> jax.Array:
    """World position of every body's centre of mass (3, nbody, N)."""
    links, _, _ = link_poses(model, state.q, state.kinematic_position, state.kinematic_quaternion)
    rotation, position = _body_frames(model, links)
    return position + vectors.rotate(rotation, model.body_com) + links.origin[:, None]


@jax.jit
def energy(model: Model, state: State) -> tuple[jax.Array, jax.Array]:
    """Kinetic (N,) = qd' M qd / 2 with armature; potential (N,) = gravity (zero at the origin) + joint springs; J."""
    tree, moment = _moment(model, state)
    matrix = algebra(tree).full_matrix(model, _mass_rows(model, tree, moment))
    kinetic = 0.5 * jnp.einsum("in,ikn,kn->n", state.qd, matrix, state.qd, precision="highest")
    weight = jnp.sum(model.body_mass * vectors.dot(model.gravity[:, None], center_of_mass(model, state)), axis=0)
    springs = 0.5 * jnp.sum(model.joint_stiffness * forces.spring_error(model, state.q) ** 2, axis=0)
    return kinetic, springs - weight


@jax.jit
def momentum(model: Model, state: State) -> tuple[jax.Array, jax.Array]:
    """Linear (3, N) and angular momentum about the world origin (3, N), world axes."""
    tree, moment = _moment(model, state)
    motions = bias.joint_motions(tree, moment.subspace, take(state.qd, tree.dof_order))
    velocity = bias.link_velocities(tree, motions)
    angular, linear = spatial.momentum(moment.inertia, velocity)
    origins = take(moment.subspace.tree_origin, tree.link_tree) + moment.links.origin[:, None]
    angular = angular + vectors.cross(origins, linear)
    return jnp.sum(linear, axis=1), jnp.sum(angular, axis=1)
