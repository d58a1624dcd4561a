"""The most urgent candidates of every world become the contacts that a step solves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.collision.ordering import look_up, smallest
from rsim_jax.collision.pair_table import candidate_links, candidate_pairs
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
    count, worlds = candidates.gap.shape
    slots, dtype = topology.max_contacts, candidates.gap.dtype
    eligible = reach & ~jnp.isnan(urgency)
    available = jnp.sum(eligible.astype(jnp.int32), axis=0)
    if not count or not slots:
        return _none(topology, worlds, available > slots, dtype)
    # A finite cap keeps an eligible candidate of infinite urgency before those that are not eligible.
    key = fence(jnp.where(eligible, jnp.minimum(urgency, jnp.finfo(dtype).max), jnp.inf))
    chosen = smallest(key, slots, jnp.max(available))
    active = np.arange(slots)[:, None] < available
    geometry = [candidates.point, candidates.normal, candidates.gap[None]]
    point, normal, gap = (_filled(look_up(x, tuple(range(count)), chosen), active) for x in geometry)
    starts = _starts(candidate_pairs(topology))
    parameters = _filled(look_up(material_values(model), starts, chosen), active)
    return Contacts(
        index=jnp.where(active, chosen, -1),
        active=active,
        point=point,
        normal=normal,
        gap=gap[0],
        friction=parameters[0],
        restitution=parameters[1],
        restitution_threshold=parameters[2],
        static_friction=parameters[3],
        static_friction_velocity=parameters[4],
        surface_velocity=parameters[5:8],
        turning=parameters[8:],
        side=_sides(topology, chosen, active, dtype),
        links=jnp.zeros((2, 0, worlds), jnp.int32),
        overflow=available > slots,
    )


def _filled(values: jax.Array, active: jax.Array) -> jax.Array:
    return fence(jnp.where(active, values, 0))


def material_values(model: Model) -> jax.Array:
    """Material and surface velocity of every pair (8, npair, W), then what rolling and spinning need, if any do."""
    pairs = model.topology.pair_geoms
    of_a, of_b = (take(model.geom_surface_velocity, tuple(pair[k] for pair in pairs)) for k in (0, 1))
    velocity = of_b - of_a
    return stack(
        [
            model.pair_friction,
            model.pair_restitution,
            model.pair_restitution_threshold,
            model.pair_static_friction,
            model.pair_static_friction_velocity,
            *(velocity[i] for i in range(3)),
            *(_turning_values(model) if model.topology.angular_friction else ()),
        ]
    )


def _turning_values(model: Model) -> tuple[jax.Array, ...]:
    lever = model.pair_lever
    return model.pair_rolling_friction, model.pair_spinning_friction, lever[0], lever[1]


def _sides(topology: Topology, chosen: jax.Array, active: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """+1 where a dof moves the link of geom b only, -1 where it moves that of geom a only, else 0: (nv, K, N)."""
    number, _ = preorder(topology)
    first, last = (bound[:, None, None] for bound in dof_ranges(topology))
    links = []
    for k in (0, 1):
        owners = tuple(int(number[links[k]]) for links in candidate_links(topology))
        starts = _starts(owners)
        values = jnp.asarray([owners[c] for c in starts], jnp.int32)[None, :, None]
        links.append(jnp.where(active, look_up(values, starts, chosen)[0], -1))
    # one stack: two values in memory, not one chain of selections repeated for every dof
    of_a, of_b = (((first <= link) & (link <= last)).astype(dtype) for link in stack(links))
    return fence(of_b - of_a)


def _starts(values: tuple[int, ...]) -> tuple[int, ...]:
    """Where runs of equal values begin."""
    return tuple(i for i, value in enumerate(values) if i == 0 or value != values[i - 1])


def _none(topology: Topology, worlds: int, overflow: jax.Array, dtype: jnp.dtype) -> Contacts:
    """No candidates or no slots: every slot inactive."""
    shape = (topology.max_contacts, worlds)
    zero, vector = jnp.zeros(shape, dtype), jnp.zeros((3, *shape), dtype)
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
        turning=jnp.zeros((4 if topology.angular_friction else 0, *shape), dtype),
        side=jnp.zeros((topology.nv, *shape), dtype),
        links=jnp.zeros((2, 0, worlds), jnp.int32),
        overflow=overflow,
    )
