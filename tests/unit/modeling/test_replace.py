"""`model.replace`: shapes, ranges, derived leaves, per-world values, tracing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_files import path

from rsim_jax.errors import ModelError
from rsim_jax.modeling import load
from rsim_jax.modeling.derive import PUBLIC, SCALARS, world_count


@pytest.fixture(scope="module")
def ant():
    return load(path("ant.xml"), dtype=jnp.float64)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_leaf_can_be_shared_or_given_per_world(ant, name):
    value = np.asarray(getattr(ant, name))
    for worlds in (1, 3):
        changed = ant.replace(**{name: np.repeat(value, worlds, axis=-1)})
        assert getattr(changed, name).shape == (*value.shape[:-1], worlds) and world_count(changed) == worlds
        np.testing.assert_array_equal(getattr(changed, name)[..., 0], value[..., 0])
        assert getattr(changed, name).dtype == getattr(ant, name).dtype and changed.topology == ant.topology


@pytest.mark.parametrize("name", SCALARS)
def test_scalar_leaves_take_one_number(ant, name):
    assert float(getattr(ant.replace(**{name: 0.25}), name)) == 0.25
    with pytest.raises(ModelError, match=f"{name} has shape"):
        ant.replace(**{name: np.full(3, 0.25)})


def test_links_follow_bodies_world_by_world(ant):
    scale = np.array([1.0, 2.0, 3.0])
    changed = ant.replace(body_mass=ant.body_mass * scale, body_inertia=ant.body_inertia * scale)
    np.testing.assert_allclose(changed.link_mass, ant.link_mass * scale, rtol=1e-14)
    np.testing.assert_allclose(changed.link_inertia, ant.link_inertia * scale, rtol=1e-12, atol=1e-16)
    np.testing.assert_allclose(changed.link_com, np.repeat(ant.link_com, 3, -1), atol=1e-15)
    moved = ant.replace(body_com=ant.body_com + np.array([0.1, 0, 0])[:, None, None])
    np.testing.assert_allclose(moved.link_com[:, 1] - ant.link_com[:, 1], [[0.1], [0], [0]], atol=1e-14)


def test_the_torso_of_the_ant_carries_its_welded_hips(ant):
    welded = [b for b, link in enumerate(ant.topology.body_link) if link == 0]
    assert len(welded) == 5
    doubled = np.asarray(ant.body_mass).copy()
    doubled[welded[1]] += 1
    assert float(ant.replace(body_mass=doubled).link_mass[0, 0] - ant.link_mass[0, 0]) == pytest.approx(1)


def test_pair_friction_follows_geom_friction_by_each_pairs_rule():
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1" friction=".5"/>
    <body><freejoint/><geom name="a" size=".1" friction=".3"/></body>
    <body><freejoint/><geom name="b" size=".1" friction=".2" priority="2"/></body>
    <body><freejoint/><geom name="c" size=".1" friction=".4"/></body></worldbody>
    <contact><pair geom1="floor" geom2="c" friction=".9 .9 0 0 0"/></contact></mujoco>"""
    model = load(text, dtype=jnp.float64)
    friction = np.asarray(model.geom_friction).copy()
    friction[0] = np.array([[0.6], [0.7], [0.1], [0.8]])  # floor, a, b, c
    changed = model.replace(geom_friction=friction)
    names = [tuple(model.topology.geom_names[g] for g in pair) for pair in model.topology.pair_geoms]
    values = dict(zip(names, np.asarray(changed.pair_friction[:, 0]).tolist(), strict=True))
    expected = {
        ("floor", "a"): 0.7,
        ("floor", "b"): 0.1,
        ("floor", "c"): 0.9,
        ("a", "b"): 0.1,
        ("a", "c"): 0.8,
        ("b", "c"): 0.1,
    }
    assert values == pytest.approx(expected)
    np.testing.assert_array_equal(changed.pair_static_friction, changed.pair_friction)
    own = model.replace(geom_friction=friction, pair_friction=np.full((6, 1), 0.05))
    np.testing.assert_array_equal(own.pair_friction, np.full((6, 1), 0.05))


def test_static_friction_keeps_its_excess(ant):
    sticky = ant.replace(pair_static_friction=ant.pair_friction + 0.25)
    randomised = sticky.replace(pair_friction=sticky.pair_friction * np.array([0.5, 2.0]))
    np.testing.assert_allclose(randomised.pair_static_friction - randomised.pair_friction, 0.25, atol=1e-15)


def test_traced_values_work_under_jit_and_vmap(ant):
    def scaled(model, factor):
        return model.replace(body_mass=model.body_mass * factor, geom_friction=model.geom_friction * factor)

    one = jax.jit(scaled)(ant, 2.0)
    np.testing.assert_allclose(one.link_mass, 2 * ant.link_mass, rtol=1e-14)
    np.testing.assert_allclose(one.pair_friction, 2 * ant.pair_friction)
    many = jax.jit(jax.vmap(lambda f: scaled(ant, f).link_inertia))(jnp.array([1.0, 3.0]))
    plain = scaled(ant, 3.0).link_inertia
    np.testing.assert_allclose(many[1], plain, rtol=1e-12, atol=1e-16)
    gradient = jax.jit(jax.grad(lambda f: scaled(ant, f).link_mass.sum()))(1.0)
    assert float(gradient) == pytest.approx(float(ant.link_mass.sum()))
    with pytest.raises(ModelError, match="gravity has shape"):
        jax.jit(lambda g: ant.replace(gravity=g))(jnp.zeros(3))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mass", 1.0, "'mass' is not a public leaf; there are: gravity"),
        ("link_mass", np.ones((9, 1)), "'link_mass' is not a public leaf"),
        ("topology", None, "'topology' is not a public leaf"),
        ("body_mass", np.ones(14), r"body_mass has shape \(14,\); expected \(14, 1 or N\)"),
        ("gravity", np.zeros((1, 3)), r"gravity has shape \(1, 3\); expected \(3, 1 or N\)"),
        ("body_mass", np.full((14, 1), np.nan), "body_mass contains nan"),
        ("body_mass", np.full((14, 1), -1.0), "body_mass contains -1; it must lie in"),
        ("body_mass", "heavy", "body_mass is not an array of numbers"),
        ("pair_restitution", np.full((13, 1), 1.5), "pair_restitution contains 1.5"),
        ("pair_rolling_friction", np.full((13, 1), -0.1), "must lie in"),
        ("dt", 0.0, "dt is 0"),
        ("joint_friction", np.full((14, 1), 0.1), "joint_friction of dof 0: it has no friction row"),
        ("joint_stiffness", np.full((14, 1), 0.1), "joint_stiffness of dof 0: a ball or free joint without a spring"),
    ],
)
def test_a_wrong_value_is_named(ant, name, value, message):
    with pytest.raises(ModelError, match=message):
        ant.replace(**{name: value})


def test_two_numbers_of_worlds_do_not_mix(ant):
    per_world = ant.replace(gravity=np.zeros((3, 4)))
    with pytest.raises(ModelError, match="body_mass is given for 5 worlds but gravity for 4"):
        per_world.replace(body_mass=np.ones((14, 5)))
