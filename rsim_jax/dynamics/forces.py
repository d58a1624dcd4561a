"""Applied joint-space forces: joint springs and damping, actuators; and the weights of their implicit treatment.

Semi-implicit Euler takes velocity terms at the end of the step and position terms at q + dt qd+, so that stiff
servos and heavy damping stay stable at any step size:

    (M + W) (u+ - u) = dt (tau - c),    W = dt (damping + kd) + dt^2 (kp + k_spring)
    tau evaluated at (q + dt u, u)

The trapezoid rule takes both at mid-step: W = dt/2 (damping + kd) + dt^2/4 (kp + k_spring), tau at (q + dt/2 u, u).
rk4 has W = 0 and tau at (q, u). Joint springs are explicit (W = 0, tau at q) unless dt^2 k / (M + W) > 1/4, where
an explicit one would start to ring; an actuator at its force limit has constant force, hence no weight.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.dynamics.structure import JointRun, joint_runs
from rsim_jax.lanes import quaternions
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import by_item, in_rows, segment_sum, take
from rsim_jax.structs import Model, Topology

SPRING_LIMIT = 0.25  # dt^2 k / M beyond which a joint spring is taken implicitly


def applied(
    model: Model, q: jax.Array, qd: jax.Array, ctrl: jax.Array, diagonal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """(tau, W), each (nv, N) in public dof order; `diagonal` is that of M, public order."""
    lead, velocity_weight, position_weight = _scheme(model)
    spring, spring_weight = _springs(model, q, qd, diagonal, lead, position_weight, velocity_weight)
    tau = spring - model.joint_damping * qd
    weight = spring_weight + velocity_weight * model.joint_damping
    if model.nu:
        actuation, actuator_weight = _actuators(model, q, qd, ctrl, lead, velocity_weight, position_weight)
        tau, weight = tau + actuation, weight + actuator_weight
    return fence((tau, jnp.broadcast_to(weight, tau.shape)))


def _scheme(model: Model) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Where position terms are evaluated (q + lead qd), and the weights of velocity and position terms."""
    dt = model.dt
    match model.topology.integrator:
        case "semi_implicit":
            return dt, dt, dt * dt
        case "trapezoid":
            return dt / 2, dt / 2, dt * dt / 4
        case _:
            return 0 * dt, 0 * dt, 0 * dt


def _springs(model, q, qd, diagonal, lead, position_weight, velocity_weight):
    stiffness = model.joint_stiffness
    damped = diagonal + velocity_weight * model.joint_damping
    implicit = model.dt**2 * stiffness > SPRING_LIMIT * damped if model.topology.integrator != "rk4" else False
    error = spring_error(model, q)
    tau = -stiffness * (error + jnp.where(implicit, lead * qd, 0))
    return tau, jnp.where(implicit, position_weight * stiffness, 0)


def spring_error(model: Model, q: jax.Array) -> jax.Array:
    """Displacement of every dof from its spring's rest (nv, N); rotation vectors for balls and free joints.

    Zero for balls and free joints that have no spring at load.
    """
    topology, parts = model.topology, []
    for run in joint_runs(topology):
        if run.kind == "scalar":
            parts.append(q[run.q] - model.joint_spring_ref[run.q])
        elif not any(topology.joint_sprung[j] for j in run.joints):
            parts.append(jnp.zeros((run.qd.stop - run.qd.start, q.shape[-1]), q.dtype))
        else:
            parts.append(_turning_error(topology, run, q[run.q], model.joint_spring_ref[run.q]))
    return concatenate(parts, axis=0) if parts else jnp.zeros((0, q.shape[-1]), q.dtype)


def _turning_error(topology: Topology, run: JointRun, q: jax.Array, rest: jax.Array) -> jax.Array:
    """Rows of spring_error of ball or free joints."""
    now, rest = by_item(q, len(run.joints)), by_item(rest, len(run.joints))
    quat = quaternions.normalize(now[-4:])
    back = rest[-4:] * jnp.asarray([1, -1, -1, -1], q.dtype)[:, None, None]
    error = quaternions.logarithm(quaternions.multiply(jnp.broadcast_to(back, quat.shape), quat))
    if run.kind == "free":
        error = concatenate([now[:3] - rest[:3], error])
    sprung = jnp.asarray([[topology.joint_sprung[j]] for j in run.joints])
    return in_rows(jnp.where(sprung, error, 0))


def _actuators(model, q, qd, ctrl, lead, velocity_weight, position_weight):
    topology = model.topology
    dofs = topology.actuator_dof
    gear, gain, bias = model.actuator_gear, model.actuator_gain, model.actuator_bias
    velocity = gear * take(qd, dofs)
    length = gear * take(q, tuple(_position_entry(topology, dof) for dof in dofs))
    ctrl = jnp.clip(ctrl, model.actuator_ctrl_range[0], model.actuator_ctrl_range[1])
    # A destabilising gain has no implicit form that helps; it is evaluated at q like any explicit force.
    stiff = jnp.maximum(-bias[1], 0)
    damping = jnp.maximum(-bias[2], 0)
    force = gain * ctrl + bias[0] + bias[1] * length - stiff * lead * velocity + bias[2] * velocity
    low, high = model.actuator_force_range[0], model.actuator_force_range[1]
    weight = jnp.where(
        (force > low) & (force < high), gear * gear * (velocity_weight * damping + position_weight * stiff), 0
    )
    torque = gear * jnp.clip(force, low, high)
    torque, weight = fence((torque, jnp.broadcast_to(weight, torque.shape)))
    tau = segment_sum(torque, dofs, topology.nv)
    tau = jnp.clip(tau, model.joint_force_range[0], model.joint_force_range[1])
    return tau, segment_sum(weight, dofs, topology.nv)


def _position_entry(topology: Topology, dof: int) -> int:
    joint = topology.joint_dadr.index(dof)
    return topology.joint_qadr[joint]
