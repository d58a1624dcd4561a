"""Mistakes with compliant contact are named before the first step, steps too long for its stiffness among them."""

from __future__ import annotations

import dataclasses
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from model_files import path

import rsim_jax as rsim
from rsim_jax.errors import ModelError
from rsim_jax.modeling import PenaltyContact, Scene, compiled, load, set_contact_model
from rsim_jax.modeling.stiffness import fastest_impact, is_stable, longest_step, rest_stiffness

SOFT = PenaltyContact(1e3, 0, v_lin=0.1)


def ball(penalty, dt=1e-3, integrator="semi_implicit", **pair):
    scene = Scene(timestep=dt)
    scene.add_ground()
    scene.add_sphere(0.1, 1.0, position=(0, 0, 0.1), name="ball")
    scene.set_contact_model(pair.get("a", "default"), pair.get("b", "default"), penalty)
    return scene.compile(options=rsim.Options(integrator=integrator))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kp": -1}, "PenaltyContact: kp = -1: give a number of at least 0"),
        ({"kc": -0.1}, "PenaltyContact: kc = -0.1"),
        ({"mu": -0.5}, "PenaltyContact: mu = -0.5"),
        ({"n": 0}, "PenaltyContact: n = 0: give a number above 0"),
        ({"v_lin": 0}, "PenaltyContact: v_lin = 0: give a number above 0"),
        ({"kp": float("nan")}, "PenaltyContact: kp = nan: give finite"),
        ({"law": 3}, "PenaltyContact: law = 3: give a function"),
    ],
)
def test_a_bad_number_is_refused(arguments, message):
    with pytest.raises(ModelError, match=message):
        PenaltyContact(**{"kp": 1e4, "kc": 10, **arguments})


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ({"a": "rubber"}, "no geom has the material 'rubber'; there are: default"),
        ({"a": 0, "b": 7}, "no geom 7; ids are 0 ... 1"),
        ({"a": 0, "b": 0}, "these geoms never collide"),
    ],
)
def test_unknown_materials_and_geoms_are_refused(pair, message):
    with pytest.raises(ModelError, match=message):
        ball(SOFT, **pair)


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ((5,), "no body 5; ids are 0 ... 1, names: world, ball"),
        (("cube",), "no body 'cube'"),
        ((True, False, True), "mask bodies has 3 entries; this model has 2 bodies"),
    ],
)
def test_unknown_bodies_are_refused(bodies, message):
    with pytest.raises(ModelError, match=message):
        ball(dataclasses.replace(SOFT, bodies=bodies))


def scalar_friction(parameters, geometry, velocity):
    return parameters.kp * geometry.depth, 0 * geometry.depth


def constant_force(parameters, geometry, velocity):
    return parameters.kp, 0 * velocity.slip


def one_value(parameters, geometry, velocity):
    return parameters.kp * geometry.depth


def misspelt(parameters, geometry, velocity):
    return parameters.stiffness * geometry.depth, 0 * velocity.slip


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (scalar_friction, r"returns shapes \(\(2, 3\), \(2, 3\)\); give \(F_n \(2, 3\), F_t \(3, 2, 3\)\)"),
        (constant_force, "law constant_force returns shapes"),
        (one_value, "law one_value returns shapes"),
        (misspelt, "law misspelt fails on 2 contact points in 3 worlds: .*stiffness"),
    ],
)  # fmt: skip
def test_a_law_of_the_wrong_shape_is_refused(law, message):
    with pytest.raises(ModelError, match=message):
        ball(dataclasses.replace(SOFT, law=law))


def test_models_loaded_from_a_file_take_geoms_by_name_or_id():
    robot = load(path("ant.xml"))
    feet = [g for g, name in enumerate(robot.topology.geom_names) if "ankle" in name]
    penalty = PenaltyContact(1e3, 1e3, v_lin=0.5)
    soft = set_contact_model(robot, "floor", feet, penalty)
    moved = [pair for pair in robot.topology.pair_geoms if 0 in pair and set(pair) & set(feet)]
    assert set(soft.topology.penalty_pairs) == set(moved) and len(moved) == 4
    assert set(soft.topology.pair_geoms) == set(robot.topology.pair_geoms) - set(moved)
    kept = [p for p, pair in enumerate(robot.topology.pair_geoms) if pair not in moved]
    np.testing.assert_array_equal(soft.pair_friction, np.asarray(robot.pair_friction)[kept])
    assert soft.topology.penalty_candidates == 8 and compiled(soft) is compiled(robot)
    harder = set_contact_model(soft, "floor", feet[0], dataclasses.replace(penalty, kp=2e3))
    assert sorted(np.asarray(harder.pair_penalty_kp)[:, 0].tolist()) == [1e3, 1e3, 1e3, 2e3]
    assert harder.topology.penalty_pairs == soft.topology.penalty_pairs
    with pytest.raises(ModelError, match="no geom 'foot'"):
        set_contact_model(robot, "floor", "foot", penalty)
    with pytest.raises(ModelError, match="these geoms never collide"):
        set_contact_model(robot, "floor", "floor", penalty)
    with pytest.raises(ModelError, match="3: give an rsim_jax"):
        set_contact_model(robot, "floor", feet, 3)


def test_replaced_numbers_are_checked_and_follow_the_chosen_model():
    model = ball((SOFT, PenaltyContact(2e3, 5, n=1.5, mu=0.3, v_lin=0.2)))
    other = model.replace(pair_penalty_model=np.array([[0, 1]]))
    assert other.pair_penalty_model.dtype == jnp.int32
    for name, values in (
        ("kp", [1e3, 2e3]),
        ("kc", [0, 5]),
        ("n", [1, 1.5]),
        ("mu", [0.5, 0.3]),
        ("v_lin", [0.1, 0.2]),
    ):
        np.testing.assert_allclose(np.asarray(getattr(other, f"pair_penalty_{name}"))[0], values, rtol=1e-6)
    own = model.replace(pair_penalty_model=np.array([[1]]), pair_penalty_kp=np.array([[7.0]]))
    assert float(own.pair_penalty_kp[0, 0]) == 7 and float(own.pair_penalty_kc[0, 0]) == 5
    for leaves, message in (
        ({"pair_penalty_model": [[2]]}, "contains 2; this model has penalty models 0 ... 1"),
        ({"pair_penalty_model": [[0.5]]}, "contains 0.5; this model has"),
        ({"pair_penalty_n": [[0]]}, "pair_penalty_n contains 0"),
        ({"pair_penalty_kp": [[-1]]}, "pair_penalty_kp contains -1"),
        ({"pair_penalty_kp": [[1], [1]]}, r"shape \(2, 1\); expected \(1, 1 or N\)"),
    ):
        with pytest.raises(ModelError, match=message):
            model.replace(**leaves)


def spring(parameters, geometry, velocity):
    return jnp.maximum(0, parameters.kp * geometry.depth + parameters.kc * velocity.rate), 0 * velocity.slip


@pytest.mark.parametrize("law", [None, spring])
def test_a_stiffness_that_the_step_does_not_resolve_is_refused(law):
    """B36: k = 1e9 N/m at 1 ms would throw a 1 kg ball far above its start."""
    stiff = PenaltyContact(1e9, 10, v_lin=1, law=law)
    with pytest.raises(ModelError, match=r'geom 1 of body "ball" has a stiffness of 1e\+09 N/m for 1 kg at rest, which semi_implicit can step by 6.3e-05 s at most, not 0.001 s: shorten the step'):  # fmt: skip  # noqa: E501
        ball(stiff)
    with pytest.warns(UserWarning, match=r"an impact of .* may gain energy at a step of 6e-05 s"):
        ball(stiff, dt=6e-5)
    assert ball(dataclasses.replace(stiff, allow_unstable=True)).topology.npenalty == 1


def test_the_trapezoid_rule_needs_damping():
    with pytest.raises(ModelError, match="too little damping for any step of trapezoid: raise kc"):
        ball(SOFT, integrator="trapezoid")
    ball(PenaltyContact(1e3, 200, v_lin=0.1), integrator="trapezoid")


def test_friction_that_the_step_does_not_resolve_gives_a_warning():
    with pytest.warns(UserWarning, match=r"mu = 0.5, v_lin = 0.001 m/s\) is not resolved by a step of 0.001 s.* 0.00041 s or raise v_lin to 0.0025 m/s"):  # fmt: skip  # noqa: E501
        ball(dataclasses.replace(SOFT, v_lin=1e-3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ball(dataclasses.replace(SOFT, v_lin=3e-3))


@pytest.mark.parametrize(
    ("integrator", "k", "c", "limit"),
    [
        ("semi_implicit", 1e4, 0, 2 / 100),
        ("rk4", 1e4, 0, 2 * np.sqrt(2) / 100),
        ("semi_implicit", 0, 50, 2 / 50),
        ("rk4", 0, 50, 2.785 / 50),
        ("trapezoid", 1e4, 20, 2 * 20 / 1e4),
    ],
)
def test_limits_of_the_integrators(integrator, k, c, limit):
    assert longest_step(integrator, 1.0, k, c, 1.0) == pytest.approx(limit, rel=1e-3)
    assert is_stable(integrator, 0.99 * limit, k, c, 1.0) and not is_stable(integrator, 1.01 * limit, k, c, 1.0)


def test_an_impact_that_gains_energy_gives_a_warning():
    """A step of 10 ms sees a ball of 2 m/s only 2 cm deep, and throws it back faster."""
    damped = PenaltyContact(5e3, 1e4, v_lin=1)
    assert fastest_impact(damped, 1e-2, 1.0) == pytest.approx((2 / (5e3 * 1e-2**2) - 1) / 2, rel=0.06)
    assert fastest_impact(damped, 1e-3, 1.0) == np.inf
    with pytest.warns(
        UserWarning, match=r'geom 1 of body "ball" \(1 kg\) faster than 1.5 m/s may gain energy at a step of 0.01'
    ):
        ball(damped, dt=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ball(damped, dt=1e-3)


def test_stiffness_at_rest():
    k, c = rest_stiffness(PenaltyContact(1e5, 2e4, n=1.5), 9.81)
    depth = (9.81 / 1e5) ** (1 / 1.5)
    assert k == pytest.approx(1.5 * 1e5 * depth**0.5, rel=0.02) and c == pytest.approx(2e4 * depth**1.5, rel=0.05)
    k, c = rest_stiffness(PenaltyContact(1e5, 7, law=spring), 9.81)
    assert k == pytest.approx(1e5, rel=1e-3) and c == pytest.approx(7, rel=1e-2)
