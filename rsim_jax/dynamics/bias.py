"""Link velocities and the bias force c(q, qd) of M qdd + c = tau, by recursive Newton-Euler in world axes.

With everything about the tree's origin (a point fixed in space for this evaluation) no transforms are needed:

    V = V_parent + S qd                 A = A_parent + V_parent x S qd      (A of the root: 0 - gravity)
    f = I A + V x* I V                  F = f + sum over children F(child)
    c_k = S_k . F(link of k)

Forces from outside reach the joints by the last two lines alone (`joint_forces`).

A free joint's translation axes are fixed in space: its bias acceleration is (0, v x w).
Reference: Featherstone (2008), section 5.3.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.dynamics import dense
from rsim_jax.dynamics.inertia import composite
from rsim_jax.dynamics.kinematics import Subspace
from rsim_jax.dynamics.structure import Structure, structure
from rsim_jax.lanes import spatial
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import MANY, segment_sum, take
from rsim_jax.structs import FREE, Model

Pair = spatial.Pair


def joint_motions(tree: Structure, subspace: Subspace, qd: jax.Array) -> Pair:
    """S qd summed per link: (3, njnt, N) angular and linear, tree order; qd (nv, N) in tree order."""
    count = len(tree.link_order)
    moved = fence((subspace.angular * qd, subspace.linear * qd))
    return tuple(fence(_sum_dofs(tree, part, count)) for part in moved)


def _sum_dofs(tree: Structure, per_dof: jax.Array, count: int) -> jax.Array:
    """Sum over the dofs of every link: (3, nv, N) -> (3, count, N)."""
    if count > MANY:
        return _sum_groups(tree, per_dof, count)
    members: list[list[int]] = [[] for _ in range(count)]
    for k, link in enumerate(tree.dof_link):
        members[link].append(k)
    if all(len(m) == 1 for m in members):
        return take(per_dof, tuple(m[0] for m in members))
    order = tuple(k for m in members for k in m)
    segment = tuple(link for link, m in enumerate(members) for _ in m)
    return segment_sum(take(per_dof, order), segment, count)


def _sum_groups(tree: Structure, per_dof: jax.Array, count: int) -> jax.Array:
    """The same for many links: no two dofs of a link are in one group, so each group is added in one go."""
    summed = jnp.zeros((*per_dof.shape[:-2], count, per_dof.shape[-1]), per_dof.dtype)
    for group in tree.groups:
        part = per_dof[..., group.start : group.stop, :]
        if group.links != tuple(range(count)):
            place = {link: item for item, link in enumerate(group.links)}
            missing = len(group.links)
            part = jnp.pad(part, [(0, 0)] * (part.ndim - 2) + [(0, 1), (0, 0)])
            part = take(part, tuple(place.get(link, missing) for link in range(count)))
        summed = summed + part
    return summed


def link_velocities(tree: Structure, motions: Pair) -> Pair:
    """V of all links in tree order from their joints' motions: each the sum over the link and its ancestors."""
    if tree.deep:
        return tuple(dense.sum_ancestors(tree, part) for part in motions)
    levels: list[Pair] = []
    for depth, level in enumerate(tree.levels):
        own = tuple(part[:, level.start : level.stop] for part in motions)
        if depth:
            own = tuple(fence(part + take(above, level.parents)) for part, above in zip(own, levels[-1], strict=True))
        levels.append(own)
    return _join(levels) if levels else motions


def _join(levels: list[Pair]) -> Pair:
    return tuple(concatenate([pair[k] for pair in levels], axis=-2) for k in range(2))


def bias_force(
    model: Model, subspace: Subspace, inertia: jax.Array, motions: Pair, velocity: Pair, gravity: jax.Array
) -> jax.Array:
    """c (nv, N) in tree order; gravity (3, W), pass zeros to leave it out."""
    tree = structure(model.topology)
    if not tree.levels:
        return jnp.zeros_like(subspace.angular[0])
    acceleration = _accelerations(model, tree, motions, velocity, gravity)
    inertial = spatial.momentum(inertia, acceleration)
    carried = spatial.cross_force(velocity, spatial.momentum(inertia, velocity))
    return joint_forces(tree, subspace, tuple(fence(a + b) for a, b in zip(inertial, carried, strict=True)))


def joint_forces(tree: Structure, subspace: Subspace, force: Pair) -> jax.Array:
    """S . F (nv, N) in tree order, from the force (moment, force) on every link about its tree's origin, tree order."""
    below = tuple(composite(tree, part) for part in force)
    motion = (subspace.angular, subspace.linear)
    return fence(spatial.power(motion, tuple(take(part, tree.dof_link) for part in below)))


def _accelerations(model: Model, tree: Structure, motions: Pair, velocity: Pair, gravity: jax.Array) -> Pair:
    """A of all links for qdd = 0."""
    topology = model.topology
    own: list[Pair] = []
    for depth, level in enumerate(tree.levels):
        items = slice(level.start, level.stop)
        joint = tuple(part[:, items] for part in motions)
        if depth:
            carrier = tuple(take(part[:, _slice(tree, depth - 1)], level.parents) for part in velocity)
            angular, linear = spatial.cross_motion(carrier, joint)
            own.append((angular, linear))
        else:
            free = jnp.asarray([float(topology.joint_type[j] == FREE) for j in level.joints], joint[0].dtype)
            _, carried = spatial.cross_motion((jnp.zeros_like(joint[0]), joint[1]), joint)  # v x w
            own.append((jnp.zeros_like(joint[0]), fence(carried * free[:, None] - gravity[:, None])))
    return link_velocities(tree, _join(own))


def _slice(tree: Structure, depth: int) -> slice:
    return slice(tree.levels[depth].start, tree.levels[depth].stop)
