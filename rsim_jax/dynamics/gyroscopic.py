"""Gyroscopic torque of single bodies, free or on a ball joint, by the implicit midpoint rule.

Explicit integration of w x I w gains energy at every step and lets a fast, slender body blow up. The midpoint rule

    I (w+ - w) + dt w_m x I w_m = 0,   w_m = (w + w+)/2      (body axes)

keeps w' I w and |I w| exactly, at any speed; I is about the centre of mass of a free body, about the anchor of a ball.
Three Newton steps solve it to rounding for dt |w| < 1. The bias force already holds the explicit torque; what is
returned is the difference, a pure couple, so it only enters the three rotation dofs. Links of larger trees keep the
explicit term: their inertia is not constant.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.tree import take
from rsim_jax.structs import BALL, FREE, Model, Topology

NEWTON_STEPS = 3


def single_bodies(topology: Topology) -> tuple[int, ...]:
    """Free and ball joints that are a whole tree."""
    parents = set(topology.joint_parent)
    return tuple(
        j
        for j, kind in enumerate(topology.joint_type)
        if kind in (FREE, BALL) and j not in parents and topology.joint_parent[j] >= topology.njnt
    )


def _first_rotation(topology: Topology, joint: int) -> int:
    """The first of the joint's three rotation dofs."""
    return topology.joint_dadr[joint] + (3 if topology.joint_type[joint] == FREE else 0)


def _inertia(model: Model, bodies: tuple[int, ...]) -> jax.Array:
    """(6, n, W) body axes, about the centre of mass or the anchor."""
    topology = model.topology
    about_com = take(model.link_inertia, bodies)
    on_ball = jnp.asarray([[float(topology.joint_type[j] == BALL)] for j in bodies], about_com.dtype)
    arm = take(model.link_com, bodies) - take(model.joint_anchor, bodies)
    mass = take(model.link_mass, bodies) * on_ball
    x, y, z = arm[0], arm[1], arm[2]
    shift = [y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z]
    return about_com + mass * jnp.stack(jnp.broadcast_arrays(*shift))


def correction(model: Model, qd: jax.Array) -> jax.Array:
    """Change of the bias force (nv, N) in public order that makes the gyroscopic torque implicit."""
    topology = model.topology
    bodies = single_bodies(topology)
    omega = jnp.stack([take(qd, tuple(_first_rotation(topology, j) + k for j in bodies)) for k in range(3)])
    inertia = _inertia(model, bodies)
    explicit = vectors.cross(omega, _apply(inertia, omega))
    after = omega
    for _ in range(NEWTON_STEPS):
        after = _newton(inertia, omega, after, model.dt)
    implicit = _apply(inertia, fence(omega - after)) / model.dt
    couple = fence(implicit - explicit)
    return _scatter(topology, bodies, couple)


def _apply(inertia: jax.Array, v: jax.Array) -> jax.Array:
    xx, yy, zz, xy, xz, yz = (inertia[k] for k in range(6))
    return stack(
        [xx * v[0] + xy * v[1] + xz * v[2], xy * v[0] + yy * v[1] + yz * v[2], xz * v[0] + yz * v[1] + zz * v[2]]
    )


def _newton(inertia: jax.Array, before: jax.Array, after: jax.Array, dt: jax.Array) -> jax.Array:
    """One Newton step on I (w+ - w) + dt w_m x I w_m = 0; Jacobian I + dt/2 ([w_m] I - [I w_m])."""
    xx, yy, zz, xy, xz, yz = (inertia[k] for k in range(6))
    middle = fence(0.5 * (before + after))
    spin = _apply(inertia, middle)
    residual = fence(_apply(inertia, fence(after - before)) + dt * vectors.cross(middle, spin))
    h = 0.5 * dt
    a, s = middle, spin
    rows = [
        [
            xx + h * (a[1] * xz - a[2] * xy),
            xy + h * (a[1] * yz - a[2] * yy + s[2]),
            xz + h * (a[1] * zz - a[2] * yz - s[1]),
        ],
        [
            xy + h * (a[2] * xx - a[0] * xz - s[2]),
            yy + h * (a[2] * xy - a[0] * yz),
            yz + h * (a[2] * xz - a[0] * zz + s[0]),
        ],
        [
            xz + h * (a[0] * xy - a[1] * xx + s[1]),
            yz + h * (a[0] * yy - a[1] * xy - s[0]),
            zz + h * (a[0] * yz - a[1] * xz),
        ],
    ]
    jacobian = [fence(jnp.stack(jnp.broadcast_arrays(*row))) for row in rows]
    c01, c12, c20 = (vectors.cross(jacobian[i], jacobian[(i + 1) % 3]) for i in range(3))
    determinant = vectors.dot(jacobian[0], c12)
    solution = (c12 * residual[0] + c20 * residual[1] + c01 * residual[2]) / determinant
    return fence(after - solution)


def _scatter(topology: Topology, bodies: tuple[int, ...], couple: jax.Array) -> jax.Array:
    """Place the couples of the chosen joints in an (nv, N) array of zeros."""
    n = couple.shape[-1]
    parts, filled = [], 0
    for item, joint in enumerate(bodies):
        start = _first_rotation(topology, joint)
        parts += [jnp.zeros((start - filled, n), couple.dtype), couple[:, item]]
        filled = start + 3
    parts.append(jnp.zeros((topology.nv - filled, n), couple.dtype))
    return concatenate(parts, axis=0)
