"""Bring a step's rows together, and take them apart again.

Order of the rows everywhere: contacts, joint limits, joint friction, wires; in reports the loops follow, then penalty
contacts.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.contact import loops as closed
from rsim_jax.contact import rows as make
from rsim_jax.contact.elimination import Basis, keep_clear
from rsim_jax.contact.frames import frame, to_world
from rsim_jax.contact.loops import Loops
from rsim_jax.contact.system import Impulses, RowSystem, dot_rows
from rsim_jax.contact.wires import WireRows, pulls
from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import take
from rsim_jax.structs import (
    CONTACT,
    EQUALITY,
    JOINT_FRICTION,
    JOINT_LIMIT,
    PENALTY,
    PIN,
    WIRE,
    ContactRows,
    Contacts,
    Model,
    State,
    Topology,
    record,
)


def row_kinds(topology: Topology) -> tuple[int, ...]:
    """The kind of every row that is reported."""
    return loop_kinds(topology) + (PENALTY,) * topology.penalty_candidates


def loop_kinds(topology: Topology) -> tuple[int, ...]:
    """The kind of every row of the sweep, and of the loops behind them."""
    counts = (
        (CONTACT, topology.max_contacts),
        (JOINT_LIMIT, len(topology.limited_joints)),
        (JOINT_FRICTION, len(topology.friction_dofs)),
        (WIRE, len(topology.swept_wires)),
        (PIN, topology.npin + len(topology.welds)),
        (EQUALITY, topology.nequality),
        (WIRE, len(topology.rods)),
    )
    return tuple(kind for kind, count in counts for _ in range(count))


def swept_count(topology: Topology) -> int:
    """Rows of the sweep; those behind them are loops."""
    counts = (topology.limited_joints, topology.friction_dofs, topology.swept_wires)
    return topology.max_contacts + sum(map(len, counts))


def scalar_dofs(model: Model) -> tuple[int, ...]:
    """The dof of every joint row: joint limits, then joint friction."""
    topology = model.topology
    return tuple(topology.joint_dadr[j] for j in topology.limited_joints) + topology.friction_dofs


def contact_slots(
    contacts: Contacts,
    axes: tuple[jax.Array, jax.Array, jax.Array],
    side: jax.Array,
    carried: jax.Array,
    turning: make.Turning | None,
) -> make.Slot:
    """The contacts with the slot axis first; side (width, K, N) of a row's columns, carried (3, K, N)."""

    def first(x: jax.Array) -> jax.Array:
        return jnp.swapaxes(x, 0, 1)

    return make.Slot(
        point=first(contacts.point),
        axes=tuple(first(axis) for axis in axes),
        side=first(side),
        carried=first(carried),
        gap=contacts.gap,
        friction=contacts.friction,
        restitution=contacts.restitution,
        restitution_threshold=contacts.restitution_threshold,
        static_friction=contacts.static_friction,
        static_friction_velocity=contacts.static_friction_velocity,
        turning=turning,
    )


def used_slots(contacts: Contacts) -> jax.Array:
    """Slots () int32 that any world uses: they fill from the first."""
    return jnp.sum(jnp.any(contacts.active, axis=-1).astype(jnp.int32))


class RowTrees:
    """Where rows of a scattered scene act."""

    contact: jax.Array  # (K, 2, N) trees of every contact slot; dense (K, 0, N)
    count: int  # static: trees, 0 when dense
    scalar: tuple[tuple[int, int], ...]  # static: the two trees of every one-dimensional row


RowTrees = record(RowTrees, static=("count", "scalar"))


def row_system(
    model: Model,
    state: State,
    contact: jax.Array,
    angular: jax.Array | None,
    trees: RowTrees,
    used: jax.Array,
    whitened: jax.Array,
    free: jax.Array,
    wires: WireRows | None = None,
    loop: Basis | None = None,
) -> tuple[RowSystem, jax.Array, jax.Array, jax.Array | None]:
    """(system, sign, gap, shares): what the sweep needs, the acting stop of every limited joint, Q' y of scalar rows.

    Args:
        model: the scene.
        state: before the step.
        contact: packed contact rows (K, ..., N).
        angular: those of rolling and spinning friction, None without.
        trees: that they and the one-dimensional rows act on.
        used: slots in use.
        whitened: Y of the scalar rows (S, width, N): of one dof each, before signs, then of the wires.
        free: free velocity (nv, N), public order.
        wires: their rows, None where there are none.
        loop: of the loop equations, None where there are none.
    """
    topology, n = model.topology, state.q.shape[-1]
    sign, gap, limit_target = make.limit_rows(model, state.q, state.qd, free)
    frictions, dofs = len(topology.friction_dofs), scalar_dofs(model)
    bound = jnp.broadcast_to(take(model.joint_friction, topology.friction_dofs) * model.dt, (frictions, n))
    signs = concatenate([sign, jnp.ones_like(bound)])
    zero = jnp.zeros_like(sign)
    c, target = [fence(take(free, dofs) * signs)], [limit_target, jnp.zeros_like(bound)]
    low, high = [zero, -bound], [zero + jnp.inf, bound]
    softness = jnp.zeros((0, n), free.dtype)
    if wires is not None:
        signs = concatenate([signs, jnp.ones_like(wires.c)])
        for parts, more in ((c, wires.c), (target, wires.target), (low, wires.low), (high, wires.high)):
            parts.append(more)
        if "compliant" in topology.wire_kind:
            softness = concatenate([jnp.zeros((len(dofs), n), free.dtype), wires.softness])
    scalar_y, shares = fence(whitened * signs[:, None]), None
    if loop is not None:
        scalar_y, shares = keep_clear(loop, scalar_y)
    system = RowSystem(
        contact=contact,
        angular=jnp.zeros((0, 0, n), free.dtype) if angular is None else angular,
        trees=trees.contact,
        used=used,
        scalar_y=scalar_y,
        scalar_c=concatenate(c),
        scalar_target=concatenate(target),
        scalar_block=fence(dot_rows(scalar_y, scalar_y)) if scalar_y.shape[0] else zero,
        scalar_softness=softness,
        low=concatenate(low),
        high=concatenate(high),
        tolerance=model.tolerance,
        tree_count=trees.count,
        scalar_trees=trees.scalar,
    )
    return system, sign, gap, shares


def warm_start(
    model: Model,
    state: State,
    contacts: Contacts,
    axes: tuple[jax.Array, jax.Array, jax.Array],
    impact: jax.Array,
    limit_sign: jax.Array,
    origin: jax.Array,
) -> Impulses:
    """Impulses to start from: last step's where the same row still exists, else zero."""
    topology, n = model.topology, state.q.shape[-1]
    slots, limits = topology.max_contacts, len(topology.limited_joints)
    rows = swept_count(topology)
    scalars = rows - slots
    dtype = state.q.dtype
    if not topology.warm_start:
        width = 6 if topology.angular_friction else 3
        return Impulses(jnp.zeros((slots, width, n), dtype), jnp.zeros((scalars, n), dtype))
    old = state.rows
    world = to_world(frame(old.normal[:, :slots]), old.impulse[:, :slots])
    point = fence(old.point[:, :slots] + (state.origin - origin)[:, None])
    previous = make.listed_impulse if contacts.links.shape[1] else make.previous_impulse
    contact = previous(contacts, axes, impact, old.index[:slots], point, world)
    if topology.angular_friction:
        torque = to_world(frame(old.normal[:, :slots]), old.angular_impulse)
        contact = concatenate([contact, previous(contacts, axes, impact, old.index[:slots], point, torque)])
    # a limit's impulse is kept while the same stop is the nearer one: its sign is that of the old row's normal slot
    scalar = old.impulse[2, slots:rows]
    same = old.normal[2, slots : slots + limits] == limit_sign
    scalar = concatenate([jnp.where(same, scalar[:limits], 0), scalar[limits:]])
    return Impulses(fence(jnp.swapaxes(contact, 0, 1)), scalar)


def report_rows(
    model: Model,
    contacts: Contacts,
    system: RowSystem,
    limit: tuple[jax.Array, jax.Array],
    impulses: Impulses,
    velocity: tuple[jax.Array, jax.Array],
    wires: WireRows | None = None,
) -> ContactRows:
    """The rows of the sweep as users see them.

    `limit` = (sign, gap) of the limit rows; the sign is kept in the z component of their `normal`.
    """
    topology = model.topology
    limits, frictions = len(topology.limited_joints), len(topology.friction_dofs)
    joints, n = limits + frictions, contacts.gap.shape[-1]
    dtype = contacts.gap.dtype
    active = contacts.active
    scalar_index = [*topology.limited_joints, *topology.friction_dofs, *topology.swept_wires]
    scalar_active = fence(impulses.scalar != 0)
    zero = jnp.zeros((len(scalar_index), n), dtype)
    gap = concatenate([limit[1], jnp.zeros((frictions, n), dtype), *([] if wires is None else [wires.gap])])

    def along_z(scalar: jax.Array) -> jax.Array:
        return jnp.concatenate([0 * scalar[None], 0 * scalar[None], scalar[None]])

    def vector(contact: jax.Array, scalar: jax.Array) -> jax.Array:
        return concatenate([jnp.where(active, contact, 0), scalar], axis=1)

    def number(contact: jax.Array, scalar: jax.Array) -> jax.Array:
        return concatenate([jnp.where(active, contact, 0), scalar])

    normal = along_z(concatenate([limit[0], zero[limits:joints]]))
    point = jnp.zeros_like(normal)
    if wires is not None:
        normal, point = (concatenate(x, axis=1) for x in ([normal, wires.direction], [point, wires.point]))
    bound = concatenate([zero[:limits], system.high[limits:joints], zero[joints:]])
    index = jnp.broadcast_to(jnp.asarray(scalar_index, jnp.int32)[:, None], zero.shape)
    return ContactRows(
        kind=loop_kinds(topology)[: swept_count(topology)],
        index=concatenate(
            [jnp.where(active, contacts.index.astype(jnp.int32), -1), jnp.where(scalar_active, index, -1)]
        ),
        active=concatenate([active, scalar_active]),
        point=vector(contacts.point, point),
        normal=vector(contacts.normal, normal),
        gap=number(contacts.gap, gap),
        target=number(system.target, system.scalar_target),
        friction=number(system.friction, bound),
        impulse=vector(jnp.swapaxes(impulses.contact[:, :3], 0, 1), along_z(impulses.scalar)),
        velocity=vector(jnp.swapaxes(velocity[0][:, :3], 0, 1), along_z(velocity[1])),
        angular_impulse=_torques(topology, active, impulses.contact),
    )


def _torques(topology: Topology, active: jax.Array, contact: jax.Array) -> jax.Array:
    """ContactRows.angular_impulse (3, K, N), (3, 0, N) without rolling and spinning friction."""
    if not topology.angular_friction:
        return jnp.zeros((3, 0, contact.shape[-1]), contact.dtype)
    return jnp.where(active, jnp.swapaxes(contact[:, 3:], 0, 1), 0)


def with_loops(model: Model, rows: ContactRows, loop: Loops, impulse: jax.Array, velocity: jax.Array) -> ContactRows:
    """The same with the loop rows behind; impulse and velocity (E, N) of their equations."""
    topology = model.topology
    welds, rods = topology.welds, topology.rods
    numbers = jnp.asarray([*range(topology.npin), *welds, *range(topology.nequality), *rods], jnp.int32)
    shape = (len(numbers), rows.gap.shape[-1])
    none = jnp.zeros(shape, rows.gap.dtype)
    error = closed.by_row(topology, loop.error)
    normal = concatenate([jnp.zeros((3, shape[0] - len(rods), shape[1]), none.dtype), loop.direction], axis=1)
    behind = {
        "index": jnp.broadcast_to(numbers[:, None], shape),
        "active": jnp.ones(shape, bool),
        "point": loop.point,
        "normal": normal,
        "gap": fence(vectors.safe_norm(error)),
        "target": none,
        "friction": none,
        "impulse": closed.by_row(topology, impulse),
        "velocity": closed.by_row(topology, velocity),
    }
    joined = {name: jnp.concatenate([getattr(rows, name), more], axis=-2) for name, more in behind.items()}
    return ContactRows(kind=loop_kinds(topology), **joined, angular_impulse=rows.angular_impulse)


def wire_rows_of(topology: Topology) -> tuple[tuple[int, float], ...]:
    """(row, sign) of every wire: its tension is sign times the row's impulse over dt."""
    kinds = row_kinds(topology)
    rows = [r for r, kind in enumerate(kinds) if kind == WIRE]
    row_of = dict(zip((*topology.swept_wires, *topology.rods), rows, strict=True))
    return tuple((row_of[w], 1.0 if pulls(topology, w) else -1.0) for w in range(topology.nwire))


def unit_rows(model: Model, order: tuple[int, ...], n: int) -> jax.Array:
    """J of one row per scalar dof (S, nv, N), columns in the dof order given."""
    dofs = scalar_dofs(model)
    rows = jnp.asarray([[float(order[i] == d) for i in range(model.nv)] for d in dofs], model.dtype)
    return jnp.broadcast_to(rows.reshape(len(dofs), model.nv, 1), (len(dofs), model.nv, n))
