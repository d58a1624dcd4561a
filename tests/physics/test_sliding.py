"""A block on a plane: braking, headings, slopes, static friction."""

from __future__ import annotations

import numpy as np
import pytest
from physics.trials import G, block_on_plane, run, tilted, worlds

MU, V0 = 0.5, 2.0
HEADINGS = 2 * np.pi * np.arange(16) / 16
VELOCITY_FLOOR = {"float64": 1e-9, "float32": 1e-5}
POSITION_FLOOR = {"float64": 1e-6, "float32": 1e-4}


def braking_distance(dt):
    """Semi-implicit Euler: v falls by mu g dt a step, x moves by dt v after it, the last step stops the rest."""
    steps = int(V0 / (MU * G * dt))
    return dt * (steps * V0 - MU * G * dt * steps * (steps + 1) / 2)


@pytest.mark.parametrize(("dtype", "dt"), [("float64", 0.001), ("float64", 0.004), ("float32", 0.001)])
def test_a_block_brakes_alike_in_all_headings(dtype, dt):
    """Stops after v0^2 / (2 mu g), on a straight line, carried by its weight all the while."""
    velocity = V0 * np.stack([np.cos(HEADINGS), np.sin(HEADINGS), 0 * HEADINGS])
    model, state = worlds(block_on_plane(dtype), 16, dt, velocity=velocity)
    seen = run(model, state, 0.5)
    end = seen.q[-1]
    along = end[0] * np.cos(HEADINGS) + end[1] * np.sin(HEADINGS)
    across = end[1] * np.cos(HEADINGS) - end[0] * np.sin(HEADINGS)
    single = dtype == "float32"
    np.testing.assert_allclose(along, braking_distance(dt), atol=1e-4 if single else 1e-5)
    np.testing.assert_allclose(along, V0**2 / (2 * MU * G), rtol=0.01)
    assert np.ptp(along) / along.mean() < (1e-4 if single else 1e-5)
    assert np.abs(across).max() < POSITION_FLOOR[dtype]
    assert np.abs(seen.qd[-1, :3]).max() < VELOCITY_FLOOR[dtype]
    if not single:
        np.testing.assert_allclose(seen.load, G, atol=1e-6)
    assert np.abs(seen.q[:, 2] - 0.05).max() < (1e-4 if single else 1e-5)


def test_the_load_of_a_block_is_its_weight_in_single_precision():
    """To 1e-5 m/s, which is 1e-2 N at this step, through the stop and at rest."""
    velocity = V0 * np.stack([np.cos(HEADINGS), np.sin(HEADINGS), 0 * HEADINGS])
    model, state = worlds(block_on_plane("float32"), 16, 0.001, velocity=velocity)
    np.testing.assert_allclose(run(model, state, 0.5).load, G, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_a_block_on_a_slope_does_not_creep(seconds, dtype):
    """20 degrees at mu = 0.5, far inside the cone; and 0.2 degrees inside its edge."""
    angles = np.array([20, np.degrees(np.arctan(MU)) - 0.2])
    model, state = worlds(block_on_plane(dtype), 2, 0.004, gravity=tilted(angles))
    seen = run(model, state, seconds, every=50)
    assert np.abs(seen.q[-1, :2]).max() < POSITION_FLOOR[dtype]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_block_slides_down_a_slope_steeper_than_its_friction(dtype):
    """a = g (sin - mu cos): just beyond the edge of the cone, and 20 degrees at mu = 0.2."""
    edge = np.degrees(np.arctan(MU)) + 0.2
    angles, mu = np.array([edge, 20]), np.array([MU, 0.2])
    model, state = worlds(block_on_plane(dtype), 2, 0.001, gravity=tilted(angles), pair_friction=mu)
    seen = run(model, state, 1.0)
    a = G * (np.sin(np.radians(angles)) - mu * np.cos(np.radians(angles)))
    assert a[1] == pytest.approx(1.511541, abs=1e-6)
    single = dtype == "float32"
    np.testing.assert_allclose(seen.qd[-1, 0], a, rtol=1e-4 if single else 1e-9, atol=VELOCITY_FLOOR[dtype])
    x = a / 2 + a * 0.001 / 2
    np.testing.assert_allclose(seen.q[-1, 0], x, rtol=1e-9, atol=POSITION_FLOOR[dtype] if single else 1e-9)


def test_static_friction_holds_to_its_own_angle_and_lets_go_for_good():
    """mu_s = 0.6 breaks away at 30.96 degrees; from then on kinetic 0.4 brakes it."""
    break_away = np.degrees(np.arctan(0.6))
    angles = np.array([break_away - 0.2, break_away + 0.2])
    model, state = worlds(
        block_on_plane("float64"), 2, 0.001, gravity=tilted(angles), pair_friction=0.4, pair_static_friction=0.6
    )
    seen = run(model, state, 1.0)
    assert abs(seen.q[-1, 0, 0]) < 1e-6
    a = G * (np.sin(np.radians(angles[1])) - 0.4 * np.cos(np.radians(angles[1])))
    late = (seen.qd[-1, 0, 1] - seen.qd[-501, 0, 1]) / 0.5
    assert late == pytest.approx(a, rel=1e-6)


def test_load_of_a_braking_block_moves_to_its_front():
    """Front and rear pair carry m g / 2 (1 +- mu h / w), h the height of the block."""
    model, state = worlds(block_on_plane("float64"), 2, 0.001, velocity=np.array([[V0], [0], [0]]))
    seen = run(model, state, 0.1)
    rows = seen.state.rows
    x = np.asarray(rows.point[0, :, 0] + seen.state.origin[0, 0])
    force = np.asarray(rows.impulse[2, :, 0]) / 0.001
    front = x > seen.q[-2, 0, 0]
    np.testing.assert_allclose([force[front].sum(), force[~front].sum()], [6.13125, 3.67875], atol=1e-4)


def test_a_load_far_inside_the_cone_leaves_no_creep_and_directions_are_alike():
    """B28, B29: 0.95 mu m g holds in every direction; 1.05 mu m g slides at 0.05 mu g along the push.

    The push is a lean of gravity; a 10 degree ramp at mu = 0.8 for comparison with the report.
    """
    angles = np.radians(np.arange(0, 91, 15))
    push = MU * G * np.concatenate([np.full(7, 0.95), np.full(7, 1.05)])
    headings = np.tile(angles, 2)
    pushes = np.stack([push * np.cos(headings), push * np.sin(headings), np.full(14, -G)])
    gravity = np.concatenate([pushes, tilted([10.0, 10.0])], axis=1)
    mu = np.concatenate([np.full(14, MU), [0.8, 0.8]])
    model, state = worlds(block_on_plane("float64"), 16, 0.001, gravity=gravity, pair_friction=mu)
    seen = run(model, state, 1.0)
    speed = np.hypot(*seen.qd[-1, :2])
    assert speed[:7].max() < 1e-9 and speed[14:].max() < 1e-9
    assert np.abs(seen.q[-1, :2, 14:]).max() < 1e-6
    np.testing.assert_allclose(speed[7:14], 0.05 * MU * G, rtol=1e-6)
    direction = np.arctan2(seen.qd[-1, 1, 7:14], seen.qd[-1, 0, 7:14])
    np.testing.assert_allclose(direction, angles, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_very_high_friction_does_not_make_a_resting_cube_hop(dtype):
    """B33: a 0.4 m cube of 10 kg placed exactly on the floor, mu = 5 and 100."""
    inertia = 10 * 0.4**2 / 6
    model = block_on_plane(dtype)
    size, mass, tensor = (np.array(x) for x in (model.geom_size, model.body_mass, model.body_inertia))
    size[:, 1, 0], mass[1, 0] = 0.2, 10
    tensor[:3, 1, 0], tensor[3:, 1, 0] = inertia, 0
    model, state = worlds(
        model,
        2,
        0.0025,
        pair_friction=np.array([5, 100]),
        geom_size=size,
        body_mass=mass,
        body_inertia=tensor,
        height=np.full(2, 0.15),
    )
    seen = run(model, state, 2.0)
    assert seen.q[:, 2].max() < 0.2001
    assert np.abs(seen.q[:, :2]).max() < 1e-4
    assert np.degrees(2 * np.abs(seen.q[:, 4:7])).max() < 0.01
