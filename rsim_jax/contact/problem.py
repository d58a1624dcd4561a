"""Bring a step's rows together, and take them apart again.

Order of the rows everywhere: contacts, joint limits, joint friction.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.contact import rows as make
from rsim_jax.contact.frames import frame, to_frame, to_world
from rsim_jax.contact.system import Impulses, RowSystem, delassus_blocks, dot_rows
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.structs import (
    CONTACT,
    JOINT_FRICTION,
    JOINT_LIMIT,
    ContactRows,
    Contacts,
    Model,
    State,
    Topology,
    record,
)


class RowGeometry:
    """What the rows of a step know besides their whitened form."""

    axes: tuple[jax.Array, jax.Array, jax.Array]  # contact frames, each (3, K, N)
    limit_sign: jax.Array  # (limited joints, N)
    limit_gap: jax.Array


RowGeometry = record(RowGeometry)


def row_kinds(topology: Topology) -> tuple[int, ...]:
    """The kind of every row."""
    counts = (topology.max_contacts, len(topology.limited_joints), len(topology.friction_dofs))
    return (CONTACT,) * counts[0] + (JOINT_LIMIT,) * counts[1] + (JOINT_FRICTION,) * counts[2]


def scalar_dofs(model: Model) -> tuple[int, ...]:
    """The dof of every one-dimensional row: joint limits, then joint friction."""
    topology = model.topology
    return tuple(topology.joint_dadr[j] for j in topology.limited_joints) + topology.friction_dofs


def row_system(
    model: Model,
    state: State,
    contacts: Contacts,
    axes: tuple[jax.Array, jax.Array, jax.Array],
    jacobian: jax.Array,
    whitened: jax.Array,
    whitened_dofs: jax.Array,
    free: tuple[jax.Array, jax.Array],
    start: jax.Array,
    carried: jax.Array,
) -> tuple[RowSystem, RowGeometry, jax.Array]:
    """(system, geometry, impact): everything the sweep needs, and which contacts are impacts (K, N).

    Args:
        model: the scene.
        state: before the step.
        contacts: selected contacts.
        axes: their frames.
        jacobian: J (K, 3, nv, N) and `whitened` Y of the same shape, in tree order of dofs.
        whitened: Y.
        whitened_dofs: Y of one row per scalar dof (S, nv, N), before signs.
        free: free velocity in tree order and in public order, (nv, N) each.
        start: velocity at the start of the step, tree order.
        carried: velocity of prescribed surfaces (3, K, N), world axes.
    """
    topology, dt = model.topology, model.dt
    surface = to_frame(axes, carried)
    before = fence(make.row_velocity(jacobian, start) + surface)
    velocity = fence(make.row_velocity(jacobian, free[0]) + surface)
    sign, gap, limit_target = make.limit_rows(model, state.q, state.qd)
    limits, dofs = len(topology.limited_joints), scalar_dofs(model)
    n = state.q.shape[-1]
    bound = jnp.broadcast_to(
        make.take(model.joint_friction, topology.friction_dofs) * dt, (len(topology.friction_dofs), n)
    )
    signs = concatenate([sign, jnp.ones_like(bound)])
    scalar_y = fence(whitened_dofs * signs[:, None])
    scalar_c = fence(make.take(free[1], dofs) * signs)
    zero = jnp.zeros((limits, n), signs.dtype)
    system = RowSystem(
        y=whitened,
        c=jnp.swapaxes(velocity, 0, 1),
        target=make.contact_target(model, contacts, before),
        friction=make.effective_friction(contacts, before),
        block=delassus_blocks(whitened),
        scalar_y=scalar_y,
        scalar_c=scalar_c,
        scalar_target=concatenate([limit_target, jnp.zeros_like(bound)]),
        scalar_block=fence(dot_rows(scalar_y, scalar_y)) if dofs else zero,
        low=concatenate([zero, -bound]),
        high=concatenate([zero + jnp.inf, bound]),
        tolerance=model.tolerance,
    )
    impact = fence(jnp.maximum(0, -before[2]) > contacts.restitution_threshold)
    return system, RowGeometry(axes, sign, gap), impact


def warm_start(
    model: Model, state: State, contacts: Contacts, geometry: RowGeometry, impact: jax.Array, origin: jax.Array
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
    contact = make.previous_impulse(contacts, geometry.axes, impact, old.index[:slots], point, world)
    # a limit's impulse is kept while the same stop is the nearer one: its sign is that of the old row's normal slot
    scalar = old.impulse[2, slots:]
    same = old.normal[2, slots : slots + limits] == geometry.limit_sign
    scalar = concatenate([jnp.where(same, scalar[:limits], 0), scalar[limits:]])
    return Impulses(fence(jnp.swapaxes(contact, 0, 1)), scalar)


def report_rows(
    model: Model,
    contacts: Contacts,
    system: RowSystem,
    geometry: RowGeometry,
    impulses: Impulses,
    velocity: tuple[jax.Array, jax.Array],
) -> ContactRows:
    """The rows of the step as users see them; limit rows keep their sign in the z component of `normal`."""
    topology = model.topology
    limits, frictions = len(topology.limited_joints), len(topology.friction_dofs)
    n = contacts.gap.shape[-1]
    dtype = contacts.gap.dtype
    active = contacts.active
    scalar_index = jnp.asarray([*topology.limited_joints, *topology.friction_dofs], jnp.int32)
    scalar_active = fence(impulses.scalar != 0)
    zero = jnp.zeros((limits + frictions, n), dtype)
    sign = concatenate([geometry.limit_sign, zero[limits:]])

    def vector(contact: jax.Array, scalar: jax.Array) -> jax.Array:
        padded = jnp.concatenate([zero[None], zero[None], scalar[None]])
        return concatenate([jnp.where(active, contact, 0), padded], axis=1)

    def number(contact: jax.Array, scalar: jax.Array) -> jax.Array:
        return concatenate([jnp.where(active, contact, 0), scalar])

    return ContactRows(
        kind=row_kinds(topology),
        index=concatenate(
            [
                jnp.where(active, contacts.index.astype(jnp.int32), -1),
                jnp.where(scalar_active, jnp.broadcast_to(scalar_index[:, None], zero.shape), -1),
            ]
        ),
        active=concatenate([active, scalar_active]),
        point=vector(contacts.point, zero),
        normal=vector(contacts.normal, sign),
        gap=number(contacts.gap, concatenate([geometry.limit_gap, zero[limits:]])),
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
