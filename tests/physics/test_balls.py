"""A ball on a plane: free fall, sliding into rolling, backspin, slopes, bounces. All trials are worlds of one run."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from physics.trials import G, at, ball_on_plane, run, tilted, worlds

R = 0.1
DT = 0.001
TRIALS = (
    "solid",
    "hollow",
    "cylinder",
    "ring",
    "backspin",
    "returning",
    "rolling slope",
    "sliding slope",
    "sticking bounce",
    "slipping bounce",
    "bounce ahead",
    "fall",
    "pushed",
)
SHAPES = {"hollow": 2 / 3, "cylinder": 1 / 2, "ring": 1.0}  # moment of inertia over m r^2; 2/5 for the others
GRIP = {"sliding slope": 0.05, "slipping bounce": 0.1}
FLOOR = {"float64": 1e-9, "float32": 1e-5}


def column(**values):
    """(N,) with the named trials set."""
    return np.array([values.get(name.replace(" ", "_"), 0.0) for name in TRIALS])


@functools.cache
def rolled(dtype):
    """History of 1.5 s of all trials."""
    n = len(TRIALS)
    velocity, spin = np.zeros((3, n)), np.zeros((3, n))
    forward = {"solid": 2, "hollow": 2, "cylinder": 2, "ring": 2, "backspin": 2, "returning": 1}
    velocity[0] = column(**forward, sticking_bounce=1, slipping_bounce=1, bounce_ahead=1)
    velocity[2] = column(sticking_bounce=-3, slipping_bounce=-3, bounce_ahead=-3)
    spin[1] = column(backspin=-40, returning=-40, sticking_bounce=-20, slipping_bounce=-20, bounce_ahead=-20)
    gravity = tilted(column(rolling_slope=15, sliding_slope=15))
    gravity[:, [k for k, name in enumerate(TRIALS) if "bounce" in name]] = 0
    gravity[0, TRIALS.index("pushed")] = 2
    model = ball_on_plane(dtype)
    inertia = np.repeat(np.array(model.body_inertia), n, axis=-1)
    for name, share in SHAPES.items():
        inertia[:3, 1, TRIALS.index(name)] = share * R**2
    model, state = worlds(
        model,
        n,
        DT,
        velocity=velocity,
        spin=spin,
        gravity=gravity,
        height=column(fall=10, bounce_ahead=0.0015),
        body_inertia=inertia,
        pair_friction=np.array([GRIP.get(name, 0.5) for name in TRIALS]),
        pair_restitution=column(sticking_bounce=0.5, slipping_bounce=0.5, bounce_ahead=0.5),
    )
    return run(model, state, 1.5)


def trial(dtype, name):
    """(history, x, v_x, w_y) of one trial; w_y is the spin about the world's y, which a rolling ball keeps."""
    seen, k = rolled(dtype), TRIALS.index(name)
    return seen, seen.q[:, 0, k], seen.qd[:, 0, k], seen.qd[:, 4, k]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "share"), [("solid", 5 / 7), ("hollow", 3 / 5), ("cylinder", 2 / 3), ("ring", 1 / 2)])
def test_sliding_turns_into_rolling_at_the_speed_that_angular_momentum_asks_for(name, share, dtype):
    _, _, v, w = trial(dtype, name)
    assert v[-1] == pytest.approx(2 * share, abs=FLOOR[dtype])
    assert R * w[-1] == pytest.approx(2 * share, abs=FLOOR[dtype])


def test_slip_of_a_solid_ball_ends_when_and_where_it_should():
    seen, x, v, w = trial("float64", "solid")
    rolls = np.flatnonzero(np.abs(v - R * w) < 1e-9)[0]
    assert seen.time[rolls] == pytest.approx(2 * 2 / (7 * 0.5 * G), abs=1.01 * DT)
    assert x[rolls] == pytest.approx(12 * 2**2 / (49 * 0.5 * G), abs=2 * DT * 2)
    assert x[at(seen, 1.5)] == pytest.approx(2.176142 - DT * (2 - 10 / 7) / 2, abs=2e-6)
    assert np.abs(v[rolls:] - R * w[rolls:]).max() < 1e-9


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "v0"), [("backspin", 2), ("returning", 1)])
def test_backspin(name, v0, dtype):
    """v_inf = (5 v0 + 2 r w) / 7: slowed down, or sent back."""
    seen, x, v, w = trial(dtype, name)
    end = (5 * v0 + 2 * R * -40) / 7
    assert v[-1] == pytest.approx(end, abs=FLOOR[dtype])
    if name == "backspin" and dtype == "float64":
        rolls = np.flatnonzero(np.abs(v - R * w) < 1e-9)[0]
        assert seen.time[rolls] == pytest.approx(0.349498, abs=1.01 * DT)
        assert x[at(seen, 1.5)] == pytest.approx(0.728141 - DT * (v0 - end) / 2, abs=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rolling_and_sliding_down_a_slope(dtype):
    """a = 5/7 g sin while mu >= 2/7 tan, else g (sin - mu cos)."""
    sine, cosine = np.sin(np.radians(15)), np.cos(np.radians(15))
    seen, _, v, w = trial(dtype, "rolling slope")
    relative = 1e-9 if dtype == "float64" else 5e-5  # a sum of 1500 rounded terms
    np.testing.assert_allclose(v, 5 / 7 * G * sine * seen.time, rtol=relative, atol=FLOOR[dtype])
    np.testing.assert_allclose(R * w, v, rtol=relative, atol=FLOOR[dtype])
    _, _, v, w = trial(dtype, "sliding slope")
    np.testing.assert_allclose(v, G * (sine - 0.05 * cosine) * seen.time, rtol=relative, atol=FLOOR[dtype])
    assert R * w[-1] < 0.9 * v[-1]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_pushed_ball_accelerates_evenly(dtype):
    """B17: a = F / (1.4 m), no runaway."""
    seen, _, v, w = trial(dtype, "pushed")
    relative = 1e-9 if dtype == "float64" else 5e-5  # a sum of 1500 rounded terms
    np.testing.assert_allclose(v, 2 / 1.4 * seen.time, rtol=relative, atol=FLOOR[dtype])
    np.testing.assert_allclose(R * w, v, rtol=relative, atol=FLOOR[dtype])
    k = TRIALS.index("pushed")
    assert np.abs(seen.qd[:, 1:3, k]).max() < (1e-9 if dtype == "float64" else 1e-4)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("name", "after", "spin"),
    [
        ("sticking bounce", 0.142857, 1.428571),
        ("slipping bounce", 0.55, -8.75),
        ("bounce ahead", 0.142857, 1.428571),
    ],
)
def test_spinning_bounce(name, after, spin, dtype):
    """Sticks if 2/7 |u| <= mu (1 + e) |v_n|, u the slip; no gravity, so that nothing else happens.

    "ahead": the same bounce met half a step early.
    """
    _, _, v, w = trial(dtype, name)
    allowed = 1e-6 if dtype == "float64" else 1e-5
    assert v[-1] == pytest.approx(after, abs=allowed)
    assert w[-1] == pytest.approx(spin, abs=10 * allowed)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_sticking_bounce_leaves_at_its_share_of_the_approach(dtype):
    seen, k = rolled(dtype), TRIALS.index("sticking bounce")
    assert seen.qd[-1, 2, k] == pytest.approx(1.5, abs=1e-6 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_free_fall(dtype):
    seen, k = rolled(dtype), TRIALS.index("fall")
    fallen = seen.q[at(seen, 1.0), 2, k] - 10.1
    assert fallen == pytest.approx(-G / 2 - G * DT / 2, rel=1e-9 if dtype == "float64" else 1e-5)


def apexes(height):
    """Maxima of a bouncing height (T,), first those between bounces."""
    inner = (height[1:-1] >= height[:-2]) & (height[1:-1] > height[2:])
    return height[1:-1][inner]


# two drops without a threshold, two to either side of one, and one thrown without gravity
DROPS = np.array([1.0, 0.05, 0.9**2 / (2 * G), 1.1**2 / (2 * G), 0.01])
THROWN = np.array([0, 0, 0, 0, 1.1])
E = np.array([0.8, 1.0, 0.8, 0.8, 0.8])
THRESHOLD = np.array([0, 0, 1.0, 1.0, 1.0])


@functools.cache
def bounced(dt, seconds):
    n = len(TRIALS)
    fill = lambda values: np.resize(values, n)  # noqa: E731 - repeated to the number of worlds that the other run has
    still = np.zeros(n)
    model, state = worlds(
        ball_on_plane("float64"),
        n,
        dt,
        height=fill(DROPS),
        velocity=np.stack([still, still, -fill(THROWN)]),
        gravity=np.stack([still, still, np.where(fill(THROWN) > 0, 0, -G)]),
        pair_restitution=fill(E),
        pair_restitution_threshold=fill(THRESHOLD),
    )
    return run(model, state, seconds)


@pytest.mark.parametrize(
    ("dt", "bounce", "allowed"),
    [(0.001, 0, 0.005), (0.001, 2, 0.01), (0.004, 0, 0.015), (0.004, 2, 0.03)],
)
def test_bounce_heights(dt, bounce, allowed):
    """Each apex is e^2 times the one before."""
    seen = bounced(dt, 4.2)
    assert apexes(seen.q[:, 2, 0] - R)[bounce] == pytest.approx(0.64 ** (bounce + 1), rel=allowed)
    assert seen.q[:, 2, 0].min() > R - 1e-4


@pytest.mark.parametrize("dt", [0.001, 0.004])
def test_an_elastic_ball_never_gains_energy(dt):
    """Twenty bounces at e = 1."""
    seen = bounced(dt, 4.2)
    tops = apexes(seen.q[:, 2, 1] - R)
    assert len(tops) >= 19
    assert tops.max() <= DROPS[1] * (1 + 1e-9)
    energy = (
        0.5 * seen.qd[:, 2, 1] ** 2 + G * seen.q[:, 2, 1] - 0.5 * G * dt * seen.qd[:, 2, 1]
    )  # that the scheme keeps
    assert energy.max() <= energy[0] + 1e-9 * abs(energy[0])


def test_restitution_starts_at_its_threshold():
    """Slower approaches do not bounce at all, faster ones with e (v - threshold), exactly where nothing else pulls."""
    seen = bounced(0.001, 4.2)
    assert seen.qd[:, 2, 2].max() <= 1e-9
    approach = -seen.qd[:, 2, 3].min()
    assert seen.qd[:, 2, 3].max() == pytest.approx(0.8 * (approach - 1.0), rel=0.01)
    assert seen.qd[-1, 2, 4] == pytest.approx(0.8 * (1.1 - 1.0), rel=1e-9)
