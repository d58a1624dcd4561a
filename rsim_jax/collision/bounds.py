"""Boxes along the world's axes and spheres around every geom, grown by its motion in the step.

    sphere: r       capsule: |a| l + r       cylinder: |a| l + r sqrt(1 - a^2)       box: sum over k of |c_k| h_k

per axis of the world; a the shape's axis, c_k its columns, l half its length, h its half sizes. A point of the shape
moves by at most dt (|v| + |omega| radius).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rsim_jax.collision.poses import GeomPoses
from rsim_jax.lanes import vectors
from rsim_jax.lanes.fence import concatenate, fence
from rsim_jax.lanes.tree import take
from rsim_jax.structs import BOX, CAPSULE, CYLINDER, PLANE, SPHERE, LinkVelocity, Model, record


class Bounds:
    """Around every geom: centre, half extents along the world's axes, radius; grown by the motion of the step."""

    centre: jax.Array  # (3, ngeom, N), relative to the origin
    extent: jax.Array  # (3, ngeom, N)
    radius: jax.Array  # (ngeom, N)


Bounds = record(Bounds)


def bounds(model: Model, poses: GeomPoses, velocity: LinkVelocity | None) -> Bounds:
    """Of all geoms in public order; those in no pair, and planes, have size zero. `velocity` None: as they stand."""
    topology = model.topology
    used = sorted({g for pair in topology.pair_geoms for g in pair})
    n = poses.centre(tuple(used)).shape[-1]
    by_type: list[tuple[int, ...]] = []
    parts = []
    for kind in sorted({topology.geom_type[g] for g in used}):
        geoms = tuple(g for g in used if topology.geom_type[g] == kind)
        by_type.append(geoms)
        extent, radius = _size(kind, poses, geoms)
        parts.append(
            (
                poses.centre(geoms),
                jnp.broadcast_to(extent, (3, len(geoms), n)),
                jnp.broadcast_to(radius, (len(geoms), n)),
            )
        )
    rest = tuple(g for g in range(topology.ngeom) if g not in set(used))
    zero = jnp.zeros((3, len(rest), n), model.dtype)
    parts.append((zero, zero, zero[0]))
    place = {g: i for i, g in enumerate([g for geoms in by_type for g in geoms] + list(rest))}
    order = tuple(place[g] for g in range(topology.ngeom))
    centre, extent, radius = (take(concatenate(list(x), axis=-2), order) for x in zip(*parts, strict=True))
    margin = 0.5 * jnp.max(model.pair_margin, initial=0)
    grow = margin if velocity is None else margin + _motion(model, velocity, centre, radius)
    reach = margin if velocity is None else vectors.safe_norm(grow)
    return Bounds(*fence((centre, extent + grow, radius + reach)))


def _size(kind: int, poses: GeomPoses, geoms: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """(half extents (3, item, N), radius (item, N)) of geoms of one type."""
    size = poses.size(geoms)
    match kind:
        case k if k == PLANE:
            return jnp.zeros_like(size), jnp.zeros_like(size[0])
        case k if k == SPHERE:
            return jnp.broadcast_to(size[0], size.shape), size[0]
        case k if k == CAPSULE:
            return jnp.abs(poses.axis(geoms)) * size[1] + size[0], size[0] + size[1]
        case k if k == CYLINDER:
            along = poses.columns(geoms)[2]
            across = jnp.sqrt(jnp.maximum(1 - along * along, 0))
            return jnp.abs(along) * size[1] + across * size[0], jnp.sqrt(size[0] ** 2 + size[1] ** 2)
        case k if k == BOX:
            columns = jnp.abs(poses.columns(geoms))
            extent = columns[0] * size[0] + columns[1] * size[1] + columns[2] * size[2]
            return extent, jnp.sqrt(vectors.dot(size, size))
    raise ValueError(f"no bounds for geom type {kind}")


def _motion(model: Model, velocity: LinkVelocity, centre: jax.Array, radius: jax.Array) -> jax.Array:
    """How far each geom can get along each axis in the step: (3, ngeom, N)."""
    links = model.topology.geom_link
    angular = take(velocity.angular, links)
    arm = fence(centre - take(velocity.reference, links))
    linear = take(velocity.linear, links) + vectors.cross(angular, arm)
    return model.dt * (jnp.abs(linear) + vectors.safe_norm(angular) * radius)
