"""Positions from velocities on the configuration manifold: q+ = q (+) dt v.

Hinges, slides and translations add; quaternions turn by the exponential of dt times the body-frame angular velocity.
"""

from __future__ import annotations

import jax

from rsim_jax.dynamics.forces import scalar_runs
from rsim_jax.lanes import quaternions, vectors
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.structs import FREE, Model, State


def advance(model: Model, q: jax.Array, velocity: jax.Array, dt: jax.Array) -> jax.Array:
    """q (nq, N) after moving with the generalised velocity (nv, N) for dt; quaternions come out unit."""
    topology = model.topology
    parts = []
    for joints, start in scalar_runs(topology):
        dof = topology.joint_dadr[joints[0]]
        if start is not None:
            parts.append(q[start : start + len(joints)] + dt * velocity[dof : dof + len(joints)])
            continue
        adr = topology.joint_qadr[joints[0]]
        if topology.joint_type[joints[0]] == FREE:
            parts.append(q[adr : adr + 3] + dt * velocity[dof : dof + 3])
            adr, dof = adr + 3, dof + 3
        turn = quaternions.exponential(fence(dt * velocity[dof : dof + 3]))
        parts.append(quaternions.normalize(quaternions.multiply(q[adr : adr + 4], turn)))
    return concatenate(parts, axis=0) if parts else q


def chart_rate(model: Model, moved: jax.Array, velocity: jax.Array) -> jax.Array:
    """Rate (nv, N) of the coordinates v of q = q0 (+) v at v = moved, for the generalised velocity.

    The velocity itself but for rotations, where v' = w + v x w / 2 + v x (v x w) / 12, exact to the fourth order.
    """
    topology = model.topology
    parts = []
    for joints, start in scalar_runs(topology):
        dof = topology.joint_dadr[joints[0]]
        if start is not None:
            parts.append(velocity[dof : dof + len(joints)])
            continue
        if topology.joint_type[joints[0]] == FREE:
            parts.append(velocity[dof : dof + 3])
            dof += 3
        v, w = moved[dof : dof + 3], velocity[dof : dof + 3]
        across = fence(vectors.cross(v, w))
        parts.append(w + 0.5 * across + vectors.cross(v, across) / 12)
    return concatenate(parts, axis=0) if parts else velocity


def advance_kinematic(model: Model, state: State, dt: jax.Array) -> dict[str, jax.Array]:
    """Poses of kinematic bodies, as fields of the state, after moving with their own velocities for dt."""
    if model.topology.nkin == 0:
        return {}
    turn = quaternions.exponential(dt * state.kinematic_angular_velocity)
    return {
        "kinematic_position": state.kinematic_position + dt * state.kinematic_velocity,
        "kinematic_quaternion": quaternions.normalize(quaternions.multiply(turn, state.kinematic_quaternion)),
    }


def normalize(model: Model, q: jax.Array) -> jax.Array:
    """q with unit quaternions (a zero quaternion becomes the identity)."""
    topology = model.topology
    parts = []
    for joints, start in scalar_runs(topology):
        if start is not None:
            parts.append(q[start : start + len(joints)])
            continue
        adr = topology.joint_qadr[joints[0]]
        if topology.joint_type[joints[0]] == FREE:
            parts.append(q[adr : adr + 3])
            adr += 3
        parts.append(quaternions.normalize(q[adr : adr + 4]))
    return concatenate(parts, axis=0) if parts else q
