"""Light boxes under heavy ones, at default settings: forces, sway, penetration."""

from __future__ import annotations

import functools
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from physics.bank_scenes import entry
from physics.trials import G, run

import rsim_jax as rsim

MODELS = Path(__file__).parents[1] / "models"
HALF = np.array([0.05, 0.05, 0.05, 0.1])  # m, of the cubes of each world
LIGHT = np.array([0.1, 0.01, 1.0, 1e-3])  # kg
HEAVY = np.array([10.0, 10.0, 100.0, 1e3])
DT = 0.002


@functools.cache
def stacks(dtype, seconds):
    """B87 at mass ratios 100 and 1000, 1 kg under 100 kg, ContactBench's 1e-3 kg under 1e3 kg; a chip beside."""
    model = rsim.load(str(MODELS / "b87_tiny_inertia.xml"), dtype=dtype)
    n = len(HALF)
    mass, inertia, size = (
        np.repeat(np.array(x, float), n, axis=-1) for x in (model.body_mass, model.body_inertia, model.geom_size)
    )
    for name, value in (("light", LIGHT), ("heavy", HEAVY)):
        body = model.body_id(name)
        mass[body], inertia[:3, body] = value, value * (2 * HALF) ** 2 / 6
        size[:, model.topology.geom_body.index(body)] = HALF
    model = model.replace(body_mass=mass, body_inertia=inertia, geom_size=size)
    state = rsim.make_state(model, n)
    q = np.array(state.q)
    for name, height in (("light", HALF), ("heavy", 3 * HALF + np.array([1e-3, 1e-3, 0, 0]))):
        q[entry(model, name)[0] + 2] = height
    return model, run(model, state.replace(q=jnp.asarray(q, dtype)), seconds)


def places(model, seen, name):
    """Position (T, 3, N) and tilt (T, N) in degrees of a body."""
    k, _ = entry(model, name)
    x, y = seen.q[:, k + 4], seen.q[:, k + 5]
    return seen.q[:, k : k + 3], np.degrees(np.arccos(np.clip(1 - 2 * (x * x + y * y), -1, 1)))


def forces(model, seen):
    """(T, 2, N): under the light box and between the two, from the momentum that every step brings."""
    lifts = np.stack([seen.qd[:, entry(model, name)[1] + 2] for name in ("light", "heavy")], axis=1).astype(float)
    force = np.stack([LIGHT, HEAVY]) * (np.diff(lifts, axis=0, prepend=0) / DT + G)
    return np.stack([force.sum(axis=1), force[:, 1]], axis=1)


def unstable(figure):
    """Mark of a stack that 20 sweeps do not carry."""
    return pytest.mark.xfail(
        strict=True,
        reason="20 sweeps do not share friction among eight contacts of a light box and the correction of the "
        f"penetration they leave feeds back; without friction, or with 100 sweeps at ratio 100, it holds: {figure}",
    )


DTYPES = pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
SECONDS = pytest.mark.parametrize("seconds", [2, pytest.param(10, marks=pytest.mark.slow)])


@unstable("forces wrong by a factor of up to 3.9 after 0.5 s")
@DTYPES
@SECONDS
def test_a_kilogram_carries_a_hundred(seconds, dtype):
    """990.81 and 981 N: 1 % in every step after 0.5 s, 0.01 % at 2 s; no deeper than 0.1 mm, no drift."""
    model, seen = stacks(dtype, seconds)
    force = forces(model, seen)[:, :, 2]
    right = G * np.array([101, 100])
    late = seen.time > 0.5
    np.testing.assert_allclose(force[late], np.broadcast_to(right, force[late].shape), rtol=0.01)
    np.testing.assert_allclose(force[seen.time >= 2 - 1e-9].mean(axis=0), right, rtol=1e-4)
    (low, tilt), (high, lean) = places(model, seen, "light"), places(model, seen, "heavy")
    assert min((low[:, 2, 2] - 0.05).min(), (high[:, 2, 2] - low[:, 2, 2] - 0.1).min()) > -1e-4
    assert np.abs(low[:, :2, 2] - [0.5, 0]).max() < 1e-4 and np.abs(high[:, :2, 2] - [0.5, 0]).max() < 1e-4
    assert max(tilt[:, 2].max(), lean[:, 2].max()) < 0.1


@DTYPES
@pytest.mark.parametrize("world", [0, pytest.param(1, marks=unstable("ratio 1000: the light box is 11 mm off"))])
def test_a_heavy_box_set_down_on_a_light_one_stays_there(world, dtype):
    """B87: 10 kg on 0.1 kg and on 0.01 kg, set down from 1 mm; a 2 g chip falls and rests."""
    model, seen = stacks(dtype, 2)
    low, tilt = places(model, seen, "light")
    high, lean = places(model, seen, "heavy")
    chip, _ = places(model, seen, "chip")
    assert np.isfinite(seen.q).all() and np.isfinite(seen.qd).all()
    assert chip[-1, 2, world] == pytest.approx(0.002, abs=5e-4)
    assert low[-1, 2, world] == pytest.approx(0.05, abs=2e-3)
    assert high[-1, 2, world] == pytest.approx(0.15, abs=3e-3)
    assert max(tilt[:, world].max(), lean[:, world].max()) < 1


@unstable("the light cube is 0.11 m below its place at worst, and thrown out")
@DTYPES
def test_a_gram_under_a_ton(dtype):
    """ContactBench's cubes, ratio 10^6: finite, nowhere deeper than 1 mm."""
    model, seen = stacks(dtype, 2)
    assert np.isfinite(seen.q).all()
    low, _ = places(model, seen, "light")
    high, lean = places(model, seen, "heavy")
    assert (low[:, 2, 3] - 0.1).min() > -1e-3
    assert (high[:, 2, 3] - low[:, 2, 3] - 0.2).min() > -1e-3
    assert lean[:, 3].max() < 1


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [2, 10])
def test_ten_equal_boxes(seconds):
    """98.1 N below to 0.1 %, sway under 1 mm; in double precision at 60 sweeps."""
    scene = rsim.Scene(timestep=DT)
    scene.add_ground()
    for k in range(10):
        scene.add_box((0.1, 0.1, 0.1), 1.0, position=(0, 0, 0.05 + 0.1 * k))
    model = scene.compile(options=rsim.Options(max_contacts=44, sweeps=60), dtype="float64")
    seen = run(model, rsim.make_state(model, 1), seconds)
    place = seen.q[:, :, 0].reshape(-1, 10, 7)
    below = -np.asarray(rsim.net_contact_force(model, seen.state))[2, 0, 0]
    assert below == pytest.approx(98.1, rel=1e-3)
    assert np.abs(place[:, :, :2]).max() < 1e-3
