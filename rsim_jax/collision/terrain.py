"""Shapes on height fields: points of the shape with a radius against the ground, samples of the ground against it.

On flat ground these are the contacts of a plane. Normals point from the field to the shape. A ridge that crosses an
edge of a shape between its corners and between samples is not seen.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rsim_jax.collision import field as ground
from rsim_jax.collision.manifold import Corners, choose, flat
from rsim_jax.collision.pair_table import FAR
from rsim_jax.collision.shapes import Box, Cylinder, Ellipsoid, Hull, Segment
from rsim_jax.lanes.fence import concatenate, fence, stack
from rsim_jax.lanes.vectors import dot

POINT_CELLS = (2, 2)  # window of a point without radius
UPWARDS = 0.1  # least share of a sample's push that must lift the shape


class Pose(NamedTuple):
    """Centres (3, P, N) m and axes (axis, 3, P, N) in world axes."""

    centre: jax.Array
    columns: jax.Array

    def local(self, x: jax.Array) -> jax.Array:
        """(3, C, P, N) points in this frame."""
        away = x - self.centre[:, None]
        return stack([dot(self.columns[k][:, None], away) for k in range(3)])

    def world(self, v: jax.Array) -> jax.Array:
        """(3, ..., P, N) vectors in world axes."""
        return stack(
            [self.columns[0, i] * v[0] + self.columns[1, i] * v[1] + self.columns[2, i] * v[2] for i in range(3)]
        )


Contacts = tuple[jax.Array, jax.Array, jax.Array]  # (3, C, P, N), (3, C, P, N), (C, P, N)


def on_points(
    field: ground.Field, at: Pose, cores: jax.Array, radius: jax.Array, cells: tuple[int, int], points: int = 1
) -> Contacts:
    """Spheres around points (3, C, P, N) against the ground; `points` contacts of each, C outermost.

    Args:
        at: poses of the fields.
        radius: (P, W) m.
        cells: window around each point.
    """
    normal, distance = ground.point_contacts(field, at.local(cores), cells, points)
    normal = at.world(normal)
    centre = cores[:, None]
    middle = centre - 0.5 * (jnp.where(distance < 0.5 * FAR, distance, 0) + radius) * normal
    gap = jnp.where(distance < 0.5 * FAR, distance - radius, FAR)
    return tuple(x.reshape(*x.shape[:-4], -1, *x.shape[-2:]) for x in (middle, normal, gap))


def on_samples(
    field: ground.Field,
    at: Pose,
    shape: Segment | Box | Cylinder | Ellipsoid | Hull,
    body: Pose,
    cells: tuple[int, int],
    points: int,
) -> Contacts:
    """Samples that stick out of the ground against a shape, the `points` that are deep and far apart.

    Args:
        at, body: poses of the fields and of the shapes.
        cells: window that covers the shape.
        points: 2 or 4.
    """
    centre = at.local(body.centre[:, None])[:, 0]
    samples, sticks_out = ground.peaks(field, centre, cells)
    distance, outward = shape.clearance(body.local(at.centre[:, None] + at.world(samples)))
    lifts = dot(-body.world(outward), at.columns[2][:, None]) > UPWARDS
    one, zero = jnp.ones_like(centre[0]), jnp.zeros_like(centre[0])
    directions = [[one, zero], [-one, zero], [zero, one], [zero, -one]]
    directions = [directions[k] for k in ((0, 1) if points == 2 else (0, 2, 1, 3))]
    directions = stack([stack([d[k] for d in directions]) for k in range(2)])
    candidates = Corners(samples[:2], samples[2], samples[2] + distance, sticks_out & lifts)
    chosen = choose(candidates, directions, shape.extent)
    chosen_sample = stack([chosen.across[0], chosen.across[1], chosen.low])
    world = at.centre[:, None] + at.world(chosen_sample)
    distance, outward = shape.clearance(body.local(world))
    any_exists = jnp.any(candidates.exists, axis=0)
    normal = -body.world(outward)
    return world + 0.5 * distance * normal, normal, fence(jnp.where(chosen.exists & any_exists, distance, FAR))


def lowest_of_ellipsoid(field: ground.Field, at: Pose, shape: Ellipsoid, body: Pose) -> jax.Array:
    """The point (3, 1, P, N) of an ellipsoid that is nearest to the ground, by following the normal there."""
    point = body.centre[:, None]
    for _ in range(3):
        normal = ground_normal(field, at, point)
        support = shape.support(-stack([dot(body.columns[k], normal) for k in range(3)]))
        point = (body.centre + body.world(support))[:, None]
    return point


def ground_normal(field: ground.Field, at: Pose, point: jax.Array) -> jax.Array:
    """Normal of the ground (3, P, N) nearest to points (3, 1, P, N), world axes, a constant."""
    normal, _ = ground.point_contacts(field, at.local(jax.lax.stop_gradient(point)), POINT_CELLS)
    return jax.lax.stop_gradient(at.world(normal[:, 0, 0]))


def joined(*parts: Contacts) -> Contacts:
    """Contacts side by side, flattened pair by pair: (3, P C, N), (3, P C, N), (P C, N)."""
    return tuple(flat(concatenate([p[k] for p in parts], axis=-3)) for k in range(3))
