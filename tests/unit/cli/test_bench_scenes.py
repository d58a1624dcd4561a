"""The accuracy scenes measure what they say: checked on MuJoCo, whose errors on them are known."""

from __future__ import annotations

import numpy as np
import pytest

from rsim_jax.cli import bench_validation
from rsim_jax.cli.bench_scenes import HEADINGS, SCENES

NAMED = {scene.name.split(",")[0]: scene for scene in SCENES}


def figures(name: str, cone: str) -> dict[str, float]:
    scene = NAMED[name]
    trajectory = bench_validation._mujoco(scene, cone)
    assert all(np.isfinite(part).all() for part in trajectory)
    return {figure: measure(trajectory) for figure, (_, measure) in scene.figures.items()}


def test_headings_are_equal_for_a_round_cone_and_not_for_a_pyramid():
    round_cone, pyramid = (figures("block sliding in 16 headings", cone) for cone in ("elliptic", "pyramidal"))
    assert round_cone["shortest stop distance, m"] == pytest.approx(2**2 / (2 * 0.5 * 9.81), rel=5e-3)
    assert round_cone["spread of stop distances"] < 1e-4 and round_cone["farthest off course, m"] < 1e-6
    assert pyramid["longest stop distance, m"] == pytest.approx(np.sqrt(2) * 0.407747, rel=1e-2)


def test_soft_contacts_creep_sink_and_rebound_as_reported():
    slope = figures("block at rest on a slope of 20 degrees", "elliptic")
    assert slope["creep, m/s"] == pytest.approx(875e-6, rel=0.01)
    drop = figures("ball dropped 0.5 m", "elliptic")
    assert drop["deepest penetration, m"] == pytest.approx(21.5e-3, rel=0.01)
    assert drop["rebound speed over impact speed"] == pytest.approx(0.126, rel=0.01)


def test_a_sliding_ball_ends_at_five_sevenths_of_its_speed():
    assert figures("ball sliding until it rolls", "elliptic")["final speed, m/s"] == pytest.approx(10 / 7, rel=1e-3)


def test_starts_point_where_they_say():
    scene = NAMED["block sliding in 16 headings"]
    q, qd = scene.start(np.array([0, 0, 0.05, 1, 0, 0, 0]), 6)
    assert q.shape == (7, HEADINGS) and np.allclose(np.linalg.norm(q[3:], axis=0), 1)
    assert np.allclose(np.hypot(qd[0], qd[1]), 2) and np.allclose(
        2 * np.arctan2(q[6], q[3])[:9], np.arctan2(qd[1], qd[0])[:9]
    )
