"""Compliant contact: forces that follow from depth and velocity, evaluated in every derivative of the step.

With p the depth, p' its rate, n the normal from A to B, v_t the tangential velocity of B relative to A at the midpoint
of the witness points (Hunt and Crossley, "Coefficient of Restitution Interpreted as Damping in Vibroimpact", Journal
of Applied Mechanics 42(2), 1975, with regularised Coulomb friction):

    F_n = max(0, kp p^n + kc p^n p'),    F_t = -mu F_n v_t / max(|v_t|, v_lin),    F_n n + F_t on B, its opposite on A

kp in N/m^n, kc in N s/m^(n + 1); with n = 1 it is Drake's continuous point contact with stiffness kp and dissipation
kc / kp. A user's law replaces F_n and F_t. Which penalty model acts on a pair is the number `pair_penalty_model`; a
model that is restricted to some bodies gives no force between two others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from rsim_jax.contact.frames import frame, to_frame
from rsim_jax.contact.problem import row_kinds
from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import segment_sum, take
from rsim_jax.structs import (
    Candidates,
    ContactRows,
    LinkVelocity,
    Model,
    PenaltyContacts,
    PenaltyGeometry,
    PenaltyParameters,
    PenaltyVelocity,
    Topology,
)

TOUCH = 1e-15  # m: no shapes overlap by less, and depth^(n - 1) with n < 1 stays within float32 above it
LinkPairs = tuple[tuple[int, int], ...]  # (link of geom a, link of geom b) of every candidate
Law = Callable[[PenaltyParameters, PenaltyGeometry, PenaltyVelocity], tuple[jax.Array, jax.Array]]


def hunt_crossley(
    parameters: PenaltyParameters, geometry: PenaltyGeometry, velocity: PenaltyVelocity
) -> tuple[jax.Array, jax.Array]:
    """(F_n (C, N), F_t (3, C, N)), N; F_t on B in world axes."""
    overlaps = geometry.depth > TOUCH
    power = jnp.where(overlaps, jnp.where(overlaps, geometry.depth, 1) ** parameters.n, 0)
    normal = fence(jnp.maximum(0, power * (parameters.kp + parameters.kc * velocity.rate)))
    speed = fence(jnp.maximum(vectors.safe_norm(velocity.slip), parameters.v_lin))
    return normal, fence(-(parameters.mu * normal / speed) * velocity.slip)


def penalty_contacts(
    model: Model,
    candidates: Candidates,
    origin: jax.Array,
    velocity: LinkVelocity,
    links: LinkPairs,
    pairs: tuple[int, ...],
) -> PenaltyContacts:
    """Forces of all candidates.

    Args:
        model: parameters of the penalty pairs.
        candidates: of the penalty pairs; C of them.
        origin: (3, N), world position of the origin of the candidates' points.
        velocity: of all links.
        links: links of every candidate.
        pairs: penalty pair of every candidate.
    """
    relative = relative_velocity(model, candidates.point, velocity, links, pairs)
    along = fence(vectors.dot(candidates.normal, relative))
    depth = jnp.maximum(-candidates.gap, 0)
    geometry = PenaltyGeometry(depth=depth, point=candidates.point + origin[:, None], normal=candidates.normal)
    motion = PenaltyVelocity(rate=-along, slip=fence(relative - along * candidates.normal))
    names = ("kp", "kc", "n", "mu", "v_lin")
    parameters = PenaltyParameters(**{name: take(getattr(model, f"pair_penalty_{name}"), pairs) for name in names})
    chosen = take(model.pair_penalty_model, pairs)
    normal, tangential = _by_law(model.topology, chosen, parameters, geometry, motion)
    enabled = jnp.broadcast_to(_enabled(model.topology, chosen, pairs), depth.shape)
    force = fence(jnp.where(enabled & (depth > TOUCH), normal * candidates.normal + tangential, 0))
    return PenaltyContacts(enabled, candidates.point, candidates.normal, candidates.gap, force)


def _by_law(topology: Topology, chosen: jax.Array, *arguments: object) -> tuple[jax.Array, jax.Array]:
    """(F_n, F_t) by the law of each candidate's penalty model; `chosen` (C, W) numbers the models."""
    laws = list(dict.fromkeys(topology.penalty_laws))
    normal, tangential = (laws[0] or hunt_crossley)(*arguments)
    for law in laws[1:]:
        here = _any([chosen == m for m, other in enumerate(topology.penalty_laws) if other == law])
        other = (law or hunt_crossley)(*arguments)
        normal, tangential = jnp.where(here, other[0], normal), jnp.where(here, other[1], tangential)
    return normal, tangential


def _enabled(topology: Topology, chosen: jax.Array, pairs: tuple[int, ...]) -> jax.Array:
    """(C, W) whether the chosen model acts on a body of the candidate's pair."""
    found = []
    for m, bodies in enumerate(topology.penalty_bodies):
        acts = [
            bodies is None or any(topology.geom_body[g] in bodies for g in topology.penalty_pairs[pair])
            for pair in pairs
        ]
        found.append((chosen == m) & jnp.asarray(acts)[:, None])
    return _any(found)


def _any(parts: list[jax.Array]) -> jax.Array:
    result = parts[0]
    for part in parts[1:]:
        result = result | part
    return result


def relative_velocity(
    model: Model, point: jax.Array, velocity: LinkVelocity, links: LinkPairs, pairs: tuple[int, ...]
) -> jax.Array:
    """Velocity of surface B relative to surface A at `point`, (3, C, N), world axes."""
    geoms = tuple(model.topology.penalty_pairs[pair] for pair in pairs)
    total = jnp.zeros_like(point)
    for side, sign in ((0, -1.0), (1, 1.0)):
        surface = take(model.geom_surface_velocity, tuple(pair[side] for pair in geoms))
        owners = tuple(pair[side] for pair in links)
        arm = fence(point - take(velocity.reference, owners))
        body = take(velocity.linear, owners) + vectors.cross(take(velocity.angular, owners), arm)
        total = total + sign * (body + surface)
    return fence(total)


def link_forces(
    contacts: PenaltyContacts, reference: jax.Array, links: LinkPairs, njnt: int
) -> tuple[jax.Array, jax.Array]:
    """(moment, force) on every joint link about its reference point (3, nlink, N): (3, njnt, N) each, public order."""
    shape = (3, njnt, contacts.gap.shape[-1])
    moment, force = jnp.zeros(shape, contacts.force.dtype), jnp.zeros(shape, contacts.force.dtype)
    for side, sign in ((0, -1.0), (1, 1.0)):
        members = tuple(c for c, pair in enumerate(links) if pair[side] < njnt)
        if not members:
            continue
        owners = tuple(links[c][side] for c in members)
        own = sign * take(contacts.force, members)
        arm = fence(take(contacts.point, members) - take(reference, owners))
        moment = moment + segment_sum(vectors.cross(arm, own), owners, njnt)
        force = force + segment_sum(own, owners, njnt)
    return fence((moment, force))


def with_penalty_rows(
    model: Model, rows: ContactRows, contacts: PenaltyContacts, velocity: jax.Array, friction: jax.Array
) -> ContactRows:
    """The rows of a step with its compliant contacts behind them.

    Args:
        model: for dt.
        rows: of the solver.
        contacts: at the start of the step, with the mean force over it.
        velocity: (3, C, N) of B relative to A at the end of the step, world axes.
        friction: (C, W).
    """
    pushed = (contacts.force[0] != 0) | (contacts.force[1] != 0) | (contacts.force[2] != 0)
    active = contacts.enabled & ((contacts.gap <= 0) | pushed)
    axes = frame(contacts.normal)
    zero = jnp.zeros_like(contacts.gap)
    number = jnp.arange(active.shape[0], dtype=jnp.int32)[:, None]
    added = {
        "index": jnp.where(active, number, -1),
        "active": active,
        "point": contacts.point,
        "normal": contacts.normal,
        "gap": contacts.gap,
        "target": zero,
        "friction": friction + zero,
        "impulse": to_frame(axes, model.dt * contacts.force),
        "velocity": to_frame(axes, velocity),
    }
    fields = {
        name: concatenate(
            [getattr(rows, name), value if name in ("index", "active") else jnp.where(active, value, 0)], -2
        )
        for name, value in added.items()
    }
    return dataclasses.replace(rows, kind=row_kinds(model.topology), **fields)
