"""Positions from velocities on the configuration manifold: q+ = q (+) dt v.

Hinges, slides and translations add; quaternions turn by the exponential of dt times the body-frame angular velocity.
Consecutive joints of one kind are worked out together, so that a thousand free bodies are one array.
"""

from __future__ import annotations

from collections.abc import Callable

import jax

from rsim_jax.dynamics.structure import joint_runs
from rsim_jax.lanes import quaternions, vectors
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import by_item, in_rows
from rsim_jax.structs import Model, State

Places = Callable[[jax.Array, jax.Array], jax.Array]  # (value, rate) of hinges, slides and translations
Turns = Callable[[jax.Array, jax.Array], jax.Array]  # the same of rotations


def advance(model: Model, q: jax.Array, velocity: jax.Array, dt: jax.Array) -> jax.Array:
    """q (nq, N) after moving with the generalised velocity (nv, N) for dt; quaternions come out unit."""

    def turn(quat: jax.Array, omega: jax.Array) -> jax.Array:
        return quaternions.normalize(quaternions.multiply(quat, quaternions.exponential(fence(dt * omega))))

    return _joint_by_joint(model, q, velocity, 4, lambda x, v: x + dt * v, turn)


def chart_rate(model: Model, moved: jax.Array, velocity: jax.Array) -> jax.Array:
    """Rate (nv, N) of the coordinates v of q = q0 (+) v at v = moved, for the generalised velocity.

    The velocity itself but for rotations, where v' = w + v x w / 2 + v x (v x w) / 12, exact to the fourth order.
    """

    def turn(v: jax.Array, w: jax.Array) -> jax.Array:
        across = fence(vectors.cross(v, w))
        return w + 0.5 * across + vectors.cross(v, across) / 12

    return _joint_by_joint(model, moved, velocity, 3, lambda _, w: w, turn)


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
    velocity = q[: model.nv]  # not looked at
    return _joint_by_joint(model, q, velocity, 4, lambda x, _: x, lambda quat, _: quaternions.normalize(quat))


def _joint_by_joint(
    model: Model, x: jax.Array, rate: jax.Array, turn_width: int, place: Places, turn: Turns
) -> jax.Array:
    """place() and turn() over the joints of x, laid out like q (turn_width 4) or qd (3), with their rates (nv, N)."""
    parts = []
    for run in joint_runs(model.topology):
        rows = run.q if turn_width == 4 else run.qd
        if run.kind == "scalar":
            parts.append(place(x[rows], rate[run.qd]))
            continue
        values, rates = by_item(x[rows], len(run.joints)), by_item(rate[run.qd], len(run.joints))
        moved = turn(values[-turn_width:], rates[-3:])
        if run.kind == "free":
            moved = concatenate([place(values[:3], rates[:3]), moved])
        parts.append(in_rows(moved))
    return concatenate(parts, axis=0) if parts else x
