"""Pins, welds and joint equalities: mechanisms whose motion is known, and loops that nothing may open."""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.trials import G, run

import rsim_jax as rsim
from rsim_jax.modeling import compiled
from rsim_jax.structs import EQUALITY, PIN

MODELS = Path(__file__).parents[1] / "models"
WORLDS = 4
FOUR_BAR = """
<mujoco model="bar"><compiler angle="radian"/><worldbody>
  <body name="crank"><joint name="crank" axis="0 1 0"/>
    <inertial pos="0 0 -.25" mass="1" diaginertia="0.0208333333 0.0208333333 1e-4"/>
    <body name="coupler" pos="0 0 -.5"><joint name="coupler" axis="0 1 0"/>
      <inertial pos=".5 0 0" mass="2" diaginertia="1e-3 .2 .2"/></body></body>
  <body name="follower" pos="1 0 0"><joint name="follower" axis="0 1 0"/>
    <inertial pos="0 0 -.25" mass="1" diaginertia="0.0208333333 0.0208333333 1e-4"/></body>
</worldbody><equality><connect body1="coupler" body2="follower" anchor="1 0 0"/></equality></mujoco>
"""  # the pin's equation along y has no mobility: the loop has one equation too many
WELDED = """
<mujoco model="weld"><worldbody>
  <body name="left"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia=".01 .02 .03"/></body>
  <body name="right" pos=".3 0 .1" euler="20 0 40"><freejoint/>
    <inertial pos=".02 0 0" mass="2" diaginertia=".02 .03 .04"/></body>
</worldbody><equality><weld body1="left" body2="right"/></equality></mujoco>
"""
RIGID = WELDED.replace('model="weld"', 'model="rigid"').replace('<body name="right"', '<body name="whole"')
RIGID = RIGID.split("<equality>")[0] + "</mujoco>"
RIGID = (
    RIGID.replace("<freejoint/></body>", "")
    .replace(
        '</body>\n  <body name="whole" pos=".3 0 .1" euler="20 0 40"><freejoint/>',
        '\n  <body name="whole" pos=".3 0 .1" euler="20 0 40">',
    )
    .replace('diaginertia=".02 .03 .04"/></body>', 'diaginertia=".02 .03 .04"/></body></body>')
)


@functools.cache
def mechanisms(integrator="semi_implicit"):
    """One scene of all mechanisms without contacts: (model, first dof by name)."""
    scene = rsim.Scene(timestep=0.001)
    for name, text in (("bar", FOUR_BAR), ("weld", WELDED), ("rigid", RIGID)):
        scene.add_articulation(text, name=name)
    rod = scene.add_box((0.01, 0.01, 1.0), 1.0, (0, 5, -0.5), name="rod", inertia=(1 / 12, 1 / 12, 1e-3))
    scene.add_pin(0, rod, (0, 5, 0), (0, 0, 0.5))
    hand = scene.add_sphere(0.1, 1.0, (0, 8, 0), kinematic=True, name="hand")
    held = scene.add_sphere(0.1, 1.0, (0, 8, -0.5), name="held")
    for _ in range(2):  # the same pin twice
        scene.add_pin(hand, held, (0, 0, 0), (0, 0, 0.5))
    options = rsim.Options(max_contacts=0, integrator=integrator)
    return scene.compile(options=options, dtype="float64", ignore=("pair",))


def entries(name, model=None):
    """(first of q, first of qd) of a joint, or of a body's free joint."""
    t = (model or mechanisms()).topology
    joint = t.joint_names.index(name) if name in t.joint_names else t.joint_body.index(t.body_names.index(name))
    return t.joint_qadr[joint], t.joint_dadr[joint]


def begun(**angles):
    """State with the four-bar and the rod turned by (N,) angles."""
    model = mechanisms()
    state = rsim.make_state(model, WORLDS)
    q = np.array(state.q)
    bar = np.broadcast_to(angles.get("bar", 0.0), WORLDS)
    for joint, sign in (("bar/crank", 1), ("bar/coupler", -1), ("bar/follower", 1)):
        q[entries(joint)[0]] = sign * bar
    rod = np.broadcast_to(angles.get("rod", 0.0), WORLDS)
    start = entries("rod")[0]
    q[start : start + 7] = [0.5 * -np.sin(rod), 5 + 0 * rod, -0.5 * np.cos(rod), *quaternion_about_y(rod)]
    return state.replace(q=jnp.asarray(q))


def quaternion_about_y(angle):
    return np.cos(angle / 2), 0 * angle, np.sin(angle / 2), 0 * angle


def periods(x, time):
    result = []
    for a in x.T:
        k = np.flatnonzero(a[:-1] * a[1:] < 0)
        zeros = time[k] + (time[k + 1] - time[k]) * a[k] / (a[k] - a[k + 1])
        result.append(zeros[2] - zeros[0])
    return np.array(result)


def pin_rows(state, kind=PIN):
    return [r for r, k in enumerate(state.rows.kind) if k == kind]


def test_four_bar_and_pinned_rod_swing_with_their_periods():
    """Parallelogram of cranks 0.5 m: 1.337377 s; uniform rod of 1 m on a ball joint: 1.637947 s and longer swings."""
    small = np.array([1e-3, 0.01, 1e-3, 1e-3])
    seen = run(mechanisms(), begun(bar=small, rod=small), 2.6)
    np.testing.assert_allclose(periods(seen.q[:, entries("bar/crank")[0]], seen.time)[0], 1.337377, rtol=2e-5)
    np.testing.assert_allclose(periods(seen.q[:, entries("rod")[0]], seen.time)[0], 1.637947, rtol=2e-5)
    assert (np.asarray(seen.state.status) == 0).all()


def test_a_four_bar_stays_closed_and_its_coupler_level():
    """60 degrees and more for 10 s: gap below 1e-4 m, no growth; the coupler does not turn."""
    angles = np.radians([60, 90, 120, 30])
    start = begun(bar=angles)
    early = run(mechanisms(), start, 2.0, every=5)
    late = run(mechanisms(), early.state, 8.0, every=5)
    crank, coupler, follower = (entries(f"bar/{j}")[0] for j in ("crank", "coupler", "follower"))
    for seen in (early, late):
        assert np.abs(seen.q[:, crank] + seen.q[:, coupler]).max() < 1e-4
        tip = [0.5 * np.sin(seen.q[:, j]) for j in (crank, follower)]
        assert np.abs(tip[0] - tip[1]).max() < 1e-4
    gaps = [np.asarray(s.state.rows.gap)[pin_rows(s.state)[:1]].max() for s in (early, late)]
    assert max(gaps) < 1e-4
    for seen in (early, late):
        assert np.abs(bar_energy(seen) - bar_energy(early)[0]).max() < 0.01 * 1.5 * G


def test_a_four_bar_stays_closed_at_four_milliseconds():
    seen = run(mechanisms().replace(dt=0.004), begun(bar=np.radians([60, 90, 120, 30])), 8.0)
    follower, crank = (0.5 * np.sin(seen.q[:, entries(f"bar/{j}")[0]]) for j in ("follower", "crank"))
    assert np.abs(follower - crank).max() < 1e-3
    assert np.asarray(seen.state.rows.gap)[pin_rows(seen.state)[0]].max() < 1e-3


def bar_energy(seen):
    """Of the level four-bar (T, N), J: two rods of 1 kg about their ends, 2 kg at the tips."""
    angle, rate = seen.q[:, entries("bar/crank")[0]], seen.qd[:, entries("bar/crank")[1]]
    return 0.5 * (2 * 0.25 / 3 + 2 * 0.25) * rate**2 - 1.5 * G * np.cos(angle)


@pytest.mark.parametrize(("integrator", "drift"), [("trapezoid", 0.02), ("rk4", 0.005)])
def test_the_other_integrators_keep_the_loop_too(integrator, drift):
    """Energy of m g l over 2 s; the trapezoid rule alone gains w^2 dt t / 2 of it."""
    model = rsim.load(FOUR_BAR, options=rsim.Options(max_contacts=0, integrator=integrator), dtype="float64")
    model = model.replace(dt=0.001)
    state = rsim.make_state(model, WORLDS)
    angle = np.radians(60)
    start = jnp.broadcast_to(jnp.asarray([angle, -angle, angle])[:, None], (3, WORLDS))
    seen = run(model, state.replace(q=start), 2.0, every=10)
    assert np.asarray(seen.state.rows.gap)[pin_rows(seen.state)].max() < 1e-4
    energy = 0.5 * (2 * 0.25 / 3 + 2 * 0.25) * seen.qd[:, 0] ** 2 - 1.5 * G * np.cos(seen.q[:, 0])
    assert np.abs(energy - energy[0]).max() < drift * 1.5 * G


def test_two_welded_bodies_move_as_one():
    """The same force at the same point: equal accelerations from rest, and a tumble that stays together."""
    model = mechanisms()
    state = begun()
    force = 1e-4 * np.random.default_rng(0).normal(size=(3, WORLDS))  # the bodies' own spins do not count yet
    for body, offset in (("weld/right", (0.1, 0.2, 0.3)), ("rigid/whole", (0.1, 0.2, 0.3))):
        point = np.asarray(rsim.body_pose(model, state)[0])[:, model.body_id(body), 0] + np.array(offset)
        state = rsim.apply_force(model, state, body, jnp.asarray(force), point=jnp.asarray(point))
    after = run(model, state, 0.001).qd[0]
    fall = np.array([0, 0, G * 0.001, 0, 0, 0])[:, None]
    pushed = [after[entries(b)[1] :][:6] + fall for b in ("weld/left", "rigid/left")]
    assert np.abs(pushed[1]).max() > 1e-8
    np.testing.assert_allclose(*pushed, rtol=1e-6, atol=1e-14)

    qd = np.zeros(state.qd.shape)
    spin = np.array([1.0, 2.0, 3.0])
    for body in ("weld/left", "rigid/left"):
        qd[entries(body)[1] + 3 :][:3] = spin[:, None]
    right = entries("weld/right")[1]
    poses, turns = (np.asarray(x)[..., 0] for x in rsim.body_pose(model, begun()))
    left_id, right_id = model.body_id("weld/left"), model.body_id("weld/right")
    w, x, y, z = turns[:, right_id]
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    qd[right : right + 3] = np.cross(spin, poses[:, right_id] - poses[:, left_id])[:, None]
    qd[right + 3 : right + 6] = (R.T @ spin)[:, None]
    seen = run(model, begun().replace(qd=jnp.asarray(qd)), 1.0, every=50)
    one, two = (seen.q[:, entries(b)[0] :][:, :7, 0] for b in ("weld/left", "rigid/left"))
    assert np.abs(one - two).max() < 0.02  # both rules of turning are of first order in dt
    assert np.asarray(seen.state.rows.gap)[pin_rows(seen.state)].max() < 1e-4


def test_a_pin_follows_a_kinematic_body():
    """The hand moves at 1 m/s: so does the anchor, from the first step on."""
    model = mechanisms()
    state = rsim.set_kinematic(model, begun(), "hand", velocity=(1.0, 0, 0))
    seen = run(model, state, 1.0)
    start = entries("held")[1]
    v = seen.qd[0, start : start + 6, 0]
    anchor = v[:3] + np.cross(v[3:], [0, 0, 0.5])  # unturned: body axes are world axes
    np.testing.assert_allclose(anchor, [1, 0, 0], atol=1e-12)
    assert np.asarray(seen.state.rows.gap)[pin_rows(seen.state)].max() < 1e-3
    assert np.asarray(seen.state.kinematic_position)[0, 0, 0] == pytest.approx(1.0, abs=1e-9)


CHAIN = 10


def test_a_hanging_chain_carries_its_weight_joint_by_joint():
    scene = rsim.Scene(timestep=0.002)
    before = 0
    for k in range(CHAIN):
        link = scene.add_capsule(0.01, 0.1, 0.1 * (k + 1), (0, 0, -0.1 * k - 0.05))
        scene.add_pin(before, link, (0, 0, 0) if k == 0 else (0, 0, -0.05), (0, 0, 0.05))
        before = link
    model = scene.compile(options=rsim.Options(max_contacts=0), dtype="float64", ignore=("pair",))
    state, _ = rsim.rollout(model, rsim.make_state(model, 1), steps=50)
    force = np.asarray(state.rows.impulse)[:, pin_rows(state), 0] / 0.002
    below = np.cumsum(0.1 * np.arange(CHAIN, 0, -1))[::-1]
    np.testing.assert_allclose(force, [0 * below, 0 * below, G * below], atol=1e-6 * G * below[0])
    assert np.abs(np.asarray(state.qd)).max() < 1e-9


LINKAGE = """
<mujoco model="linkage"><compiler angle="radian"/><option timestep="0.002"/>
<default><geom type="capsule" size=".03" density="500" friction=".5"/></default>
<worldbody>
  <geom type="plane" size="0 0 1"/>
  <body name="base" pos="0 0 .5"><freejoint/><geom fromto="0 0 0 .4 0 0"/>
    <body name="left"><joint axis="0 1 0"/><geom fromto="0 0 0 0 0 .4"/>
      <body name="top" pos="0 0 .4"><joint axis="0 1 0"/><geom fromto="0 0 0 .4 0 0"/></body></body>
    <body name="right" pos=".4 0 0"><joint axis="0 1 0"/><geom fromto="0 0 0 0 0 .4"/></body></body>
</worldbody>
<contact><exclude body1="base" body2="top"/><exclude body1="left" body2="right"/>
  <exclude body1="top" body2="right"/></contact>
<equality><connect name="corner" body1="top" body2="right" anchor=".4 0 0"/></equality></mujoco>
"""


@functools.cache
def linkage(dtype):
    model = rsim.load(LINKAGE, dtype=dtype)
    state = rsim.make_state(model, 8)
    q = np.array(state.q)
    q[3:7] = np.random.default_rng(0).normal(size=(4, 8))
    q[3:7] /= np.linalg.norm(q[3:7], axis=0)
    return model, state.replace(q=jnp.asarray(q, dtype))


def kept(state):
    row = state.rows.kind.index(PIN)
    return state.q, state.rows.velocity[:, row], state.rows.gap[row], state.rows.impulse[2, :row]


@pytest.mark.parametrize(("dtype", "rounding"), [("float64", 1e-12), ("float32", 2e-5)])
def test_no_contact_opens_a_loop(dtype, rounding):
    """A four-bar linkage tumbles onto the ground: in every step its pin has the velocity it asks for."""
    model, state = linkage(dtype)
    _, (q, velocity, gap, load) = rsim.rollout(model, state, steps=600, output=kept)
    assert (np.asarray(load).max(axis=(0, 1)) > 0.1).all()  # every world was hit
    wanted = 0.3 / 0.002 * np.asarray(gap)
    assert np.abs(np.linalg.norm(np.asarray(velocity), axis=1) - wanted).max() < rounding
    assert np.asarray(gap).max() < 1e-3
    assert np.isfinite(np.asarray(q)).all()


def test_a_broken_world_does_not_reach_the_loops_of_the_others():
    model, state = linkage("float32")
    end, _ = rsim.rollout(model, state, steps=600, output=kept)
    broken, _ = rsim.rollout(model, state.replace(qd=state.qd.at[0, 3].set(jnp.nan)), steps=600, output=kept)
    others = np.array([n for n in range(8) if n != 3])
    for one, two in zip(jax.tree.leaves(end), jax.tree.leaves(broken), strict=True):
        np.testing.assert_array_equal(np.asarray(one)[..., others], np.asarray(two)[..., others])
    assert int(broken.status[3]) & int(rsim.Status.NOT_FINITE)


def test_a_mimic_joint_follows():
    """B05: 3 N on the lead of 1 kg; the follower of 2 kg moves at -0.5 times: together 1.5 kg."""
    model = rsim.load(str(MODELS / "b05_mimic.urdf"), dtype="float64").replace(gravity=np.zeros((3, 1)))
    lead, follow = model.joint_id("lead"), model.joint_id("follow")
    state = rsim.make_state(model, 1)
    state = state.replace(q=state.q.at[follow].set(0.02))
    step = jax.jit(lambda s: rsim.step(model, rsim.apply_generalized_force(model, s, tau)))
    tau = jnp.zeros(2).at[lead].set(3.0)
    for _ in range(round(0.5 / float(model.dt))):
        state = step(state)
        assert abs(float(state.q[follow, 0] + 0.5 * state.q[lead, 0] - 0.02)) < 1e-9
    np.testing.assert_allclose(np.asarray(state.qd)[[lead, follow], 0], [1.0, -0.5], rtol=1e-9)
    source = compiled(model)
    data = mujoco.MjData(source)
    source.opt.gravity[:] = 0
    data.qpos[follow] = 0.02
    data.qfrc_applied[lead] = 3
    mujoco.mj_step(source, data, nstep=round(0.5 / source.opt.timestep))
    np.testing.assert_allclose(data.qvel, state.qd[:, 0], rtol=2e-3)  # MuJoCo's equality is soft
    row = pin_rows(state, EQUALITY)[0]
    # the equation's impulse moves the follower: 2 kg at -1 m/s^2
    assert float(state.rows.impulse[2, row, 0]) / float(model.dt) == pytest.approx(-2.0, rel=1e-9)


@pytest.mark.slow
def test_a_step_of_a_pinned_chain_has_the_derivative_of_differences():
    scene = rsim.Scene(timestep=0.01)
    a = scene.add_sphere(0.05, 1.0, (0.3, 0, 0))
    b = scene.add_sphere(0.05, 0.5, (0.6, 0, 0))
    scene.add_pin(0, a, (0, 0, 0), (-0.3, 0, 0))
    scene.add_pin(a, b, (0.1, 0.05, 0), (-0.2, 0.05, 0))
    scene.add_pin(a, b, (0.1, 0.05, 0), (-0.2, 0.05, 0))
    model = scene.compile(options=rsim.Options(max_contacts=0), dtype="float64", ignore=("pair",))
    state = rsim.make_state(model, 1)
    rng = np.random.default_rng(0)
    qd, toward, weight = (jnp.asarray(rng.normal(size=(12, 1))) for _ in range(3))
    mass = jnp.asarray(rng.normal(size=model.body_mass.shape))

    def value(h):
        changed = model.replace(body_mass=model.body_mass + 0.1 * h * mass)
        after = rsim.step(changed, state.replace(qd=qd + h * toward, q=state.q.at[2].add(h)))
        return jnp.sum(weight * after.qd) + jnp.sum(after.q[:3]) + jnp.sum(after.rows.impulse)

    slope = float(jax.jit(jax.grad(value))(0.0))
    plain = jax.jit(value)
    step = 1e-6
    assert slope == pytest.approx(float(plain(step) - plain(-step)) / (2 * step), rel=1e-6)
