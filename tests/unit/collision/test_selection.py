"""Selection against a NumPy sort, its isolation, and what slots carry with them."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from posed_scenes import scene

from rsim_jax.collision import pair_table, select
from rsim_jax.collision.ordering import FEW, smallest
from rsim_jax.modeling.load import load
from rsim_jax.structs import Candidates, Model

BALLS = 8  # 28 pairs of balls and 8 with the ground: few candidates
CROWD = 12  # 66 pairs and 12: many


def balls(count: int, slots: int, dtype: object = jnp.float32) -> Model:
    model, _ = scene('type="plane" size="1 1 1"', *['type="sphere" size="0.1"'] * count, dtype=dtype)
    return with_slots(model, slots)


def with_slots(model: Model, slots: int) -> Model:
    return dataclasses.replace(model, topology=dataclasses.replace(model.topology, max_contacts=slots))


def random_candidates(rng: np.random.Generator, count: int, worlds: int, dtype: object = jnp.float32) -> Candidates:
    return Candidates(
        point=jnp.asarray(rng.normal(size=(3, count, worlds)), dtype),
        normal=jnp.asarray(rng.normal(size=(3, count, worlds)), dtype),
        gap=jnp.asarray(rng.normal(size=(count, worlds)), dtype),
    )


run = jax.jit(select)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("count", [BALLS, CROWD], ids=["few", "many"])
@pytest.mark.parametrize("slots", [1, 5, 100])
def test_slots_hold_the_most_urgent_in_order_with_their_own_bits(slots, count, dtype):
    rng = np.random.default_rng(slots)
    model = balls(count, slots, dtype)
    items, worlds = len(pair_table.candidates(model.topology)), 64
    assert (items > FEW) == (count == CROWD)
    candidates = random_candidates(rng, items, worlds, dtype)
    urgency = rng.integers(-3, 4, size=(items, worlds)).astype(dtype)  # many ties
    urgency[:, 0] = -np.inf
    urgency[:, 1] = np.inf
    reach = rng.random((items, worlds)) < np.linspace(0, 1, worlds)  # none in the first world, all in the last
    reach[:, :2] = True
    friction = rng.random((model.topology.npair, worlds))
    model = model.replace(pair_friction=friction)
    contacts = jax.tree.map(np.asarray, run(model, candidates, jnp.asarray(urgency), jnp.asarray(reach)))
    pairs = pair_table.candidate_pairs(model.topology)
    for n in range(worlds):
        within = np.flatnonzero(reach[:, n])
        expected = within[np.argsort(urgency[within, n], kind="stable")][:slots]
        filled = len(expected)
        assert contacts.index[:filled, n].tolist() == expected.tolist()
        assert contacts.active[:, n].tolist() == [True] * filled + [False] * (slots - filled)
        assert contacts.overflow[n] == (len(within) > slots)
        assert (contacts.index[filled:, n] == -1).all()
        for name in ("point", "normal", "gap"):
            value = getattr(contacts, name)[..., n]
            assert np.array_equal(value[..., :filled], np.asarray(getattr(candidates, name))[..., expected, n])
            assert (value[..., filled:] == 0).all()
        own = np.asarray(model.pair_friction)[[pairs[c] for c in expected], n]
        assert np.array_equal(contacts.friction[:filled, n], own)
        assert (contacts.friction[filled:, n] == 0).all()


@pytest.mark.parametrize("count", [BALLS, CROWD], ids=["few", "many"])
def test_nan_stays_in_its_candidate(count):
    rng = np.random.default_rng(2)
    model = balls(count, 6)
    items, worlds = len(pair_table.candidates(model.topology)), 5
    clean = random_candidates(rng, items, worlds)
    urgency = rng.normal(size=(items, worlds)).astype(np.float32)
    urgency[3, 2] = -10  # chosen first
    reach = np.ones((items, worlds), bool)
    dirty = Candidates(
        clean.point.at[:, 3, 2].set(np.nan), clean.normal.at[:, 3, 2].set(np.nan), clean.gap.at[3, 2].set(np.nan)
    )
    good, bad = (jax.tree.map(np.asarray, run(model, c, urgency, reach)) for c in (clean, dirty))
    assert np.isnan(bad.point[:, 0, 2]).all()
    for name in ("point", "normal", "gap"):
        repaired = getattr(bad, name).copy()
        repaired[..., 0, 2] = getattr(good, name)[..., 0, 2]
        assert np.array_equal(repaired, getattr(good, name))
    urgency[3, 2] = np.nan  # a candidate of unknown urgency is left out, the others keep their places
    contacts = run(model, clean, urgency, reach)
    others = np.delete(np.arange(items), 3)
    assert contacts.index[:, 2].tolist() == others[np.argsort(urgency[others, 2], kind="stable")][:6].tolist()
    assert np.array_equal(np.delete(np.asarray(contacts.index), 2, 1), np.delete(good.index, 2, 1))


def test_ascending_indices_of_the_smallest():
    key = jnp.asarray([[2.0, jnp.inf], [1.0, -jnp.inf], [2.0, 0.0]])
    run_smallest = jax.jit(smallest, static_argnums=1)
    assert run_smallest(key, 4, 4).T.tolist() == [[1, 0, 2, 3], [1, 2, 0, 3]]
    assert run_smallest(key, 4, 2).T.tolist() == [[1, 0, 3, 3], [1, 2, 3, 3]]


@pytest.mark.parametrize("count", [BALLS, CROWD], ids=["few", "many"])
def test_derivatives_pass_to_the_chosen_candidate(count):
    rng = np.random.default_rng(4)
    model = balls(count, 3)
    candidates = random_candidates(rng, len(pair_table.candidates(model.topology)), 2)
    reach = jnp.ones(candidates.gap.shape, bool)

    def second_gap(gap):
        return select(model, Candidates(candidates.point, candidates.normal, gap), gap, reach).gap[1]

    chosen = np.argsort(np.asarray(candidates.gap), axis=0)[1]
    for jacobian in (jax.jacfwd, jax.jacrev):
        derivative = np.asarray(jax.jit(jacobian(second_gap))(candidates.gap))
        expected = np.zeros_like(derivative)
        expected[[0, 1], chosen, [0, 1]] = 1
        assert np.array_equal(derivative, expected)


def test_without_slots_or_candidates():
    model = balls(3, 0)
    items = len(pair_table.candidates(model.topology))
    candidates = random_candidates(np.random.default_rng(0), items, 2)
    reach = np.zeros((items, 2), bool)
    reach[0, 1] = True
    contacts = run(model, candidates, candidates.gap, reach)
    assert contacts.point.shape == (3, 0, 2)
    assert contacts.side.shape == (model.nv, 0, 2)
    assert contacts.overflow.tolist() == [False, True]
    lonely = with_slots(scene('type="sphere" size="0.1"')[0], 2)
    nothing = random_candidates(np.random.default_rng(0), 0, 3)
    contacts = run(lonely, nothing, nothing.gap, np.zeros((0, 3), bool))
    assert (np.asarray(contacts.index) == -1).all()
    assert contacts.index.shape == (2, 3)
    assert not np.asarray(contacts.overflow).any()
    assert (np.asarray(contacts.normal) == 0).all()


ROBOT = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/>
  <body name="base"><freejoint/><geom name="base" type="sphere" size="0.1"/>
    <body name="arm"><joint axis="0 1 0"/><joint axis="1 0 0"/><geom name="arm" type="sphere" size="0.05"/>
      <body name="hand"><joint axis="0 1 0"/><geom name="hand" type="sphere" size="0.05"/>
        <body name="tool"><geom name="tool" type="sphere" size="0.02"/></body></body></body>
    <body name="leg"><joint type="ball"/><geom name="leg" type="capsule" size="0.05 0.1"/></body></body>
  <body name="other"><joint type="slide"/><geom name="other" type="box" size="0.1 0.1 0.1"/></body>
</worldbody></mujoco>"""
# dofs: 6 of base, 2 of arm, 1 of hand, 3 of leg, 1 of other
MOVES = {
    "floor": "0000000000000",
    "base": "1111110000000",
    "arm": "1111111100000",
    "hand": "1111111110000",
    "tool": "1111111110000",
    "leg": "1111110001110",
    "other": "0000000000001",
}


def test_sides_say_which_dofs_move_one_geom_only():
    model = load(ROBOT)
    geoms = pair_table.candidate_geoms(model.topology)
    model = with_slots(model, len(geoms))
    candidates = random_candidates(np.random.default_rng(0), len(geoms), 3)
    side = np.asarray(run(model, candidates, candidates.gap, np.ones(candidates.gap.shape, bool)).side)
    index = np.asarray(run(model, candidates, candidates.gap, np.ones(candidates.gap.shape, bool)).index)
    names = model.topology.geom_names
    assert len({geoms[i] for i in index[:, 0]}) >= 12
    for n in range(3):
        for slot, candidate in enumerate(index[:, n]):
            a, b = (np.array([int(d) for d in MOVES[names[g]]]) for g in geoms[candidate])
            assert side[:, slot, n].tolist() == (b - a).tolist()


def test_materials_and_surface_velocities_belong_to_the_pair():
    model = balls(3, 9)
    topology = model.topology
    rng = np.random.default_rng(5)
    names = ("pair_friction", "pair_restitution", "pair_restitution_threshold", "pair_static_friction")
    leaves = {name: rng.random((topology.npair, 1)).astype(np.float32) for name in names}
    velocity = rng.normal(size=(3, topology.ngeom, 1)).astype(np.float32)
    model = dataclasses.replace(model.replace(**leaves), geom_surface_velocity=jnp.asarray(velocity))
    candidates = random_candidates(rng, len(pair_table.candidates(topology)), 2)
    contacts = run(model, candidates, candidates.gap, np.ones(candidates.gap.shape, bool))
    for n in range(2):
        for slot, candidate in enumerate(np.asarray(contacts.index)[:, n]):
            if candidate < 0:
                continue
            pair, _ = pair_table.candidates(topology)[candidate]
            a, b = topology.pair_geoms[pair]
            for name in names:
                assert getattr(contacts, name[5:])[slot, n] == leaves[name][pair, 0]
            assert np.array_equal(contacts.surface_velocity[:, slot, n], velocity[:, b, 0] - velocity[:, a, 0])
