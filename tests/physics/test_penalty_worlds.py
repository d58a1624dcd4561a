"""Compliant contact beside rigid contact, on sub-trees, with models chosen pair by pair and world by world."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics.trials import G

import rsim_jax as rsim
from rsim_jax.structs import CONTACT, PENALTY

SOFT, HARD = rsim.PenaltyContact(1e4, 2e5, v_lin=0.05), rsim.PenaltyContact(4e4, 8e5, v_lin=0.05)
OPTIONS = rsim.Options(sweeps=100, tolerance=1e-12)


@functools.cache
def tower():
    """A steel ball on a rubber one on the ground: compliant below, rigid above. A rigid one stands beside."""
    scene = rsim.Scene(timestep=5e-4)
    scene.add_ground(material="floor")
    scene.add_sphere(0.1, 1.0, position=(0, 0, 0.1), material="rubber")
    scene.add_sphere(0.1, 2.0, position=(0, 0, 0.3), material="steel")
    scene.add_sphere(0.1, 1.0, position=(1, 0, 0.1), material="steel")
    scene.set_contact_model("floor", "rubber", SOFT)
    return scene.compile(options=OPTIONS, dtype="float64")


@pytest.mark.slow
def test_compliant_and_rigid_contacts_share_the_load():
    model = tower()
    end, _ = rsim.rollout(model, rsim.make_state(model, 1), steps=1000)
    kinds = np.asarray(end.rows.kind)
    assert (kinds == PENALTY).sum() == 1 and kinds[-1] == PENALTY
    force = np.asarray(rsim.net_contact_force(model, end))[2, :, 0]
    np.testing.assert_allclose(force, [-4 * G, 1 * G, 2 * G, 1 * G], atol=1e-3)
    records = {(r.body_a, r.body_b): r for r in rsim.pair_report(rsim.contact_report(model, end))}
    assert set(records) == {(0, 1), (1, 2), (0, 3)}
    assert records[0, 1].depth == pytest.approx(3 * G / 1e4, rel=1e-4)
    assert records[0, 1].contact_force[2] == pytest.approx(3 * G, rel=1e-4)
    assert records[1, 2].contact_force[2] == pytest.approx(2 * G, rel=1e-4) and records[1, 2].depth < 1e-4
    assert records[0, 1].geom_a == 0 and records[0, 1].geom_b == 1


@pytest.mark.slow
def test_every_step_moves_by_exactly_the_forces_that_it_reports():
    """m (v' - v) / dt = weight + net contact force, body by body, also while the tower still bounces."""
    model = tower()
    state = rsim.make_state(model, 1)
    state = state.replace(qd=state.qd.at[jnp.asarray([2, 8])].set(-0.5))
    for _ in range(20):
        after = rsim.step(model, state)
        force = np.asarray(rsim.net_contact_force(model, after))[2, 1:, 0]
        for k, mass in enumerate((1.0, 2.0, 1.0)):
            change = float(after.qd[6 * k + 2, 0] - state.qd[6 * k + 2, 0])
            assert mass * change / 5e-4 == pytest.approx(force[k] - mass * G, abs=1e-8)
        state = after


def test_impulse_velocity_and_detection_of_the_report():
    model = tower()
    state = rsim.make_state(model, 1)
    state = state.replace(
        q=state.q.at[2].add(-2e-3), qd=state.qd.at[jnp.asarray([0, 2])].set(jnp.asarray([[0.3], [-0.1]]))
    )
    found = rsim.detect(model, state)
    penalty = (
        np.asarray(found.valid[:, 0]) & (np.asarray(found.geom_b[:, 0]) == 1) & (np.asarray(found.geom_a[:, 0]) == 0)
    )
    assert penalty.sum() == 1 and found.point_pair.depth[penalty, 0] == pytest.approx(2e-3)
    after = rsim.step(model, state)
    rows = after.rows
    expected = 1e4 * 2e-3 + 2e5 * 2e-3 * 0.1
    assert rows.impulse[2, -1, 0] == pytest.approx(5e-4 * expected, rel=1e-12)
    report = rsim.contact_report(model, after)
    np.testing.assert_allclose(report.contact_force[:, -1, 0], [-0.5 * expected, 0, expected], rtol=1e-12)
    np.testing.assert_allclose(report.contact_point[:, -1, 0], [0, 0, -1e-3], atol=1e-15)
    assert report.separation_speed[-1, 0] == pytest.approx(float(after.qd[2, 0]), rel=1e-12)
    assert report.slip_speed[-1, 0] == pytest.approx(abs(float(after.qd[0, 0] - 0.099 * after.qd[4, 0])), rel=1e-12)
    apart = rsim.contact_report(model, rsim.step(model, state.replace(q=state.q.at[2].add(0.05))))
    assert not apart.valid[-1, 0] and apart.body_a[-1, 0] == -1 and apart.point_pair.depth[-1, 0] == 0


def balls(*rules, names=("left", "right")):
    scene = rsim.Scene(timestep=5e-4)
    scene.add_ground()
    for k, name in enumerate(names):
        scene.add_sphere(0.1, 1.0, position=(k, 0, 0.1), name=name)
    for a, b, penalty in rules:
        scene.set_contact_model(a, b, penalty)
    return scene.compile(options=OPTIONS, dtype="float64")


def rest(model, worlds=1):
    """Depth of the balls after half a second, (ball, N)."""
    end, _ = rsim.rollout(model, rsim.make_state(model, worlds), steps=1000)
    return 0.1 - np.asarray(end.q)[2::7]


def only(penalty, *bodies):
    return dataclasses.replace(penalty, bodies=bodies)


def test_models_of_sub_trees_act_at_once_and_outside_of_them_there_is_no_contact():
    rules = [("default", "default", only(SOFT, "left")), ("default", "default", only(HARD, 2))]
    model = balls(*rules, names=("left", "right", "far"))
    assert model.topology.npair == 0
    depth = rest(model)[:, 0]
    np.testing.assert_allclose(depth[:2], [G / 1e4, G / 4e4], rtol=1e-4)
    assert depth[2] == pytest.approx(G * 5e-4**2 * 1000 * 1001 / 2, rel=1e-9), "it must fall freely"


def test_bodies_may_be_a_mask():
    mask, ids = (balls(("default", "default", only(SOFT, *bodies))) for bodies in ((False, True, False), (1,)))
    assert mask.topology == ids.topology and mask.topology.penalty_bodies == ((1,),)


def test_a_geom_pair_overrides_the_materials_and_others_stay_rigid():
    model = balls(("default", "default", SOFT), (2, 0, HARD))
    chosen = dict(zip(model.topology.penalty_pairs, np.asarray(model.pair_penalty_kp)[:, 0].tolist(), strict=True))
    assert chosen == {(0, 1): 1e4, (0, 2): 4e4, (1, 2): 1e4}
    model = balls((1, 0, SOFT))
    assert model.topology.penalty_pairs == ((0, 1),) and model.topology.pair_geoms == ((0, 2), (1, 2))
    assert model.pair_friction.shape == (2, 1) and model.topology.max_contacts == 2


@pytest.mark.slow
def test_parameters_differ_between_worlds_and_an_index_selects_the_model_inside_jit():
    model = balls(("default", "default", (SOFT, HARD)))
    assert model.topology.npenalty == 3 and np.asarray(model.pair_penalty_model).tolist() == [[0]] * 3
    stiff = model.replace(pair_penalty_kp=np.stack([[1e4, 2e4], [4e4, 5e4], [1e4, 1e4]]))
    np.testing.assert_allclose(rest(stiff, 2), G / np.array([[1e4, 2e4], [4e4, 5e4]]), rtol=1e-4)

    @jax.jit
    def chosen(index):
        selected = model.replace(pair_penalty_model=index)
        end, _ = rsim.rollout(selected, rsim.make_state(selected, 2), steps=1000)
        return end.q

    depth = 0.1 - np.asarray(chosen(jnp.asarray([[0, 1], [1, 0], [0, 0]])))[[2, 9]]
    np.testing.assert_allclose(depth, G / np.array([[1e4, 4e4], [4e4, 1e4]]), rtol=1e-6)


def adhesive(parameters, geometry, velocity):
    return parameters.kp * geometry.depth - 5.0, -parameters.kc * velocity.slip


def test_laws_of_several_models_are_told_apart():
    own = rsim.PenaltyContact(1e4, 20.0, law=adhesive)
    model = balls(("default", "default", SOFT), (0, 2, own))
    state = rsim.make_state(model, 1)
    state = state.replace(q=state.q.at[jnp.asarray([2, 9])].add(-1e-3), qd=state.qd.at[jnp.asarray([0, 6])].set(0.1))
    force = np.asarray(rsim.net_contact_force(model, rsim.step(model, state)))[:, 1:, 0]
    np.testing.assert_allclose(force, [[-5, -2], [0, 0], [10, 5]], atol=1e-9)


def test_without_compliant_pairs_nothing_is_added():
    model = balls()
    assert model.topology.penalty_candidates == 0 and PENALTY not in rsim.make_state(model, 1).rows.kind
    assert rsim.make_state(model, 1).rows.kind.count(CONTACT) == model.topology.max_contacts


def test_a_conveyor_drags_a_body():
    scene = rsim.Scene(timestep=1e-4)
    scene.add_ground(surface_velocity=(1, 0, 0))
    scene.add_box((0.2, 0.2, 0.1), 1.0, position=(0, 0, 0.05 - G / 4e5))
    scene.set_contact_model("default", "default", rsim.PenaltyContact(1e5, 2e6, v_lin=1e-2))
    model = scene.compile(dtype="float64")
    end, _ = rsim.rollout(model, rsim.make_state(model, 1), steps=500)
    report = rsim.contact_report(model, end)
    assert report.valid.sum() == 4
    assert report.contact_force[2].sum() == pytest.approx(G, rel=1e-3)
    assert end.qd[0, 0] == pytest.approx(0.5 * G * 0.05, rel=1e-3)
    np.testing.assert_allclose(report.slip_speed[np.asarray(report.valid)], 1 - end.qd[0, 0], rtol=1e-2)
