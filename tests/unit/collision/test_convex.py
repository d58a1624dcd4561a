"""Meshes and ellipsoids against every shape: MuJoCo's distances, hulls of differences, degenerate poses, gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from posed_scenes import links_of, random_quaternions
from solids import CUBE, asset, least_overlap, pebble

from rsim_jax.collision import detect
from rsim_jax.collision.narrow_phase import FAR
from rsim_jax.modeling.load import load
from rsim_jax.structs import Links

CORNERS = {"cube": 0.1 * CUBE, "pebble": pebble(), "plate": CUBE * [0.2, 0.15, 0.01], "box": CUBE * [0.1, 0.08, 0.06]}
GEOMS = {
    "cube": 'type="mesh" mesh="cube"',
    "pebble": 'type="mesh" mesh="pebble"',
    "plate": 'type="mesh" mesh="plate"',
    "sphere": 'type="sphere" size="0.1"',
    "capsule": 'type="capsule" size="0.05 0.1"',
    "box": 'type="box" size="0.1 0.08 0.06"',
    "cylinder": 'type="cylinder" size="0.08 0.1"',
    "ellipsoid": 'type="ellipsoid" size="0.1 0.07 0.05"',
}
ASSET = asset(**{name: CORNERS[name] for name in ("cube", "pebble", "plate")})


def xml_of(*names: str) -> str:
    bodies = "".join(f"<body><freejoint/><geom {GEOMS[name]}/></body>" for name in names)
    return f"<mujoco>{ASSET}<worldbody>{bodies}</worldbody></mujoco>"


def poses(worlds: int, spread: float, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return spread * rng.normal(size=(2, 3, worlds)), random_quaternions(rng, 2, worlds)


def mujoco_distances(xml: str, position: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.ccd_tolerance, model.opt.ccd_iterations = 1e-10, 300
    data, found = mujoco.MjData(model), []
    for n in range(position.shape[2]):
        data.qpos[:] = np.concatenate([np.r_[position[i, :, n], quaternion[i, :, n]] for i in range(2)])
        mujoco.mj_kinematics(model, data)
        found.append(mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None))
    return np.array(found)


PAIRS = [  # worst difference from MuJoCo where the shapes are apart, and where they overlap by less than 2 mm
    ("cube", "sphere", 1e-6, 1e-6),
    ("cube", "capsule", 1e-6, 1e-6),
    ("cube", "box", 1e-6, 1e-6),
    ("pebble", "cylinder", 5e-5, 1e-3),
    ("pebble", "ellipsoid", 1e-4, 5e-4),
    ("ellipsoid", "sphere", 5e-4, 5e-4),
    ("ellipsoid", "capsule", 5e-4, 5e-4),
    ("ellipsoid", "box", 5e-4, 1e-3),
    ("ellipsoid", "cylinder", 5e-4, 2e-3),
    ("ellipsoid", "ellipsoid", 5e-4, 2e-3),
]


@pytest.mark.parametrize(("first", "second", "apart", "shallow"), PAIRS)
def test_distances_are_mujocos(first, second, apart, shallow):
    xml = xml_of(first, second)
    position, quaternion = poses(160, 0.13)
    found = jax.jit(detect)(load(xml, dtype=jnp.float64), links_of(load(xml, dtype=jnp.float64), position, quaternion))
    expected = mujoco_distances(xml, position, quaternion)
    error = np.abs(np.asarray(found.gap).min(axis=0) - expected)
    assert np.sum(expected > 0) > 40
    assert error[expected > 0].max() < apart
    assert error[(expected <= 0) & (expected > -2e-3)].max(initial=0) < shallow
    assert np.median(error) < 1e-5


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
@pytest.mark.parametrize("names", [("cube", "box"), ("plate", "cube")], ids="-".join)
def test_overlap_of_polyhedra_is_the_least_one(names, dtype):
    """Against the hull of all differences of corners, whatever the depth."""
    model = load(xml_of(*names), dtype=dtype)
    position, quaternion = poses(120, 0.08)
    links = links_of(model, position, quaternion)
    found = jax.tree.map(np.asarray, jax.jit(detect)(model, links))
    rotation, overlapping = np.asarray(links.rotation, float), 0
    for n in range(120):
        corners = [position[i, :, n] + CORNERS[name] @ rotation[:, :, i, n].T for i, name in enumerate(names)]
        depth, _ = least_overlap(*corners)
        if depth > 0:
            continue
        overlapping += 1
        deepest = found.gap[:, n].argmin()
        assert found.gap[deepest, n] == pytest.approx(depth, abs=2e-6)
        b_moved = corners[1] - (depth - 1e-5) * found.normal[:, deepest, n]
        assert least_overlap(corners[0], b_moved)[0] > 0  # moving along the normal parts them
    assert overlapping > 40


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
@pytest.mark.parametrize("scale", [0.005, 1.0, 50.0])
def test_flush_cubes_touch_at_four_corners(scale, dtype):
    """Edges of 1 mm to 10 m, one cube on another, flush, shifted and turned about the vertical."""
    cube = asset(cube=0.1 * scale * CUBE)
    body = '<body><freejoint/><geom type="mesh" mesh="cube"/></body>'
    model = load(f"<mujoco>{cube}<worldbody>{body}{body}</worldbody></mujoco>", dtype=dtype)
    depth = 1e-3 * scale
    position = np.zeros((2, 3, 3))
    position[1, 2] = 0.2 * scale - depth
    position[1, 0, 1] = 0.05 * scale
    quaternion = np.zeros((2, 4, 3))
    quaternion[:, 0] = 1
    quaternion[1, :, 2] = np.cos(np.pi / 8), 0, 0, np.sin(np.pi / 8)
    found = jax.tree.map(np.asarray, jax.jit(detect)(model, links_of(model, position, quaternion)))
    for n, corners in ((0, {(-1, -1), (-1, 1), (1, -1), (1, 1)}), (1, {(-0.5, -1), (-0.5, 1), (1, -1), (1, 1)})):
        assert found.gap[:, n] == pytest.approx([-depth] * 4, abs=2e-6 * scale)
        xy = found.point[:2, :, n] / (0.1 * scale)
        assert {(round(float(x), 3), round(float(y), 3)) for x, y in xy.T} == corners
        assert found.normal[2, :, n] == pytest.approx(1, abs=1e-6)
    assert found.gap[:, 2] == pytest.approx([-depth] * 4, abs=2e-6 * scale)
    assert found.point[:, :, 2].mean(axis=1)[:2] == pytest.approx([0, 0], abs=0.05 * scale)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
@pytest.mark.parametrize("second", ["cube", "capsule", "ellipsoid"])
def test_coincident_shapes_are_finite_in_value_and_gradient(second, dtype):
    model = load(xml_of("cube", second), dtype=dtype)
    position, quaternion = np.zeros((2, 3, 3)), np.zeros((2, 4, 3))
    quaternion[:, 0] = 1
    position[1, 0] = 0, 1e-12, 1e-20
    links = links_of(model, position, quaternion)

    def total(position, rotation, size):
        found = detect(model.replace(geom_size=size), Links(rotation, position, links.origin))
        kept = found.gap < 0.5 * FAR
        sums = (jnp.sum(jnp.where(kept, x, 0)) for x in (found.point, found.normal, found.gap))
        return sum(sums), found

    gradient, found = jax.jit(jax.grad(total, argnums=(0, 1, 2), has_aux=True))(
        links.position, links.rotation, model.geom_size
    )
    for numbers in (*gradient, *jax.tree.leaves(found)):
        assert np.isfinite(np.asarray(numbers)).all()
    assert np.linalg.norm(np.asarray(found.normal), axis=0) == pytest.approx(1, abs=1e-5)
    deepest = {"cube": -0.2, "capsule": -0.15, "ellipsoid": -0.15}[second]
    assert np.asarray(found.gap).min(axis=0) == pytest.approx(deepest, abs=1e-5)


def test_the_gap_follows_the_poses():
    """Derivative of the deepest gap against central differences."""
    model = load(xml_of("cube", "box"), dtype=jnp.float64)
    position, quaternion = poses(40, 0.12)
    links = links_of(model, position, quaternion)
    step = jnp.asarray(np.random.default_rng(1).normal(size=links.position.shape)).at[:, -1].set(0)

    @jax.jit
    def deepest(position):
        return detect(model, Links(links.rotation, position, links.origin)).gap.min(axis=0)

    _, forward = jax.jvp(deepest, (links.position,), (step,))
    measured = (deepest(links.position + 1e-6 * step) - deepest(links.position - 1e-6 * step)) / 2e-6
    np.testing.assert_allclose(forward, measured, atol=1e-4)
