"""Signed distance of two convex shapes, by support functions alone, the same number of steps in every world.

With n a unit vector from shape A to shape B, the gap between the planes that bound A along n and B against it is

    s(n) = min over b in B of n . b - max over a in A of n . a,

and the signed distance is the largest s(n): the distance of separate shapes, minus the least shift that parts
overlapping ones. Seen as differences w = b - a, s(n) is where a plane bounds the set D of all w along n.

Separate shapes: the point of D closest to 0 gives n. It is sought in the triangle of three points of D, replaced
one at a time by the support point along n (Gilbert, Johnson and Keerthi 1988); as 0 is outside, three suffice.

Overlapping shapes: B is moved along the best direction n0 so far, until the gap along it is a small positive one, and
the closest point is sought for the moved shape. If its direction n1 is another one, then s(n1) > s(n0), as moving by
t n0 changes s(n1) by no more than t. Repeating this climbs to a maximum. The start is the best of the normals of all
faces, the ends of all axes and the line of centres, so that of several maxima the highest is found.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.collision.reduce import largest, pick
from rsim_jax.collision.shapes import Point, Segment, Shape
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.vectors import cross, dot

STEPS, CURVED_STEPS = 7, 9  # support points per round of polyhedra, and where a shape is curved
# Gap of the moved shapes, round by round, as part of the smaller one's size: a large one sees past ridges between
# maxima, a small one ends at the top of one. The last is still large against rounding, or n would have few digits.
LIFTS = (1.0, 0.2, 0.02)
EDGE_PAIRS = 400  # crossing edges tried from the start; more than two boxes or a box and a prism have
PARALLEL = 1e-4  # sine below which two edges do not cross
NOISE = 16  # units of rounding by which s(n) must grow to count


class Nearest(NamedTuple):
    """Where two shapes are closest or deepest."""

    normal: jax.Array  # (3, P, N) unit, from a to b, in the frame of a
    on_a: jax.Array  # (3, P, N) m, in the frame of a
    on_b: jax.Array  # (3, P, N) m, in the frame of b
    distance: jax.Array  # (P, N) m, of the cores
    carrier: jax.Array  # (P, N) 1: the normal is that of a face of a, 2: of b, 0: neither


class _Search(NamedTuple):
    normal: jax.Array
    best: jax.Array
    value: jax.Array
    shift: jax.Array
    squared: jax.Array
    weights: jax.Array  # (3 corner, P, N)
    a: jax.Array  # (3, 3 corner, P, N) support points in their own frames
    b: jax.Array
    w: jax.Array  # differences in the frame of a, without the shift


def nearest(a: Shape, b: Shape, position: jax.Array, rotation: jax.Array) -> Nearest:
    """Closest points of the cores of a and b.

    Args:
        a, b: P shapes each.
        position: (3, P, N) m, frame of b in that of a.
        rotation: (3, 3, P, N).
    """
    dtype = position.dtype
    size = jnp.maximum(a.extent, b.extent)
    noise = NOISE * jnp.finfo(dtype).eps * (size + jnp.sqrt(dot(position, position)))
    smaller = jnp.where((a.extent > 0) & (b.extent > 0), jnp.minimum(a.extent, b.extent), size)
    best, value = _start(a, b, position, rotation)
    pairs = partial(_support, a, b, position, rotation)
    steps = CURVED_STEPS if a.curved or b.curved else STEPS
    zeros, corners = jnp.zeros_like(position), jnp.zeros((3, 3, *position.shape[1:]), dtype)
    state = _Search(best, best, value, zeros, value, corners[0], corners, corners, corners)
    state = lax.fori_loop(0, len(LIFTS) * steps, partial(_step, pairs, smaller, noise, steps), state)
    on_a, on_b = (fence(dot(jnp.moveaxis(x, 1, 0), state.weights[:, None])) for x in (state.a, state.b))
    normal, value, carrier = _on_faces(a, b, position, rotation, state.best, state.value, noise)
    return Nearest(normal, on_a, on_b, value, carrier)


def turned(rotation: jax.Array, v: jax.Array) -> jax.Array:
    """R v, (3, 3, P, N) and (3, ..., P, N)."""
    return stack([rotation[i, 0] * v[0] + rotation[i, 1] * v[1] + rotation[i, 2] * v[2] for i in range(3)])


def turned_back(rotation: jax.Array, v: jax.Array) -> jax.Array:
    """R' v."""
    return stack([rotation[0, i] * v[0] + rotation[1, i] * v[1] + rotation[2, i] * v[2] for i in range(3)])


def _support(a, b, position, rotation, normal):
    """Support points of a along n, of b against it, their difference."""
    on_a = a.support(normal)
    on_b = b.support(turned_back(rotation, -normal))
    return on_a, on_b, fence(position + turned(rotation, on_b) - on_a)


def _start(a: Shape, b: Shape, position: jax.Array, rotation: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The best of the directions worth trying, and s there."""
    shape = position.shape[1:]
    length = jnp.sqrt(dot(position, position))
    up = jnp.asarray([0, 0, 1], position.dtype)[:, None, None]
    centres = jnp.where(length > 0, position / jnp.where(length > 0, length, 1), up)
    directions = [centres[:, None]]
    values = [(length - a.height(centres) - b.height(turned_back(rotation, -centres)))[None]]
    own = a.probes(isinstance(b, Point | Segment))
    if own is not None:
        normal, height = own
        along = dot(normal, position[:, None])
        against = b.height(turned_back(rotation, -normal))
        values.append(along - height - against)
        directions.append(jnp.broadcast_to(normal, (*normal.shape[:2], *shape)))
    own = b.probes(isinstance(a, Point | Segment))
    if own is not None:
        normal = turned(rotation, -own[0])
        values.append(dot(normal, position[:, None]) - a.height(normal) - own[1])
        directions.append(normal)
    crossed = _crossed_edges(a, b, position, rotation)
    if crossed is not None:
        directions.append(crossed[0])
        values.append(crossed[1])
    values = concatenate([fence(jnp.broadcast_to(v, (v.shape[0], *shape))) for v in values])
    value, index = largest(values)
    return pick(concatenate(directions, axis=1), index), fence(value)


def _crossed_edges(a: Shape, b: Shape, position: jax.Array, rotation: jax.Array):
    """Normals of crossing edges (3, E_a E_b, P, N) and s there, very small where two edges do not bound D.

    Two edges span a face of D where the common perpendicular lies between the normals of the faces at the edge of a,
    and its opposite between those at the edge of b.
    """
    of_a, of_b = a.edges(), b.edges()
    if of_a is None or of_b is None or of_a.along.shape[1] * of_b.along.shape[1] > EDGE_PAIRS:
        return None
    along_a, point_a = of_a.along[:, :, None], of_a.point[:, :, None]
    along_b = turned(rotation, of_b.along)[:, None]
    point_b = (position[:, None] + turned(rotation, of_b.point))[:, None]
    across = fence(cross(*jnp.broadcast_arrays(along_a, along_b)))
    squared = dot(across, across)
    crossing = squared > PARALLEL * PARALLEL
    normal = across * lax.rsqrt(jnp.where(crossing, squared, 1))
    if of_a.normals is not None:
        sides_a = of_a.normals[:, :, :, None]
        outward = dot(normal, sides_a[0] + sides_a[1])
    else:
        outward = dot(normal, point_b - point_a)
    normal = fence(jnp.where(outward >= 0, normal, -normal))
    if of_a.normals is not None:
        crossing = crossing & _between(normal, sides_a)
    if of_b.normals is not None:
        crossing = crossing & _between(-normal, stack([turned(rotation, m)[:, None] for m in of_b.normals]))
    value = fence(jnp.where(crossing, dot(normal, point_b - point_a), -jnp.finfo(normal.dtype).max))
    return normal.reshape(3, -1, *normal.shape[3:]), value.reshape(-1, *value.shape[2:])


def _between(normal: jax.Array, sides: jax.Array) -> jax.Array:
    """Whether a unit vector in the plane of two others lies between them: it leans on both more than they on it."""
    cosine = dot(sides[0], sides[1])
    return (dot(normal, sides[0]) >= cosine) & (dot(normal, sides[1]) >= cosine)


def _step(pairs, size, noise, steps, k, state: _Search) -> _Search:
    """One more support point; every `steps` of them B is moved again and the triangle starts anew."""
    anew = k % steps == 0
    lift = jnp.asarray(LIFTS, size.dtype)[k // steps] * size
    normal = jnp.where(anew, state.best, state.normal)
    shift = jnp.where(anew, jnp.maximum(lift - state.value, 0) * state.best, state.shift)
    on_a, on_b, w = pairs(normal)
    value = fence(dot(normal, w))
    better = value > state.value + noise
    best, reached = fence((jnp.where(better, normal, state.best), jnp.where(better, value, state.value)))
    squared, point, weights, edge = _closest(w + shift, state.w + shift[:, None])
    improved = anew | (squared < state.squared)
    point = jnp.where(anew, w + shift, point)
    weights = jnp.where(anew, jnp.asarray([1, 0, 0], w.dtype)[:, None, None], weights)
    corners = [
        jnp.where(improved, stack([new, *_pair(old, edge, anew, new)], axis=1), old)
        for old, new in ((state.a, on_a), (state.b, on_b), (state.w, w))
    ]
    squared = jnp.where(anew, dot(point, point), squared)
    inverse = lax.rsqrt(jnp.maximum(dot(point, point), jnp.finfo(w.dtype).tiny))
    return _Search(
        normal=fence(jnp.where(improved, point * inverse, normal)),
        best=best,
        value=reached,
        shift=fence(shift),
        squared=fence(jnp.where(improved, squared, state.squared)),
        weights=fence(jnp.where(improved, weights, state.weights)),
        a=fence(corners[0]),
        b=fence(corners[1]),
        w=fence(corners[2]),
    )


def _pair(x: jax.Array, edge: jax.Array, anew: jax.Array, new: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The two old corners that stay: `edge` and the one after it."""
    first = _one_of([x[:, 0], x[:, 1], x[:, 2]], edge)
    second = _one_of([x[:, 1], x[:, 2], x[:, 0]], edge)
    return jnp.where(anew, new, first), jnp.where(anew, new, second)


def _one_of(parts: list[jax.Array], index: jax.Array) -> jax.Array:
    return jnp.where(index == 0, parts[0], jnp.where(index == 1, parts[1], parts[2]))


def _closest(new: jax.Array, old: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Closest point to 0 of the three triangles that a new corner forms with the edges of the old triangle.

    Args:
        new: (3, P, N); old: (3, 3 corner, P, N).

    Returns:
        squared distance (P, N), point (3, P, N), weights of new, first and second corner (3, P, N), edge (P, N)
    """
    first, second = old, old[:, (1, 2, 0), :, :]
    corner = new[:, None]
    e1, e2 = fence((first - corner, second - corner))
    normal = cross(e1, e2)
    area = fence(dot(normal, normal))
    long = fence((dot(e1, e1), dot(e2, e2)))
    flat = area <= 1e2 * jnp.finfo(new.dtype).eps ** 2 * long[0] * long[1]
    inverse = jnp.where(flat, 0, 1 / jnp.where(flat, 1, area))
    at_first = dot(cross(e2, jnp.broadcast_to(corner, e1.shape)), normal) * inverse
    at_second = dot(cross(jnp.broadcast_to(corner, e1.shape), e1), normal) * inverse
    height = dot(normal, jnp.broadcast_to(corner, e1.shape)) * inverse
    at_first, at_second, height = fence((at_first, at_second, height))
    inside = ~flat & (at_first >= 0) & (at_second >= 0) & (at_first + at_second <= 1)
    along = jnp.clip(-dot(corner, e1) / jnp.where(long[0] > 0, long[0], 1), 0, 1)
    at_first, at_second = fence((jnp.where(inside, at_first, along), jnp.where(inside, at_second, 0)))
    point = fence(jnp.where(inside, height * normal, corner + along * e1))
    squared = fence(dot(point, point))
    edge = jnp.where(squared[1] < squared[0], 1, 0)
    least = jnp.minimum(squared[0], squared[1])
    edge = fence(jnp.where(squared[2] < least, 2, edge).astype(jnp.int32))
    weights = stack([1 - at_first - at_second, at_first, at_second])
    chosen = [_one_of([x[..., k, :, :] for k in range(3)], edge) for x in (point, weights)]
    return jnp.minimum(least, squared[2]), chosen[0], chosen[1], edge


def _on_faces(a, b, position, rotation, normal, value, noise):
    """The normal of the nearest face of a or b instead, where it is as good."""
    carrier = jnp.zeros(value.shape, jnp.int32)
    if a.faced:
        face, _ = a.face(normal)
        reached = dot(face, position) - a.height(face) - b.height(turned_back(rotation, -face))
        good = reached >= value - noise
        normal, value = fence((jnp.where(good, face, normal), jnp.where(good, reached, value)))
        carrier = jnp.where(good, 1, carrier)
    if b.faced:
        face = turned(rotation, -b.face(turned_back(rotation, -normal))[0])
        reached = dot(face, position) - a.height(face) - b.height(turned_back(rotation, -face))
        good = (reached >= value - noise) & (carrier == 0)
        normal, value = fence((jnp.where(good, face, normal), jnp.where(good, reached, value)))
        carrier = jnp.where(good, 2, carrier)
    return normal, value, carrier
