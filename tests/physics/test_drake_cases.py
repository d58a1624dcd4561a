"""Drake's numeric cases of point contact, against the answer of rigid bodies.

Forces, velocities and distances are compared; depths are not, being compliance there and nothing here. Numbers of the
cases (D1 ... D20) are those of our collection; what each expects is the closed form in its docstring.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics.bank_scenes import entry, feet, pairs_of, per_world, sliders
from physics.test_two_spheres import scene as two_spheres
from physics.trials import G, ball_on_plane, block_on_plane, run, tilted, worlds

import rsim_jax as rsim

BALLS, BLOCKS, SLIDING, STANDING = 13, 16, 4, 4  # worlds, as many as in other tests of the same scene
DT = 0.001


def host(report):
    return jax.tree.map(np.asarray, report)


def balls(seconds, dt=DT, erp=None, **trials):
    """Run of the ball's scene; every argument is a list of at most 13 values per world."""
    n = BALLS
    model = ball_on_plane("float64")
    size, inertia = (np.repeat(np.array(x), n, axis=-1) for x in (model.geom_size, model.body_inertia))
    radius = np.array(trials.pop("radius", [0.1]))
    count = len(radius)
    mass = np.array(trials.pop("mass", np.ones(count)), float)
    shape = np.array(trials.pop("shape", np.full(count, 0.4)))
    fill = lambda x: np.resize(np.asarray(x, float), (*np.shape(x)[:-1], n))  # noqa: E731
    size[0, 1], inertia[:3, 1] = fill(radius), fill(shape * mass * radius**2)
    masses = np.repeat(np.array(model.body_mass), n, axis=-1)
    masses[1] = fill(mass)
    model, state = worlds(
        model,
        n,
        dt,
        geom_size=size,
        body_inertia=inertia,
        body_mass=masses,
        height=fill(radius) - 0.1 + fill(trials.pop("gap", np.zeros(count))),
        **{name: columns(value) for name, value in trials.items()},
    )
    if erp is not None:
        model = model.replace(erp=jnp.asarray(erp, model.dtype))
    return model, run(model, state, seconds)


def columns(value):
    """(..., k) -> (..., 13), the last one repeated."""
    value = np.asarray(value, float)
    rest = np.repeat(value[..., -1:], BALLS - value.shape[-1], axis=-1)
    return np.concatenate([value, rest], axis=-1)


def test_weight_on_a_plane_and_every_field_of_its_report():
    """D1: the force m g acts on B, at the middle of an overlap kept by erp = 0; nothing moves."""
    depth = 0.000981
    model, seen = balls(0.05, erp=0.0, gap=[-depth])
    report = host(rsim.contact_report(model, seen.state))
    assert report.valid[:, 0].sum() == 1 and not report.speculative[:, 0].any()
    k = int(np.argmax(report.valid[:, 0]))
    assert (report.body_a[k, 0], report.body_b[k, 0]) == (0, 1)
    assert (report.geom_a[k, 0], report.geom_b[k, 0]) == (0, 1)
    np.testing.assert_allclose(report.contact_force[:, k, 0], [0, 0, G], atol=1e-4)
    assert abs(report.separation_speed[k, 0]) < 1e-12 and report.slip_speed[k, 0] < 1e-12
    pair = report.point_pair
    assert pair.depth[k, 0] == pytest.approx(depth, abs=1e-12)
    np.testing.assert_allclose(report.contact_point[:, k, 0], [0, 0, -depth / 2], atol=1e-12)
    np.testing.assert_allclose(pair.nhat_BA_W[:, k, 0], [0, 0, -1], atol=1e-12)
    np.testing.assert_allclose(pair.p_WCa[:, k, 0], [0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(pair.p_WCb[:, k, 0], [0, 0, -depth], atol=1e-12)
    _, settled = balls(1.0, gap=[0.0])
    np.testing.assert_allclose(settled.load[-1], G, atol=1e-4)
    assert np.abs(settled.q[:, 2] - 0.1).max() < 1e-4


def test_reports_have_the_places_of_the_start_and_the_velocities_of_the_end_of_a_step():
    """A ball that slides and begins to roll: slip v - r w after the step, contact below the centre before it."""
    model, seen = balls(0.05, velocity=[[2.0], [0], [0]], pair_friction=[0.5])
    report = host(rsim.contact_report(model, seen.state))
    k = int(np.argmax(report.valid[:, 0]))
    slip = seen.qd[-1, 0, 0] - 0.1 * seen.qd[-1, 4, 0]
    assert 1 < slip < 2
    assert report.slip_speed[k, 0] == pytest.approx(slip, rel=1e-6)
    assert report.contact_point[0, k, 0] == pytest.approx(seen.q[-2, 0, 0], abs=1e-12)
    assert seen.q[-1, 0, 0] - seen.q[-2, 0, 0] > 1e-3
    force = (seen.qd[-1, :3, 0] - seen.qd[-2, :3, 0]) / DT + [0, 0, G]
    np.testing.assert_allclose(report.contact_force[:, k, 0], force, atol=1e-9)
    assert force[0] == pytest.approx(-0.5 * G, rel=1e-9)


def test_a_sphere_rolls_down_15_degrees():
    """D6: v^2 (1 + 2/5) = 2 g h, w = v / r, moment of the friction (2/7) m g sin about the centre."""
    model, seen = balls(
        1.0,
        radius=[0.05],
        mass=[0.1],
        gravity=tilted([15.0]),
        pair_friction=[0.5],
        pair_static_friction=[1.0],
    )
    v, w, x = seen.qd[-1, 0, 0], seen.qd[-1, 4, 0], seen.q[-1, 0, 0]
    sine = np.sin(np.radians(15))
    assert v == pytest.approx(np.sqrt(2 * G * x * sine / 1.4), rel=5.5e-4)
    assert v == pytest.approx(1.8135820, rel=1e-7)
    assert w == pytest.approx(v / 0.05, rel=5.5e-4)
    report = host(rsim.contact_report(model, seen.state))
    k = int(np.argmax(report.valid[:, 0]))
    assert -report.contact_force[0, k, 0] == pytest.approx(0.0725433, rel=1e-6)
    assert -report.contact_force[0, k, 0] * 0.05 == pytest.approx(0.0725433 * 0.05, rel=5.5e-4)


def test_a_step_of_free_fall():
    """D8: v = -g dt, p = p0 + dt v."""
    _, seen = balls(0.05, gap=[1.0])
    assert seen.qd[0, 2, 0] == pytest.approx(-G * DT, rel=1e-12)
    assert seen.q[0, 2, 0] == pytest.approx(1.1 - G * DT**2, rel=1e-15)


THROWN = [0.5, 0.7, 0.59, 0.62]


@functools.cache
def falling_shell():
    """One contact: radius 1, inertia m r^2, mu 0.1, gravity 9, thrown forward while falling at 3."""
    n = len(THROWN)
    velocity = np.stack([THROWN, np.zeros(n), np.full(n, -3.0)])
    return balls(
        0.05,
        radius=np.ones(n),
        shape=np.ones(n),
        velocity=velocity,
        gravity=np.repeat([[0.0], [0], [-9]], n, axis=1),
        pair_friction=np.full(n, 0.1),
    )[1]


def test_impact_of_a_cylinder():
    """D10, D11: sticks below mu (1 + m R^2 / I) pn / m = 0.6 (pn of weight included: 0.6018), slides above."""
    seen = falling_shell()
    v, w, vz = seen.qd[0, 0], seen.qd[0, 4], seen.qd[0, 2]
    slip = v - w
    np.testing.assert_allclose([v[0], w[0], slip[0], vz[0]], [0.25, 0.25, 0, 0], atol=1e-9)
    pn = 3 + 9 * DT
    np.testing.assert_allclose([v[1] - 0.7, w[1]], [-0.1 * pn, 0.1 * pn], atol=1e-9)
    assert slip[1] == pytest.approx(0.1, abs=2e-3)
    assert abs(slip[2]) < 1e-9 and slip[3] > 0.01


@functools.cache
def wheels():
    """The wheel of four coincident contacts thrown like the shell."""
    model = per_world(feet(), STANDING, gravity=[0, 0, -9.0])
    state = rsim.make_state(model, STANDING)
    _, d = entry(model, "wheel")
    qd = np.array(state.qd)
    qd[d], qd[d + 2] = THROWN, -3
    return run(model, state.replace(qd=jnp.asarray(qd)), 0.05)


def test_four_coincident_contacts_are_as_good_as_one():
    """D10, D11 again; the frame of the wheel is on the ground, 1 m below its centre."""
    _, d = entry(feet(), "wheel")
    found, expected = wheels().qd[:, d : d + 6], falling_shell().qd[:, :6, :4]
    found[0, 0] += found[0, 4]
    np.testing.assert_allclose(found[0], expected[0], atol=1e-9)
    np.testing.assert_allclose(found[-1, 4], expected[-1, 4], atol=1e-5)  # its frame moves on tangents of circles


@functools.cache
def pizza():
    """Three legs at R about the centre of mass, I = m R^2; worlds 0 and 1 are turned, 2 is without friction."""
    model = feet()
    friction = np.repeat(np.array(model.pair_friction), STANDING, axis=-1)
    friction[pairs_of(model, "plate"), 2] = 0
    gravity = np.array([[0, 0, 1 / 3, 0], [0, 0, 0, 0], [-10, -10, -10, -10]])
    model = per_world(model, STANDING, gravity=gravity, dt=0.01, pair_friction=friction, pair_static_friction=friction)
    ctrl = np.zeros((2, STANDING))
    ctrl[model.actuator_id("plate"), :2] = -20, -40
    ctrl[model.actuator_id("small"), :2] = -4.9, -5.1
    return model, run(model, rsim.make_state(model, STANDING), 0.5, ctrl=ctrl)


def legs(world, name):
    """(normal impulses (3,), friction impulses (2, 3), lever arms (2, 3)) of the legs of a plate in the last step."""
    model, seen = pizza()
    report = host(rsim.contact_report(model, seen.state))
    mine = report.valid[:, world] & (report.body_b[:, world] == model.body_id(name))
    impulse = report.contact_force[:, mine, world] * 0.01
    q, _ = entry(model, name)
    return impulse[2], impulse[:2], report.contact_point[:2, mine, world] - seen.q[-2, q : q + 2, world][:, None]


def test_three_legs_hold_a_torque_within_their_friction():
    """D12: m 3, R 1.5, mu 2/3, Mz 20: 0.1 N s of load each; friction holds dt Mz and pulls nowhere.

    Its share of each leg, dt Mz / (3 R) in a compliant model, is not determined between rigid bodies.
    """
    model, seen = pizza()
    _, d = entry(model, "plate")
    assert np.abs(seen.qd[:, d : d + 6, 0]).max() < 1e-9
    normal, friction, arm = legs(0, "plate")
    np.testing.assert_allclose(normal, 0.1, atol=1e-8)
    assert (np.hypot(*friction) <= 2 / 3 * normal * (1 + 1e-9)).all()
    np.testing.assert_allclose(friction.sum(axis=1), 0, atol=1e-8)
    moment = (arm[0] * friction[1] - arm[1] * friction[0]).sum()
    assert moment == pytest.approx(-0.01 * 20, abs=1e-8)
    _, d = entry(model, "small")
    assert np.abs(seen.qd[:, d : d + 6, 0]).max() < 1e-9 and seen.qd[-1, d + 5, 1] > 0.01


def test_three_legs_slide_under_a_greater_torque():
    """D12: Mz 40: |g_t| = mu g_n, angular acceleration (40 - 30) / 6.75; the small plate: 5.1 - 5 over 1."""
    model, seen = pizza()
    time = seen.time
    _, d = entry(model, "plate")
    np.testing.assert_allclose(seen.qd[:, d + 5, 1], 10 / 6.75 * time, rtol=1e-6)
    normal, friction, _ = legs(1, "plate")
    np.testing.assert_allclose(np.hypot(*friction), 2 / 3 * normal, rtol=1e-9)
    _, d = entry(model, "small")
    np.testing.assert_allclose(seen.qd[:, d + 5, 1], 0.1 * time, rtol=1e-5)


def test_three_legs_without_friction_are_pulled_freely():
    """D12: fx = 1 N on 3 kg, 30 steps of 10 ms."""
    model, seen = pizza()
    _, d = entry(model, "plate")
    assert seen.qd[29, d, 2] == pytest.approx(0.1, abs=1e-12)


def sliding(seconds, push_box, push_ball, **leaves):
    """Run of the sliders; pushes in N per world."""
    model = per_world(sliders(), SLIDING, **leaves)
    ctrl = np.zeros((2, SLIDING))
    ctrl[model.actuator_id("box")], ctrl[model.actuator_id("ball")] = push_box, push_ball
    return model, run(model, rsim.make_state(model, SLIDING), seconds, ctrl=ctrl)


def on(report, model, name, world):
    """Rows of a body's contacts with the ground."""
    body = model.body_id(name)
    assert (report.body_b[:, world] != 0).all()
    return report.valid[:, world] & (report.body_b[:, world] == body) & (report.body_a[:, world] == 0)


@functools.cache
def pushed():
    """World 0: box 5 N, ball none; 1: ball 5 N; 2: ball 55 N; 3: box pushed the other way."""
    return sliding(0.5, [5, 0, 0, -5], [0, 5, 55, 0], gravity=[0, 0, -10.0])


def test_a_pushed_box_on_sliders_sticks():
    """D2: 1 kg, g 10, F = +-5 N, mu 1, a ghost of 1e-6 kg between the sliders: force on the box (-F, 0, 10)."""
    model, seen = pushed()
    report = host(rsim.contact_report(model, seen.state))
    for world, direction in ((0, 1), (3, -1)):
        rows = on(report, model, "box", world)
        force = report.contact_force[:, rows, world].sum(axis=1)
        np.testing.assert_allclose(force, [-5 * direction, 0, 10], rtol=1e-9, atol=1e-9)
        assert report.slip_speed[rows, world].max() < 1e-9
        assert np.abs(report.separation_speed[rows, world]).max() < 1e-9
        np.testing.assert_allclose(report.point_pair.nhat_BA_W[:, rows, world].T, [[0, 0, -1]] * rows.sum())
    q, _ = entry(model, "box_x")
    assert np.abs(seen.q[:, q]).max() < 5e-5


def test_equilibrium_on_sliders():
    """D3: 10 kg, g 10: 100 N from the first step to the last; the contact is where the surfaces meet."""
    model, seen = pushed()
    report = host(rsim.contact_report(model, seen.state))
    rows = on(report, model, "ball", 0)
    assert rows.sum() == 1
    np.testing.assert_allclose(report.contact_force[:, rows, 0][:, 0], [0, 0, 100], atol=1e-9)
    np.testing.assert_allclose(report.contact_point[:, rows, 0][:, 0], [1, 0, 0], atol=1e-4)
    assert abs(report.separation_speed[rows, 0][0]) < 1e-12 and report.slip_speed[rows, 0][0] < 1e-12
    _, d = entry(model, "ball_z")
    np.testing.assert_allclose(10 * np.diff(seen.qd[:, d, 0], prepend=0) / DT, 0, atol=1e-8)


def test_a_push_of_a_tenth_of_the_cone_is_held():
    """D4: (-5, 0, 100) and no slip."""
    model, seen = pushed()
    report = host(rsim.contact_report(model, seen.state))
    rows = on(report, model, "ball", 1)
    np.testing.assert_allclose(report.contact_force[:, rows, 1][:, 0], [-5, 0, 100], atol=1e-5)
    assert report.slip_speed[rows, 1][0] < 1e-9


def test_a_push_beyond_the_cone_slides():
    """D5: 55 N against mu 100 = 50: v_x = 0.5 t, |f_t| = mu f_n, f_n = 100."""
    model, seen = pushed()
    _, d = entry(model, "ball_x")
    assert seen.qd[9, d, 2] == pytest.approx(5.0e-3, rel=1e-9)
    np.testing.assert_allclose(seen.qd[:, d, 2], 0.5 * seen.time, rtol=1e-9)
    report = host(rsim.contact_report(model, seen.state))
    rows = on(report, model, "ball", 2)
    np.testing.assert_allclose(report.contact_force[:, rows, 2][:, 0], [-50, 0, 100], atol=1e-9)
    assert report.slip_speed[rows, 2][0] == pytest.approx(seen.qd[-1, d, 2], rel=1e-12)


@functools.cache
def stacked(seconds, dt):
    """1 kg under 100, 1000, 1 and 10 kg."""
    model = sliders()
    mass = np.repeat(np.array(model.body_mass), SLIDING, axis=-1)
    mass[model.body_id("heavy")] = 100, 1000, 1, 10
    return sliding(seconds, 0, 0, body_mass=mass, dt=dt)


def stack_forces(model, seen, dt):
    """(T, 2, N): below the light ball and between the two, from the momentum that every step brings."""
    rows = [entry(model, name)[1] for name in ("light", "heavy")]
    mass = np.stack([np.asarray(model.body_mass)[model.body_id(name)] for name in ("light", "heavy")])
    force = mass * (np.diff(seen.qd[:, rows], axis=0, prepend=0) / dt + G)
    return np.stack([force.sum(axis=1), force[:, 1]], axis=1)


@pytest.mark.parametrize("seconds", [2, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dt", [0.004, pytest.param(0.001, marks=pytest.mark.slow)])
def test_a_light_ball_under_a_heavy_one(dt, seconds):
    """D19: 990.81 and 981 N, 9819.81 and 9810 N: 1 % in every step after 0.5 s, 0.01 % at 2 s, at default settings."""
    model, seen = stacked(seconds, dt)
    heavy = np.asarray(model.body_mass)[model.body_id("heavy")]
    right = G * np.stack([1 + heavy, heavy])
    force = stack_forces(model, seen, dt)
    late = seen.time > 0.5
    np.testing.assert_allclose(force[late], np.broadcast_to(right, force[late].shape), rtol=0.01)
    settled = force[seen.time >= 2 - 1e-9]
    np.testing.assert_allclose(settled, np.broadcast_to(right, settled.shape), rtol=1e-4)
    sunk = [seen.q[:, entry(model, name)[0]] for name in ("light", "heavy")]
    assert min(sunk[0].min(), (sunk[1] - sunk[0]).min()) > -1e-4
    assert max(np.abs(s).max() for s in sunk) < 1e-4


def test_velocities_of_stacked_spheres():
    """D7: contact half an overlap below the top of the first; relative velocity by rigid shift of both spins."""
    model, state = two_spheres()
    delta = 0.001
    model = model.replace(geom_size=np.full((3, 2, 1), 0.2))
    q, qd = np.array(state.q), np.array(state.qd)
    q[:3], q[7:10] = 0, np.array([0, 0, 0.4 - delta])[:, None]
    found = host(rsim.detect(model, state.replace(q=jnp.asarray(q))))
    np.testing.assert_allclose(found.contact_point[:, 0, 0], [0, 0, 0.2 - delta / 2], atol=1e-12)
    np.testing.assert_allclose(found.point_pair.depth[0, 0], delta, atol=1e-12)
    np.testing.assert_allclose(found.point_pair.nhat_BA_W[:, 0, 0], [0, 0, -1], atol=1e-12)
    qd[:6], qd[6:] = np.arange(1, 7)[:, None], np.arange(7, 13)[:, None]
    seen = run(model.replace(dt=jnp.asarray(1e-9)), state.replace(q=jnp.asarray(q), qd=jnp.asarray(qd)), 50e-9)
    report = host(rsim.contact_report(model, seen.state))
    c = report.contact_point[:, 0, 0]
    np.testing.assert_allclose(c, [0, 0, 0.2 - delta / 2], atol=1e-6)
    first, second = (
        qd[k : k + 3, 0] + np.cross(qd[k + 3 : k + 6, 0], c - x)
        for k, x in ((0, np.zeros(3)), (6, np.array([0, 0, 0.4 - delta])))
    )
    relative = second - first
    assert report.separation_speed[0, 0] == pytest.approx(relative[2], abs=1e-5)
    assert report.slip_speed[0, 0] == pytest.approx(np.hypot(*relative[:2]), abs=1e-5)
    assert (report.contact_force[:, 0, 0] == 0).all()


@functools.cache
def blocks(dt):
    """World 0 brakes from 2 m/s, 1 stands on 20 degrees at mu 0.5, 2 slides there at 0.2."""
    kind = np.resize([0, 1, 2], BLOCKS)
    model, state = worlds(
        block_on_plane("float64"),
        BLOCKS,
        dt,
        velocity=np.stack([np.where(kind == 0, 2.0, 0), np.zeros(BLOCKS), np.zeros(BLOCKS)]),
        gravity=tilted(np.where(kind == 0, 0.0, 20)),
        pair_friction=np.where(kind == 2, 0.2, 0.5),
    )
    return run(model, state, 1.0)


@pytest.mark.parametrize(("dt", "stop", "slid"), [(0.001, 0.406747, 0.756526), (0.004, 0.403750, 0.758793)])
def test_a_box_brakes_stands_and_slides(dt, stop, slid):
    """D15, D16, D17: distances of semi-implicit steps to the digits given, no creep, m g below throughout."""
    seen = blocks(dt)
    assert seen.q[-1, 0, 0] == pytest.approx(stop, abs=2e-6)
    np.testing.assert_allclose(seen.load[:, 0], G, atol=1e-6)
    assert np.abs(seen.q[:, 2, 0] - 0.05).max() < 1e-5
    assert np.abs(seen.qd[-1, :3, 1]).max() < 1e-9 and np.abs(seen.q[-1, :2, 1]).max() < 1e-6
    k = round(1 / dt) - 1
    assert seen.qd[k, 0, 2] == pytest.approx(1.511541, abs=1e-6)
    assert seen.q[k, 0, 2] == pytest.approx(slid, abs=1e-6)


def test_sliding_turns_into_rolling():
    """D18: 10/7 of the 2 m/s."""
    _, seen = balls(0.3, velocity=[[2.0], [0], [0]], pair_friction=[0.5])
    assert seen.qd[-1, 0, 0] == pytest.approx(10 / 7, abs=1e-9)


def test_two_belts_with_orthogonal_axes():
    """D20: the ground's surface runs along x, the box's own along y: f_x = -f_y > 0 on the box, f_z > 0."""
    speed = 1.0
    scene = rsim.Scene(timestep=0.001)
    scene.add_ground(surface_velocity=(speed, 0, 0))
    scene.add_box((0.2, 0.2, 0.1), 1.0, position=(0, 0, 0.05), surface_velocity=(0, speed, 0))
    plain = block_on_plane("float64")
    model = scene.compile(options=rsim.Options(sweeps=300, tolerance=1e-11), dtype="float64")
    assert model.topology == plain.topology
    model, state = worlds(model, BLOCKS)
    seen = run(model, state, 0.05)
    force = np.asarray(rsim.net_contact_force(model, seen.state))[:, 1, 0]
    assert force[0] > 0 and force[0] == pytest.approx(-force[1], rel=0.1)
    assert force[2] == pytest.approx(G, rel=1e-6)
    np.testing.assert_allclose(np.hypot(*force[:2]), 0.5 * G, rtol=1e-6)
    long = run(model, state, 0.5).qd[-1, :, 0]
    np.testing.assert_allclose(long[:2], [speed, -speed], atol=1e-9)  # until neither surface slips
