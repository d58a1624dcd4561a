"""The most urgent candidates of every world become its contacts, without sorting or gathering over worlds.

A candidate's place is the number of candidates before it in the order (urgency, index); slot k takes the candidate
whose place is k. Values are copied, never multiplied by a mask, so that they keep their bits and a NaN stays in its
own slot.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.collision.pair_table import candidate_geoms, candidate_links, candidate_pairs
from rsim_jax.collision.subtrees import dof_ranges, preorder
from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.tree import take
from rsim_jax.structs import Candidates, Contacts, Model, Topology


def select(model: Model, candidates: Candidates, urgency: jax.Array, reach: jax.Array) -> Contacts:
    """The K = topology.max_contacts most urgent candidates within reach, most urgent first, ties by index.

    A candidate whose urgency is NaN never fills a slot. Slots without a candidate are inactive: index -1, the rest 0.

    Args:
        model: pair parameters and surface velocities.
        candidates: C of them.
        urgency: (C, N), smaller is more urgent.
        reach: (C, N) bool, which candidates may fill a slot.

    Returns:
        Contacts; `overflow` where more than K candidates are within reach.
    """
    topology = model.topology
    if not candidates.gap.shape[0] or not topology.max_contacts:
        return _no_contacts(topology, candidates, reach)
    eligible = fence(reach & (urgency == urgency))
    place = fence(_places(jnp.where(eligible, urgency, jnp.inf), eligible))
    slots = jnp.arange(topology.max_contacts, dtype=jnp.int32)[:, None, None]
    chosen = fence((place[None] == slots) & eligible[None])  # (K, C, N)

    def pick(x: jax.Array) -> jax.Array:
        return fence(jnp.sum(jnp.where(chosen, x[None], jnp.zeros((), x.dtype)), axis=1))

    pairs = candidate_pairs(topology)
    count = jnp.sum(eligible.astype(jnp.int32), axis=0)
    order = jnp.arange(len(pairs), dtype=jnp.int32)[:, None]
    index = pick(order + 1) - 1
    velocity = _surface_velocity(model)
    number, _ = preorder(topology)
    links = candidate_links(topology)
    link_a, link_b = (pick(jnp.asarray([[number[pair[k]]] for pair in links], jnp.int32) + 1) - 1 for k in (0, 1))
    return Contacts(
        index=index,
        active=index >= 0,
        point=stack([pick(candidates.point[i]) for i in range(3)]),
        normal=stack([pick(candidates.normal[i]) for i in range(3)]),
        gap=pick(candidates.gap),
        friction=pick(take(model.pair_friction, pairs)),
        restitution=pick(take(model.pair_restitution, pairs)),
        restitution_threshold=pick(take(model.pair_restitution_threshold, pairs)),
        static_friction=pick(take(model.pair_static_friction, pairs)),
        static_friction_velocity=pick(take(model.pair_static_friction_velocity, pairs)),
        surface_velocity=stack([pick(velocity[i]) for i in range(3)]),
        side=_sides(topology, link_a, link_b, candidates.gap.dtype),
        overflow=count > topology.max_contacts,
    )


def _no_contacts(topology: Topology, candidates: Candidates, reach: jax.Array) -> Contacts:
    shape = (topology.max_contacts, candidates.gap.shape[-1])
    zero = jnp.zeros(shape, candidates.gap.dtype)
    vector = jnp.zeros((3, *shape), zero.dtype)
    return Contacts(
        index=jnp.full(shape, -1, jnp.int32),
        active=jnp.zeros(shape, bool),
        point=vector,
        normal=vector,
        gap=zero,
        friction=zero,
        restitution=zero,
        restitution_threshold=zero,
        static_friction=zero,
        static_friction_velocity=zero,
        surface_velocity=vector,
        side=jnp.zeros((topology.nv, *shape), zero.dtype),
        overflow=jnp.any(reach, axis=0),
    )


def _places(key: jax.Array, eligible: jax.Array) -> jax.Array:
    """How many eligible candidates come before each one in the order (key, index), (C, N)."""
    count = key.shape[0]
    mine = np.arange(count)[:, None]
    place = jnp.zeros(key.shape, jnp.int32)
    for other in range(count):
        earlier = jnp.where(mine > other, key[other] <= key, key[other] < key)
        place = place + (earlier & eligible[other])
    return place


def _surface_velocity(model: Model) -> jax.Array:
    """Of geom b relative to geom a of every candidate, (3, C, 1)."""
    geoms = candidate_geoms(model.topology)
    of_a, of_b = (take(model.geom_surface_velocity, tuple(pair[k] for pair in geoms)) for k in (0, 1))
    return of_b - of_a


def _sides(topology: Topology, link_a: jax.Array, link_b: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """+1 where a dof moves link b only, -1 where link a only, else 0: (nv, K, N) from preorder numbers (K, N)."""
    first, last = (bound[:, None, None] for bound in dof_ranges(topology))
    moves_a, moves_b = (((first <= link) & (link <= last)).astype(dtype) for link in (link_a, link_b))
    return moves_b - moves_a
