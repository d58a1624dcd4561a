"""From pairs of geoms to the functions that know shapes: planes, hulls, ellipsoids and height fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from rsim_jax.collision import plane, terrain
from rsim_jax.collision.convex import convex_contact
from rsim_jax.collision.field import Field
from rsim_jax.collision.hull import lowest_vertices
from rsim_jax.collision.manifold import flat
from rsim_jax.collision.pair_table import FAR
from rsim_jax.collision.poses import GeomPoses
from rsim_jax.collision.shapes import Box, Cylinder, Ellipsoid, Hull, Point, Segment, Shape
from rsim_jax.lanes.fence import fence, stack
from rsim_jax.lanes.tree import take
from rsim_jax.lanes.vectors import dot
from rsim_jax.structs import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE

if TYPE_CHECKING:
    from rsim_jax.collision.narrow_phase import Contact, Group


def shape_of(poses: GeomPoses, geoms: tuple[int, ...]) -> Shape:
    """The shapes of geoms of one type."""
    kind, size = poses.topology.geom_type[geoms[0]], poses.size(geoms)
    if kind == SPHERE:
        return Point(size[0])
    if kind == CAPSULE:
        return Segment(size[1], size[0])
    if kind == BOX:
        return Box(size)
    if kind == CYLINDER:
        return Cylinder(size[0], size[1])
    if kind == ELLIPSOID:
        return Ellipsoid(size)
    return hull_of(poses, geoms)


def hull_of(poses: GeomPoses, geoms: tuple[int, ...]) -> Hull:
    """The hulls of mesh geoms."""
    model = poses.model
    rows = tuple(poses.topology.geom_hull[g] for g in geoms)
    return Hull(
        vertices=take(model.hull_vertices, rows),
        normals=take(model.hull_normals, rows),
        offsets=take(model.hull_offsets, rows),
        polygons=take(model.hull_polygons, rows),
        edge_vectors=take(model.hull_edges, rows),
        extent=take(model.hull_extent, rows),
    )


def field_of(poses: GeomPoses, geoms: tuple[int, ...]) -> Field:
    """The height fields of geoms."""
    topology = poses.topology
    rows = tuple(topology.geom_field[g] for g in geoms)
    counts = [n * m for n, m in topology.field_shape]
    starts, lines, columns = (
        jnp.asarray([values[f] for f in rows], jnp.int32)[:, None]
        for values in (
            [sum(counts[:f]) for f in range(len(counts))],
            [n for n, _ in topology.field_shape],
            [m for _, m in topology.field_shape],
        )
    )
    return Field(poses.model.field_height, starts, columns, lines, take(poses.model.field_half_size, rows))


def searched(poses: GeomPoses, group: Group) -> Contact:
    """Two convex shapes, closest points by search."""
    return convex_contact(
        shape_of(poses, group.first),
        shape_of(poses, group.second),
        poses.centre(group.first),
        poses.columns(group.first),
        poses.centre(group.second),
        poses.columns(group.second),
        group.points,
    )


def plane_hull(poses: GeomPoses, group: Group) -> Contact:
    """The four vertices that carry a hull."""
    normal = poses.axis(group.first)
    vertices, exists = lowest_vertices(
        hull_of(poses, group.second), poses.centre(group.second), poses.columns(group.second), normal
    )
    vertices, exists = flat(vertices), flat(exists)
    planes = group.each(group.first)
    normal = poses.axis(planes)
    zero = jnp.zeros((vertices.shape[1], 1), vertices.dtype)
    point, distance = plane.plane_contact(normal, poses.plane_offset(planes), vertices, zero)
    return point, jnp.broadcast_to(normal, point.shape), jnp.where(exists, distance, FAR)


def ellipsoid_core(poses: GeomPoses, group: Group) -> tuple[jax.Array, jax.Array]:
    """The lowest point of an ellipsoid over a plane, radius 0."""
    normal, columns = poses.axis(group.first), poses.columns(group.second)
    support = Ellipsoid(poses.size(group.second)).support(-stack([dot(columns[k], normal) for k in range(3)]))
    offset = stack(
        [columns[0, i] * support[0] + columns[1, i] * support[1] + columns[2, i] * support[2] for i in range(3)]
    )
    return fence(poses.centre(group.second) + offset), jnp.zeros((len(group.first), 1), normal.dtype)


def on_field(poses: GeomPoses, group: Group) -> Contact:
    """A shape on height fields: its own points, then samples that stick out, if any."""
    field, shape = field_of(poses, group.first), shape_of(poses, group.second)
    at, body = (terrain.Pose(poses.centre(g), poses.columns(g)) for g in (group.first, group.second))
    of_points, of_body = poses.cells(group.first, group.second)
    if isinstance(shape, Point):
        return terrain.joined(terrain.on_points(field, at, body.centre[:, None], shape.radius, of_points, group.points))
    cores, exists = _cores(shape, field, at, body)
    middle, normal, gap = terrain.on_points(field, at, cores, shape.radius, of_points)
    own = middle, normal, gap if exists is None else jnp.where(exists, gap, FAR)
    return terrain.joined(own, terrain.on_samples(field, at, shape, body, of_body, group.points - cores.shape[1]))


def _cores(shape: Shape, field: Field, at: terrain.Pose, body: terrain.Pose) -> tuple[jax.Array, jax.Array | None]:
    """Points (3, C, P, N) of a shape, inside its radius, that rest on the ground, and which exist."""
    centre, columns = body
    if isinstance(shape, Segment):
        ends = shape.half_length * columns[2]
        return stack([centre - ends, centre, centre + ends], axis=1), None
    if isinstance(shape, Box):
        return _items(plane.box_cores(centre, columns, shape.half_size), 8), None
    if isinstance(shape, Ellipsoid):
        return terrain.lowest_of_ellipsoid(field, at, shape, body), None
    normal = terrain.ground_normal(field, at, centre[:, None])
    if isinstance(shape, Cylinder):
        return _items(plane.cylinder_cores(centre, columns, shape.rim, shape.half_length, normal), 4), None
    return lowest_vertices(shape, centre, columns, normal)


def _items(x: jax.Array, count: int) -> jax.Array:
    """(3, P C, N), pair by pair -> (3, C, P, N)."""
    return jnp.swapaxes(x.reshape(3, -1, count, x.shape[-1]), 1, 2)
