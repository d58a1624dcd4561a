"""Bring a step's rows together, and take them apart again.

Order of the rows everywhere: contacts, joint limits, joint friction; reports have penalty contacts behind them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.contact import rows as make
from rsim_jax.contact.frames import frame, to_world
from rsim_jax.contact.system import Impulses, RowSystem, dot_rows
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import take
from rsim_jax.structs import (
    CONTACT,
    JOINT_FRICTION,
    JOINT_LIMIT,
    PENALTY,
    ContactRows,
    Contacts,
    Model,
    State,
    Topology,
)


def row_kinds(topology: Topology) -> tuple[int, ...]:
    """The kind of every row that is reported."""
    return solver_kinds(topology) + (PENALTY,) * topology.penalty_candidates


def solver_kinds(topology: Topology) -> tuple[int, ...]:
    """The kind of every row that is solved for."""
    counts = (topology.max_contacts, len(topology.limited_joints), len(topology.friction_dofs))
    return (CONTACT,) * counts[0] + (JOINT_LIMIT,) * counts[1] + (JOINT_FRICTION,) * counts[2]


def scalar_dofs(model: Model) -> tuple[int, ...]:
    """The dof of every one-dimensional row: joint limits, then joint friction."""
    topology = model.topology
    return tuple(topology.joint_dadr[j] for j in topology.limited_joints) + topology.friction_dofs


def contact_slots(
    contacts: Contacts, axes: tuple[jax.Array, jax.Array, jax.Array], side: jax.Array, carried: jax.Array
) -> make.Slot:
    """The contacts with the slot axis first; side (nv, K, N) in tree order, carried (3, K, N)."""

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
    )


def used_slots(contacts: Contacts) -> jax.Array:
    """Slots () int32 that any world uses: they fill from the first."""
    return jnp.sum(jnp.any(contacts.active, axis=-1).astype(jnp.int32))


def row_system(
    model: Model, state: State, contact: jax.Array, used: jax.Array, whitened_dofs: jax.Array, free: jax.Array
) -> tuple[RowSystem, jax.Array, jax.Array]:
    """(system, sign, gap): everything the sweep needs, and the acting stop of every limited joint.

    Args:
        model: the scene.
        state: before the step.
        contact: packed contact rows (K, ..., N).
        used: slots in use.
        whitened_dofs: Y of one row per scalar dof (S, nv, N), before signs.
        free: free velocity (nv, N), public order.
    """
    topology, n = model.topology, state.q.shape[-1]
    sign, gap, limit_target = make.limit_rows(model, state.q, state.qd, free)
    frictions, dofs = len(topology.friction_dofs), scalar_dofs(model)
    bound = jnp.broadcast_to(take(model.joint_friction, topology.friction_dofs) * model.dt, (frictions, n))
    signs = concatenate([sign, jnp.ones_like(bound)])
    scalar_y = fence(whitened_dofs * signs[:, None])
    zero = jnp.zeros_like(sign)
    system = RowSystem(
        contact=contact,
        used=used,
        scalar_y=scalar_y,
        scalar_c=fence(take(free, dofs) * signs),
        scalar_target=concatenate([limit_target, jnp.zeros_like(bound)]),
        scalar_block=fence(dot_rows(scalar_y, scalar_y)) if dofs else zero,
        low=concatenate([zero, -bound]),
        high=concatenate([zero + jnp.inf, bound]),
        tolerance=model.tolerance,
    )
    return system, sign, gap


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
    scalars = limits + len(topology.friction_dofs)
    dtype = state.q.dtype
    if not topology.warm_start:
        return Impulses(jnp.zeros((slots, 3, n), dtype), jnp.zeros((scalars, n), dtype))
    old = state.rows
    world = to_world(frame(old.normal[:, :slots]), old.impulse[:, :slots])
    point = fence(old.point[:, :slots] + (state.origin - origin)[:, None])
    contact = make.previous_impulse(contacts, axes, impact, old.index[:slots], point, world)
    # a limit's impulse is kept while the same stop is the nearer one: its sign is that of the old row's normal slot
    scalar = old.impulse[2, slots : slots + scalars]
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
) -> ContactRows:
    """The rows of the step as users see them.

    `limit` = (sign, gap) of the limit rows; the sign is kept in the z component of their `normal`.
    """
    topology = model.topology
    limits, frictions = len(topology.limited_joints), len(topology.friction_dofs)
    n = contacts.gap.shape[-1]
    dtype = contacts.gap.dtype
    active = contacts.active
    scalar_index = jnp.asarray([*topology.limited_joints, *topology.friction_dofs], jnp.int32)
    scalar_active = fence(impulses.scalar != 0)
    zero = jnp.zeros((limits + frictions, n), dtype)
    sign = concatenate([limit[0], zero[limits:]])

    def vector(contact: jax.Array, scalar: jax.Array) -> jax.Array:
        padded = jnp.concatenate([zero[None], zero[None], scalar[None]])
        return concatenate([jnp.where(active, contact, 0), padded], axis=1)

    def number(contact: jax.Array, scalar: jax.Array) -> jax.Array:
        return concatenate([jnp.where(active, contact, 0), scalar])

    return ContactRows(
        kind=solver_kinds(topology),
        index=concatenate(
            [
                jnp.where(active, contacts.index.astype(jnp.int32), -1),
                jnp.where(scalar_active, jnp.broadcast_to(scalar_index[:, None], zero.shape), -1),
            ]
        ),
        active=concatenate([active, scalar_active]),
        point=vector(contacts.point, zero),
        normal=vector(contacts.normal, sign),
        gap=number(contacts.gap, concatenate([limit[1], zero[limits:]])),
        target=number(system.target, system.scalar_target),
        friction=number(system.friction, concatenate([zero[:limits], system.high[limits:]])),
        impulse=vector(jnp.swapaxes(impulses.contact, 0, 1), impulses.scalar),
        velocity=vector(jnp.swapaxes(velocity[0], 0, 1), velocity[1]),
    )


def unit_rows(model: Model, order: tuple[int, ...], n: int) -> jax.Array:
    """J of one row per scalar dof (S, nv, N), columns in the dof order given."""
    dofs = scalar_dofs(model)
    rows = jnp.asarray([[float(order[i] == d) for i in range(model.nv)] for d in dofs], model.dtype)
    return jnp.broadcast_to(rows.reshape(len(dofs), model.nv, 1), (len(dofs), model.nv, n))
