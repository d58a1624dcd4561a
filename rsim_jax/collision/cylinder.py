"""Spheres and capsules against cylinders, and the geometry of one cylinder that the other pairs share.

The signed distance of a point from a convex solid is a convex function, so along a capsule's axis its slope
g(s) = axis . outward(x(s)) never falls and the deepest places are where g passes zero: found by bisection, then by
secants, in a fixed number of steps. Where the axis is parallel to the surface g stays near zero: the places where it
passes -LEVEL and +LEVEL are the ends of that part, and the capsule's two contacts.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.collision.directions import perpendicular
from rsim_jax.collision.pair_table import FAR
from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.vectors import cross, dot

LEVEL = 5e-3  # sine of the angle within which a capsule lies along a surface; misses LEVEL^2 / 2 of a radius in depth
DISTINCT = 0.1  # two points of an axis closer than this part of the radius are one contact, at the deepest place
HALVINGS, SECANTS = 8, 8


def length(v: jax.Array) -> jax.Array:
    """|v| of v (A, ...), with derivative 0 at 0."""
    squared = v[0] * v[0]
    for k in range(1, v.shape[0]):
        squared = squared + v[k] * v[k]
    positive = squared > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1)), 0)


def outward(offset: jax.Array, axis: jax.Array, radius: jax.Array, half_length: jax.Array) -> tuple[jax.Array, ...]:
    """Signed distance from a cylinder (...) and the unit direction away from it (3, ...).

    Args:
        offset: (3, ...) from the cylinder's centre; axis: (3, ...) unit.
    """
    height = dot(axis, offset)
    radial = fence(offset - height * axis)
    rho = length(radial)
    central = rho < jnp.finfo(rho.dtype).eps * radius
    rho, inverse = stack([rho, jnp.where(central, 0, 1 / jnp.where(central, 1, rho))])
    aside = jnp.where(inverse == 0, perpendicular(axis), radial * inverse)
    up = jnp.where(height >= 0, 1, -1) * axis
    beyond = stack([rho - radius, jnp.abs(height) - half_length])
    outside = jnp.maximum(beyond, 0)
    apart = length(outside)
    deepest = jnp.maximum(beyond[0], beyond[1])
    is_outside = deepest > 0
    inverse = jnp.where(is_outside, 1 / jnp.where(is_outside, apart, 1), 0)
    is_side = beyond[0] >= beyond[1]
    shares = stack(
        [
            jnp.where(is_outside, outside[0] * inverse, jnp.where(is_side, 1.0, 0.0)),
            jnp.where(is_outside, outside[1] * inverse, jnp.where(is_side, 0.0, 1.0)),
        ]
    )
    return fence(jnp.where(is_outside, apart, deepest)), fence(shares[0] * aside + shares[1] * up)


def reach(normal: jax.Array, axis: jax.Array, radius: jax.Array, half_length: jax.Array) -> jax.Array:
    """How far a cylinder extends along a unit normal from its centre; the cross product is exact near the axis."""
    return radius * length(cross(normal, axis)) + half_length * jnp.abs(dot(normal, axis))


def farthest_point(normal: jax.Array, axis: jax.Array, radius: jax.Array, half_length: jax.Array) -> jax.Array:
    """The point of a cylinder farthest along a normal, from its centre (3, ...): on the rim."""
    along = dot(normal, axis)
    radial = fence(normal - along * axis)
    size = length(radial)
    safe = size > 4 * jnp.finfo(size.dtype).eps
    aside = jnp.where(safe, radial / jnp.where(safe, size, 1), 0)
    return fence(jnp.where(along >= 0, 1, -1) * half_length * axis + radius * aside)


def sphere_cylinder(
    centre1: jax.Array, radius1: jax.Array, centre2: jax.Array, axis2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Midpoint of witness points (3, P, N), normal from sphere to cylinder (3, P, N), signed distance (P, N).

    Args:
        centre1, centre2, axis2: (3, P, N); radius1: (P, W); size2: (3, P, W) with radius and half length, m.
    """
    distance, away = outward(fence(centre1 - centre2), axis2, size2[0], size2[1])
    point = centre1 - away * (0.5 * (radius1 + distance))
    return fence(point), fence(-away), fence(distance - radius1)


def capsule_cylinder(
    centre1: jax.Array, axis1: jax.Array, size1: jax.Array, centre2: jax.Array, axis2: jax.Array, size2: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Two contacts of each pair: points (3, P, 2, N), normals from the capsule (3, P, 2, N), distances (P, 2, N).

    Args:
        centre1, axis1, centre2, axis2: (3, P, N); size1, size2: (3, P, W) with radius and half length, m.
    """
    d = fence(centre1 - centre2)
    half = jnp.broadcast_to(size1[1], d.shape[1:])
    s = _places(d, axis1, half, axis2, size2[0], size2[1])
    distinct = s[2] - s[0] > DISTINCT * size1[0]
    s = stack([jnp.where(distinct, s[0], s[1]), s[2]])
    core = fence(d[:, None] + s * axis1[:, None])
    distance, away = outward(core, axis2[:, None], size2[0], size2[1])
    point = centre2[:, None] + core - away * (0.5 * (size1[0] + distance))
    gap = distance - size1[0]
    gap = stack([gap[0], jnp.where(distinct, gap[1], FAR)], axis=-2)
    return stack([point[:, 0], point[:, 1]], axis=-2), stack([-away[:, 0], -away[:, 1]], axis=-2), gap


def _places(
    d: jax.Array, axis1: jax.Array, half1: jax.Array, axis2: jax.Array, radius: jax.Array, half2: jax.Array
) -> jax.Array:
    """Where along the capsule's axis the slope passes -LEVEL, 0 and LEVEL, (3, P, N) m.

    The derivative is that of slope(s) = level where s is inside, and the end's own share of the length else.
    """
    level = jnp.asarray([-LEVEL, 0, LEVEL], d.dtype)[:, None, None]

    def slope(s: jax.Array, *geometry: jax.Array) -> jax.Array:
        d, axis1, axis2, radius, half2 = geometry
        return dot(axis1[:, None], outward(d[:, None] + s * axis1[:, None], axis2[:, None], radius, half2)[1])

    geometry = (d, axis1, axis2, radius, half2)
    held = lax.stop_gradient(geometry)
    end = jnp.broadcast_to(lax.stop_gradient(half1), (3, *half1.shape))

    def halve(k: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        low, high, g_low, g_high = carry
        share = jnp.where(k < HALVINGS, 0.5, g_low / (g_low - g_high))
        s = fence(low + (high - low) * share)
        g = fence(slope(s, *held) - level)
        above = g > 0
        return (
            fence(jnp.where(above, low, s)),
            fence(jnp.where(above, s, high)),
            fence(jnp.where(above, g_low, g)),
            fence(jnp.where(above, g, g_high)),
        )

    low, high, g_low, g_high = lax.fori_loop(
        0, HALVINGS + SECANTS, halve, (-end, end, jnp.full_like(end, -1.1), jnp.full_like(end, 1.1))
    )
    s = low + (high - low) * (g_low / (g_low - g_high))
    s = fence(jnp.where(low == -end, -end, jnp.where(high == end, end, s)))
    inside = jnp.abs(s) < end
    g, rise = jax.jvp(lambda s: slope(s, *held), (s,), (jnp.ones_like(s),))
    steep = inside & (rise > jnp.finfo(s.dtype).eps / jnp.maximum(end, 1e-3))
    moved = jnp.where(steep, (slope(s, *geometry) - g) / jnp.where(steep, rise, 1), 0)  # 0, but not its derivative
    share = jnp.where(end > 0, s / jnp.where(end > 0, end, 1), 0)
    return fence(jnp.where(inside, s - moved, share * half1))
