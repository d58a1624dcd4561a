"""Height fields: a grid of heights, two triangles per cell, against points with a radius and against shapes.

The cell between samples (i, j) and (i + 1, j + 1) is cut along the line that joins them, as MuJoCo does. Only the cells
of a window under the shape are looked at; its size is fixed at load, its place differs per world.

A point is measured by the nearest point of the surface: above, that gives the same normal whichever of two triangles
of one plane is hit, so nothing is thrown sideways by the grid's lines. Below the surface the distance is negative.
Shapes with corners touch by their own corners, and by samples of the field that stick out of their surroundings.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.collision.pair_table import FAR
from rsim_jax.collision.reduce import largest
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.vectors import cross, dot
from rsim_jax.structs import record

SHALLOW = 1e-5  # part of a triangle by which a foot may lie outside it
BENT = 0.94  # cosine of 20 degrees: surfaces that differ less give a sphere one contact
STICKS_OUT = 1e-4  # part of the spacing by which a sample is higher than the middle of two opposite neighbours


class Field:
    """Height fields, one per pair."""

    height: jax.Array  # (T, W) m, of all fields of the model
    start: jax.Array  # (P, 1) int32, first sample of each
    columns: jax.Array  # (P, 1) int32, samples along x
    rows: jax.Array  # (P, 1) int32, samples along y
    half_size: jax.Array  # (2, P, 1) m

    @property
    def spacing(self) -> tuple[jax.Array, jax.Array]:
        """Distance of samples along x and y, (P, 1) m."""
        dtype = self.half_size.dtype
        counts = self.columns.astype(dtype), self.rows.astype(dtype)
        return tuple(2 * self.half_size[k] / (counts[k] - 1) for k in range(2))


Field = record(Field)


def window(field: Field, local: jax.Array, cells: tuple[int, int], ring: int = 0) -> tuple[jax.Array, ...]:
    """Samples around points: x (K, ...), y (L, ...) and z (L, K, ...) relative to the points, m.

    Args:
        local: (3, C, P, N) m, in the frame of the field.
        cells: (K - 1, L - 1) cells along x and y.
        ring: samples beyond the window on every side. Beyond the border of the field its last sample is repeated.
    """
    index, place = [], []
    for k, (cells_k, samples) in enumerate(zip(cells, (field.columns, field.rows), strict=True)):
        spacing = field.spacing[k]
        first = jnp.floor((jax.lax.stop_gradient(local[k]) + field.half_size[k]) / spacing - 0.5 * cells_k + 0.5)
        first = jnp.clip(first, 0, jnp.maximum(samples - 1 - cells_k, 0).astype(local.dtype)).astype(jnp.int32)
        steps = jnp.arange(-ring, cells_k + 1 + ring, dtype=jnp.int32).reshape(-1, 1, 1, 1)
        index.append(jnp.clip(first + steps, 0, samples - 1))
        place.append(index[-1].astype(local.dtype) * spacing - field.half_size[k] - local[k])
    sample = field.start + index[1][:, None] * field.columns + index[0][None]
    if field.height.shape[-1] == 1:
        z = field.height[:, 0][sample]
    else:
        flat = sample.reshape(-1, sample.shape[-1])
        z = jnp.take_along_axis(field.height, flat, axis=0).reshape(sample.shape)
    return fence(place[0]), fence(place[1]), fence(z - local[2])


def point_contacts(
    field: Field, local: jax.Array, cells: tuple[int, int], points: int = 1
) -> tuple[jax.Array, jax.Array]:
    """Normals out of the ground (3, points, C, P, N) and signed distances (points, C, P, N) of points.

    The first is the nearest place; up to two more are feet on triangles whose normals differ from those before by more
    than 20 degrees, or FAR. They are ordered by their normals, so that each keeps its slot.

    Args:
        local: (3, C, P, N) m, in the frame of the field, in which the normals are, too.
        cells: of the window around each point.
        points: 1 or 3.
    """
    a, b, c = _triangles(*window(field, local, cells))
    e1, e2 = fence((b - a, c - a))
    normal = cross(e1, e2)
    steep = dot(normal, normal)
    whole = steep > 0  # a cell beyond the border has no area
    normal = fence(normal * jax.lax.rsqrt(jnp.where(whole, steep, 1)))
    above = fence(-dot(normal, a))  # of the point, over the triangle's plane
    area = e1[0] * e2[1] - e1[1] * e2[0]  # seen from above
    foot = -above * normal - a  # from corner a
    over = -a
    inside, covering = (
        whole
        & ((v[0] * e2[1] - v[1] * e2[0]) >= -SHALLOW * area)
        & ((e1[0] * v[1] - e1[1] * v[0]) >= -SHALLOW * area)
        & ((v[0] * (e2[1] - e1[1]) - v[1] * (e2[0] - e1[0])) <= (1 + SHALLOW) * area)
        for v in (foot, over)
    )
    below = jnp.any(covering & (above < 0), axis=0)
    nearest = _nearest_edge(a, b, c)
    squared = dot(nearest, nearest)
    squared = fence(jnp.where(inside, above * above, squared * (1 + 4 * SHALLOW)))
    index = largest(-jax.lax.stop_gradient(squared))[1]
    n, h, q, is_foot = (_at(x, index) for x in (normal, above, nearest, inside.astype(local.dtype)))
    side = jnp.where(below, -1, 1)
    length2 = dot(q, q)
    apart = length2 > (1e-6 * field.spacing[0]) ** 2
    length = jnp.sqrt(jnp.where(apart, length2, 1))
    on_plane = (is_foot > 0) | ~apart
    first = stack([jnp.where(on_plane, n[i], -side * q[i] / length) for i in range(3)])
    distance = fence(jnp.where(on_plane, h, side * length))
    if points == 1:
        return first[:, None], distance[None]
    normals, distances = [first], [distance]
    for _ in range(points - 1):
        bent = inside
        for m in normals:
            bent = bent & (dot(normal, m[:, None]) < BENT)
        score, index = largest(jnp.where(bent, -squared, -FAR * FAR))
        normals.append(_at(normal, index))
        distances.append(jnp.where(score > -FAR * FAR, _at(above, index), FAR))
    return _ordered(normals, distances)


def _triangles(x: jax.Array, y: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Corners, anticlockwise from above: three of (3, 2 cells, C, P, N)."""
    shape = z.shape
    grid = stack([jnp.broadcast_to(x[None], shape), jnp.broadcast_to(y[:, None], shape), z])
    low, high = grid[:, :-1, :-1], grid[:, 1:, 1:]
    right, up = grid[:, :-1, 1:], grid[:, 1:, :-1]

    def flat(first: jax.Array, second: jax.Array) -> jax.Array:
        parts = [v.reshape(3, -1, *shape[2:]) for v in (first, second)]
        return concatenate(parts, axis=1)

    return flat(low, low), flat(right, high), flat(high, up)


def _nearest_edge(a: jax.Array, b: jax.Array, c: jax.Array) -> jax.Array:
    """The point of a triangle's boundary closest to 0."""
    best, least = None, None
    for start, end in ((a, b), (b, c), (c, a)):
        along = end - start
        length = dot(along, along)
        t = jnp.clip(-dot(start, along) / jnp.where(length > 0, length, 1), 0, 1)
        point = fence(start + t * along)
        squared = fence(dot(point, point))
        best = point if best is None else fence(jnp.where(squared < least, point, best))
        least = squared if least is None else fence(jnp.minimum(squared, least))
    return best


def _at(x: jax.Array, index: jax.Array) -> jax.Array:
    """Item index (C, P, N) of (..., T, C, P, N)."""
    index = index[(None,) * (x.ndim - 3)]
    index = jnp.broadcast_to(index, (*x.shape[:-4], 1, *x.shape[-3:]))
    return jnp.take_along_axis(x, index, axis=-4)[..., 0, :, :, :]


def _ordered(normals: list[jax.Array], distances: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Three contacts sorted by a number that depends on their normals alone, missing ones last."""
    rows = [stack([*n, d]) for n, d in zip(normals, distances, strict=True)]
    for i, j in ((0, 1), (1, 2), (0, 1)):
        keys = [jnp.where(r[3] < 0.5 * FAR, 0.8101 * r[0] + 0.5477 * r[1], 2) for r in (rows[i], rows[j])]
        swap = keys[1] < keys[0]
        rows[i], rows[j] = fence((jnp.where(swap, rows[j], rows[i]), jnp.where(swap, rows[i], rows[j])))
    return stack([r[:3] for r in rows], axis=1), stack([r[3] for r in rows])


def peaks(field: Field, local: jax.Array, cells: tuple[int, int]) -> tuple[jax.Array, jax.Array]:
    """Samples (3, L K, P, N) m around one point per pair, in the frame of the field, and which stick out.

    On a plane none does, whatever its slope.

    Args:
        local: (3, P, N) m.
    """
    x, y, z = window(field, local[:, None], cells, ring=1)
    middle = z[1:-1, 1:-1]
    least = STICKS_OUT * jnp.minimum(*field.spacing)
    out = jnp.zeros(middle.shape, bool)
    for left, right in (
        (z[1:-1, :-2], z[1:-1, 2:]),
        (z[:-2, 1:-1], z[2:, 1:-1]),
        (z[:-2, :-2], z[2:, 2:]),
    ):
        out = out | (middle - 0.5 * (left + right) > least)
    shape = middle.shape
    grid = stack([jnp.broadcast_to(x[None, 1:-1], shape), jnp.broadcast_to(y[1:-1, None], shape), middle])
    samples = grid[:, :, :, 0].reshape(3, -1, *shape[3:]) + local[:, None]
    return fence(samples), out[:, :, 0].reshape(-1, *shape[3:])
