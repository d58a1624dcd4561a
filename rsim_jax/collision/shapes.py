"""Convex shapes in their own frames: support points, faces and directions worth trying.

The support function of a shape is h(d) = max d . x over its points x, the support point one x that attains it. A shape
is a core with a radius: a sphere is a point, a capsule a segment, the others have radius 0. All arrays have the pair
and the world last, (..., P, W); directions may have items before them, (3, ..., P, N).

`scale` tells how a point moves with the sizes of its shape: x / scale stays when a size changes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.collision.directions import direction
from rsim_jax.collision.pair_table import FAR
from rsim_jax.collision.reduce import largest, pick
from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.vectors import dot
from rsim_jax.structs import record

PROBES = 32  # faces of a hull tried from the start against shapes whose support is a search itself
RIM = 8  # corners of the polygon that stands for the end of a cylinder


class Edges(NamedTuple):
    """Edges of a polyhedron, E of them."""

    along: jax.Array  # (3, E, P, W) unit
    point: jax.Array  # (3, E, P, W) m, on the edge
    normals: jax.Array | None  # (2, 3, E, P, W) of the two faces; None: all directions across the edge are normal


class Point:
    """A sphere: its centre and radius (P, W), m."""

    radius: jax.Array
    curved, faced = False, False

    def edges(self) -> None:
        """None."""

    def support(self, d: jax.Array) -> jax.Array:
        """The centre."""
        return jnp.zeros_like(d)

    def height(self, d: jax.Array) -> jax.Array:
        """Zero: h of the centre."""
        return jnp.zeros_like(d[0])

    def probes(self, many: bool) -> tuple[jax.Array, jax.Array] | None:
        """None: no direction is better than another."""
        del many

    @property
    def extent(self) -> jax.Array:
        """Radius of the core about its frame (P, W), m."""
        return jnp.zeros_like(self.radius)

    @property
    def scale(self) -> jax.Array:
        """(3, P, W)."""
        return jnp.ones((3, *self.radius.shape), self.radius.dtype)


class Segment:
    """A capsule: half length along z and radius, (P, W) m."""

    half_length: jax.Array
    radius: jax.Array
    curved, faced = False, False

    def support(self, d: jax.Array) -> jax.Array:
        """An end, or the centre while d is perpendicular to the axis."""
        leaning = d[2] * d[2] > _TIE * dot(d, d)
        zero = jnp.zeros_like(d[2])
        return stack([zero, zero, jnp.where(leaning, jnp.sign(d[2]), 0) * self.half_length])

    def height(self, d: jax.Array) -> jax.Array:
        """h(d) of the core."""
        return self.half_length * jnp.abs(d[2])

    def probes(self, many: bool) -> tuple[jax.Array, jax.Array] | None:
        """None."""
        del many

    def edges(self) -> Edges:
        """The axis; any direction across it is normal to the core there."""
        zero = jnp.zeros((3, 1, *self.half_length.shape), self.half_length.dtype)
        return Edges(zero + jnp.asarray([0, 0, 1], zero.dtype)[:, None, None, None], zero, None)

    def face(self, d: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Normal across the axis towards d (3, P, N), and the two ends (3, 2, P, N)."""
        radial = _radial(d)
        half = jnp.broadcast_to(self.half_length, d.shape[1:])
        zero = jnp.zeros_like(half)
        ends = stack([zero, zero, half])
        return stack([radial[0], radial[1], zero]), stack([-ends, ends], axis=1)

    def clearance(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Signed distance from the surface (M, P, N) of points (3, M, P, N), and the direction out there."""
        zero = jnp.zeros_like(x[2])
        away = stack([x[0], x[1], x[2] - jnp.clip(x[2], -self.half_length, self.half_length)])
        outward, length = direction(away, stack([jnp.ones_like(zero), zero, zero]))
        return length - self.radius, outward

    @property
    def extent(self) -> jax.Array:
        """Radius of the core about its frame (P, W), m."""
        return self.half_length

    @property
    def scale(self) -> jax.Array:
        """(3, P, W)."""
        return stack([jnp.ones_like(self.half_length)] * 2 + [self.half_length])


class Box:
    """Half edge lengths (3, P, W), m."""

    half_size: jax.Array
    curved, faced = False, True

    def support(self, d: jax.Array) -> jax.Array:
        """A corner."""
        return jnp.where(d >= 0, 1, -1) * _lift(self.half_size, d)

    def height(self, d: jax.Array) -> jax.Array:
        """h(d)."""
        return dot(jnp.abs(d), _lift(self.half_size, d))

    def probes(self, many: bool) -> tuple[jax.Array, jax.Array]:
        """The six face normals (3, 6, P, W) and h there."""
        del many
        return _axes(self.half_size)

    def edges(self) -> Edges:
        """All twelve."""
        signs = [(k, i, j) for k in range(3) for i in (1, -1) for j in (1, -1)]
        unit = np.eye(3)
        along = np.array([unit[k] for k, _, _ in signs])
        first = np.array([i * unit[(k + 1) % 3] for k, i, _ in signs])
        second = np.array([j * unit[(k + 2) % 3] for k, _, j in signs])
        dtype = self.half_size.dtype
        along, first, second = (jnp.asarray(x.T[:, :, None, None], dtype) for x in (along, first, second))
        point = (first + second) * self.half_size[:, None]
        along, first, second = (jnp.broadcast_to(x, point.shape) for x in (along, first, second))
        return Edges(along, point, stack([first, second]))

    def face(self, d: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Normal and corners, anticlockwise about it, of the face most across d: (3, P, N), (3, 4, P, N)."""
        size = jnp.abs(d)
        is_x = (size[0] >= size[1]) & (size[0] >= size[2])
        is_y = ~is_x & (size[1] >= size[2])
        chosen = [is_x, is_y, ~is_x & ~is_y]
        side = jnp.where(d >= 0, 1, -1).astype(d.dtype)
        normal = stack([jnp.where(chosen[k], side[k], 0) for k in range(3)])
        sign = normal[0] + normal[1] + normal[2]
        zero = jnp.zeros_like(sign)
        first = stack([jnp.where(chosen[(k - 1) % 3], sign, zero) for k in range(3)])  # turns with the side
        second = stack([jnp.where(chosen[(k - 2) % 3], 1, zero) for k in range(3)])
        corners = [(normal + i * first + j * second) * self.half_size for i, j in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
        return normal, stack(corners, axis=1)

    def clearance(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Signed distance from the surface (M, P, N) of points (3, M, P, N), and the direction out there."""
        return _outside(stack([jnp.abs(x[k]) - self.half_size[k] for k in range(3)]), jnp.where(x >= 0, 1, -1))

    @property
    def radius(self) -> jax.Array:
        """Zero."""
        return jnp.zeros_like(self.half_size[0])

    @property
    def extent(self) -> jax.Array:
        """Half diagonal (P, W), m."""
        return jnp.sqrt(dot(self.half_size, self.half_size))

    @property
    def scale(self) -> jax.Array:
        """(3, P, W)."""
        return self.half_size


class Cylinder:
    """Radius and half length along z, (P, W) m."""

    rim: jax.Array
    half_length: jax.Array
    curved, faced = True, True

    def edges(self) -> None:
        """None that are straight."""

    def support(self, d: jax.Array) -> jax.Array:
        """A point of a rim, or the centre of an end while d is along the axis."""
        across = d[0] * d[0] + d[1] * d[1]
        leaning = across > _TIE * d[2] * d[2]
        inverse = jnp.where(leaning, self.rim / jnp.sqrt(jnp.where(leaning, across, 1)), 0)
        return stack([d[0] * inverse, d[1] * inverse, jnp.where(d[2] >= 0, 1, -1) * self.half_length])

    def height(self, d: jax.Array) -> jax.Array:
        """h(d)."""
        return self.rim * jnp.sqrt(d[0] * d[0] + d[1] * d[1]) + self.half_length * jnp.abs(d[2])

    def probes(self, many: bool) -> tuple[jax.Array, jax.Array]:
        """Both ends and four sides."""
        del many
        return _axes(stack([self.rim, self.rim, self.half_length]))

    def face(self, d: jax.Array) -> tuple[jax.Array, jax.Array]:
        """An end as a polygon of RIM corners, or the generator towards d, seen as a polygon without width."""
        side = jnp.where(d[2] >= 0, 1, -1).astype(d.dtype)
        standing = d[2] * d[2] > d[0] * d[0] + d[1] * d[1]
        radial = _radial(d)
        normal = stack([jnp.where(standing, 0, radial[0]), jnp.where(standing, 0, radial[1]), standing * side])
        corners = []
        for k in range(RIM):
            x, y = math.cos(2 * math.pi * k / RIM), math.sin(2 * math.pi * k / RIM)
            low = 1 if k < RIM // 2 else -1
            corners.append(
                stack(
                    [
                        self.rim * jnp.where(standing, x, radial[0]),
                        self.rim * jnp.where(standing, y * side, radial[1]),
                        self.half_length * jnp.where(standing, side, low),
                    ]
                )
            )
        return normal, stack(corners, axis=1)

    def clearance(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Signed distance from the surface (M, P, N) of points (3, M, P, N), and the direction out there."""
        zero = jnp.zeros_like(x[0])
        radial, length = direction(stack([x[0], x[1], zero]), stack([jnp.ones_like(zero), zero, zero]))
        beyond = stack([length - self.rim, jnp.full_like(zero, -FAR), jnp.abs(x[2]) - self.half_length])
        distance, out = _outside(beyond, jnp.ones_like(beyond))
        return distance, stack([radial[0] * out[0], radial[1] * out[0], jnp.where(x[2] >= 0, 1, -1) * out[2]])

    @property
    def radius(self) -> jax.Array:
        """Zero."""
        return jnp.zeros_like(self.rim)

    @property
    def extent(self) -> jax.Array:
        """(P, W) m."""
        return jnp.sqrt(self.rim * self.rim + self.half_length * self.half_length)

    @property
    def scale(self) -> jax.Array:
        """(3, P, W)."""
        return stack([self.rim, self.rim, self.half_length])


class Ellipsoid:
    """Radii (3, P, W), m. With r the radii, h(d) = |r d| and the support point is r^2 d / h."""

    radii: jax.Array
    curved, faced = True, False

    def edges(self) -> None:
        """None that are straight."""

    def support(self, d: jax.Array) -> jax.Array:
        """r^2 d / h."""
        radii = _lift(self.radii, d)
        scaled = radii * d
        return radii * scaled * jax.lax.rsqrt(dot(scaled, scaled))

    def height(self, d: jax.Array) -> jax.Array:
        """|r d|."""
        scaled = _lift(self.radii, d) * d
        return jnp.sqrt(dot(scaled, scaled))

    def probes(self, many: bool) -> tuple[jax.Array, jax.Array]:
        """The ends of the axes."""
        del many
        return _axes(self.radii)

    def clearance(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Distance to first order (M, P, N) of points (3, M, P, N): exact at the surface, and the direction out."""
        scaled = x / self.radii[:, None]
        squared = dot(scaled, scaled)
        off = squared > _TIE
        level = jnp.sqrt(jnp.where(off, squared, 1))
        up = stack([jnp.zeros_like(level), jnp.zeros_like(level), jnp.ones_like(level)])
        gradient = jnp.where(off, scaled / self.radii[:, None], up)
        length = jnp.sqrt(dot(gradient, gradient))
        return jnp.where(off, level * (level - 1) / length, -self.extent), gradient / length

    @property
    def radius(self) -> jax.Array:
        """Zero."""
        return jnp.zeros_like(self.radii[0])

    @property
    def extent(self) -> jax.Array:
        """Largest radius (P, W), m."""
        return jnp.maximum(jnp.maximum(self.radii[0], self.radii[1]), self.radii[2])

    @property
    def scale(self) -> jax.Array:
        """(3, P, W)."""
        return self.radii


class Hull:
    """A convex polyhedron; shorter lists are filled up with copies, which change nothing."""

    vertices: jax.Array  # (3, V, P, W) m
    normals: jax.Array  # (3, F, P, W) unit, outward; the first PROBES are spread over all directions
    offsets: jax.Array  # (F, P, W) m, normal . x on the face
    polygons: jax.Array  # (3, E, F, P, W) m, corners of each face, anticlockwise about its normal
    edge_vectors: jax.Array  # (3, 4, E, P, W) of each edge: unit direction, a point (m), normals of its two faces
    extent: jax.Array  # (P, W) m
    curved, faced = False, True

    def support(self, d: jax.Array) -> jax.Array:
        """The vertex farthest along d (3, P, N)."""
        return pick(self.vertices, largest(_dots(self.vertices, d))[1])

    def height(self, d: jax.Array) -> jax.Array:
        """h(d), d (3, ..., P, N)."""
        return largest(_dots(self.vertices, d))[0]

    def probes(self, many: bool) -> tuple[jax.Array, jax.Array]:
        """Face normals and h there: all with `many`, else the first PROBES."""
        count = self.normals.shape[1] if many else PROBES
        return self.normals[:, :count], self.offsets[:count]

    def edges(self) -> Edges:
        """All edges."""
        vectors = self.edge_vectors
        return Edges(vectors[:, 0], vectors[:, 1], jnp.swapaxes(vectors[:, 2:], 0, 1))

    def face(self, d: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Normal and corners of the face most across d: (3, P, N), (3, E, P, N)."""
        index = largest(_dots(self.normals, d))[1]
        return pick(self.normals, index), pick(self.polygons, index)

    def clearance(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Largest distance from the faces' planes (M, P, N) of points (3, M, P, N): exact inside and above faces."""
        offsets = self.offsets[:, None]
        value, index = largest(_dots(self.normals, x) - offsets)
        count, pairs = x.shape[1], x.shape[2]
        rows = index.reshape(1, count * pairs, -1)
        normals = jnp.broadcast_to(self.normals[:, :, None], (*self.normals.shape[:2], count, *self.normals.shape[2:]))
        normals = normals.reshape(3, -1, count * pairs, self.normals.shape[-1])
        return value, pick(normals, rows[0]).reshape(x.shape)

    @property
    def radius(self) -> jax.Array:
        """Zero."""
        return jnp.zeros_like(self.extent)

    @property
    def scale(self) -> jax.Array:
        """(3, P, W)."""
        return jnp.ones((3, *self.extent.shape), self.extent.dtype)


Point, Segment, Box, Cylinder, Ellipsoid, Hull = (record(c) for c in (Point, Segment, Box, Cylinder, Ellipsoid, Hull))
Shape = Point | Segment | Box | Cylinder | Ellipsoid | Hull

_TIE = 1e-12  # square of the sine below which a direction counts as exactly along or across an axis


def without_derivative(shape: Shape) -> Shape:
    """The same shape as constants."""
    return jax.tree.map(jax.lax.stop_gradient, shape)


def _lift(size: jax.Array, d: jax.Array) -> jax.Array:
    """Sizes (3, P, W) with the items that directions d (3, ..., P, N) have before the pair."""
    return size.reshape(3, *(1,) * (d.ndim - 3), *size.shape[1:])


def _dots(points: jax.Array, d: jax.Array) -> jax.Array:
    """points . d over (3, V, P, W) and (3, ..., P, N): (V, ..., P, N)."""
    points = points.reshape(*points.shape[:2], *(1,) * (d.ndim - 3), *points.shape[2:])
    return dot(points, d[:, None])


def _radial(d: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Unit vector of (x, y), (1, 0) along the axis."""
    across = d[0] * d[0] + d[1] * d[1]
    leaning = across > _TIE * d[2] * d[2]
    inverse = jax.lax.rsqrt(jnp.where(leaning, across, 1))
    x, y = fence((d[0] * inverse, d[1] * inverse))
    return jnp.where(leaning, x, 1), jnp.where(leaning, y, 0)


def _outside(beyond: jax.Array, side: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Signed distance from a box and the direction out, from |x| - h (3, ...) and the side of x."""
    deepest = jnp.maximum(jnp.maximum(beyond[0], beyond[1]), beyond[2])
    first = beyond[0] >= deepest
    second = ~first & (beyond[1] >= deepest)
    face = stack([first, second, ~first & ~second]).astype(beyond.dtype)
    outward, length = direction(fence(side * jnp.maximum(beyond, 0)), fence(side * face))
    return length + jnp.minimum(deepest, 0), outward


def _axes(size: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Plus and minus the three axes (3, 6, P, W), and the sizes along them (6, P, W)."""
    unit = jnp.concatenate([jnp.eye(3, dtype=size.dtype), -jnp.eye(3, dtype=size.dtype)], axis=1)
    directions = jnp.broadcast_to(unit[:, :, None, None], (3, 6, *size.shape[1:]))
    return directions, jnp.concatenate([size, size])
