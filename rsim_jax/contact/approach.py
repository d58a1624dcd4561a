"""Which candidates can touch within the step, and how fast prescribed surfaces move.

The predicted gap of a candidate is gap + dt v_z, v_z its approach velocity from the free velocity of the step. A
candidate is reachable when its gap or its predicted gap is negative; the most urgent have the least predicted gap.
Without speculative contacts only overlapping shapes are reachable.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import fence
from rsim_jax.lanes.tree import runs, take
from rsim_jax.structs import Candidates, Contacts, LinkVelocity


def normal_velocity(
    candidates: Candidates, velocity: LinkVelocity, links: tuple[tuple[int, int], ...], world: int
) -> jax.Array:
    """v_z (C, N) of every candidate, links = (link of a, link of b) per candidate."""
    total = jnp.zeros_like(candidates.gap)
    for side, sign in ((0, -1.0), (1, 1.0)):
        owners = tuple(pair[side] for pair in links)
        if all(owner == world for owner in owners):
            continue
        total = total + sign * _point_normal_velocity(candidates, velocity, owners)
    return fence(total)


def _point_normal_velocity(candidates, velocity, owners):
    """n . (linear + angular x arm) = n . linear + angular . (arm x n)."""
    arm = fence(candidates.point - take(velocity.reference, owners))
    moment = vectors.cross(arm, candidates.normal)
    return vectors.dot(candidates.normal, take(velocity.linear, owners)) + vectors.dot(
        moment, take(velocity.angular, owners)
    )


def reachable(candidates: Candidates, normal_speed: jax.Array, dt: jax.Array, speculative: bool):
    """(urgency, reach), each (C, N)."""
    if not speculative:
        return candidates.gap, candidates.gap < 0
    predicted = candidates.gap + dt * normal_speed
    return fence((predicted, (predicted < 0) | (candidates.gap < 0)))


def carried_velocity(
    contacts: Contacts,
    velocity: LinkVelocity,
    links: tuple[tuple[int, int], ...],
    kinematic: range,
) -> jax.Array:
    """Velocity of B relative to A (3, K, N) that kinematic links bring to every contact, world axes."""
    total = jnp.zeros_like(contacts.point)
    for link in kinematic:
        for side, sign in ((0, -1.0), (1, 1.0)):
            members = [c for c, pair in enumerate(links) if pair[side] == link]
            if not members:
                continue
            here = jnp.zeros(contacts.index.shape, bool)
            for start, stop in runs(tuple(members)):
                here = here | ((contacts.index >= start) & (contacts.index < stop))
            touch = contacts.point + (0.5 * sign) * jnp.maximum(contacts.gap, 0) * contacts.normal  # its own surface
            arm = fence(touch - velocity.reference[:, link : link + 1])
            speed = velocity.linear[:, link : link + 1] + vectors.cross(
                jnp.broadcast_to(velocity.angular[:, link : link + 1], arm.shape), arm
            )
            total = fence(total + jnp.where(here, sign * speed, 0))
    return total
