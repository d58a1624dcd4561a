"""One evaluation of the equations of motion: kinematics, factor, forces, acceleration.

(M + W) qdd = tau + applied - c
"""

from __future__ import annotations

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
from rsim_jax.structs import Links, Model, State, record


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


FreeMotion = record(FreeMotion)


def assemble(
    model: Model, state: State, q: jax.Array, qd: jax.Array, ctrl: jax.Array, applied: jax.Array
) -> tuple[Body, jax.Array, jax.Array]:
    """(Body, qdd, lag), both (nv, N) in public order: qdd = (M + W)^-1 (tau + applied - c), lag as in gyroscopic.py."""
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
    net = fence(tau + applied - take(c, tree.dof_position))
    lag = jnp.zeros_like(qd)
    if model.topology.integrator == "rk4":  # explicit throughout
        weight = jnp.zeros_like(weight)
    elif gyroscopic.single_bodies(model.topology):
        couple, lag = gyroscopic.turn(model, links.rotation, qd, net)
        net = fence(net + couple)
    factor = matrix.factorize(tree, rows, take(weight, tree.dof_order))
    qdd = take(matrix.solve(tree, factor, take(net, tree.dof_order)), tree.dof_position)
    return Body(links, subspace, factor), qdd, lag


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
