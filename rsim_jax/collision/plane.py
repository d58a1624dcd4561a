"""Planes against spheres, capsules, boxes and cylinders.

Each shape is first turned into core points with a radius: the centre of a sphere, the two ends of a capsule, the
eight corners of a box, four points of a cylinder's rims. One formula then serves them all.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.vectors import dot

# Below this sine of the tilt a cylinder counts as standing and keeps rim points that are fixed to its body: the
# direction of steepest descent is then mostly rounding.
STANDING = 1e-5


def capsule_cores(centre: jax.Array, axis: jax.Array, half_length: jax.Array) -> jax.Array:
    """The two ends, centre +- half_length axis: (3, P, N) -> (3, 2 P, N)."""
    return _features(centre, [(half_length * axis, (1, -1))])


def box_cores(centre: jax.Array, columns: jax.Array, half_size: jax.Array) -> jax.Array:
    """The eight corners; bit k of the feature chooses the side along axis k: (3, P, N) -> (3, 8 P, N)."""
    signs = [tuple(-1 if (f >> k) & 1 else 1 for f in range(8)) for k in range(3)]
    return _features(centre, [(half_size[k] * columns[k], signs[k]) for k in range(3)])


def cylinder_cores(
    centre: jax.Array, columns: jax.Array, radius: jax.Array, half_length: jax.Array, normal: jax.Array
) -> jax.Array:
    """Four rim points: the lowest, the other end of its generator, two more at 120 degrees on the lower disk.

    They carry a cylinder that stands (three points of a disk), lies (two ends of a line) or leans.

    Args:
        centre, normal: (3, P, N); columns: (axis, 3, P, N); radius, half_length: (P, W).

    Returns:
        (3, 4 P, N) m
    """
    tilt = fence(dot(columns[2], normal))
    axis = fence(jnp.where(tilt > 0, -1, 1) * columns[2])  # towards the plane
    descent = fence(-jnp.abs(tilt) * axis - normal)
    squared = fence(dot(descent, descent))
    leaning = squared >= STANDING * STANDING
    inverse = 1 / jnp.sqrt(jnp.where(leaning, squared, 1))
    lowest = fence(jnp.where(leaning, descent * inverse, columns[0]))
    sideways = [axis[(i + 1) % 3] * lowest[(i + 2) % 3] - axis[(i + 2) % 3] * lowest[(i + 1) % 3] for i in range(3)]
    return _features(
        centre,
        [
            (half_length * axis, (1, -1, 1, 1)),
            (radius * lowest, (1, 1, -0.5, -0.5)),
            (radius * stack(sideways), (0, 0, math.sqrt(0.75), -math.sqrt(0.75))),
        ],
    )


def plane_contact(
    normal: jax.Array, offset: jax.Array, core: jax.Array, radius: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Midpoint of the witness points and signed distance n . x - offset - radius of core points x.

    Args:
        normal: (3, C, N) unit, out of the plane; offset: (C, N) n . (a point of the plane).
        core: (3, C, N); radius: (C, W).

    Returns:
        (3, C, N) and (C, N), m
    """
    distance = fence(dot(normal, core) - offset - radius)
    return core - normal * (radius + 0.5 * distance), distance


def _features(centre: jax.Array, terms: list[tuple[jax.Array, tuple[float, ...]]]) -> jax.Array:
    """centre + sum of term times the feature's coefficient, features of a pair side by side: (3, P F, N)."""
    points = centre[:, :, None]
    for vector, coefficients in terms:
        points = points + jnp.asarray(coefficients, centre.dtype)[:, None] * vector[:, :, None]
    return points.reshape(3, -1, points.shape[-1])
