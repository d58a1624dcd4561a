"""Faults reported of other simulators, each as the behaviour that would have been right."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics.bank_scenes import feet
from physics.trials import G, ball_on_plane, block_on_plane, run, worlds

import rsim_jax as rsim

MODELS = Path(__file__).parents[1] / "models"


def loaded(name, dtype="float64", **options):
    return rsim.load(str(MODELS / name), options=rsim.Options(**options), dtype=dtype)


def test_default_armature_does_not_reach_a_freejoint():
    """B10: `<freejoint>` takes no defaults; `<joint type="free">` inherits armature 1, so a 1 kg body falls at g/2."""
    model = loaded("b10_freejoint_defaults.xml", max_contacts=0)
    seen = run(model, rsim.make_state(model, 2), 0.001)
    a, b = (model.topology.joint_dadr[model.topology.joint_body.index(model.body_id(n))] + 2 for n in ("a", "b"))
    fall = seen.qd[0, :, 0] / float(model.dt)
    assert fall[a] == pytest.approx(-G, abs=1e-3)
    assert fall[b] == pytest.approx(-G / 2, abs=2e-2)  # less dt damping / (m + armature) of the implicit damping


def link_chain(count):
    """MJCF of `count` links in series along x: hinges about y, 0.1 m and 0.1 kg each."""
    inertia = 0.1 * 0.1**2 / 12
    link = f'<joint axis="0 1 0"/><inertial pos="0.05 0 0" mass="0.1" diaginertia="1e-7 {inertia} {inertia}"/>'
    text = "".join(f'<body pos="{0.1 if k else 0} 0 {0 if k else 12}">{link}' for k in range(count))
    return f'<mujoco><option timestep="0.001"/><worldbody>{text}{"</body>" * count}</worldbody></mujoco>'


@pytest.mark.slow
@pytest.mark.parametrize(("count", "steps"), [(44, 20), (100, 1000), (300, 0)])
def test_a_long_chain_loads_and_moves(count, steps):
    """B13: mass matrix entries of a rod and of its last link; 1 s of a falling chain keeps its energy to 1 %."""
    model = rsim.load(link_chain(count), options=rsim.Options(max_contacts=0), dtype="float64")
    state = rsim.make_state(model, 1)
    mass = np.asarray(rsim.mass_matrix(model, state))[:, :, 0]
    assert mass[0, 0] == pytest.approx(0.1 * count * (0.1 * count) ** 2 / 3, rel=5e-4)
    assert mass[-1, -1] == pytest.approx(0.1 * 0.1**2 / 3, rel=1e-3)
    before = sum(np.asarray(e)[0] for e in rsim.energy(model, state))
    for _ in range(steps // 20):
        state, _ = rsim.rollout(model, state, steps=20)
    assert np.isfinite(np.asarray(state.q)).all()
    after = sum(np.asarray(e)[0] for e in rsim.energy(model, state))
    assert abs(after - before) < 0.01 * 1177.2


def test_masks_decide_who_touches_whom():
    """B24: contype and conaffinity of either side, not a flag."""
    model = loaded("b24_masks.xml")
    state = rsim.make_state(model, 2)
    q = np.array(state.q)
    q[2::7] = 0.0999
    found = rsim.pair_report(rsim.detect(model, state.replace(q=jnp.asarray(q))))
    names = model.topology.geom_names
    pairs = {frozenset((names[c.geom_a], names[c.geom_b])) for c in found}
    assert pairs == {frozenset(p) for p in (("floor", "a"), ("floor", "b"), ("floor", "c"), ("a", "c"))}


def test_a_box_sunk_into_a_plane_touches_with_its_four_lower_corners():
    """B27: no stale points, and none at the top."""
    model = loaded("b27_box_plane_corners.xml")
    report = jax.tree.map(np.asarray, rsim.detect(model, rsim.make_state(model, 2)))
    valid = report.valid[:, 0]
    assert valid.sum() == 4
    points = report.contact_point[:, valid, 0].T
    corners = {(round(float(x), 6), round(float(y), 6)) for x, y, _ in points}
    assert corners == {(0.2, -0.45), (0.6, -0.45), (0.2, -0.15), (0.6, -0.15)}
    assert ((points[:, 2] >= -0.0005 - 1e-9) & (points[:, 2] <= 1e-9)).all()
    np.testing.assert_allclose(report.point_pair.depth[valid, 0], 0.0005, atol=1e-5)
    np.testing.assert_allclose(
        report.point_pair.nhat_BA_W[:, valid, 0].T, [[0, 0, -1]] * 4, atol=1e-9
    )  # out of the box
    assert (report.body_b[valid, 0] == model.body_id("box")).all()
    assert (report.body_a[~valid, 0] == -1).all() and (report.contact_point[:, ~valid, 0] == 0).all()


def test_an_explicit_pair_collides_with_its_own_friction():
    """B25: masks 0 keep a geom from everything but its explicit pair, whose friction 0.1 counts."""
    model = loaded("b25_explicit_pair.xml", sweeps=60)
    state = rsim.make_state(model, 2)
    qd = np.zeros((12, 2))
    qd[0] = 3
    seen = run(model, state.replace(qd=jnp.asarray(qd)), 1.0, every=10)
    assert seen.qd[-1, 0, 0] == pytest.approx(3 - 0.1 * G, abs=0.03)
    assert seen.q[-1, 2, 0] == pytest.approx(0.02, abs=1e-3)
    assert seen.q[-1, 9, 0] == pytest.approx(0.5 - G / 2, abs=0.02)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_parallel_capsules_touch_at_both_ends_of_their_overlap(dtype):
    """B19: shifted by 0.1 m, not at all, and 1e-6 rad from parallel; a single contact would let the upper one tip."""
    model = loaded("b19_parallel_capsules.xml", dtype)
    state = rsim.make_state(model, 2)
    near = state.replace(q=jnp.asarray([[-0.0005, -0.0005], [0, 1e-6]], dtype))
    report = jax.tree.map(np.asarray, rsim.detect(model, near))
    for n in range(2):
        valid = report.valid[:, n]
        assert valid.sum() == 2
        x = np.sort(report.contact_point[0, valid, n])
        np.testing.assert_allclose(x, [-0.2, 0.3], atol=1e-4)
        np.testing.assert_allclose(report.point_pair.depth[valid, n], 0.0005, atol=1e-5)
        np.testing.assert_allclose(np.abs(report.point_pair.nhat_BA_W[2, valid, n]), 1, atol=1e-6)
    dropped = state.replace(q=jnp.asarray([[0.01, 0.01], [0, 1e-6]], dtype))
    seen = run(model, dropped, 3.0, every=50)
    assert np.degrees(np.abs(seen.q[-1, 1])).max() < 0.2
    assert np.abs(seen.q[-1, 0]).max() < 1e-3


@pytest.mark.slow
def test_a_mirrored_mesh_carries_like_its_original():
    """B08: a negative scale turns no face inwards."""
    model = rsim.load(str(MODELS / "b08_mirrored_wedge.xml"), dtype="float64", ignore=("pair",))
    state = rsim.make_state(model, 1)
    q = np.array(state.q)
    q[[2, 9]] = 0.242
    state, _ = rsim.rollout(model, state.replace(q=jnp.asarray(q)), steps=60)
    heights = np.asarray(state.q)[[2, 9], 0]
    np.testing.assert_allclose(heights, 0.24, atol=1e-3)
    assert abs(heights[0] - heights[1]) < 5e-4
    report = jax.tree.map(np.asarray, rsim.contact_report(model, state))
    valid = report.valid[:, 0]
    for wedge in (0, 1):
        mine = valid & (report.geom_a[:, 0] == wedge)
        assert mine.sum() == 4 and (-report.point_pair.nhat_BA_W[2, mine, 0] > 0.99).all()
    normals, vertices = np.asarray(model.hull_normals), np.asarray(model.hull_vertices)
    offsets = np.asarray(model.hull_offsets)
    reach = np.einsum("ifhw,ivhw->fvhw", normals, vertices)
    assert (reach <= offsets[:, None] + 1e-6).all() and (offsets > 0).all()  # outwards, seen from the centre


@pytest.mark.slow
def test_a_small_fast_sphere_meets_a_flat_field_like_a_plane():
    """B23: in a cell, on a sample, on an edge and on a diagonal; nothing is thrown sideways."""
    text = (MODELS / "b23_hfield_drop.xml").read_text()
    field = rsim.load(text, dtype="float64")
    plane = rsim.load(text.replace('type="hfield" hfield="flat"', 'type="plane" size="2 2 1"'), dtype="float64")
    places = np.array([[0.05, 0.1, 0.1, 0.05], [0.03, 0.1, 0.03, 0.05]])
    seen = []
    for model in (field, plane):
        state = rsim.make_state(model, 4)
        q = np.array(state.q)
        q[:2] = places
        seen.append(run(model, state.replace(q=jnp.asarray(q)), 1.0, every=1).q)
    assert np.abs(seen[0][:, :2] - places).max() < 1e-9
    assert np.abs(seen[0] - seen[1]).max() < 1e-9
    assert seen[0][:, 2].min() > 0.0249 and seen[0][-1, 2] == pytest.approx(0.025, abs=1e-4)


BETWEEN = """
<mujoco><option timestep="0.001"/><worldbody>
  <body name="before" pos="-1 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="2" friction="0.5" conaffinity="0"/></body>
  <body name="slab" pos="0 0 -0.5" mocap="true"><geom type="box" size="4 4 0.5" friction="0.5" contype="0"/></body>
  <body name="after" pos="1 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="2" friction="0.5" conaffinity="0"/></body>
</worldbody></mujoco>"""  # noqa: E501


def test_forces_on_a_box_and_on_the_ground_are_opposite():
    """B32: 2 kg at rest, and sliding at 1 m/s with mu = 0.5."""
    model, n = block_on_plane("float64"), 16
    mass, inertia = (np.repeat(np.array(x), n, axis=-1) for x in (model.body_mass, model.body_inertia))
    mass[1], inertia[:, 1] = 2, 2 * inertia[:, 1]
    velocity = np.zeros((3, n))
    velocity[0, 1] = 1
    model, state = worlds(model, n, 0.001, velocity=velocity, body_mass=mass, body_inertia=inertia)
    force = np.asarray(rsim.net_contact_force(model, run(model, state, 0.05).state))
    np.testing.assert_allclose(force[:, 1, 0], [0, 0, 2 * G], rtol=0.01, atol=1e-6)
    np.testing.assert_allclose(force[:, 1, 1], [-G, 0, 2 * G], rtol=0.02, atol=1e-6)
    np.testing.assert_allclose(force[:, 0], -force[:, 1], atol=1e-12)


@pytest.mark.slow
def test_forces_say_on_whom_they_act_whatever_the_order_of_the_bodies():
    """B32: a box of 2 kg at rest and sliding at 1 m/s, listed before and after what carries it."""
    model = rsim.load(BETWEEN, dtype="float64")
    state = rsim.make_state(model, 2)
    qd = np.zeros((12, 2))
    qd[[0, 6], 1] = 1
    seen = run(model, state.replace(qd=jnp.asarray(qd)), 0.05)
    force = np.asarray(rsim.net_contact_force(model, seen.state))
    report = jax.tree.map(np.asarray, rsim.contact_report(model, seen.state))
    ids = [model.body_id(name) for name in ("before", "after")]
    weight = 2 * G
    for body in ids:
        np.testing.assert_allclose(force[:, body, 0], [0, 0, weight], rtol=0.01, atol=1e-6)
        np.testing.assert_allclose(force[:, body, 1], [-0.5 * weight, 0, weight], rtol=0.02, atol=1e-3)
    np.testing.assert_allclose(force[:, model.body_id("slab")], -force[:, ids].sum(axis=1), atol=1e-9)
    rows = seen.state.rows
    contacts = [k for k, kind in enumerate(rows.kind) if kind == 0]
    load = np.asarray(rows.impulse)[2, contacts].sum(axis=0) / 0.001
    np.testing.assert_allclose(load, np.abs(report.contact_force[2]).sum(axis=0), rtol=1e-5)


TWO_BALLS = """
<mujoco><worldbody>
  <body name="arm" pos="0 0 1"><joint name="a" axis="0 1 0"/><geom type="capsule" size="0.02 0.1" mass="1"/>
    <body pos="0 0 0.2"><joint name="b" axis="0 1 0"/><geom type="capsule" size="0.02 0.1" mass="1"/></body></body>
  <body name="A" pos="1 0 0.1"><freejoint/><geom type="sphere" size="0.1"/></body>
  <body name="B" pos="2 0 0.1"><freejoint/><geom type="sphere" size="0.1"/></body>
</worldbody></mujoco>"""


def test_written_worlds_get_their_own_rows_and_others_keep_theirs():
    """B44: six worlds; joints of worlds [4, 1], then ball B in world 3; the first row goes to world 4."""
    model = rsim.load(TWO_BALLS, dtype="float64", options=rsim.Options(max_contacts=0))
    state = rsim.make_state(model, 6)
    arm = jnp.asarray([[0.4, 0.1], [-0.4, -0.1]])  # (joint, world of the list)
    written = state.replace(q=state.q.at[:2, jnp.asarray([4, 1])].set(arm))
    expected = np.array(state.q)
    expected[:2, 4], expected[:2, 1] = (0.4, -0.4), (0.1, -0.1)
    np.testing.assert_array_equal(np.asarray(written.q), expected)
    pose = np.array([5, 6, 7, 0, 1, 0, 0.0])
    written = rsim.write(model, written, "B", q=pose, worlds=[3])
    expected[9:16, 3] = pose
    np.testing.assert_array_equal(np.asarray(written.q), expected)
    np.testing.assert_array_equal(np.asarray(written.qd), np.asarray(state.qd))
    first, second = np.full(7, 0.5), np.array([1, 1, 1, 1, 0, 0, 0.0])
    written = rsim.write(model, written, "A", q=np.stack([first, second], axis=1), worlds=[4, 1])
    np.testing.assert_array_equal(np.asarray(written.q)[2:9, [4, 1]].T, [first, second])
    for chosen in ([6], [-1], [0, 7]):
        with pytest.raises(ValueError, match="outside 0"):
            rsim.write(model, written, "B", q=pose, worlds=chosen)
    same = rsim.write(model, written, "B", q=np.zeros((7, 0)), worlds=[])
    np.testing.assert_array_equal(np.asarray(same.q), np.asarray(written.q))


def test_copies_of_a_world_have_its_contacts_in_its_order():
    """B45: three feet on the ground, one world copied to four."""
    model = feet()
    state = rsim.make_state(model, 2)
    q = np.array(state.q)
    q[2] -= 1e-4
    one = jax.tree.map(np.asarray, rsim.detect(model, state.replace(q=jnp.asarray(q))))
    copies = jax.tree.map(lambda x: jnp.repeat(x[..., :1], 4, axis=-1), state.replace(q=jnp.asarray(q)))
    four = jax.tree.map(np.asarray, rsim.detect(model, copies))
    plate = one.valid[:, 0] & (one.body_b[:, 0] == model.body_id("plate"))
    assert plate.sum() == 3
    for world in range(4):
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(four), strict=True):
            np.testing.assert_array_equal(a[..., 0], b[..., world])


def test_worlds_of_different_mass_have_their_own_loads():
    """B45: balls of 1, 2, 3, 4 kg press with 9.81, 19.62, 29.43, 39.24 N, in the order of the worlds."""
    model = ball_on_plane("float64")
    kilograms = np.resize([1.0, 2, 3, 4], 13)
    mass, inertia = (np.repeat(np.array(x), 13, axis=-1) for x in (model.body_mass, model.body_inertia))
    mass[1], inertia[:3, 1] = kilograms, 0.4 * kilograms * 0.01
    model, state = worlds(model, 13, 0.001, body_mass=mass, body_inertia=inertia)
    seen = run(model, state, 0.5)
    np.testing.assert_allclose(seen.load[-1], kilograms * G, rtol=0.01)
    force = np.asarray(rsim.net_contact_force(model, seen.state))[2, 1]
    np.testing.assert_allclose(force, kilograms * G, rtol=0.01)
