"""Make states, choose between them and write into them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.contact.problem import row_kinds
from rsim_jax.lanes import quaternions
from rsim_jax.structs import FREE, ContactRows, Model, State, Topology


def empty_rows(topology: Topology, num_worlds: int, dtype: object) -> ContactRows:
    """Rows of a world that has not stepped yet: all inactive."""
    kinds = row_kinds(topology)
    shape = (len(kinds), num_worlds)
    scalar, vector = jnp.zeros(shape, dtype), jnp.zeros((3, *shape), dtype)
    return ContactRows(
        kind=kinds,
        index=jnp.full(shape, -1, jnp.int32),
        active=jnp.zeros(shape, bool),
        point=vector,
        normal=vector,
        gap=scalar,
        target=scalar,
        friction=scalar,
        impulse=vector,
        velocity=vector,
        angular_impulse=jnp.zeros((3, topology.max_contacts if topology.angular_friction else 0, num_worlds), dtype),
    )


def make_state(model: Model, num_worlds: int, keyframe: str | None = None) -> State:
    """N equal worlds in the default pose, or in a keyframe.

    Args:
        model: the scene.
        num_worlds: N >= 1.
        keyframe: name of a keyframe of the model.

    Raises:
        ValueError: for num_worlds < 1 or an unknown keyframe.
    """
    if num_worlds < 1:
        raise ValueError(f"num_worlds is {num_worlds}; at least one world is needed")
    topology, dtype = model.topology, model.dtype
    q, qd, time = model.default_q[:, 0], model.default_qd[:, 0], jnp.zeros((), dtype)
    if keyframe is not None:
        names = topology.keyframe_names
        if keyframe not in names:
            raise ValueError(f"no keyframe named {keyframe!r}; there are: {', '.join(names) or 'none'}")
        k = names.index(keyframe)
        q, qd, time = model.key_q[:, k], model.key_qd[:, k], model.key_time[k]

    def spread(x: jax.Array) -> jax.Array:
        return jnp.array(jnp.broadcast_to(jnp.asarray(x, dtype)[..., None], (*x.shape, num_worlds)))

    return State(
        q=spread(q),
        qd=spread(qd),
        time=spread(time),
        time_start=spread(time),
        steps=jnp.zeros((num_worlds,), jnp.int32),
        status=jnp.zeros((num_worlds,), jnp.int32),
        origin=jnp.zeros((3, num_worlds), dtype),
        rows=empty_rows(topology, num_worlds, dtype),
        residual=jnp.zeros((3, num_worlds), dtype),
        force=jnp.zeros((topology.nv, num_worlds), dtype),
        kinematic_position=spread(model.kinematic_position[..., 0]),
        kinematic_quaternion=spread(model.kinematic_quaternion[..., 0]),
        kinematic_velocity=spread(model.kinematic_default_velocity[..., 0]),
        kinematic_angular_velocity=spread(model.kinematic_default_angular_velocity[..., 0]),
        wire_force=jnp.zeros((topology.nwire, num_worlds), dtype),
    )


def select(mask: jax.Array, a: State, b: State) -> State:
    """Per world: `a` where mask (N,), else `b`; any pytree with the world axis last works."""
    mask = jnp.asarray(mask)
    return jax.tree.map(lambda x, y: jnp.where(mask, x, y), a, b)


def write(
    model: Model,
    state: State,
    body: int | str,
    q: object = None,
    qd: object = None,
    worlds: Sequence[int] | None = None,
) -> State:
    """A free or kinematic body's own entries of the state, in chosen worlds.

    Args:
        model: the scene.
        state: N worlds.
        body: id or name of a body with a free joint, or a kinematic body.
        q: (7,) or (7, len(worlds)): position, quaternion. None keeps them.
        qd: (6,) or (6, len(worlds)): for a free body linear world and angular body-frame velocity, for a kinematic
            one linear and angular world velocity. None keeps them.
        worlds: indices, None for all; the k-th column goes to the k-th world. Empty does nothing.

    Raises:
        ValueError: for another kind of body, a wrong shape, or a world out of range.
    """
    count = state.q.shape[-1]
    chosen = np.arange(count) if worlds is None else np.asarray(worlds, dtype=np.int64).reshape(-1)
    if chosen.size and (chosen.min() < 0 or chosen.max() >= count):
        raise ValueError(f"world {chosen[(chosen < 0) | (chosen >= count)][0]} is outside 0 ... {count - 1}")
    q = None if q is None else _columns("q", q, 7, chosen.size)
    qd = None if qd is None else _columns("qd", qd, 6, chosen.size)
    topology = model.topology
    body = model.body_id(body) if isinstance(body, str) else body
    if chosen.size == 0:
        return state
    if body in topology.kinematic_body:
        k = topology.kinematic_body.index(body)
        new = {}
        if q is not None:
            new["kinematic_position"] = state.kinematic_position.at[:, k, chosen].set(q[:3])
            new["kinematic_quaternion"] = state.kinematic_quaternion.at[:, k, chosen].set(quaternions.normalize(q[3:]))
        if qd is not None:
            new["kinematic_velocity"] = state.kinematic_velocity.at[:, k, chosen].set(qd[:3])
            new["kinematic_angular_velocity"] = state.kinematic_angular_velocity.at[:, k, chosen].set(qd[3:])
        return state.replace(**new)
    joint = _free_joint(topology, body)
    new = {}
    if q is not None:
        start = topology.joint_qadr[joint]
        new["q"] = state.q.at[start : start + 7, chosen].set(q)
    if qd is not None:
        start = topology.joint_dadr[joint]
        new["qd"] = state.qd.at[start : start + 6, chosen].set(qd)
    return state.replace(**new)


def _columns(name: str, value: object, rows: int, count: int) -> jax.Array:
    value = jnp.asarray(value)
    if value.shape not in ((rows,), (rows, count)):
        raise ValueError(f"{name} has shape {value.shape}; expected ({rows},) or ({rows}, {count})")
    return jnp.broadcast_to(value[:, None] if value.ndim == 1 else value, (rows, count))


def _free_joint(topology: Topology, body: int) -> int:
    for joint, (owner, kind) in enumerate(zip(topology.joint_body, topology.joint_type, strict=True)):
        if owner == body and kind == FREE:
            return joint
    raise ValueError(
        f"body {body} ({topology.body_names[body] or 'unnamed'}) is neither free nor kinematic; "
        "write its joints with state.replace(q=..., qd=...)"
    )


def set_kinematic(
    model: Model,
    state: State,
    body: int | str,
    position: object = None,
    quaternion: object = None,
    velocity: object = None,
    angular_velocity: object = None,
) -> State:
    """Pose and velocity of a kinematic body in all worlds; world axes; each (3,) or (3, N), quaternion (4,) or (4, N).

    A body with a velocity keeps moving with it, step after step, and contacts feel that velocity.

    Raises:
        ValueError: for a body that is not kinematic or a wrong shape.
    """
    topology, count = model.topology, state.q.shape[-1]
    body = model.body_id(body) if isinstance(body, str) else body
    if body not in topology.kinematic_body:
        raise ValueError(f"body {body} ({topology.body_names[body] or 'unnamed'}) is not kinematic")
    k = topology.kinematic_body.index(body)
    new = {}
    for field, value, rows in (
        ("kinematic_position", position, 3),
        ("kinematic_quaternion", quaternion, 4),
        ("kinematic_velocity", velocity, 3),
        ("kinematic_angular_velocity", angular_velocity, 3),
    ):
        if value is not None:
            columns = _columns(field, value, rows, count)
            columns = quaternions.normalize(columns) if rows == 4 else columns
            new[field] = getattr(state, field).at[:, k].set(columns)
    return dataclasses.replace(state, **new)


def set_wire_tension(model: Model, state: State, wire: int | str, tension: object) -> State:
    """Tension of a custom wire, N, () or (N,): positive pulls, negative pushes; it acts in every step until changed.

    Raises:
        ValueError: for a wire that does not exist or is not custom, or a wrong shape.
    """
    topology, count = model.topology, state.q.shape[-1]
    wire = model.wire_id(wire) if isinstance(wire, str) else wire
    if not 0 <= wire < topology.nwire:
        raise ValueError(f"wire {wire} does not exist; there are {topology.nwire}")
    if topology.wire_kind[wire] != "custom":
        raise ValueError(f"wire {wire} is {topology.wire_kind[wire]}; only the tension of a custom wire can be set")
    tension = jnp.asarray(tension, state.wire_force.dtype)
    if tension.shape not in ((), (count,)):
        raise ValueError(f"tension has shape {tension.shape}; expected () or ({count},)")
    return state.replace(wire_force=state.wire_force.at[wire].set(tension))


def apply_generalized_force(model: Model, state: State, tau: object) -> State:
    """Adds tau (nv,) or (nv, N) to the force of the next step; calls add up.

    Raises:
        ValueError: for a wrong shape.
    """
    columns = _columns("tau", tau, model.nv, state.q.shape[-1])
    return state.replace(force=state.force + columns.astype(state.force.dtype))
