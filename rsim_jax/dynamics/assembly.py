"""One evaluation of the equations of motion: kinematics, factor, forces, acceleration.

(M + W) qdd = tau + applied - c
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from rsim_jax.dynamics import bias, forces, gyroscopic, inertia
from rsim_jax.dynamics.algebra import algebra
from rsim_jax.dynamics.dense import DenseFactor
from rsim_jax.dynamics.kinematics import Subspace, link_poses, motion_subspace
from rsim_jax.dynamics.paths import Factor
from rsim_jax.dynamics.structure import structure
from rsim_jax.lanes.fence import fence
from rsim_jax.lanes.tree import take
from rsim_jax.structs import Links, Model, PenaltyContacts, State, record


class Body:
    """Configuration-dependent quantities of one moment: poses, motion vectors, factor of M + W; tree order inside."""

    links: Links
    subspace: Subspace
    factor: Factor | DenseFactor


Body = record(Body)


class FreeMotion:
    """A step without rows."""

    body: Body
    u: jax.Array  # (nv, N) free velocity at the end of the step, public order
    rate: jax.Array  # (nv, N) velocity that moves q, less what rows add; public order
    penalty: PenaltyContacts | None  # compliant contacts at the start, with their mean force over the step


FreeMotion = record(FreeMotion)

# (state, Body) of one evaluation -> generalised force (nv, N), public order, and the compliant contacts it comes from
Applied = Callable[[State, Body], tuple[jax.Array, PenaltyContacts | None]]


def assemble(
    model: Model, state: State, ctrl: jax.Array, applied: Applied
) -> tuple[Body, jax.Array, jax.Array, PenaltyContacts | None]:
    """(Body, qdd, lag, compliant contacts), qdd and lag (nv, N) in public order.

    qdd = (M + W)^-1 (tau + applied - c) at the state's q and qd; lag as in gyroscopic.py.
    """
    q, qd = state.q, state.qd
    tree = structure(model.topology)
    matrix = algebra(tree)
    links, rotation, position = link_poses(model, q, state.kinematic_position, state.kinematic_quaternion)
    subspace = motion_subspace(model, rotation, position)
    link_inertia = inertia.link_inertia(model, rotation, position, subspace.tree_origin)
    rows = matrix.mass_rows(model, subspace, inertia.composite(tree, link_inertia))
    motions = bias.joint_motions(tree, subspace, take(qd, tree.dof_order))
    velocity = bias.link_velocities(tree, motions)
    c = bias.bias_force(model, subspace, link_inertia, motions, velocity, model.gravity)
    diagonal = matrix.diagonal(rows) if model.nv else qd
    tau, weight = forces.applied(model, q, qd, ctrl, take(diagonal, tree.dof_position))
    explicit = model.topology.integrator == "rk4"
    weight = jnp.zeros_like(weight) if explicit else weight
    body = Body(links, subspace, matrix.factorize(tree, rows, take(weight, tree.dof_order)))
    outside, penalty = applied(state, body)
    net = fence(tau + outside - take(c, tree.dof_position))
    lag = jnp.zeros_like(qd)
    if not explicit and gyroscopic.single_bodies(model.topology):
        couple, lag = gyroscopic.turn(model, links.rotation, qd, net)
        net = fence(net + couple)
    qdd = take(matrix.solve(tree, body.factor, take(net, tree.dof_order)), tree.dof_position)
    return body, qdd, lag, penalty


def body_velocities(model: Model, body: Body, u: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(angular, linear) of the joint links in public order, about their tree's origin, from u (nv, N)."""
    tree = structure(model.topology)
    motions = bias.joint_motions(tree, body.subspace, take(u, tree.dof_order))
    velocity = bias.link_velocities(tree, motions)
    return tuple(take(part, tree.link_position) for part in velocity)


def link_reference(model: Model, body: Body) -> jax.Array:
    """The point of every joint link's tree about which its velocity is given (3, njnt, N), relative to the origin."""
    tree = structure(model.topology)
    origins = body.subspace.tree_origin
    order = tuple(tree.link_tree[tree.link_position[j]] for j in range(model.njnt))
    return take(origins, order) if order else origins[:, :0]
