"""What Gymnasium's observations read from MuJoCo, with MuJoCo's meaning, at the end of the step.

cinert, cvel and cfrc_ext are taken about the centre of mass of each body's tree, in world axes, and are rows of
(nbody - 1): the world body is left out. Spatial vectors here are [angular; linear], as MuJoCo stores them.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

import rsim_jax as rsim
from rsim_jax.lanes import quaternions, tree, vectors
from rsim_jax.lanes.fence import concatenate, stack
from rsim_jax.modeling import compiled
from rsim_jax.structs import JOINT_LIMIT, Model, State, Topology, record

_JOINT_WRAP = 1  # MuJoCo's mjWRAP_JOINT: an element of a fixed tendon


class BodyFrames:
    """Poses of all bodies and the centres of mass of their trees, world axes."""

    position: Float[Array, "3 nbody N"]  # of the body frame
    rotation: Float[Array, "3 3 nbody N"]
    com: Float[Array, "3 nbody N"]  # of the body alone
    tree_com: Float[Array, "3 nbody N"]  # of all bodies of the body's tree


BodyFrames = record(BodyFrames)


def body_frames(model: Model, state: State) -> BodyFrames:
    """Where all bodies are."""
    position, quaternion = rsim.body_pose(model, state)
    rotation = quaternions.to_matrix(quaternion)
    com = position + vectors.rotate(rotation, model.body_com)
    roots = body_roots(model.topology)
    trees = tuple(sorted(set(roots)))
    index = tuple(trees.index(root) for root in roots)
    mass = tree.segment_sum(model.body_mass, index, len(trees))
    moment = tree.segment_sum(model.body_mass * com, index, len(trees))
    centre = moment / jnp.where(mass > 0, mass, 1)
    return BodyFrames(position=position, rotation=rotation, com=com, tree_com=tree.take(centre, index))


def body_roots(topology: Topology) -> tuple[int, ...]:
    """For each body the body of its tree that hangs on the world; the world itself for the world."""
    roots: list[int] = []
    for body, parent in enumerate(topology.body_parent):
        roots.append(body if body == 0 or parent == 0 else roots[parent])
    return tuple(roots)


def mass_centre(model: Model, frames: BodyFrames) -> Float[Array, "3 N"]:
    """Centre of mass of all bodies together."""
    return jnp.sum(model.body_mass * frames.com, axis=1) / jnp.sum(model.body_mass, axis=0)


def composite_inertia(model: Model, frames: BodyFrames) -> Float[Array, "10 nbody-1 N"]:
    """MuJoCo's cinert: xx yy zz xy xz yz about the tree's centre of mass, mass times offset from it, mass."""
    r = frames.rotation
    xx, yy, zz, xy, xz, yz = (model.body_inertia[i] for i in range(6))
    local = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    half = [[sum(r[i, k] * local[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
    mass, d = model.body_mass, frames.com - frames.tree_com
    square = vectors.dot(d, d)

    def entry(i: int, j: int) -> Array:
        turned = sum(half[i][k] * r[j, k] for k in range(3))
        return turned + mass * ((square if i == j else 0) - d[i] * d[j])

    inertia = stack([entry(0, 0), entry(1, 1), entry(2, 2), entry(0, 1), entry(0, 2), entry(1, 2)])
    moment = stack([mass * d[0], mass * d[1], mass * d[2], jnp.broadcast_to(mass, square.shape)])
    return concatenate([inertia, moment])[:, 1:]


def com_velocity(model: Model, state: State, frames: BodyFrames) -> Float[Array, "6 nbody-1 N"]:
    """MuJoCo's cvel: angular velocity, and velocity of the body's material at its tree's centre of mass."""
    linear, angular = rsim.body_velocity(model, state)
    at_com = linear + vectors.cross(angular, frames.tree_com - frames.position)
    return concatenate([angular, at_com])[:, 1:]


def contact_wrench(model: Model, state: State, frames: BodyFrames) -> Float[Array, "6 nbody-1 N"]:
    """MuJoCo's cfrc_ext without applied forces: torque about the tree's centre of mass, then force, from contacts."""
    report = rsim.contact_report(model, state)
    bodies = jnp.arange(1, model.nbody, dtype=report.body_a.dtype)[:, None]
    com = frames.tree_com[:, 1:]
    force = jnp.zeros_like(com)
    torque = jnp.zeros_like(com)
    for k in range(report.valid.shape[0]):
        on_b = (report.body_b[k] == bodies).astype(com.dtype)
        on_a = (report.body_a[k] == bodies).astype(com.dtype)
        push = (on_b - on_a) * report.contact_force[:, k, None]
        force = force + push
        torque = torque + vectors.cross(report.contact_point[:, k, None] - com, push)
    return concatenate([torque, force])


def actuator_force(model: Model, state: State, ctrl: Float[Array, "nu N"]) -> Float[Array, "nv N"]:
    """MuJoCo's qfrc_actuator: generalised force of all actuators, within control and force ranges."""
    topology = model.topology
    q_of_dof = dict(_scalar_joint_entries(topology))
    gear = model.actuator_gear
    length = gear * tree.take(state.q, tuple(q_of_dof[dof] for dof in topology.actuator_dof))
    velocity = gear * tree.take(state.qd, topology.actuator_dof)
    low, high = model.actuator_ctrl_range
    bias = model.actuator_bias
    force = model.actuator_gain * jnp.clip(ctrl, low, high) + bias[0] + bias[1] * length + bias[2] * velocity
    force = jnp.clip(force, *model.actuator_force_range)
    total = tree.segment_sum(gear * force, topology.actuator_dof, topology.nv)
    return jnp.clip(total, *model.joint_force_range)


def _scalar_joint_entries(topology: Topology) -> list[tuple[int, int]]:
    """(dof, entry of q) of all hinges and slides."""
    starts = zip(topology.joint_type, topology.joint_dadr, topology.joint_qadr, strict=True)
    return [(dof, entry) for kind, dof, entry in starts if kind >= 2]


def limit_force(model: Model, state: State) -> Float[Array, "nv N"]:
    """Generalised force of the joint limits in the last step: impulse of each limit row over dt, towards the range.

    MuJoCo's qfrc_constraint for a robot without contacts and dry friction.
    """
    rows, topology = state.rows, model.topology
    entry_of_dof = dict(_scalar_joint_entries(topology))
    limits = [row for row, kind in enumerate(rows.kind) if kind == JOINT_LIMIT]
    forces = {}
    for row, joint in zip(limits, topology.limited_joints, strict=True):
        dof = topology.joint_dadr[joint]
        low, high = model.joint_range[0, joint], model.joint_range[1, joint]
        inwards = jnp.where(state.q[entry_of_dof[dof]] < (low + high) / 2, 1, -1).astype(model.dtype)
        forces[dof] = inwards * rows.impulse[2, row] / model.dt
    zero = jnp.zeros_like(state.q[0])
    return concatenate([forces.get(dof, zero)[None] for dof in range(topology.nv)])


def fixed_tendons(model: Model) -> tuple[tuple[tuple[int, float], ...], ...]:
    """The (joint, coefficient) pairs of every tendon of the model's file; call it outside compiled code.

    Raises:
        ValueError: for a spatial tendon, whose length is not a sum of joint coordinates.
    """
    source = compiled(model)
    tendons = []
    for start, count in zip(source.tendon_adr, source.tendon_num, strict=True):
        wraps = range(start, start + count)
        if any(source.wrap_type[w] != _JOINT_WRAP for w in wraps):
            raise ValueError(f"{model.topology.source}: only fixed tendons can be observed")
        tendons.append(tuple((int(source.wrap_objid[w]), float(source.wrap_prm[w])) for w in wraps))
    return tuple(tendons)


def tendon_motion(
    model: Model, state: State, tendons: tuple[tuple[tuple[int, float], ...], ...]
) -> tuple[Float[Array, "ntendon N"], Float[Array, "ntendon N"]]:
    """Lengths and velocities of fixed tendons: coefficients times joint coordinates."""
    entry, dof = model.topology.joint_qadr, model.topology.joint_dadr
    if not tendons:
        none = jnp.zeros((0, state.q.shape[-1]), model.dtype)
        return none, none
    length = [sum(c * state.q[entry[joint]] for joint, c in tendon) for tendon in tendons]
    velocity = [sum(c * state.qd[dof[joint]] for joint, c in tendon) for tendon in tendons]
    return stack(length), stack(velocity)


def site_position(model: Model, site: int, frames: BodyFrames) -> Float[Array, "3 N"]:
    """World position of a site that a joint carries."""
    body = model.topology.body_link.index(model.topology.site_link[site])  # any body of the site's link
    back = jnp.swapaxes(model.body_rotation[:, :, body], 0, 1)
    in_body = vectors.rotate(back, model.site_offset[:, site] - model.body_offset[:, body])
    return frames.position[:, body] + vectors.rotate(frames.rotation[:, :, body], in_body)


def body_major(x: Float[Array, "c items N"]) -> Float[Array, "items*c N"]:
    """All components of the first item, then of the second: the order in which MuJoCo's arrays are flattened."""
    return jnp.swapaxes(x, 0, 1).reshape(-1, x.shape[-1])
