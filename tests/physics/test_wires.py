"""Wires: stiff, compliant and custom ones, one-sided and two-sided, against closed forms."""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics.trials import G

import rsim_jax as rsim

MODELS = Path(__file__).parents[1] / "models"
DT, WORLDS = 0.001, 4
PENDULUM, ROD, STRUT, SPRING, CORD, PULLED = range(6)  # wires, and the balls that hang on them, 1 m apart along y
STIFFNESS, DAMPING, HEAVY = 400.0, 3.0, 2.0


@functools.cache
def balls():
    """Six balls of 1 kg on wires of 1 m from (0, y, 0), lengths per world; no contacts."""
    scene = rsim.Scene(timestep=DT)
    kinds = [
        {},
        {"resist": "both"},
        {"resist": "compression"},
        {"kind": "compliant", "resist": "both", "stiffness": STIFFNESS, "damping": DAMPING},
        {"kind": "compliant", "stiffness": STIFFNESS, "damping": DAMPING},
        {"kind": "custom", "resist": "both"},
    ]
    for k, kind in enumerate(kinds):
        ball = scene.add_sphere(0.05, 1.0, (0, k, -1))
        assert scene.add_wire(0, ball, (0, k, 0), (0, 0, 0), 1.0, **kind) == k
    model = scene.compile(options=rsim.Options(max_contacts=0), dtype="float64", ignore=("pair",))
    return model.replace(wire_length=np.broadcast_to(model.wire_length, (6, WORLDS)))


def seen(state):
    return state.q, state.qd, state.rows.impulse[2] / DT


STEPS = 100


def watch(state, seconds, model=None):
    """(q, qd, row forces) of every step, (T, ..., N), and the last state."""
    parts = []
    for _ in range(round(seconds / DT / STEPS)):
        state, part = rsim.rollout(model or balls(), state, steps=STEPS, output=seen)
        parts.append([np.asarray(x) for x in part])
    return [np.concatenate(x) for x in zip(*parts, strict=True)], state


def placed(ball, x=0.0, z=-1.0, vx=0.0, vz=0.0, state=None):
    """The state with one ball moved; every argument a number or (N,)."""
    state = state or rsim.make_state(balls(), WORLDS)
    q, qd = np.array(state.q), np.array(state.qd)
    q[7 * ball], q[7 * ball + 2], qd[6 * ball], qd[6 * ball + 2] = x, z, vx, vz
    return state.replace(q=jnp.asarray(q), qd=jnp.asarray(qd))


def where(q, ball):
    return q[:, 7 * ball], q[:, 7 * ball + 2]


ROWS = {PENDULUM: 0, STRUT: 1, SPRING: 2, CORD: 3, PULLED: 4, ROD: 5}  # the rod's row is that of a loop


@pytest.mark.parametrize("ball", [PENDULUM, ROD])
def test_a_wire_pendulum(ball):
    """Case 37: tension m g (3 - 2 cos) at the bottom, m g at rest; no stretch, the energy stays, longer swings."""
    angles = np.radians([60.0, 90.0, 0.0, 1.0])
    (q, qd, force), end = watch(placed(ball, np.sin(angles), -np.cos(angles)), 3.0)
    x, z = where(q, ball)
    length = np.hypot(x, z)
    assert np.abs(length - 1).max() < 1e-4
    bottom = np.argmax(x[:, :2] < 0, axis=0)
    tension = force[:, ROWS[ball]]
    np.testing.assert_allclose([tension[k, n] for n, k in enumerate(bottom)], [19.62, 29.43], rtol=2e-3)
    np.testing.assert_allclose(tension[:, 2], G, rtol=1e-9)
    assert tension.min() > (-1e-3 if ball == ROD else -1e-12)
    zeros = [np.flatnonzero((x[:-1, n] > 0) != (x[1:, n] > 0)) for n in (0, 1, 3)]
    at = [k + x[k, n] / (x[k, n] - x[k + 1, n]) for n, k in zip((0, 1, 3), zeros, strict=True)]
    np.testing.assert_allclose([DT * (t[2] - t[0]) for t in at], [2.152875, 2.367842, 2.006218], rtol=2e-4)
    energy = 0.5 * (qd[:, 6 * ball] ** 2 + qd[:, 6 * ball + 2] ** 2) + G * z
    assert np.abs(energy - energy[0]).max() < 0.01 * G
    assert rsim.wire_tension(balls(), end)[ball, 2] == pytest.approx(G, rel=1e-9)
    assert (np.asarray(end.status) == 0).all()


def test_a_slack_wire_does_nothing_and_catches_a_fall_by_its_radial_velocity():
    """Released 0.5 m below: free fall until 0.319 s; from the side the tangential velocity stays."""
    start = placed(PENDULUM, [0.0, 0.3, 0.0, 0.0], [-0.5, -0.4, -0.999, -0.5], vx=[0, 1, 0, 2.0])
    (q, qd, force), _ = watch(start, 0.5)
    x, z = where(q, PENDULUM)
    tension = force[:, ROWS[PENDULUM]]
    for n in (0, 1, 3):
        caught = int(np.argmax(tension[:, n] > 0))
        assert (tension[:caught, n] == 0).all()
        steps = np.arange(1, caught + 1)
        height = z[0, n] + G * DT**2 - G * DT**2 * steps * (steps + 1) / 2
        np.testing.assert_allclose(z[:caught, n], height, rtol=0, atol=1e-12)
        # two steps later (the first closes the last gap) nothing radial is left of the fall, the rest is untouched
        before, after = (qd[k, [6 * PENDULUM, 6 * PENDULUM + 2], n] for k in (caught - 1, caught + 1))
        d = np.array([x[caught, n], z[caught, n]])
        d /= np.hypot(*d)
        assert abs(d @ after) < 0.02
        across = np.array([d[1], -d[0]])
        assert across @ after == pytest.approx(across @ before, abs=0.03 + 2 * G * DT)
    assert np.argmax(tension[:, 0] > 0) * DT == pytest.approx(0.319, abs=0.002)
    assert z[299, 0] == pytest.approx(1.058 - 2, abs=3e-3)
    assert np.hypot(x, z).max() < 1.001


def test_a_strut_carries_a_weight_and_lets_it_go():
    """Resists compression: a ball on top of it stands, one that is thrown up leaves; it never pulls."""
    start = placed(STRUT, 0.0, 1.0, vz=[0.0, 2.0, 0.0, -1.0])
    (q, _, force), end = watch(start, 0.3)
    _, z = where(q, STRUT)
    push = force[:, ROWS[STRUT]]
    np.testing.assert_allclose(push[:, 0], G, rtol=1e-9)
    np.testing.assert_allclose(z[:, 0], 1, atol=1e-9)
    assert (push >= 0).all() and (push[:200, 1] == 0).all()
    assert np.asarray(rsim.wire_tension(balls(), end))[STRUT, 0] == pytest.approx(-G, rel=1e-9)


def oscillated(z, vz, steps, one_sided):
    """The implicit scheme m v+ = m v - m g dt + dt T, T = k (l+ - 1) + c l+', of a ball that hangs straight."""
    trace = []
    for _ in range(steps):
        length, speed = -z, -vz + G * DT
        acts = not one_sided or length + DT * speed > 1 or length >= 1
        c = DAMPING if acts else 0
        tension = (STIFFNESS * (length + DT * speed - 1) + c * speed) / (1 + DT * (DT * STIFFNESS + c))
        tension = max(tension, 0) if one_sided else tension
        vz = vz - G * DT + DT * tension
        z = z + DT * vz
        trace.append((z, tension))
    return np.array(trace).T


@pytest.mark.parametrize(("ball", "one_sided"), [(SPRING, False), (CORD, True)])
def test_a_compliant_wire_is_an_implicit_spring_and_damper(ball, one_sided):
    heights, speeds = np.array([-1.2, -0.7, -1.0, -0.9]), np.array([0.0, 0.0, 3.0, -2.0])
    (q, _, force), _ = watch(placed(ball, 0.0, heights, vz=speeds), 0.6)
    for n in range(WORLDS):
        z, tension = oscillated(heights[n], speeds[n], len(q), one_sided)
        np.testing.assert_allclose(where(q, ball)[1][:, n], z, atol=1e-9)
        np.testing.assert_allclose(force[:, ROWS[ball], n], tension, atol=1e-7)
    assert (force[:, ROWS[ball]] == 0).any() == one_sided


@pytest.mark.slow
def test_the_trapezoid_rule_takes_a_spring_at_mid_step_and_catches_at_the_length():
    scene = rsim.Scene(timestep=DT)
    for k, kind in enumerate(({"kind": "compliant", "resist": "both", "stiffness": 400.0, "damping": 3.0}, {})):
        scene.add_wire(0, scene.add_sphere(0.05, 1.0, (0, k, -0.8)), (0, k, 0), (0, 0, 0), 1.0, **kind)
    options = rsim.Options(max_contacts=0, integrator="trapezoid")
    model = scene.compile(options=options, dtype="float64", ignore=("pair",))
    (q, _, force), _ = watch(rsim.make_state(model, 1), 0.4, model)
    z, vz, trace = -0.8, 0.0, []
    for _ in range(len(q)):
        # T = k (l + dt/2 l' - 1) + c l' with the mean velocity of the step, v+ = v - g dt + dt T
        weight = STIFFNESS * DT / 2 + DAMPING
        mean = vz - G * DT / 2  # without the wire; the wire adds dt T / 2
        tension = (STIFFNESS * (-z - 1) - weight * mean) / (1 + weight * DT / 2)
        z, vz = z + DT * (mean + DT * tension / 2), vz - G * DT + DT * tension
        trace.append((z, tension))
    np.testing.assert_allclose(np.stack([q[:, 2, 0], force[:, 0, 0]], axis=1), trace, atol=1e-8)
    caught = int(np.argmax(force[:, 1, 0] > 0))
    assert DT * caught == pytest.approx(np.sqrt(2 * 0.2 / G), abs=0.002)
    assert q[:, 9, 0].min() > -1.001
    np.testing.assert_allclose(q[-1, 9, 0], -1, atol=1e-5)


def test_a_custom_wire_has_the_tension_it_is_given_until_it_changes():
    state = rsim.set_wire_tension(balls(), placed(PULLED), PULLED, jnp.asarray([G, 0.0, -3.0, 2 * G]))
    (q, qd, force), state = watch(state, 0.2)
    np.testing.assert_allclose(force[:, ROWS[PULLED]], np.tile([G, 0.0, -3.0, 2 * G], (len(q), 1)), atol=1e-12)
    expected = np.array([0, -G, -G - 3, G]) * 0.2
    np.testing.assert_allclose(qd[-1, 6 * PULLED + 2], expected, atol=1e-9)
    state = rsim.set_wire_tension(balls(), state, PULLED, 0.0)
    (_, later, _), _ = watch(state, 0.1)
    np.testing.assert_allclose(later[-1, 6 * PULLED + 2], expected - 0.1 * G, atol=1e-9)
    for wire, tension, message in ((0, 1.0, "is stiff"), (6, 1.0, "does not exist"), (PULLED, np.ones(3), "shape")):
        with pytest.raises(ValueError, match=message):
            rsim.set_wire_tension(balls(), state, wire, tension)


def test_lengths_may_differ_by_world():
    lengths = np.array([1.0, 1.01, 1.02, 1.05])
    model = balls().replace(wire_length=np.broadcast_to(lengths, (6, WORLDS)))
    (q, _, _), _ = watch(placed(PENDULUM), 1.0, model)
    np.testing.assert_allclose(where(q, PENDULUM)[1][-1], -lengths, atol=1e-3)
    np.testing.assert_allclose(where(q, ROD)[1][-1], -lengths, atol=1e-3)


def test_wires_of_a_file():
    """B35: slack at first, free fall, never longer than 1.01 m, hanging tension m g."""
    model = rsim.load(str(MODELS / "b35_wire.xml"), dtype="float64")
    assert (model.topology.wire_kind, model.topology.wire_resist) == (("stiff",), ("stretch",))
    (q, _, force), end = watch(rsim.make_state(model, 1), 2.0, model)
    assert (force[:300] == 0).all()
    assert q[299, 2, 0] == pytest.approx(1.058, abs=3e-3)
    assert (2 - q[:, 2, 0]).max() < 1.001
    assert float(rsim.wire_tension(model, end)[model.wire_id("wire"), 0]) == pytest.approx(G, rel=1e-6)


MEETING = """
<mujoco model="b49"><option timestep="0.001"/><worldbody>
  <body><freejoint/><geom size=".05" mass="1"/><site name="a"/></body>
  <body><freejoint/><geom size=".05" mass="1"/><site name="b"/></body>
</worldbody><tendon>
  <spatial name="stop" range="0 0.5"><site site="a"/><site site="b"/></spatial>
  <spatial name="spring" springlength="0.2" stiffness="10"><site site="a"/><site site="b"/></spatial>
</tendon></mujoco>
"""


@pytest.mark.slow
def test_a_wire_without_length_has_finite_forces_and_derivatives():
    """B49: both ends at one point; 1e-3 m apart the direction is right."""
    model = rsim.load(MEETING, dtype="float64", options=rsim.Options(max_contacts=0), ignore=("pair",))
    state = rsim.make_state(model, 2)
    q = state.q.at[7, 1].set(6e-4).at[8, 1].set(8e-4)

    def after(q, length):
        end = rsim.step(model.replace(wire_length=length), state.replace(q=q))
        return end.q, end.qd, end.rows.impulse, end.rows.gap

    @jax.jit
    def value_and_slope(q, length):
        return jax.jvp(after, (q, length), (jnp.ones_like(q), jnp.ones_like(length)))

    values, slopes = value_and_slope(q, model.wire_length)
    assert all(np.isfinite(np.asarray(x)).all() for x in (*values, *slopes))
    qd = np.asarray(values[1])
    pushed = qd[6:9, 1] - qd[:3, 1]
    np.testing.assert_allclose(pushed / np.linalg.norm(pushed), [0.6, 0.8, 0], atol=1e-4)
    end, _ = rsim.rollout(model, state.replace(q=q), steps=200)
    assert all(np.isfinite(np.asarray(x)).all() for x in jax.tree.leaves(end))
