"""Height fields: flat ground is a plane, sphere and slope in closed form, valleys and peaks."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import rsim_jax as rsim


def touching(scene: rsim.Scene, dtype: object = jnp.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (n, 3), normals out of the ground (n, 3) and depths (n,) of all contacts."""
    model = scene.compile(dtype=dtype)
    report = rsim.detect(model, rsim.make_state(model, 1))
    valid = np.asarray(report.valid)[:, 0]
    pair = report.point_pair
    return tuple(np.asarray(x)[..., valid, 0].T for x in (report.contact_point, -pair.nhat_BA_W, pair.depth))


def on_sloped_ground(slope: float) -> rsim.Scene:
    scene = rsim.Scene()
    scene.add_heightfield(np.tile(np.linspace(-2, 2, 21) * slope, (15, 1)), 4, 3)
    return scene


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
@pytest.mark.parametrize("x", [0.0, 0.1, 0.07])
def test_a_sphere_on_a_slope_touches_as_on_a_plane(x, dtype):
    slope, radius, depth = 0.5, 0.15, 1e-3
    normal = np.array([-slope, 0, 1]) / np.hypot(1, slope)
    scene = on_sloped_ground(slope)
    scene.add_sphere(radius, 1.0, position=np.array([x, 0, slope * x]) + (radius - depth) * normal)
    points, normals, depths = touching(scene, dtype)
    assert depths == pytest.approx([depth], abs=1e-6)
    assert normals[0] == pytest.approx(normal, abs=1e-5)
    assert points[0] == pytest.approx([x, 0, slope * x] - 0.5 * depth * normal, abs=1e-5)


def test_a_sphere_in_a_valley_touches_both_walls_and_on_a_ridge_once():
    x = np.linspace(-2, 2, 21)
    for sign, expected in ((1, 2), (-1, 1)):
        scene = rsim.Scene()
        scene.add_heightfield(np.tile(sign * np.abs(x), (5, 1)), 4, 2)
        height = 0.3 * np.sqrt(2) if sign > 0 else 0.3
        scene.add_sphere(0.3, 1.0, position=(0, 0, height - 1e-3))
        _, normals, depths = touching(scene)
        assert len(depths) == expected
        if sign > 0:
            assert sorted(normals[:, 0]) == pytest.approx([-np.sqrt(0.5), np.sqrt(0.5)], abs=1e-6)
        else:
            assert normals[0] == pytest.approx([0, 0, 1], abs=1e-6) and depths[0] == pytest.approx(1e-3, abs=1e-6)


def test_a_box_rests_on_the_peak_under_its_middle():
    heights = np.zeros((9, 9))
    heights[4, 4] = 0.1
    scene = rsim.Scene()
    scene.add_heightfield(heights, 4, 4)
    scene.add_box((0.8, 0.6, 0.2), 1.0, position=(0.1, 0, 0.199))
    points, normals, depths = touching(scene)
    assert depths == pytest.approx([1e-3], abs=1e-6)
    assert normals[0] == pytest.approx([0, 0, 1], abs=1e-9)
    assert points[0] == pytest.approx([0, 0, 0.0995], abs=1e-6)
