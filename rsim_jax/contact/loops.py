"""Loop constraints: their errors, Jacobians and targets, from the pose at the start of the step.

    pin        e = p_b - p_a                                        J = J_b(p_b) - J_a(p_a)
    weld       the same, and e = rotation vector of R_b (R_a R)^-1  J = angular Jacobian of b - that of a
    equality   e = (q1 - ref1) - sum over k of c_k (q2 - ref2)^k    J = 1 on q1, minus the polynomial's slope on q2
    rod        e = L - |p_b - p_a|                                  J = -d (J_b(p_b) - J_a(p_a)), d = direction a to b

(a rod is a stiff wire that resists both ways; its e and J have the signs of a wire's gap and row). Every equation asks
for J u+ + (what kinematic links bring) = -beta e: errors shrink by the share beta dt in each step.

Order of the equations: pins x, y, z; welds x, y, z; equalities; rods.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.contact import anchors as between
from rsim_jax.contact.anchors import Anchors, Motions
from rsim_jax.contact.elimination import Basis, loop_impulses
from rsim_jax.contact.rows import beta
from rsim_jax.contact.system import Impulses, dot_rows
from rsim_jax.lanes import quaternions, vectors
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import take, total
from rsim_jax.structs import Links, Model, State, Topology, record


class Loops:
    """E loop equations."""

    jacobian: jax.Array  # (E, nv, N), in the dof order of the motions
    error: jax.Array  # (E, N)
    carried: jax.Array  # (E, N) velocity that kinematic links bring
    target: jax.Array  # (E, N) of J u+ + carried
    point: jax.Array  # (3, rows, N) midpoint of the anchors of every report row
    direction: jax.Array  # (3, rods, N) in which a rod's impulse acts on b


Loops = record(Loops)


class LoopShares:
    """What the other rows take of the loop space, Q' y."""

    contact: jax.Array  # (K, 3, E, N)
    scalar: jax.Array  # (S, E, N)


LoopShares = record(LoopShares)


def loop_equations(model: Model, state: State, motions: Motions, links: Links) -> Loops:
    """All loop equations of the scene."""
    topology, n = model.topology, state.q.shape[-1]
    parts, points = [], []
    if topology.npin:
        pins = between.place(links, between.pair_links(topology, topology.pin_bodies), model.pin_anchor)
        parts.append(_flat(_pins(topology, state, motions, links, pins)))
        points.append(between.midpoint(pins))
        if topology.welds:
            parts.append(_flat(_welds(model, state, motions, links)))
            points.append(take(points[0], topology.welds))
    if topology.nequality:
        parts.append(_equalities(model, state, motions.dofs))
        points.append(jnp.zeros((3, topology.nequality, n), state.q.dtype))
    direction = jnp.zeros((3, 0, n), state.q.dtype)
    if topology.rods:
        rods = between.place(
            links, between.pair_links(topology, _of_rods(topology)), take(model.wire_anchor, topology.rods)
        )
        rows, direction = _rods(model, state, motions, links, rods)
        parts.append(rows)
        points.append(between.midpoint(rods))
    jacobian, error, carried = (concatenate([part[k] for part in parts]) for k in range(3))
    target = -beta(model) * error
    cap = len(topology.rods)
    if cap:  # a rod's length may be set anew at any time
        target = concatenate([target[:-cap], jnp.clip(target[-cap:], -model.max_correction, model.max_correction)])
    return Loops(jacobian, error, carried, fence(target), concatenate(points, axis=1), direction)


def _flat(parts: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    """Vector equations (3, P, ..., N) as scalar ones (3 P, ..., N)."""
    return tuple(x.reshape(-1, *x.shape[2:]) for x in parts)


def _pins(topology, state, motions, links, pins: Anchors):
    jacobian = between.relative_jacobian(topology, motions, pins)
    return jacobian, pins.b - pins.a, between.carried_velocity(topology, state, links, pins)


def _welds(model: Model, state: State, motions: Motions, links: Links):
    topology = model.topology
    pairs = tuple(between.pair_links(topology, topology.pin_bodies)[w] for w in topology.welds)
    turned = vectors.matmul(take(links.rotation, tuple(a for a, _ in pairs)), take(model.pin_rotation, topology.welds))
    difference = vectors.matmul(take(links.rotation, tuple(b for _, b in pairs)), jnp.swapaxes(turned, 0, 1))
    error = quaternions.logarithm(quaternions.from_matrix(difference))
    jacobian = between.relative_spin(topology, motions, pairs)
    shape = (3, len(pairs), len(motions.dofs), state.q.shape[-1])
    return jnp.broadcast_to(jacobian, shape), error, between.carried_spin(topology, state, pairs)


def _equalities(model: Model, state: State, dofs: tuple[int, ...]):
    topology, n = model.topology, state.q.shape[-1]
    first = tuple(a for a, _ in topology.equality_joints)
    second = tuple(max(b, 0) for _, b in topology.equality_joints)
    follows = jnp.asarray([[float(b >= 0)] for _, b in topology.equality_joints], state.q.dtype)

    def shift(joints: tuple[int, ...]) -> jax.Array:
        entries = tuple(topology.joint_qadr[j] for j in joints)
        return take(state.q, entries) - take(model.joint_ref, entries)

    x, c = shift(second) * follows, model.equality_coefficients
    value = (((c[4] * x + c[3]) * x + c[2]) * x + c[1]) * x + c[0]
    slope = ((4 * c[4] * x + 3 * c[3]) * x + 2 * c[2]) * x + c[1]
    error = fence(shift(first) - value)
    own, other = (
        jnp.asarray([[[float(dof == topology.joint_dadr[j])] for dof in dofs] for j in joints], x.dtype)
        for joints in (first, second)
    )
    jacobian = fence(jnp.broadcast_to(own - other * (follows * slope)[:, None], (len(first), len(dofs), n)))
    return jacobian, error, jnp.zeros_like(error)


def _of_rods(topology: Topology) -> tuple[tuple[int, int], ...]:
    return tuple(topology.wire_bodies[w] for w in topology.rods)


def _rods(model: Model, state: State, motions: Motions, links: Links, rods: Anchors):
    topology = model.topology
    direction, distance = between.separation(rods)
    jacobian = between.along(between.relative_jacobian(topology, motions, rods), -direction)
    carried = -vectors.dot(direction, between.carried_velocity(topology, state, links, rods))
    error = take(model.wire_length, topology.rods) - distance
    return (jacobian, fence(error), fence(carried)), -direction


def velocity(loops: Loops, u: jax.Array) -> jax.Array:
    """(E, N) of every equation at generalised velocity u (nv, N), in the dof order of the motions."""
    return fence(dot_rows(loops.jacobian, u) + loops.carried)


def impulses(basis: Basis, shares: LoopShares, other: Impulses) -> jax.Array:
    """(E, N) impulses of the loop equations beside those of the other rows."""
    taken = jnp.zeros_like(basis.s)
    for share, lam in ((shares.contact, other.contact), (shares.scalar, other.scalar)):
        rows = share.reshape(-1, *share.shape[-2:])
        if rows.shape[0]:
            flat = lam.reshape(-1, 1, lam.shape[-1])
            taken = taken + total(jnp.swapaxes(rows * flat, 0, 1))
    return loop_impulses(basis, taken)


def by_row(topology: Topology, x: jax.Array) -> jax.Array:
    """Values of equations (E, N) as vectors (3, rows, N): pins, welds, then equalities and rods in component z."""
    vector_rows = []
    start = 0
    for count in (topology.npin, len(topology.welds)):
        vector_rows.append(x[start : start + 3 * count].reshape(3, count, x.shape[-1]))
        start += 3 * count
    zero = jnp.zeros_like(x[start:])
    vector_rows.append(jnp.stack([zero, zero, x[start:]]))
    return concatenate(vector_rows, axis=1)
