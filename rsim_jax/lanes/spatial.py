"""Spatial algebra in world axes about a point: motions and forces as (angular, linear) pairs, inertias as 10 numbers.

Inertia of a body of mass m, centre of mass c and inertia I_c about it, about the point: (m, h, I) with h = m c and
I = I_c + m (|c|^2 1 - c c'), stored (10, n, N): m, hx, hy, hz, Ixx, Iyy, Izz, Ixy, Ixz, Iyz.
Reference: Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 2.
"""

from __future__ import annotations

import jax

from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import stack

Pair = tuple[jax.Array, jax.Array]  # (angular, linear), each (3, n, N)


def momentum(inertia: jax.Array, motion: Pair) -> Pair:
    """I v: angular I w + h x v, linear m v - h x w."""
    m, hx, hy, hz, xx, yy, zz, xy, xz, yz = (inertia[k] for k in range(10))
    w, v = motion
    angular = stack(
        [
            xx * w[0] + xy * w[1] + xz * w[2] + hy * v[2] - hz * v[1],
            xy * w[0] + yy * w[1] + yz * w[2] + hz * v[0] - hx * v[2],
            xz * w[0] + yz * w[1] + zz * w[2] + hx * v[1] - hy * v[0],
        ]
    )
    linear = stack(
        [
            m * v[0] - hy * w[2] + hz * w[1],
            m * v[1] - hz * w[0] + hx * w[2],
            m * v[2] - hx * w[1] + hy * w[0],
        ]
    )
    return angular, linear


def cross_motion(v: Pair, s: Pair) -> Pair:
    """v x s for motions: the rate of s carried along with v."""
    (w, u), (a, b) = v, s
    angular = stack([w[1] * a[2] - w[2] * a[1], w[2] * a[0] - w[0] * a[2], w[0] * a[1] - w[1] * a[0]])
    linear = stack(
        [
            w[1] * b[2] - w[2] * b[1] + u[1] * a[2] - u[2] * a[1],
            w[2] * b[0] - w[0] * b[2] + u[2] * a[0] - u[0] * a[2],
            w[0] * b[1] - w[1] * b[0] + u[0] * a[1] - u[1] * a[0],
        ]
    )
    return angular, linear


def cross_force(v: Pair, f: Pair) -> Pair:
    """v x* f for a force (or momentum) f: angular w x n + u x p, linear w x p."""
    (w, u), (n, p) = v, f
    angular = stack(
        [
            w[1] * n[2] - w[2] * n[1] + u[1] * p[2] - u[2] * p[1],
            w[2] * n[0] - w[0] * n[2] + u[2] * p[0] - u[0] * p[2],
            w[0] * n[1] - w[1] * n[0] + u[0] * p[1] - u[1] * p[0],
        ]
    )
    linear = stack([w[1] * p[2] - w[2] * p[1], w[2] * p[0] - w[0] * p[2], w[0] * p[1] - w[1] * p[0]])
    return angular, linear


def power(motion: Pair, force: Pair) -> jax.Array:
    """motion . force, the six products summed."""
    return vectors.dot(motion[0], force[0]) + vectors.dot(motion[1], force[1])
