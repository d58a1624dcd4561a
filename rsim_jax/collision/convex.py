"""Contacts of two convex shapes in any poses, from their closest points and the faces that look at each other.

The search is not differentiated. Its result, two points fixed to the bodies and a normal fixed to the body whose face
it belongs to, is carried by the poses: the derivative of the gap is then n . (db - da), which is exact because the
signed distance is stationary in n. Normals that belong to no face are constants.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient

from rsim_jax.collision.distance import nearest, turned, turned_back
from rsim_jax.collision.manifold import Corners, choose, face_overlap, flat, tangents
from rsim_jax.collision.pair_table import FAR
from rsim_jax.collision.shapes import Segment, Shape, without_derivative
from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.vectors import dot


def convex_contact(
    a: Shape,
    b: Shape,
    centre_a: jax.Array,
    columns_a: jax.Array,
    centre_b: jax.Array,
    columns_b: jax.Array,
    points: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Midpoints of the witness points, normals from a to b, signed distances; FAR where there is no contact.

    Args:
        a, b: P shapes each.
        centre_a, centre_b: (3, P, N) m; columns_a, columns_b: (axis, 3, P, N), their axes in the same frame.
        points: contacts per pair: 1; 2 where b is a segment; 4 between shapes with faces.

    Returns:
        (3, points P, N), (3, points P, N), (points P, N), pair by pair
    """
    away = fence(centre_b - centre_a)
    position = stack([dot(columns_a[k], away) for k in range(3)])
    rotation = stack([stack([dot(columns_a[i], columns_b[j]) for j in range(3)]) for i in range(3)])
    position, rotation = stop_gradient((position, rotation))
    still_a, still_b = without_derivative(a), without_derivative(b)
    on_a, on_b, normal, carrier, exists = _search(still_a, still_b, position, rotation, points)
    on_a, on_b, normal, carrier, exists = stop_gradient((on_a, on_b, normal, carrier, exists))
    p = _carried(a, still_a, centre_a, columns_a, on_a)
    q = _carried(b, still_b, centre_b, columns_b, on_b)
    normal = _carried_normal(columns_a, columns_b, normal, rotation, carrier)
    radius_a, radius_b = a.radius, b.radius
    distance = fence(dot(normal[:, None], q - p))
    middle = 0.5 * (p + q) + 0.5 * (radius_a - radius_b) * normal[:, None]
    gap = jnp.where(exists, distance - radius_a - radius_b, FAR)
    normals = jnp.broadcast_to(normal[:, None], middle.shape)
    return flat(middle), flat(normals), flat(gap)


def _search(a: Shape, b: Shape, position: jax.Array, rotation: jax.Array, points: int):
    """Points fixed to a and b (3, K, P, N), normal (3, P, N) in a and who carries it, and which points exist."""
    found = nearest(a, b, position, rotation)
    normal = found.normal
    first, second = frame = tangents(normal)
    witness_b = fence(position + turned(rotation, found.on_b))
    low = fence(0.5 * (dot(normal, found.on_a) + dot(normal, witness_b)) - 0.5 * found.distance)
    middle = 0.5 * (found.on_a + witness_b)
    at = stack([dot(first, middle), dot(second, middle)])
    witness = Corners(at[:, None], low[None], (low + found.distance)[None], jnp.ones((1, *low.shape), bool))
    if points == 1:
        chosen = witness
    else:
        face_b, polygon_b = b.face(turned_back(rotation, -normal))
        other = turned(rotation, face_b), position[:, None] + turned(rotation, polygon_b)
        size = jnp.maximum(a.extent, b.extent)
        corners = face_overlap(a.face(normal), other, normal, frame, size)
        corners = corners._replace(high=fence(jnp.maximum(corners.high, corners.low + found.distance)))
        chosen = choose(corners, _directions(b, frame, rotation, points), size, witness)
    across = fence([first[i] * chosen.across[0] + second[i] * chosen.across[1] for i in range(3)])
    on_a = stack([across[i] + normal[i] * chosen.low for i in range(3)])
    on_b = stack([across[i] + normal[i] * chosen.high for i in range(3)])
    return on_a, turned_back(rotation, on_b - position[:, None]), normal, found.carrier, chosen.exists


def _directions(b: Shape, frame: tuple[jax.Array, jax.Array], rotation: jax.Array, points: int) -> jax.Array:
    """Where contacts are sought, (2, points, P, N): four ways across the normal, both ways along a segment."""
    if isinstance(b, Segment):
        along = stack([dot(t, rotation[:, 2]) for t in frame])
        return stack([along, -along], axis=1)
    assert points == 4
    one = jnp.ones_like(frame[0][0])
    zero = jnp.zeros_like(one)
    return stack([stack([one, zero, -one, zero]), stack([zero, one, zero, -one])])


def _carried(shape: Shape, still: Shape, centre: jax.Array, columns: jax.Array, local: jax.Array) -> jax.Array:
    """World positions (3, K, P, N) of points fixed to a body, which follow its sizes."""
    local = local * (shape.scale / still.scale)[:, None]
    return centre[:, None] + stack(
        [columns[0, i] * local[0] + columns[1, i] * local[1] + columns[2, i] * local[2] for i in range(3)]
    )


def _carried_normal(columns_a, columns_b, normal, rotation, carrier):
    """The normal in world axes, fixed to the body of its face."""
    local = fence(turned_back(rotation, normal))
    still = stop_gradient(columns_a)
    axes = jnp.where(carrier == 1, columns_a, still)
    of_a, of_b = (
        fence([c[0, i] * v[0] + c[1, i] * v[1] + c[2, i] * v[2] for i in range(3)])
        for c, v in ((axes, normal), (columns_b, local))
    )
    return stack([jnp.where(carrier == 2, y, x) for x, y in zip(of_a, of_b, strict=True)])
