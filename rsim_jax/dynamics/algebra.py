"""Which form of the mass matrix a topology gets: along the paths of the tree, or dense for deep trees."""

from __future__ import annotations

from types import ModuleType

from rsim_jax.dynamics import dense, paths
from rsim_jax.dynamics.structure import Structure


def algebra(tree: Structure) -> ModuleType:
    """`paths` or `dense`: mass_rows, diagonal, full_matrix, factorize, solve, whiten, unwhiten."""
    return dense if tree.deep else paths
