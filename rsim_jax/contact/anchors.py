"""Two points on two links: where they are and how dofs move one against the other.

For dof i with motion (w_i, l_i) about its tree's origin o, and point p on a link that it moves,

    dp/dqd_i = l_i + w_i x (p - o)

Which dofs move a link is known at trace time, so it is a constant mask. A kinematic link adds its own velocity; the
world adds none.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import fence
from rsim_jax.lanes.tree import take
from rsim_jax.structs import VELOCITY_WIDTHS, Links, State, Topology, record


class Motions:
    """Motion vectors of all dofs, in the order of `dofs`."""

    angular: jax.Array  # (3, nv, N)
    linear: jax.Array  # (3, nv, N), about `origin`
    origin: jax.Array  # (3, nv, N), relative to the origin of the step
    dofs: tuple[int, ...]  # static: public dof of each


Motions = record(Motions, static=("dofs",))


class Anchors:
    """P pairs of points, relative to the origin."""

    a: jax.Array  # (3, P, N)
    b: jax.Array  # (3, P, N)
    links: tuple[tuple[int, int], ...]  # static: the links that carry them


Anchors = record(Anchors, static=("links",))


def pair_links(topology: Topology, bodies: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The links of pairs of bodies."""
    return tuple((topology.body_link[a], topology.body_link[b]) for a, b in bodies)


def place(links: Links, pairs: tuple[tuple[int, int], ...], local: jax.Array) -> Anchors:
    """Anchors given in link frames, local (3, 2, P, 1)."""
    points = []
    for side in (0, 1):
        owners = tuple(pair[side] for pair in pairs)
        points.append(take(links.position, owners) + vectors.rotate(take(links.rotation, owners), local[:, side]))
    return Anchors(*fence(tuple(points)), links=pairs)


def relative_jacobian(topology: Topology, motions: Motions, anchors: Anchors) -> jax.Array:
    """d(velocity of b - velocity of a)/dqd (3, P, nv, N), world axes."""
    shape = (*anchors.a.shape[:2], len(motions.dofs), anchors.a.shape[-1])
    total = jnp.zeros(shape, anchors.a.dtype)
    for side, sign, points in ((0, -1, anchors.a), (1, 1, anchors.b)):
        mask = sign * _mask(topology, motions.dofs, anchors.links, side)
        if mask.any():
            arm = fence(points[:, :, None] - motions.origin[:, None])
            rows = motions.linear[:, None] + vectors.cross(motions.angular[:, None], arm)
            total = total + jnp.asarray(mask, points.dtype) * rows
    return fence(total)


def relative_spin(topology: Topology, motions: Motions, pairs: tuple[tuple[int, int], ...]) -> jax.Array:
    """d(angular velocity of b - that of a)/dqd (3, P, nv, N), world axes."""
    total = _mask(topology, motions.dofs, pairs, 1) - _mask(topology, motions.dofs, pairs, 0)
    return fence(jnp.asarray(total, motions.angular.dtype) * motions.angular[:, None])


def _mask(topology: Topology, dofs: tuple[int, ...], pairs: tuple[tuple[int, int], ...], side: int) -> np.ndarray:
    """(P, nv, 1): 1 where the dof moves the link of that side."""
    owner = [j for j, kind in enumerate(topology.joint_type) for _ in range(VELOCITY_WIDTHS[kind])]
    mask = np.zeros((len(pairs), len(dofs), 1))
    for p, pair in enumerate(pairs):
        moved = _chain(topology, pair[side])
        mask[p, :, 0] = [owner[dof] in moved for dof in dofs]
    return mask


def _chain(topology: Topology, link: int) -> set[int]:
    """The joint links from one to its root."""
    chain = set()
    while link < topology.njnt:
        chain.add(link)
        link = topology.joint_parent[link]
    return chain


def carried_velocity(topology: Topology, state: State, links: Links, anchors: Anchors) -> jax.Array:
    """Velocity of b relative to a that kinematic links bring (3, P, N), world axes."""
    total = jnp.zeros_like(anchors.a)
    for k in range(topology.nkin):
        link = topology.njnt + k
        for side, sign, points in ((0, -1.0, anchors.a), (1, 1.0, anchors.b)):
            here = _owned(anchors.links, side, link)
            if not here.any():
                continue
            arm = points - links.position[:, link : link + 1]
            spin = jnp.broadcast_to(state.kinematic_angular_velocity[:, k : k + 1], arm.shape)
            velocity = state.kinematic_velocity[:, k : k + 1] + vectors.cross(spin, arm)
            total = total + jnp.asarray(sign * here, total.dtype) * velocity
    return fence(total)


def carried_spin(topology: Topology, state: State, pairs: tuple[tuple[int, int], ...]) -> jax.Array:
    """Angular velocity of b relative to a that kinematic links bring (3, P, N), world axes."""
    total = jnp.zeros((3, len(pairs), state.q.shape[-1]), state.q.dtype)
    for k in range(topology.nkin):
        here = _owned(pairs, 1, topology.njnt + k) - _owned(pairs, 0, topology.njnt + k)
        total = total + jnp.asarray(here, total.dtype) * state.kinematic_angular_velocity[:, k : k + 1]
    return fence(total)


def _owned(pairs: tuple[tuple[int, int], ...], side: int, link: int) -> np.ndarray:
    """(P, 1): 1 where the link is on that side."""
    return np.array([[float(pair[side] == link)] for pair in pairs])


def along(jacobian: jax.Array, direction: jax.Array) -> jax.Array:
    """Rows (P, nv, N) of a relative Jacobian (3, P, nv, N) along directions (3, P, N)."""
    return fence(vectors.dot(direction[:, :, None], jacobian))


def separation(anchors: Anchors) -> tuple[jax.Array, jax.Array]:
    """(unit direction from a to b (3, P, N), distance (P, N)); upwards where the points coincide."""
    up = jnp.asarray([0.0, 0.0, 1.0], anchors.a.dtype)[:, None, None]
    return vectors.normalize(fence(anchors.b - anchors.a), up)


def midpoint(anchors: Anchors) -> jax.Array:
    """(3, P, N) between the anchors."""
    return fence(0.5 * (anchors.a + anchors.b))
