"""Which pairs of a scene of many bodies are near enough to look at: boxes around the shapes, row by row.

A shape's box (axes of the world) is grown by what it can move in the step. For every row the partners whose boxes and
bounding spheres meet it are listed, at most `neighbours`, then all rows' lists are joined, at most `slots` pairs; what
does not fit sets the overflow bit. One row is compared with all its partners at once, so that memory grows with the
number of bodies, not of pairs. Against 216 balls that is 47,000 comparisons of four numbers a step, a fraction of a
microsecond a row; sorting along an axis would leave a third of them in a heap and cost more.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.collision.bounds import Bounds
from rsim_jax.collision.listing import Listing
from rsim_jax.collision.ordering import smallest
from rsim_jax.collision.poses import GeomPoses
from rsim_jax.lanes import vectors, windows
from rsim_jax.lanes.fence import fence
from rsim_jax.lanes.tree import take
from rsim_jax.structs import PLANE, record


class Near:
    """Listed pairs of one family; slots that hold none are not active."""

    row: jax.Array  # (slots, N) int32
    partner: jax.Array  # (slots, N) int32
    active: jax.Array  # (slots, N) bool
    overflow: jax.Array  # (N,) bool


Near = record(Near)


def near_pairs(listing: Listing, bounds: Bounds, poses: GeomPoses) -> Near:
    """The near pairs of a family, row by row, partners rising."""
    bounds = jax.tree.map(lax.stop_gradient, bounds)
    planes = listing.family.shapes[0] == PLANE
    hit = _near_planes(listing, bounds, poses) if planes else _near_boxes(listing, bounds)
    allowed = jnp.asarray(listing.pair >= 0)
    rows, kept = len(listing.rows), listing.neighbours

    def one_row(_: None, row: jax.Array) -> tuple[None, tuple[jax.Array, jax.Array]]:
        flags = hit(row) & allowed[row][:, None]
        count = jnp.sum(flags.astype(jnp.int32), axis=0)
        number = jnp.arange(flags.shape[0], dtype=bounds.radius.dtype)[:, None]
        found = smallest(jnp.where(flags, number, jnp.inf), kept, jnp.minimum(jnp.max(count), kept))
        return None, (found, count)

    _, (found, count) = lax.scan(one_row, None, jnp.arange(rows, dtype=jnp.int32))
    listed = jnp.minimum(count, kept)
    return _joined(listing, found, listed, jnp.any(count > kept, axis=0))


def _joined(listing: Listing, found: jax.Array, listed: jax.Array, overflow: jax.Array) -> Near:
    """One list from the lists (rows, neighbours, N) of all rows, of which the first `listed` (rows, N) count."""
    through = windows.running_sum(listed)
    available = through[-1]
    row = jnp.minimum(windows.first_reaching(through, listing.slots), len(listing.rows) - 1)
    before = jnp.take_along_axis(through - listed, row, axis=0)
    slot = jnp.arange(listing.slots, dtype=jnp.int32)[:, None]
    active = slot < available
    rank = jnp.clip(slot - before, 0, listing.neighbours - 1)
    flat = found.reshape(-1, found.shape[-1])
    partner = jnp.take_along_axis(flat, row * listing.neighbours + rank, axis=0)
    partner = jnp.minimum(partner, len(listing.partners) - 1)
    return Near(*fence((row, partner)), active, overflow | (available > listing.slots))


def _near_boxes(listing: Listing, bounds: Bounds):
    """row -> (partners, N) whether boxes and spheres meet."""
    rows, partners = (jax.tree.map(lambda x, g=geoms: take(x, g), bounds) for geoms in (listing.rows, listing.partners))

    def hit(row: jax.Array) -> jax.Array:
        centre, extent, radius = (
            lax.dynamic_slice_in_dim(x, row, 1, axis=x.ndim - 2) for x in (rows.centre, rows.extent, rows.radius)
        )
        apart = partners.centre - centre
        meet = jnp.abs(apart) <= partners.extent + extent
        reach = partners.radius + radius
        return meet[0] & meet[1] & meet[2] & (vectors.dot(apart, apart) <= reach * reach)

    return hit


def _near_planes(listing: Listing, bounds: Bounds, poses: GeomPoses):
    """row -> (planes, N) whether the row's box reaches below the plane."""
    normal, offset = poses.axis(listing.partners), poses.plane_offset(listing.partners)
    margin = take(bounds.radius, listing.partners)  # a plane has no size of its own
    rows = jax.tree.map(lambda x: take(x, listing.rows), bounds)

    def hit(row: jax.Array) -> jax.Array:
        centre, extent, radius = (
            lax.dynamic_slice_in_dim(x, row, 1, axis=x.ndim - 2) for x in (rows.centre, rows.extent, rows.radius)
        )
        reach = jnp.minimum(vectors.dot(jnp.abs(normal), extent), radius)
        return vectors.dot(normal, centre) - offset <= reach + margin

    return hit
