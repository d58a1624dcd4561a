"""Convex hulls against planes, and the vertices that stand for a hull on uneven ground."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient

from rsim_jax.collision.manifold import Corners, choose, tangents
from rsim_jax.collision.shapes import Hull, without_derivative
from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.vectors import dot

LOWEST = 4  # vertices that carry a hull


def lowest_vertices(
    hull: Hull, centre: jax.Array, columns: jax.Array, normal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The lowest vertex and up to three more that lie low and far apart, and which of the four exist.

    Args:
        hull, centre, columns: P hulls and their poses, (3, P, N) and (axis, 3, P, N).
        normal: (3, P, N) unit, upwards.

    Returns:
        (3, 4, P, N) m in the frame of the poses, and (4, P, N)
    """
    up = stop_gradient(stack([dot(columns[k], normal) for k in range(3)]))
    frame = tangents(up)
    still = without_derivative(hull)
    vertices = jnp.broadcast_to(still.vertices, (*still.vertices.shape[:3], up.shape[-1]))
    across = stack([dot(t[:, None], vertices) for t in frame])
    height = fence(dot(up[:, None], vertices))
    one, zero = jnp.ones_like(up[0]), jnp.zeros_like(up[0])
    directions = stack([stack([one, zero, -one, zero]), stack([zero, one, zero, -one])])
    chosen = choose(
        Corners(across, jnp.zeros_like(height), height, jnp.ones(height.shape, bool)), directions, still.extent
    )
    local = stop_gradient(
        fence([up[i] * chosen.high + frame[0][i] * chosen.across[0] + frame[1][i] * chosen.across[1] for i in range(3)])
    )
    vertices = centre[:, None] + stack(
        [columns[0, i] * local[0] + columns[1, i] * local[1] + columns[2, i] * local[2] for i in range(3)]
    )
    return vertices, chosen.exists
