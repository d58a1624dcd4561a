"""Poses with a known answer, most of them degenerate."""

from __future__ import annotations

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from posed_scenes import detected, links_of, scene

from rsim_jax.collision import detect
from rsim_jax.collision.pair_table import candidate_geoms
from rsim_jax.modeling.load import load
from rsim_jax.structs import Links, Model

MODELS = pathlib.Path(__file__).parents[2] / "models"
UPRIGHT = np.array([1.0, 0, 0, 0])
LYING = np.array([np.sqrt(0.5), 0, np.sqrt(0.5), 0])  # z axis along x
QUICK = {"xla_backend_optimization_level": "0"}  # halves the compilation of programs that run once
DTYPES = pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])


def places(*rows: object) -> np.ndarray:
    """One world: (nbody, 3 or 4, 1)."""
    return np.array(rows, float)[:, :, None]


def about(axis: object, angle: float) -> np.ndarray:
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * np.asarray(axis, float)])


def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    w, v = a[0] * b[0] - a[1:] @ b[1:], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
    return np.concatenate([[w], v])


# two capsules, radius 0.05 and half length 0.3, along x, the upper one lowered by 0.5 mm


@DTYPES
@pytest.mark.parametrize("axis", [(0, 1, 0), (0, 0, 1)], ids=["pitched", "skew"])
@pytest.mark.parametrize("angle", [0, 1e-6, -1e-6])
@pytest.mark.parametrize("shift", [0, 0.1])
def test_parallel_capsules_touch_at_both_ends_of_their_overlap(shift, angle, axis, dtype):
    model, _ = scene('type="capsule" size="0.05 0.3"', 'type="capsule" size="0.05 0.3"', dtype=dtype)
    links = links_of(model, places((0, 0, 0), (shift, 0, 0.0995)), places(LYING, times(about(axis, angle), LYING)))
    found = sorted(detected(model, links)[0], key=lambda f: f.point[0])
    assert len(found) == 2
    for contact, x in zip(found, (shift - 0.3, 0.3), strict=True):
        assert contact.point[0] == pytest.approx(x, abs=1e-4)
        assert contact.gap == pytest.approx(-5e-4, abs=1e-5)
        assert contact.normal == pytest.approx([0, 0, 1], abs=1e-4)


def test_capsules_at_growing_angles_slide_from_two_contacts_to_one():
    model, _ = scene('type="capsule" size="0.05 0.3"', 'type="capsule" size="0.05 0.3"')
    angles = np.linspace(0, 0.02, 401)
    position = np.repeat(places((0, 0, 0), (0.1, 0, 0.0995)), len(angles), axis=2)
    quaternion = np.stack(
        [np.repeat(LYING[:, None], len(angles), 1), np.stack([times(about((0, 0, 1), a), LYING) for a in angles], 1)]
    )
    found = detected(model, links_of(model, position, quaternion))
    spread = np.array([abs(f[0].point[0] - f[-1].point[0]) for f in found])
    assert spread[0] == pytest.approx(0.5)
    assert [len(f) for f in found][:200] == [2] * 200
    assert len(found[-1]) == 1
    assert np.abs(np.diff(spread)).max() < 0.01  # no jump, not even where the second one disappears
    assert np.diff(spread).max() < 1e-9
    for contacts, angle in zip(found, angles, strict=True):
        # the axes cross above x = 0.1: two contacts beside the crossing are almost as deep as the crossing itself
        assert max(f.gap for f in contacts) == pytest.approx(-5e-4, abs=(0.4 * min(angle, 0.01)) ** 2 / 0.2 + 1e-12)


@DTYPES
@pytest.mark.parametrize("distance", [0.05, 0.2])
def test_capsules_in_line_touch_once(distance, dtype):
    model, _ = scene('type="capsule" size="0.05 0.3"', 'type="capsule" size="0.05 0.3"', dtype=dtype)
    links = links_of(model, places((0, 0, 0), (0.6 + distance, 0, 0)), places(LYING, LYING))
    (contact,) = detected(model, links)[0]
    assert contact.gap == pytest.approx(distance - 0.1, abs=1e-6)
    assert contact.normal == pytest.approx([1, 0, 0], abs=1e-5)
    assert contact.point == pytest.approx([0.3 + distance / 2, 0, 0], abs=1e-6)


# shapes whose centres or axes coincide

EVERYTHING = """<mujoco><worldbody>
  <geom type="plane" size="1 1 1" contype="0" conaffinity="3"/>
  <body><freejoint/><geom type="sphere" size="0.1"/></body>
  <body><freejoint/><geom type="sphere" size="0.1"/></body>
  <body><freejoint/><geom type="capsule" size="0.1 0.2"/></body>
  <body><freejoint/><geom type="capsule" size="0.1 0.2"/></body>
  <body><freejoint/><geom type="box" size="0.2 0.3 0.25"/></body>
  <body><freejoint/><geom type="cylinder" size="0.1 0.2" contype="2" conaffinity="0"/></body>
</worldbody></mujoco>"""


def degenerate_worlds(model: Model) -> tuple[Links, jax.Array]:
    """All shapes at one place but for an offset in x; worlds 3 to 5 lie apart, the last with capsules of no length."""
    offsets = np.array([0, 1e-20, 1e-12, 0, 0, 0])
    position = np.zeros((6, 3, 6))
    position[0, 0] = position[2, 0] = offsets
    position[:, 2, 3:] = np.array([0.1, 0.45, 0.1, 0.35, 0, 0.1])[:, None]
    quaternion = np.repeat(places(*[UPRIGHT] * 6), 6, axis=2)
    quaternion[[2, 3, 5], :, 3:] = LYING[None, :, None]
    quaternion[2, :, 4] = times(about((0, 0, 1), 1e-3), LYING)
    size = jnp.repeat(model.geom_size, 6, axis=-1).at[1, 3:5, 5].set(0)
    links = links_of(model, position, quaternion)
    small = jnp.asarray(offsets, model.dtype)
    exact = links.position.at[0, 0].set(small).at[0, 2].set(small)
    return Links(links.rotation, exact, links.origin), size


@DTYPES
def test_degenerate_poses_are_finite_with_unit_normals_and_finite_derivatives(dtype):
    model = load(EVERYTHING, dtype=dtype)
    links, size = degenerate_worlds(model)

    def found(position, rotation, size):
        candidates = detect(model.replace(geom_size=size), Links(rotation, position, links.origin))
        return candidates.point, candidates.normal, candidates.gap

    arguments = (links.position, links.rotation, size)
    rng = np.random.default_rng(0)
    tangents = tuple(jnp.asarray(rng.normal(size=x.shape), dtype) for x in arguments)
    values, forward = jax.jit(lambda *a: jax.jvp(found, a, tangents), compiler_options=QUICK)(*arguments)
    cotangents = tuple(jnp.asarray(rng.normal(size=x.shape), dtype) for x in values)
    reverse = jax.jit(lambda *a: jax.vjp(found, *a)[1](cotangents), compiler_options=QUICK)(*arguments)
    for numbers in (*values, *forward, *reverse):
        assert np.isfinite(np.asarray(numbers)).all()
    assert np.linalg.norm(np.asarray(values[1]), axis=0) == pytest.approx(1, abs=1e-5)
    # the two modes agree: w . (J v) = (J' w) . v, per world
    for world in range(size.shape[-1]):
        ahead = sum(float(jnp.sum(w[..., world] * t[..., world])) for w, t in zip(cotangents, forward, strict=True))
        back = sum(float(jnp.sum(r[..., world] * t[..., world])) for r, t in zip(reverse, tangents, strict=True))
        scale = sum(
            float(jnp.sum(jnp.abs(w[..., world] * t[..., world]))) for w, t in zip(cotangents, forward, strict=True)
        )
        assert abs(ahead - back) < 1e-4 * scale


@DTYPES
def test_coincident_spheres_overlap_by_both_radii(dtype):
    model = load(MODELS / "b26_coincident_spheres.xml", dtype=dtype)
    links = links_of(model, places((0.3, -0.2, 0.7), (0.3, -0.2, 0.7)), places(UPRIGHT, UPRIGHT))
    (contact,) = detected(model, links)[0]
    assert contact.gap == pytest.approx(-0.2, abs=1e-7)
    assert contact.point == pytest.approx([0.3, -0.2, 0.7], abs=1e-6)


# boxes


@DTYPES
def test_box_sunk_into_a_plane_touches_at_its_four_lower_corners(dtype):
    model = load(MODELS / "b27_box_plane_corners.xml", dtype=dtype)
    found = detected(model, links_of(model, places((0.4, -0.3, 0.0995)), places(UPRIGHT)))[0]
    touching = [f for f in found if f.gap < 0]
    corners = {(round(float(f.point[0]), 5), round(float(f.point[1]), 5)) for f in touching}
    assert len(touching) == 4
    assert corners == {(0.2, -0.45), (0.6, -0.45), (0.2, -0.15), (0.6, -0.15)}
    for contact in touching:
        assert contact.gap == pytest.approx(-5e-4, abs=1e-6)
        assert contact.point[2] == pytest.approx(-2.5e-4, abs=1e-6)
        assert contact.normal == pytest.approx([0, 0, 1], abs=1e-6)


@DTYPES
def test_sphere_leaves_a_box_through_the_nearest_face(dtype):
    model, _ = scene('type="sphere" size="0.05"', 'type="box" size="0.2 0.3 0.4"', dtype=dtype)
    (contact,) = detected(model, links_of(model, places((-0.17, 0.1, 0.2), (0, 0, 0)), places(UPRIGHT, UPRIGHT)))[0]
    assert contact.gap == pytest.approx(-0.08, abs=1e-6)
    assert contact.normal == pytest.approx([1, 0, 0], abs=1e-6)
    # the sphere's deepest point is at x = -0.12, the box's surface at -0.2
    assert contact.point == pytest.approx([-0.16, 0.1, 0.2], abs=1e-6)


@DTYPES
@pytest.mark.parametrize(
    ("centre", "ends"),
    [(0.0, (-0.2, 0.2)), (0.25, (0.05, 0.3)), (-0.4, (-0.3, -0.2))],
    ids=["inside", "over one edge", "barely on"],
)
@pytest.mark.parametrize("depth", [-0.001, 0.001, 0.049])
def test_capsule_lying_on_a_box_rests_on_two_points(centre, ends, depth, dtype):
    model, _ = scene('type="capsule" size="0.05 0.2"', 'type="box" size="0.3 0.3 0.4"', dtype=dtype)
    position = places((centre, 0.1, 0.45 - depth), (0, 0, 0))
    found = sorted(detected(model, links_of(model, position, places(LYING, UPRIGHT)))[0], key=lambda f: f.point[0])
    assert len(found) == 2
    for contact, x in zip(found, ends, strict=True):
        assert contact.point[0] == pytest.approx(x, abs=1e-3)
        assert contact.gap == pytest.approx(-depth, abs=1e-6)
        assert contact.normal == pytest.approx([0, 0, -1], abs=2e-2)


@DTYPES
def test_capsule_whose_axis_is_below_the_face_leaves_through_it(dtype):
    model, _ = scene('type="capsule" size="0.05 0.2"', 'type="box" size="0.3 0.3 0.4"', dtype=dtype)
    found = detected(model, links_of(model, places((0, 0.1, 0.38), (0, 0, 0)), places(LYING, UPRIGHT)))[0]
    assert sorted(f.point[0] for f in found) == pytest.approx([-0.2, 0.2], abs=1e-6)
    assert [f.gap for f in found] == pytest.approx([-0.07, -0.07], abs=1e-6)
    for contact in found:
        assert contact.normal == pytest.approx([0, 0, -1], abs=1e-6)


@DTYPES
@pytest.mark.parametrize("tilt", [1e-7, 1e-4, 1e-2, 0.3, -1e-4, -0.3])
def test_tilted_capsule_touches_with_its_low_end_and_watches_its_high_end(tilt, dtype):
    model, _ = scene('type="capsule" size="0.05 0.2"', 'type="box" size="0.3 0.3 0.4"', dtype=dtype)
    height = 0.45 + 0.2 * np.sin(abs(tilt)) - 1e-3
    links = links_of(model, places((0, 0.1, height), (0, 0, 0)), places(times(about((0, 1, 0), tilt), LYING), UPRIGHT))
    low, high = sorted(detected(model, links)[0], key=lambda f: f.gap)
    assert low.gap == pytest.approx(-1e-3, abs=1e-6)
    assert high.gap == pytest.approx(-1e-3 + 0.4 * np.sin(abs(tilt)), abs=1e-6)
    assert abs(low.point[0] - high.point[0]) == pytest.approx(0.4 * np.cos(tilt), abs=1e-5)


@DTYPES
def test_capsule_across_a_narrow_box_rests_on_both_edges(dtype):
    model, _ = scene('type="box" size="0.05 0.05 0.05"', 'type="capsule" size="0.02 0.3"', dtype=dtype)
    links = links_of(model, places((0, 0, 0), (0.1, 0, 0.0695)), places(UPRIGHT, LYING))
    found = sorted(detected(model, links)[0], key=lambda f: f.point[0])
    assert [f.point[0] for f in found] == pytest.approx([-0.05, 0.05], abs=1e-3)
    assert [f.gap for f in found] == pytest.approx([-5e-4, -5e-4], abs=1e-6)


# cylinders on a plane


@DTYPES
@pytest.mark.parametrize("spin", [0, 0.7])
def test_standing_cylinder_is_carried_by_three_points_of_its_rim(spin, dtype):
    model, _ = scene('type="plane" size="1 1 1"', 'type="cylinder" size="0.1 0.2"', dtype=dtype)
    links = links_of(model, places((0.3, 0.2, 0.199)), places(about((0, 0, 1), spin)))
    touching = [f for f in detected(model, links)[0] if f.gap < 0]
    arms = np.array([f.point[:2] - [0.3, 0.2] for f in touching])
    assert len(touching) == 3
    assert np.linalg.norm(arms, axis=1) == pytest.approx(0.1, abs=1e-6)
    assert arms.sum(axis=0) == pytest.approx([0, 0], abs=1e-6)  # 120 degrees apart: the centre is inside
    assert [f.gap for f in touching] == pytest.approx([-1e-3] * 3, abs=1e-6)


@DTYPES
def test_lying_cylinder_is_carried_by_the_ends_of_a_line(dtype):
    model, _ = scene('type="plane" size="1 1 1"', 'type="cylinder" size="0.1 0.2"', dtype=dtype)
    touching = [f for f in detected(model, links_of(model, places((0, 0, 0.0995)), places(LYING)))[0] if f.gap < 0]
    assert sorted(f.point[0] for f in touching) == pytest.approx([-0.2, 0.2], abs=1e-6)
    assert [f.gap for f in touching] == pytest.approx([-5e-4] * 2, abs=1e-6)


# masks, margins, order, far away


def test_masks_leave_exactly_the_pairs_that_both_sides_accept():
    model = load(MODELS / "b24_masks.xml")

    position = places((0, 0, 0.0999), (0.15, 0, 0.0999), (-0.15, 0, 0.0999), (0, 0.15, 0.0999))
    found = jax.jit(detect)(model, links_of(model, position, places(*[UPRIGHT] * 4)))
    names = model.topology.geom_names
    touching = {
        (names[a], names[b])
        for (a, b), gap in zip(candidate_geoms(model.topology), np.asarray(found.gap)[:, 0], strict=True)
        if gap < 0
    }
    assert touching == {("floor", "a"), ("floor", "b"), ("floor", "c"), ("a", "c")}


def test_margin_moves_the_surfaces_and_not_the_point():
    geoms = ('type="sphere" size="0.1"', 'type="sphere" size="0.2"')
    with_margin, without = scene(*geoms, margin=0.01)[0], scene(*geoms)[0]
    position = places((0, 0, 0), (0.35, 0, 0))
    (wide,), (plain,) = (
        detected(model, links_of(model, position, places(UPRIGHT, UPRIGHT)))[0] for model in (with_margin, without)
    )
    assert plain.gap == pytest.approx(0.05)
    assert wide.gap == pytest.approx(0.05 - float(with_margin.pair_margin[0, 0]))
    assert wide.point == pytest.approx([0.125, 0, 0]) == plain.point


def test_normal_points_from_the_lower_geom_to_the_higher():
    for geoms, up in (
        (('type="plane" size="1 1 1"', 'type="sphere" size="0.1"'), 1),
        (('type="sphere" size="0.1"', 'type="plane" size="1 1 1"'), -1),
    ):
        model, _ = scene(*geoms)
        (contact,) = detected(model, links_of(model, places((0, 0, 0.05)), places(UPRIGHT)))[0]
        assert contact.normal == pytest.approx([0, 0, up])


def test_a_kilometre_away_a_plane_is_as_exact_as_at_home():
    model, _ = scene('type="plane" size="1 1 1"', 'type="box" size="0.1 0.2 0.3"', dtype=jnp.float32)
    rotation = places(times(about((0, 0, 1), 0.3), about((1, 0, 0), 1e-3)))
    gaps = []
    for away in (0.0, 1000.25):
        origin = np.array([away, -away, 0.29])[:, None]
        links = links_of(model, places((away, -away, 0.29)), rotation, origin)
        gaps.append([f.gap for f in detected(model, links)[0]])
    assert gaps[0] == gaps[1]


def test_without_pairs_there_are_no_candidates():

    model, _ = scene('type="sphere" size="0.1"')
    found = detect(model, links_of(model, places((0, 0, 0)), places(UPRIGHT)))
    assert found.point.shape == found.normal.shape == (3, 0, 1)
    assert found.gap.shape == (0, 1)
