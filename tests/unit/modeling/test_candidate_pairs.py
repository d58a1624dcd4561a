"""Which geoms can touch, and with what friction, against the contacts that MuJoCo makes."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from model_files import path

from rsim_jax.collision.pair_table import candidates, family_index
from rsim_jax.modeling import compiled, load


def names_of(model) -> set[frozenset[str]]:
    return {frozenset(model.topology.geom_names[g] for g in pair) for pair in model.topology.pair_geoms}


def heap(seed: int) -> str:
    """Bodies that all overlap at the origin: free, hinged, welded, static; random masks, excludes, pairs."""
    rng = np.random.default_rng(seed)
    count = itertools.count()

    def geom() -> str:
        kind = "size='.5'" if rng.random() < 0.5 else "type='capsule' size='.5 .1'"
        friction = " ".join(f"{x:.2f}" for x in rng.uniform(0, 1, 3))
        return (
            f"<geom name='g{next(count)}' {kind} contype='{rng.integers(8)}' conaffinity='{rng.integers(8)}' "
            f"friction='{friction}' priority='{rng.integers(2)}' condim='{rng.choice([1, 3])}' "
            f"margin='{rng.uniform(0, 0.1):.3f}' gap='{rng.uniform(0, 0.1):.3f}'/>"
        )

    def body(name: str, joint: str, inside: str = "") -> str:
        return f"<body name='{name}'>{joint}{geom()}{geom() if rng.random() < 0.5 else ''}{inside}</body>"

    hinge, free = "<joint axis='0 0 1'/>", "<freejoint/>"
    bodies = [
        geom(),
        body("static", "", body("arm", hinge, body("hand", hinge, body("finger", "", body("tip", hinge))))),
        body("torso", free, body("leg", hinge, body("foot", "")) + body("other", hinge)),
        f"<body name='mocap' mocap='true'>{geom()}{body('lever', hinge)}</body>",
        body("ball", free),
    ]
    a, b = rng.choice(next(count), 2, replace=False)
    contact = (
        "<exclude body1='torso' body2='ball'/><exclude body1='hand' body2='leg'/>"
        f"<pair geom1='g{a}' geom2='g{b}' condim='3' friction='.7 .7 .1 .1 .1' margin='.03'/>"
    )
    return f"<mujoco><worldbody>{''.join(bodies)}</worldbody><contact>{contact}</contact></mujoco>"


@pytest.mark.parametrize("seed", range(12))
def test_pairs_friction_and_margin_are_those_of_mujocos_contacts(seed):
    model = load(heap(seed), dtype=jnp.float64)
    mj = compiled(model)
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    expected = {}
    weld = mj.body_weldid[mj.geom_bodyid]
    immobile = (weld == 0) | (mj.body_mocapid[weld] >= 0)
    for contact in data.contact:
        a, b = sorted(int(g) for g in contact.geom)
        if not (immobile[a] and immobile[b]) and weld[a] != weld[b]:
            friction = contact.friction[0] if contact.dim > 1 else 0.0
            expected[a, b] = (pytest.approx(friction, abs=1.1e-5), pytest.approx(contact.includemargin, abs=1e-12))
    friction, margin = np.asarray(model.pair_friction[:, 0]), np.asarray(model.pair_margin[:, 0])
    found = {pair: (friction[p], margin[p]) for p, pair in enumerate(model.topology.pair_geoms)}
    assert found == expected and len(expected) > 5


def test_b24_masks_are_kept_pairwise():
    model = load(path("b24_masks.xml"))
    touching = {frozenset(p) for p in (("floor", "a"), ("floor", "b"), ("floor", "c"), ("a", "c"))}
    assert touching | {frozenset(("b", "c"))} == names_of(model)  # b and c are far apart in that scene


def test_b25_an_explicit_pair_needs_no_masks_and_has_its_own_friction():
    model = load(path("b25_explicit_pair.xml"), dtype=jnp.float64)
    assert names_of(model) == {frozenset(("floor", "puck"))}
    assert float(model.pair_friction[0, 0]) == pytest.approx(0.1) and int(model.pair_from_geoms[0, 0]) == 0


def test_pairs_are_sorted_by_family_then_geoms_and_expand_to_candidates():
    topology = load(path("humanoid.xml")).topology
    keys = [(family_index(*(topology.geom_type[g] for g in pair)), *pair) for pair in topology.pair_geoms]
    assert keys == sorted(keys) and len(set(keys)) == len(keys) and all(a < b for _, a, b in keys)
    assert len(candidates(topology)) >= topology.npair > 100


def test_the_child_of_a_static_body_touches_it():
    text = (
        "<mujoco><worldbody><body name='post'><geom name='post' size='.1'/><body><joint/><geom name='arm' size='.1'/>"
    )
    assert names_of(load(text + "</body></body></worldbody></mujoco>")) == {frozenset(("post", "arm"))}


def test_the_default_capacity_covers_what_mujoco_counts_in_random_motion():
    for name, least in (("ant", 7), ("hopper", 7), ("half_cheetah", 8), ("walker2d_v5", 8), ("humanoid", 15)):
        topology = load(path(f"{name}.xml")).topology
        assert least <= topology.max_contacts <= min(24, len(candidates(topology)))
    assert load(path("b24_masks.xml")).topology.max_contacts == 5  # never more than there are candidates


def test_primitive_shapes_touch_each_other():
    shapes = ("sphere", "capsule", "cylinder", "box")
    bodies = "".join(
        f'<body><freejoint/><geom name="{kind}{k}" type="{kind}" size=".1 .1 .1"/></body>'
        for kind in shapes
        for k in range(2)
    )
    text = f'<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>{bodies}</worldbody></mujoco>'
    assert load(text).topology.npair == 8 + 8 * 7 // 2
