"""Every family of shapes in random poses against MuJoCo's own contacts, in both orders of the geoms."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from posed_scenes import Found, by_mujoco, detected, links_of, random_quaternions, scene

PLANE = 'type="plane" size="5 5 1" pos="0.1 0.2 -0.05" euler="10 -20 30"'
SPHERE = 'type="sphere" size="0.13"'
CAPSULE = 'type="capsule" size="0.07 0.2"'
BOX = 'type="box" size="0.12 0.2 0.15"'
CYLINDER = 'type="cylinder" size="0.11 0.16"'
MARGIN = 0.15  # of each geom, so that MuJoCo reports shapes that are apart, too

EXACT = [  # MuJoCo reports exactly the candidates that are close enough
    (PLANE, SPHERE),
    (SPHERE, PLANE),
    (PLANE, CAPSULE),
    (CAPSULE, PLANE),
    (PLANE, CYLINDER),
    (SPHERE, SPHERE),
    (SPHERE, CAPSULE),
    (CAPSULE, SPHERE),
    (SPHERE, BOX),
    (BOX, SPHERE),
    (CAPSULE, CAPSULE),
]


def contacts(
    geoms: tuple[str, ...], dtype: object, worlds: int = 60
) -> tuple[list[list[Found]], list[list[Found]], float]:
    """Ours with plain signed distances, MuJoCo's, and the distance up to which MuJoCo reports."""
    rng = np.random.default_rng(7)
    model, xml = scene(*geoms, margin=MARGIN, dtype=dtype)
    bodies = sum("plane" not in g for g in geoms)
    position = 0.15 * rng.normal(size=(bodies, 3, worlds))
    quaternion = random_quaternions(rng, bodies, worlds)
    margin = float(model.pair_margin[0, 0])
    ours = [
        [Found(f.point, f.normal, f.gap + margin) for f in world]
        for world in detected(model, links_of(model, position, quaternion))
    ]
    return ours, by_mujoco(xml, position, quaternion), margin


def mismatch(a: Found, b: Found) -> float:
    """Largest difference; directions count a fiftieth, being as uncertain as rounding over the centres' distance."""
    turn = max(np.abs(a.normal - b.normal).max(), np.abs(a.point - b.point).max())
    return max(abs(a.gap - b.gap), turn / 50)


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float64, 1e-11), (jnp.float32, 2e-6)])
@pytest.mark.parametrize("geoms", EXACT, ids=lambda g: "-".join(s.split('"')[1] for s in g))
def test_same_contacts(geoms, dtype, tolerance):
    ours, theirs, margin = contacts(geoms, dtype)
    compared = 0
    for mine, reference in zip(ours, theirs, strict=True):
        assert sum(f.gap < margin for f in mine) == len(reference)
        for contact in reference:
            assert min(mismatch(f, contact) for f in mine) < tolerance
            compared += 1
    assert compared > 40


@pytest.mark.parametrize("geoms", [(PLANE, BOX), (BOX, PLANE)], ids=["plane-box", "box-plane"])
def test_box_on_plane_includes_mujocos_corners(geoms):
    ours, theirs, _ = contacts(geoms, jnp.float64)
    for mine, reference in zip(ours, theirs, strict=True):
        assert len(mine) == 8  # MuJoCo stops at four
        for contact in reference:
            assert min(mismatch(f, contact) for f in mine) < 1e-11


def distance_to_box(points: np.ndarray, half_size: np.ndarray) -> np.ndarray:
    beyond = np.abs(points) - half_size
    return np.linalg.norm(np.maximum(beyond, 0), axis=-1) + np.minimum(beyond.max(axis=-1), 0)


@pytest.mark.parametrize("geoms", [(CAPSULE, BOX), (BOX, CAPSULE)], ids=["capsule-box", "box-capsule"])
def test_deepest_contact_of_capsule_and_box(geoms):
    """Against MuJoCo, and against the distance of 4001 points of the axis, while the axis is outside the box."""
    worlds, half_size, radius, half_length = 150, np.array([0.12, 0.2, 0.15]), 0.07, 0.2
    rng = np.random.default_rng(3)
    model, xml = scene(*geoms, margin=MARGIN)
    position = 0.2 * rng.normal(size=(2, 3, worlds))
    quaternion = random_quaternions(rng, 2, worlds)
    links = links_of(model, position, quaternion)
    rotation = np.asarray(links.rotation)
    ours, theirs = detected(model, links), by_mujoco(xml, position, quaternion)
    capsule, block = (0, 1) if geoms[0] == CAPSULE else (1, 0)
    outside = 0
    for n in range(worlds):
        centre = rotation[:, :, block, n].T @ (position[capsule, :, n] - position[block, :, n])
        axis = rotation[:, :, block, n].T @ rotation[:, 2, capsule, n]
        along = np.linspace(-half_length, half_length, 4001)[:, None]
        sampled = distance_to_box(centre + along * axis, half_size).min()
        if sampled < 1e-3 or not theirs[n]:
            continue
        outside += 1
        mine = min(ours[n], key=lambda f: f.gap)
        reference = min(theirs[n], key=lambda f: f.gap)
        depth = mine.gap + float(model.pair_margin[0, 0])
        assert sampled - radius - 1e-6 < depth < sampled - radius + 1e-12
        assert mismatch(Found(mine.point, mine.normal, depth), reference) < 1e-9
    assert outside > 60
