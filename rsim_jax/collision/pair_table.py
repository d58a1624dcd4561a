"""Which shapes can touch, and how many candidate contacts each pair gets: plain Python, used at load and trace time."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsim_jax.structs import BOX, CAPSULE, CYLINDER, ELLIPSOID, HFIELD, MESH, PLANE, SPHERE

if TYPE_CHECKING:
    from rsim_jax.structs import Topology

FAR = 1e3  # m: the gap of a candidate that does not exist in this pose, such as the second contact of crossed capsules


@dataclass(frozen=True)
class Family:
    """One combination of shapes: `shapes` in the order its function takes them, `points` candidates per pair.

    `points` is None where flat faces may meet: such pairs get as many candidates as Options.manifold_points says.
    """

    name: str
    shapes: tuple[int, int]
    points: int | None

    def count(self, manifold_points: int) -> int:
        """Candidates per pair."""
        return manifold_points if self.points is None else self.points


FAMILIES: tuple[Family, ...] = (  # the order is part of the layout: topology.pair_geoms is sorted by it
    Family("plane_sphere", (PLANE, SPHERE), 1),
    Family("plane_capsule", (PLANE, CAPSULE), 2),
    Family("plane_box", (PLANE, BOX), 8),
    Family("plane_cylinder", (PLANE, CYLINDER), 4),
    Family("sphere_sphere", (SPHERE, SPHERE), 1),
    Family("sphere_capsule", (SPHERE, CAPSULE), 1),
    Family("sphere_box", (SPHERE, BOX), 1),
    Family("capsule_capsule", (CAPSULE, CAPSULE), 2),
    Family("capsule_box", (CAPSULE, BOX), 2),
    Family("sphere_cylinder", (SPHERE, CYLINDER), 1),
    Family("capsule_cylinder", (CAPSULE, CYLINDER), 2),
    Family("cylinder_cylinder", (CYLINDER, CYLINDER), None),
    Family("cylinder_box", (CYLINDER, BOX), None),
    Family("box_box", (BOX, BOX), None),
    Family("plane_ellipsoid", (PLANE, ELLIPSOID), 1),
    Family("plane_mesh", (PLANE, MESH), 4),
    Family("ellipsoid_sphere", (ELLIPSOID, SPHERE), 1),
    Family("ellipsoid_capsule", (ELLIPSOID, CAPSULE), 1),
    Family("ellipsoid_box", (ELLIPSOID, BOX), 1),
    Family("ellipsoid_cylinder", (ELLIPSOID, CYLINDER), 1),
    Family("ellipsoid_ellipsoid", (ELLIPSOID, ELLIPSOID), 1),
    Family("mesh_sphere", (MESH, SPHERE), 1),
    Family("mesh_capsule", (MESH, CAPSULE), 2),
    Family("mesh_box", (MESH, BOX), 4),
    Family("mesh_cylinder", (MESH, CYLINDER), 4),
    Family("mesh_ellipsoid", (MESH, ELLIPSOID), 1),
    Family("mesh_mesh", (MESH, MESH), 4),
    Family("field_sphere", (HFIELD, SPHERE), 3),
    Family("field_capsule", (HFIELD, CAPSULE), 5),
    Family("field_box", (HFIELD, BOX), 12),
    Family("field_cylinder", (HFIELD, CYLINDER), 8),
    Family("field_ellipsoid", (HFIELD, ELLIPSOID), 3),
    Family("field_mesh", (HFIELD, MESH), 8),
)
_INDEX = {f.shapes: i for i, f in enumerate(FAMILIES)}


def family_index(type_a: int, type_b: int) -> int | None:
    """Position in FAMILIES of two geom types in either order; None where the combination is not supported."""
    return _INDEX.get((type_a, type_b), _INDEX.get((type_b, type_a)))


def family(type_a: int, type_b: int) -> str | None:
    """Name of the family of two geom types in either order; None where the combination is not supported."""
    index = family_index(type_a, type_b)
    return None if index is None else FAMILIES[index].name


def pair_families(topology: Topology) -> tuple[int, ...]:
    """Position in FAMILIES of every pair.

    Raises:
        ValueError: for an unsupported pair, or pairs that are not sorted by family, which loading never produces.
    """
    types = topology.geom_type
    indices = [family_index(types[a], types[b]) for a, b in topology.pair_geoms]
    if any(i is None for i in indices):
        raise ValueError(f"pair {topology.pair_geoms[indices.index(None)]} has shapes that no family covers")
    if sorted(indices) != indices:
        raise ValueError("topology.pair_geoms is not sorted by family")
    return tuple(indices)


def candidates(topology: Topology) -> tuple[tuple[int, int], ...]:
    """(pair, feature) of every candidate, pair by pair."""
    families = pair_families(topology)
    return tuple(
        (pair, k) for pair, f in enumerate(families) for k in range(FAMILIES[f].count(topology.manifold_points))
    )


def candidate_pairs(topology: Topology) -> tuple[int, ...]:
    """The pair of every candidate."""
    return tuple(pair for pair, _ in candidates(topology))


def candidate_geoms(topology: Topology) -> tuple[tuple[int, int], ...]:
    """(geom a, geom b) of every candidate, a < b; the normal points from a to b."""
    return tuple(topology.pair_geoms[pair] for pair in candidate_pairs(topology))


def candidate_links(topology: Topology) -> tuple[tuple[int, int], ...]:
    """(link of geom a, link of geom b) of every candidate."""
    link = topology.geom_link
    return tuple((link[a], link[b]) for a, b in candidate_geoms(topology))


@functools.lru_cache(maxsize=256)
def penalty_topology(topology: Topology) -> Topology:
    """The same scene with its compliant pairs as the candidate pairs, for every function that goes through those."""
    return dataclasses.replace(topology, pair_geoms=topology.penalty_pairs)
