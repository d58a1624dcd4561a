"""The table of shape pairs and the layout of the candidates."""

from __future__ import annotations

import dataclasses

import pytest
from posed_scenes import scene

from rsim_jax.collision import pair_table
from rsim_jax.structs import BOX, HFIELD, PLANE, SPHERE


def test_family_is_the_same_in_either_order():
    assert pair_table.family(PLANE, BOX) == pair_table.family(BOX, PLANE) == "plane_box"
    assert pair_table.family(SPHERE, SPHERE) == "sphere_sphere"


@pytest.mark.parametrize("pair", [(PLANE, PLANE), (HFIELD, HFIELD), (PLANE, HFIELD)])
def test_unsupported_pairs_have_no_family(pair):
    assert pair_table.family(*pair) is None


def test_candidates_follow_pairs_then_features():
    model, _ = scene('type="plane" size="1 1 1"', 'type="capsule" size="0.1 0.2"', 'type="sphere" size="0.1"')
    topology = model.topology
    # plane_sphere comes before plane_capsule, and both before sphere_capsule
    assert topology.pair_geoms == ((0, 2), (0, 1), (1, 2))
    assert pair_table.candidates(topology) == ((0, 0), (1, 0), (1, 1), (2, 0))
    assert pair_table.candidate_geoms(topology) == ((0, 2), (0, 1), (0, 1), (1, 2))
    world = topology.world
    assert pair_table.candidate_links(topology) == ((world, 1), (world, 0), (world, 0), (0, 1))


def test_pairs_out_of_order_or_unsupported_are_refused():
    model, _ = scene('type="plane" size="1 1 1"', 'type="capsule" size="0.1 0.2"', 'type="sphere" size="0.1"')
    unsorted = dataclasses.replace(model.topology, pair_geoms=((1, 2), (0, 1)))
    with pytest.raises(ValueError, match="not sorted"):
        pair_table.candidates(unsorted)
    unsupported = dataclasses.replace(model.topology, pair_geoms=((0, 0),))
    with pytest.raises(ValueError, match="no family"):
        pair_table.candidates(unsupported)
