"""Scenes of many bodies: rows by tree and listed pairs give what dense rows and all pairs give."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from physics.trials import G

import rsim_jax as rsim
from rsim_jax import structs

MARGIN = {"dense": 10**6, "by tree": -(10**6)}
PENDULUM = """
<mujoco><worldbody><body name="arm" pos="0 -1 0.5"><joint axis="0 1 0" range="-20 20" frictionloss="0.05"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.45" size="0.04"/>
  <body pos="0 0 -0.45"><joint axis="0 1 0"/><geom type="sphere" size="0.08" pos="0.1 0 0"/></body></body></worldbody>
</mujoco>"""


def mixed(max_contacts, dtype=jnp.float64):
    """Five balls, a box, a two-link robot with a stop and dry friction, a pusher moved by hand."""
    scene = rsim.Scene(timestep=0.002)
    scene.add_ground()
    rng = np.random.default_rng(0)
    for i in range(5):
        place = (0.15 * (i % 3), -0.12 * (i // 3) - 0.7, 0.101)
        scene.add_sphere(0.1, 1.0 + i, position=place, velocity=rng.normal(size=3))
    scene.add_articulation(PENDULUM, material="robot")
    scene.add_box((0.3, 0.3, 0.3), 2.0, position=(1.0, 0.2, 0.15), velocity=(0, 0, -1))
    scene.add_sphere(
        0.4, 1.0, position=(0.2, 0.1, 0.4), kinematic=True, velocity=(0, -1.5, 0), angular_velocity=(1, 2, 3)
    )
    scene.set_material_pair("default", "default", rsim.Material(friction=0.6, restitution=0.3))
    options = rsim.Options(sweeps=200, max_contacts=max_contacts)
    return scene.compile(options=options, dtype=dtype)


def trajectory(monkeypatch, layout, steps=80):
    monkeypatch.setattr(structs, "DENSE_MARGIN", MARGIN[layout])
    model = mixed(40 if layout == "dense" else 41)  # programs are kept by topology
    assert model.topology.scattered == (layout == "by tree")
    state = rsim.make_state(model, 2)
    state, q = rsim.rollout(model, state, steps=steps)
    return model, state, np.asarray(q)


def test_rows_by_tree_and_listed_pairs_change_nothing(monkeypatch):
    """Balls, a box, a robot with a joint stop and dry friction, a kinematic pusher: the same to rounding."""
    found = {layout: trajectory(monkeypatch, layout) for layout in MARGIN}
    (dense_model, dense_state, dense), (model, state, scattered) = found["dense"], found["by tree"]
    np.testing.assert_allclose(scattered, dense, atol=1e-9)
    assert np.ptp(dense[:, 0], axis=0).max() > 0.05 and np.all(np.asarray(state.status) == 0)

    def contacts(model, state):
        records = rsim.pair_report(rsim.contact_report(model, state))
        assert records
        return sorted((r.geom_a, r.geom_b, *r.contact_point.round(6), r.body_a, r.body_b) for r in records)

    assert contacts(model, state) == contacts(dense_model, dense_state)
    forces = [np.asarray(rsim.net_contact_force(m, s)) for m, s in ((model, state), (dense_model, dense_state))]
    np.testing.assert_allclose(*forces, atol=1e-6)
    poses = [rsim.detect(m, s) for m, s in ((model, state), (dense_model, dense_state))]
    assert int(poses[0].valid.sum()) == int(poses[1].valid.sum()) > 0


@pytest.fixture(scope="module")
def heap():
    """27 balls dropped in a heap between four walls."""
    scene = rsim.Scene(timestep=0.002)
    scene.add_ground()
    rng = np.random.default_rng(1)
    for i in range(27):
        place = np.array([i % 3, i // 3 % 3, i // 9]) * 0.21 + [-0.21, -0.21, 0.101] + rng.uniform(0, 1e-3, 3)
        scene.add_sphere(0.1, 1.0, position=place)
    for x, y in ((0.6, 0), (-0.6, 0), (0, 0.6), (0, -0.6)):
        size = (0.4, 2, 2) if x else (2, 0.4, 2)
        scene.add_box(size, 1.0, position=(x, y, 1.0), kinematic=True)
    return scene.compile(options=rsim.Options(sweeps=40))


@pytest.mark.slow
def test_a_heap_comes_to_rest_and_carries_its_weight(heap):
    assert heap.topology.scattered
    state, _ = rsim.rollout(heap, rsim.make_state(heap, 2), steps=1000, output=lambda s: s.time)
    assert not np.any(np.asarray(state.status) & ~int(rsim.Status.SOLVER_NOT_CONVERGED))  # not in every impact
    height = np.asarray(state.q[2::7])
    assert height.min() > 0.0995 and height.max() < 0.55
    carried = np.asarray(rsim.net_contact_force(heap, state))[2, [0, *heap.topology.kinematic_body]].sum(0)
    np.testing.assert_allclose(carried, -27 * G, rtol=2e-2)  # by the ground, and by friction at the walls


def test_too_few_slots_are_reported(heap):
    scene = rsim.Scene()
    scene.add_ground()
    for i in range(9):
        scene.add_sphere(0.1, 1.0, position=(0.3 * i, 0, 0.1))
    model = scene.compile(options=rsim.Options(max_contacts=8))
    state = rsim.step(model, rsim.make_state(model, 1))
    assert model.topology.scattered
    assert int(state.status[0]) & int(rsim.Status.CONTACT_OVERFLOW)


def test_a_world_of_many_bodies_is_alone(heap):
    """The same bits among 1 and 70 worlds, and beside a world that is not finite."""
    many = rsim.make_state(heap, 70)
    noise = jnp.asarray(np.random.default_rng(2).normal(size=(heap.nv, 70)) * 0.1, heap.dtype)
    many = many.replace(qd=many.qd + noise)
    one = rsim.make_state(heap, 1)
    one = one.replace(qd=one.qd + noise[:, :1])
    broken = many.replace(qd=many.qd.at[3, 5].set(jnp.nan))
    outputs = [np.asarray(rsim.rollout(heap, s, steps=30)[1]) for s in (many, one, broken)]
    np.testing.assert_array_equal(outputs[0][..., :1], outputs[1])
    others = np.delete(np.arange(70), 5)
    np.testing.assert_array_equal(outputs[0][..., others], outputs[2][..., others])
