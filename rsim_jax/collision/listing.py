"""How the pairs of a scene of many bodies are listed: plain NumPy, at trace time.

A scene of a few bodies works out every candidate pair in every step. With many bodies most pairs are far apart; each
world then keeps, family by family, a list of the pairs that are near (see broad_phase). A family's pairs form a table
of *rows* (geoms of one shape) and *partners* (geoms of the other); a pair that masks exclude is -1 in it.

The code of a contact, kept as ContactRows.index, is (row of all families, partner, feature) as one number; codes rise
along the list, so that last step's contact of the same pair and feature is found by halving.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.collision.pair_table import FAMILIES, Family, pair_families
from rsim_jax.structs import PLANE, Topology

ROW_SLOTS, SPARE_SLOTS = 4, 16  # listed pairs of a family: per row, and besides
CHUNK_SLOTS = 12  # per row of one chunk: a ball among equal ones touches at most 12
CHUNK_PAIRS = 1024  # pairs that are compared at a time
MOST_FEATURES = 16


@dataclass(frozen=True, eq=False)
class Listing:
    """The pairs of one family."""

    family: Family
    rows: tuple[int, ...]
    partners: tuple[int, ...]
    pair: np.ndarray  # (rows, partners) int32, index into topology.pair_geoms or -1
    row_is_first: bool  # rows are of the family's first shape
    points: int  # candidates of a pair
    start: int  # number of the first row among the rows of all families
    slots: int  # near pairs kept in all
    chunk: int  # rows that are compared at a time
    chunk_slots: int  # near pairs kept of a chunk

    @property
    def first(self) -> tuple[int, ...]:
        return self.rows if self.row_is_first else self.partners

    @property
    def second(self) -> tuple[int, ...]:
        return self.partners if self.row_is_first else self.rows


@functools.lru_cache(maxsize=64)
def listings(topology: Topology) -> tuple[Listing, ...]:
    """One for every family that occurs, in the order of FAMILIES."""
    families = np.asarray(pair_families(topology))
    pairs = np.asarray(topology.pair_geoms, int).reshape(-1, 2)
    found: list[Listing] = []
    for index in np.unique(families).tolist():
        members = np.flatnonzero(families == index)
        start = found[-1].start + len(found[-1].rows) if found else 0
        found.append(_listing(topology, FAMILIES[index], members, pairs[members], start))
    return tuple(found)


def _listing(topology: Topology, family: Family, members: np.ndarray, pairs: np.ndarray, start: int) -> Listing:
    types, links = np.asarray(topology.geom_type), np.asarray(topology.geom_link)
    first, second = pairs.T
    if family.shapes[0] != family.shapes[1]:
        swapped = types[first] != family.shapes[0]
        first, second = np.where(swapped, second, first), np.where(swapped, first, second)
        row_is_first = family.shapes[0] != PLANE and len(set(first)) >= len(set(second))
    else:  # what cannot move has many partners, so it is not a row
        swapped = (links[first] >= topology.njnt) & (links[second] < topology.njnt)
        first, second = np.where(swapped, second, first), np.where(swapped, first, second)
        row_is_first = True
    rows, partners = (first, second) if row_is_first else (second, first)
    row_geoms, row = np.unique(rows, return_inverse=True)
    partner_geoms, partner = np.unique(partners, return_inverse=True)
    pair = np.full((len(row_geoms), len(partner_geoms)), -1, np.int32)
    pair[row, partner] = members
    slots = min(len(members), ROW_SLOTS * len(row_geoms) + SPARE_SLOTS)
    chunk = min(len(row_geoms), max(1, CHUNK_PAIRS // len(partner_geoms)))
    whole = chunk == len(row_geoms)
    return Listing(
        family=family,
        rows=tuple(row_geoms.tolist()),
        partners=tuple(partner_geoms.tolist()),
        pair=pair,
        row_is_first=row_is_first,
        points=family.count(topology.manifold_points),
        start=start,
        slots=slots,
        chunk=chunk,
        chunk_slots=slots if whole else min(slots, chunk * min(len(partner_geoms), CHUNK_SLOTS)),
    )


def _partners_at_most(topology: Topology) -> int:
    return max(len(listing.partners) for listing in listings(topology))


def code(topology: Topology, listing: Listing, row: jax.Array, partner: jax.Array) -> jax.Array:
    """Codes (slots, points, N) of the contacts of listed pairs (slots, N)."""
    pair = ((listing.start + row) * _partners_at_most(topology) + partner) * MOST_FEATURES
    return pair[:, None] + jnp.arange(listing.points, dtype=jnp.int32)[:, None]


def geoms(topology: Topology, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(geom a, geom b) of codes that are not negative, a < b."""
    most = _partners_at_most(topology)
    rows = np.asarray([g for listing in listings(topology) for g in listing.rows], np.int32)
    table = np.zeros((len(listings(topology)), most), np.int32)
    family_of = np.repeat(np.arange(len(listings(topology))), [len(x.rows) for x in listings(topology)])
    for k, listing in enumerate(listings(topology)):
        table[k, : len(listing.partners)] = listing.partners
    pair = codes // MOST_FEATURES
    row, partner = pair // most, pair % most
    one = jnp.asarray(rows)[row]
    other = jnp.asarray(table)[jnp.asarray(family_of, jnp.int32)[row], partner]
    return jnp.minimum(one, other), jnp.maximum(one, other)
