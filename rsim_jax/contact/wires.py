"""Wires as one-dimensional rows, except rods (see `contact/loops.py`).

With length l, rest length L and direction d from anchor a to anchor b, a wire that resists stretch has the gap
g = L - l (its slack) and the row velocity w = -dl/dt; its impulse p >= 0 pulls. One that resists compression has both
signs turned, and p >= 0 pushes.

stiff: w >= b, as a limit: it acts ahead, catching the wire at its length,

    slack:  b = -g / dt                (trapezoid: -2 g / dt - w-, w- the row velocity at the start of the step)
    beyond: b = min(-beta g, max_correction)

compliant: p = dt (-k g - c w) with g and w at the end of the step (trapezoid: at its middle), an implicit
spring-damper. As a row it reads p = -(w - b) / (W + gamma), w without p and W the row's velocity per impulse:

    gamma = 1 / (dt^2 k + dt c),       b = -dt k g gamma
    gamma = 1 / (dt^2 k / 4 + dt c / 2),  b = -dt k g gamma - w-       (trapezoid)

A slack wire transmits nothing: where the free motion does not bring a one-sided wire to its length, c counts as zero.

custom: p = dt T, T the user's tension (positive pulls), as far as the wire can resist it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.contact import anchors as between
from rsim_jax.contact.anchors import Motions
from rsim_jax.contact.rows import beta
from rsim_jax.contact.system import dot_rows
from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import fence
from rsim_jax.lanes.tree import take
from rsim_jax.structs import Links, Model, State, Topology, record


class WireRows:
    """The rows of all wires but rods; wire, then world."""

    jacobian: jax.Array  # (wires, nv, N)
    c: jax.Array  # (wires, N) free row velocity
    target: jax.Array
    low: jax.Array
    high: jax.Array
    softness: jax.Array  # gamma
    gap: jax.Array
    point: jax.Array  # (3, wires, N)
    direction: jax.Array  # (3, wires, N) in which p acts on b


WireRows = record(WireRows)


def wire_rows(model: Model, state: State, motions: Motions, links: Links, start: jax.Array, free: jax.Array):
    """WireRows; velocities at the start of the step and free ones (nv, N), in the dof order of the motions."""
    topology = model.topology
    wires = topology.swept_wires
    pairs = between.pair_links(topology, tuple(topology.wire_bodies[w] for w in wires))
    anchors = between.place(links, pairs, take(model.wire_anchor, wires))
    away, length = between.separation(anchors)
    sign = jnp.asarray([[1.0 if pulls(topology, w) else -1.0] for w in wires], free.dtype)
    direction = fence(-sign * away)
    jacobian = between.along(between.relative_jacobian(topology, motions, anchors), direction)
    carried = vectors.dot(direction, between.carried_velocity(topology, state, links, anchors))
    before, c = (fence(dot_rows(jacobian, u) + carried) for u in (start, free))
    gap = fence(sign * (take(model.wire_length, wires) - length))
    target, softness = _stiff(model, gap, before), jnp.zeros_like(gap)
    low, high = jnp.zeros_like(gap), jnp.full_like(gap, jnp.inf)
    both = _which(topology.wire_resist, wires, "both")
    compliant, custom = (_which(topology.wire_kind, wires, kind) for kind in ("compliant", "custom"))
    if any(compliant):
        one = _column(compliant)
        soft_target, gamma, acts = _compliant(model, wires, gap, before, c, _column(both))
        target, softness = jnp.where(one, soft_target, target), jnp.where(one, gamma, softness)
        low = jnp.where(one & _column(both), -jnp.inf, low)
        low, high = jnp.where(one & ~acts, 0, low), jnp.where(one & ~acts, 0, high)
    if any(custom):
        given = model.dt * take(state.wire_force, wires)
        pulls_only, pushes_only = (_column(_which(topology.wire_resist, wires, r)) for r in ("stretch", "compression"))
        given = jnp.where(pulls_only, jnp.maximum(given, 0), jnp.where(pushes_only, jnp.minimum(given, 0), given))
        low, high = (jnp.where(_column(custom), given, bound) for bound in (low, high))
    target, low, high, softness = fence((target, low, high, softness))
    return WireRows(jacobian, c, target, low, high, softness, gap, between.midpoint(anchors), direction)


def pulls(topology: Topology, wire: int) -> bool:
    """Whether a positive impulse of the wire's row pulls."""
    return topology.wire_resist[wire] != "compression" or topology.wire_kind[wire] == "custom"


def _which(values: tuple[str, ...], wires: tuple[int, ...], value: str) -> tuple[bool, ...]:
    return tuple(values[w] == value for w in wires)


def _column(mask: tuple[bool, ...]) -> jax.Array:
    return jnp.asarray(mask)[:, None]


def _stiff(model: Model, gap: jax.Array, before: jax.Array) -> jax.Array:
    trapezoid = model.topology.integrator == "trapezoid"
    ahead = -2 * gap / model.dt - before if trapezoid else -gap / model.dt
    return jnp.where(gap > 0, ahead, jnp.minimum(-beta(model) * gap, model.max_correction))


def _compliant(model: Model, wires: tuple[int, ...], gap: jax.Array, before: jax.Array, c: jax.Array, both: jax.Array):
    """(target, softness, whether the wire has a force at all)."""
    dt = model.dt
    trapezoid = model.topology.integrator == "trapezoid"
    stiffness, damping = take(model.wire_stiffness, wires), take(model.wire_damping, wires)
    meets = (gap <= 0) | (gap + dt * (0.5 * (before + c) if trapezoid else c) < 0)
    damping = jnp.where(both | meets, damping, 0)
    weight = dt * dt * stiffness / 4 + dt * damping / 2 if trapezoid else dt * dt * stiffness + dt * damping
    acts = weight > 0
    gamma = jnp.where(acts, 1 / jnp.where(acts, weight, 1), 0)
    target = -dt * stiffness * gap * gamma
    return (target - before if trapezoid else target), gamma, acts
