"""Mechanisms of one to three joints: pendulums, servos, springs, dry friction, damping, limits.

All of them stand side by side in one scene without contacts, so that one program serves every trial; what a trial
does not concern is left alone in its worlds.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from physics.trials import G, run

import rsim_jax as rsim

MODELS = Path(__file__).parents[1] / "models"
FILES = (
    "b09_ref.xml",
    "b11_frictionloss.xml",
    "b16_heavy_damping.xml",
    "b18_limit_isolation.xml",
    "b34_tight_limit.xml",
)
OWN = """
<mujoco model="own"><compiler angle="radian"/><worldbody>
  <body name="swing"><joint name="swing" axis="0 1 0" limited="true" range="-1000 1000"/>
    <inertial pos="0 0 -1" mass="1" diaginertia="1e-10 1e-10 1e-10"/></body>
  <body name="servo"><joint name="servo" axis="0 0 1"/>
    <inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/></body>
</worldbody><actuator><position name="servo" joint="servo" kp="50" kv="2"/></actuator></mujoco>
"""
WORLDS = 8
DOWN = np.array([0, 0, -G])


@functools.cache
def built(dtype="float64"):
    scene = rsim.Scene(timestep=0.001)
    for name in FILES:
        scene.add_articulation(MODELS / name, name=name[:3])
    scene.add_articulation(OWN, name="own")
    options = rsim.Options(max_contacts=0, sweeps=60)
    return scene.compile(options=options, dtype=dtype)


def trial(seconds, dt=0.001, *, start=(), speed=(), ctrl=(), gravity=DOWN, every=1, limit_restitution=0.0, **leaves):
    """Run with joints started, pushed or controlled by name: pairs (name, value or (N,))."""
    model = built()
    varied = {"gravity": gravity, "dt": dt}
    for name in ("body_com", "body_inertia", "joint_range", "joint_velocity_limit", "actuator_gain", "actuator_bias"):
        varied[name] = leaves.get(name, getattr(model, name))
    for name, value in varied.items():
        if name != "dt":
            value = np.asarray(value, float)
            shape = getattr(model, name).shape[:-1]
            value = value[..., None] if value.ndim == len(shape) else value
            varied[name] = jnp.asarray(np.broadcast_to(value, (*shape, WORLDS)))
    varied["dt"] = jnp.asarray(dt, model.dtype)
    model = model.replace(**varied)
    model = dataclasses.replace(model, limit_restitution=jnp.asarray(limit_restitution, model.dtype))
    state = rsim.make_state(model, WORLDS)
    q, qd, u = np.array(state.q), np.array(state.qd), np.zeros((model.nu, WORLDS))
    for name, value in start:
        q[entry(name)] = value
    for name, value in speed:
        qd[entry(name)] = value
    for name, value in ctrl:
        u[model.actuator_id(name)] = value
    state = state.replace(q=jnp.asarray(q), qd=jnp.asarray(qd))
    return run(model, state, seconds, every, ctrl=u)


def entry(name):
    """Row of a joint in q and qd: all joints have one dof."""
    return built().joint_id(name)


def periods(angle, time):
    """Time between the first and the third zero of every column."""
    result = []
    for a in angle.T:
        k = np.flatnonzero(a[:-1] * a[1:] < 0)
        zeros = time[k] + (time[k + 1] - time[k]) * a[k] / (a[k] - a[k + 1])
        result.append(zeros[2] - zeros[0])
    return np.array(result)


def test_pendulum_periods():
    """Point masses from a small angle to 90 degrees, and a uniform rod."""
    model = built()
    body = model.body_id("own/swing")
    com, inertia = (np.repeat(np.array(x), WORLDS, axis=-1) for x in (model.body_com, model.body_inertia))
    com[2, body, 4], inertia[:3, body, 4] = -0.5, 1 / 12
    angles = np.array([1e-3, 0.5, np.radians(60), np.radians(90), 1e-3, 0.1, 0.1, 0.1])
    seen = trial(3.1, start=[("own/swing", angles)], body_com=com, body_inertia=inertia)
    found = periods(seen.q[:, entry("own/swing")], seen.time)
    np.testing.assert_allclose(found[:5], [2.006067, 2.037868, 2.152875, 2.367842, 1.637947], rtol=1e-5)


def rod(limits):
    """Leaves of a uniform rod (1 kg, 1 m) with stops of its own."""
    model = built()
    body, joint = model.body_id("own/swing"), model.joint_id("own/swing")
    com, inertia, stops = (np.array(x) for x in (model.body_com, model.body_inertia, model.joint_range))
    com[2, body], inertia[:3, body] = -0.5, 1 / 12
    stops[:, joint, 0] = limits
    return {"body_com": com, "body_inertia": inertia, "joint_range": stops}


def test_a_falling_rod_rests_on_its_limit_with_the_torque_of_its_weight():
    stop = np.radians(20)
    seen = trial(1.0, start=[("own/swing", np.radians(45))], **rod((stop, 1000)))
    joint = entry("own/swing")
    assert np.abs(seen.qd[-1, joint]).max() < 1e-9
    assert np.abs(seen.q[-1, joint] - stop).max() < 1e-4
    limits = built().topology.limited_joints
    torque = np.asarray(seen.state.rows.impulse[2, limits.index(joint)]) / 0.001
    np.testing.assert_allclose(torque, G * 0.5 * np.sin(stop), atol=1e-4)
    at_rest = G * 0.5 * np.sin(seen.q[-1, joint])
    np.testing.assert_allclose(torque, at_rest, rtol=1e-9)


@pytest.mark.parametrize(("dt", "allowed"), [(0.001, 0.01), (0.004, 0.03)])
def test_a_limit_returns_the_share_of_speed_it_is_given(dt, allowed):
    """From 45 degrees against a stop at 0 with restitution 0.5: back to 22.06 degrees."""
    seen = trial(1.0, dt, start=[("own/swing", np.radians(45))], limit_restitution=0.5, **rod((0.0, 1000)))
    angle = seen.q[:, entry("own/swing"), 0]
    touched = int(np.argmin(angle))
    assert np.degrees(angle[touched:].max()) == pytest.approx(22.06, rel=allowed)


def limited(joint, limit):
    """Velocity limits (nv, N), infinite but for one joint."""
    limits = np.full((built().nv, WORLDS), np.inf)
    limits[entry(joint)] = limit
    return limits


def test_a_velocity_limit_is_kept_in_both_directions_and_costs_the_impulse_that_it_takes():
    """A pendulum from 90 degrees on either side: free up to its limit, then at it through the bottom."""
    side = np.resize([1.0, -1.0], WORLDS)
    limit = np.resize([2.0, 2.0, 3.0, np.inf], WORLDS)
    seen = trial(
        0.8,
        start=[("own/swing", side * np.pi / 2)],
        joint_velocity_limit=limited("own/swing", limit),
    )
    q, speed = seen.q[:, entry("own/swing")], seen.qd[:, entry("own/swing")]
    free = speed[:, 3] * side[3]  # never limited, the same motion mirrored
    for n in (0, 1, 2):
        assert np.abs(speed[:, n]).max() <= limit[n] * (1 + 1e-12)
        first = int(np.argmax(np.abs(free) > limit[n]))
        np.testing.assert_allclose(speed[:first, n] * side[n], free[:first], atol=1e-12)
        down = np.arange(first, int(np.argmax(q[:, n] * side[n] < 0)))
        np.testing.assert_allclose(np.abs(speed[down, n]), limit[n], rtol=1e-12)


def test_a_position_stop_goes_before_a_velocity_limit():
    """Outside its range at 20 rad/s outwards: the stop turns it back; far inside the limit brakes; with both, both."""
    seen = trial(
        0.01,
        start=[("b34/j", np.resize([0.5, 0.0], WORLDS))],
        speed=[("b34/j", np.resize([20.0, 20.0], WORLDS))],
        gravity=np.zeros(3),
        joint_velocity_limit=limited("b34/j", 1.0),
    )
    speed = seen.qd[:, entry("b34/j")]
    assert (speed[0, ::2] < 0).all()
    assert np.abs(speed[:, 1::2]).max() <= 1 + 1e-12


def test_a_servo_follows_the_poles_of_the_implicit_scheme():
    """(I + dt kd + dt^2 kp) qd+ = I qd - dt kp q, from soft to so stiff that an explicit one would explode."""
    kp = np.array([50, 5, 500, 1e4, 1e6, 50, 0, 50])
    kd = np.array([2, 0, 20, 10, 1e3, 0.1, 1, 1e4])
    gain, bias = (np.repeat(np.array(x), WORLDS, axis=-1) for x in (built().actuator_gain, built().actuator_bias))
    which = built().actuator_id("own/servo")
    gain[which], bias[1, which], bias[2, which] = kp, -kp, -kd
    seen = trial(0.5, start=[("own/servo", 1.0)], actuator_gain=gain, actuator_bias=bias)
    q, qd, dt, inertia = np.ones(WORLDS), np.zeros(WORLDS), 0.001, 0.1
    for k in range(len(seen.time)):
        qd = (inertia * qd - dt * kp * q) / (inertia + dt * kd + dt**2 * kp)
        q = q + dt * qd
        np.testing.assert_allclose(seen.q[k, entry("own/servo")], q, rtol=1e-9, atol=1e-12)


def test_reference_positions_and_springs_of_a_file():
    """B09: the spring rests at springref; its torque is stiffness times the distance from there."""
    lift, swing = (j for j in built().topology.joint_names if j.startswith("b09/"))
    start = np.resize([np.radians(30), 0.0], WORLDS)
    seen = trial(0.05, start=[(swing, start), (lift, np.resize([1.25, 0.0], WORLDS))], gravity=np.zeros(3))
    model = built()
    state = rsim.make_state(model, WORLDS)
    first = np.zeros((model.nq, WORLDS))
    first[entry(swing)], first[entry(lift)] = start, np.resize([1.25, 0.0], WORLDS)
    mass = np.asarray(rsim.mass_matrix(model, state.replace(q=jnp.asarray(first))))
    rows = [entry(lift), entry(swing)]
    force = np.einsum("ijn,jn->in", mass[np.ix_(rows, rows)], seen.qd[0, rows] / 0.001)
    np.testing.assert_allclose(force[1, :2], [-1.39626, 0.698132], atol=1e-5)


def test_dry_friction_stops_exactly():
    """B11: 2 N hold against 1.9 N, for any step; 3 N leave 1 N to move 1 kg."""
    slider = next(j for j in built().topology.joint_names if j.startswith("b11/"))
    motor = next(a for a in built().topology.actuator_names if a.startswith("b11/"))
    for dt in (0.001, 0.01):
        seen = trial(1.0, dt, ctrl=[(motor, np.resize([1.9, 3.0], WORLDS))])
        assert np.abs(seen.qd[:, entry(slider), 0]).max() < 1e-12
        v = seen.qd[:, entry(slider), 1]
        np.testing.assert_allclose(v, seen.time, rtol=1e-9)


def test_heavy_damping_of_light_links_settles_without_ringing():
    """B16: damping dt / inertia up to 1000; then a creep of gravity torque / damping."""
    chain = [j for j in built().topology.joint_names if j.startswith("b16/")]
    seen = trial(3.0, 0.01, speed=[(j, 5.0) for j in chain])
    rates = seen.qd[:, [entry(j) for j in chain], 0]
    assert (rates > 0).all()
    assert np.abs(rates[seen.time > 0.1]).max() < 0.02
    np.testing.assert_allclose(rates[-1], [4.41e-3, 1.96e-3, 0.49e-3], rtol=0.05)


def test_one_limited_joint_does_not_slow_another_joint():
    """B18: the wheel turns on beyond 2 pi, the bounded joint stays."""
    seen = trial(2.0, speed=[("b18/free_spin", 80.0)], gravity=np.zeros(3), every=10)
    assert np.abs(seen.qd[:, entry("b18/free_spin")] - 80).max() < 1e-9
    np.testing.assert_allclose(seen.q[-1, entry("b18/free_spin")], 160, atol=1e-6)
    assert np.abs(seen.q[:, entry("b18/bounded")]).max() < 1e-9


def test_a_tight_limit_holds_against_torque_and_speed_and_takes_back_a_joint_from_outside():
    """B34: range +-0.001; 55 N m, 20 rad/s, and a start at 0.5 rad."""
    seen = trial(
        2.0,
        start=[("b34/j", np.resize([0, 0, 0.5, -0.5], WORLDS))],
        speed=[("b34/j", np.resize([0, 20.0, 0, 0], WORLDS))],
        ctrl=[("b34/t", np.resize([55.0, 0, 0, 0], WORLDS))],
        gravity=np.zeros(3),
    )
    q, qd = seen.q[:, entry("b34/j")], seen.qd[:, entry("b34/j")]
    assert np.abs(q[:, 0]).max() <= 0.02
    assert np.abs(q[:, 1]).max() <= 0.05
    assert np.abs(q[-1, 1:4]).max() <= 0.002
    assert np.abs(qd[:, 2:4]).max() <= 20
    assert (np.abs(q[-500:, 2:4]) <= 0.002).all()
