"""Boxes and cylinders against each other and round shapes: slow dual oracle, closed forms, degenerate poses."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.support_gap import GRID, separation, signed_distance

from rsim_jax.collision.box_box import box_box
from rsim_jax.collision.cylinder import LEVEL, capsule_cylinder, sphere_cylinder
from rsim_jax.collision.cylinder_box import cylinder_box
from rsim_jax.collision.cylinder_cylinder import cylinder_cylinder
from rsim_jax.collision.patches import FAR

QUICK = {"xla_backend_optimization_level": "0"}
SIZES = {
    "sphere": np.array([0.1, 0, 0]),
    "capsule": np.array([0.08, 0.12, 0]),
    "cylinder": np.array([0.1, 0.12, 0]),
    "box": np.array([0.1, 0.12, 0.09]),
}
FLAT = {("box", "box"): box_box, ("cylinder", "box"): cylinder_box, ("cylinder", "cylinder"): cylinder_cylinder}
PAIRS = [*FLAT, ("sphere", "cylinder"), ("capsule", "cylinder")]
# largest error of the gap by which a 2 mm overlap of such shapes may be wrong, and of distances
TOLERANCE = {
    ("box", "box"): (1e-5, 1e-12),
    ("cylinder", "box"): (5e-4, 1e-9),
    ("cylinder", "cylinder"): (5e-5, 1e-9),
    ("sphere", "cylinder"): (1e-14, 1e-14),
    ("capsule", "cylinder"): (3e-5, 3e-5),
}
FACING = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
LYING = np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]])  # z axis along x


@functools.cache
def program(pair, slots, dtype):
    """(first pose and size, second pose and size) -> point (3, F, N), normal (3, F, N), gap (F, N)."""

    def found(c1, r1, s1, c2, r2, s2):
        c1, c2 = c1[:, None], c2[:, None]
        r1, r2 = (jnp.swapaxes(r, 0, 1)[:, :, None] for r in (r1, r2))
        s1, s2 = s1[:, None], s2[:, None]
        if pair in FLAT:
            out = FLAT[pair](c1, r1, s1, c2, r2, s2, slots)
        elif pair[0] == "sphere":
            out = tuple(x[..., None, :] for x in sphere_cylinder(c1, s1[0], c2, r2[2], s2))
        else:
            out = capsule_cylinder(c1, r1[2], s1, c2, r2[2], s2)
        point, normal, gap = out
        return point[:, 0], normal[:, 0], gap[0]

    return jax.jit(found, compiler_options=QUICK)


def contacts(pair, c1, r1, c2, r2, dtype=jnp.float64, slots=4, scale=1.0):
    """NumPy result for poses c (N, 3), r (N, 3, 3); sizes by kind times `scale`."""
    place = lambda c: jnp.asarray(np.moveaxis(np.asarray(c, float), 0, -1), dtype)  # noqa: E731
    sizes = [jnp.asarray(scale * np.repeat(SIZES[k][:, None], len(c1), 1), dtype) for k in pair]
    out = program(pair, slots, dtype)(place(c1), place(r1), sizes[0], place(c2), place(r2), sizes[1])
    assert all(x.dtype == dtype for x in out)
    return jax.tree.map(np.asarray, out)


def one(pair, shift, r1=FACING, r2=FACING, **options):
    """Contacts that exist with the second shape at `shift`: points (n, 3), normal, gaps (n,)."""
    point, normal, gap = contacts(pair, [np.zeros(3)], [r1], [shift], [r2], **options)
    kept = gap[:, 0] < 0.5 * FAR
    return point[:, kept, 0].T, normal[:, 0, 0], gap[kept, 0]


@functools.cache
def posed(pair, count=36):
    """Random poses with a chosen gap along a random direction, and the oracle's gap and normal."""
    rng = np.random.default_rng(5)
    turns = [np.linalg.qr(rng.normal(size=(count, 3, 3)))[0] for _ in range(2)]
    turns = [r * np.sign(np.linalg.det(r))[:, None, None] for r in turns]
    wanted = np.resize([-0.002, 0.02, 0.002], count)
    place, gap, normal = np.zeros((count, 3)), np.zeros(count), np.zeros((count, 3))
    for n in range(count):
        u = rng.normal(size=3)
        u /= np.linalg.norm(u)
        radius = 0.3
        for _ in range(3):
            shapes = [
                (kind, at, r[n], SIZES[kind])
                for kind, at, r in zip(pair, (np.zeros(3), radius * u), turns, strict=True)
            ]
            gap[n], normal[n] = signed_distance(*shapes, polish=2)
            place[n] = radius * u
            radius += (wanted[n] - gap[n]) / max(normal[n] @ u, 0.3)
    return turns[0], place, turns[1], gap, normal


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_gap_of_random_poses(pair, dtype):
    r1, place, r2, gap, normal = posed(pair)
    point, found, gaps = contacts(pair, np.zeros_like(place), r1, place, r2, dtype)
    nearest, worlds = gaps.argmin(0), np.arange(len(place))
    error = np.abs(gaps[nearest, worlds] - gap)
    rounding = 1e-5 if dtype == jnp.float32 else 1e-9  # the oracle's own is near 1e-12, a tie of ours 5e-6 in float32
    overlapping, apart = TOLERANCE[pair]
    assert error[gap < 0].max() < overlapping + rounding
    # of directions within a face's snap the distance is the patch's, which a small angle makes a little longer
    assert error[gap > 0].max() < max(apart, 1e-5 if pair in FLAT else 0) + rounding
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), 1, atol=1e-5)
    found = found[:, nearest, worlds].T
    assert np.median(np.linalg.norm(found - normal, axis=1)) < 2e-3
    # the midpoint is no farther than half a gap from either shape
    for n in range(len(place)):
        for kind, centre, r, sign in ((pair[0], 0 * place[n], r1[n], 1), (pair[1], place[n], r2[n], -1)):
            own = (kind, centre, r, SIZES[kind])
            dot = ("sphere", point[:, nearest[n], n], np.eye(3), np.zeros(3))
            outside = separation(own, dot, np.concatenate([GRID, sign * found[n : n + 1]])).max()
            # overlapping rims and edges at a small angle: the search stops within a twentieth of the size
            assert outside < 0.5 * max(gaps[nearest[n], n], 0) + 1e-2


@pytest.mark.parametrize("scale", [1e-2, 1, 50])  # 1 mm to 10 m
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
@pytest.mark.parametrize(("pair", "r1", "count"), [
    (("box", "box"), FACING, 4), (("cylinder", "box"), FACING, 4), (("cylinder", "box"), LYING, 2),
    (("cylinder", "cylinder"), FACING, 4), (("cylinder", "cylinder"), LYING, 2), (("capsule", "cylinder"), LYING, 2),
])  # fmt: skip
def test_flat_rest(pair, r1, count, dtype, scale):
    """A 1 % overlap of a face, cap or side lying on a cap or face, moved sideways by a tenth of the size."""
    half1 = SIZES[pair[0]][0] if r1 is LYING else SIZES[pair[0]][2 if pair[0] == "box" else 1]
    half2 = SIZES[pair[1]][2 if pair[1] == "box" else 1]
    depth = 0.001 * scale
    shift = np.array([0.013 * scale, -0.007 * scale, scale * (half1 + half2) - depth])
    points, normal, gaps = one(pair, shift, r1, dtype=dtype, scale=scale)
    rounding = (1e-6 if dtype == jnp.float32 else 1e-13) * scale
    assert len(gaps) == count
    np.testing.assert_allclose(gaps, -depth, atol=3 * rounding + (3e-6 * scale if pair[0] == "capsule" else 0))
    # a capsule's contacts are where its axis leaves the cap, and lean outward by LEVEL
    lean = LEVEL if pair[0] == "capsule" else 0
    np.testing.assert_allclose(normal, [0, 0, 1], atol=1e-5 + lean)
    np.testing.assert_allclose(points[:, 2], scale * half1 - 0.5 * depth, atol=(1e-6 + lean**2) * scale)
    assert np.ptp(points[:, 0]) > 0.12 * scale  # they carry


def test_overlap_of_boxes_is_their_polygon():
    """Faces at 45 degrees: an octagon, found whole with eight points, and spanned by four of its corners."""
    turn = np.array([[1, -1, 0], [1, 1, 0], [0, 0, np.sqrt(2)]]) / np.sqrt(2)
    for slots in (4, 8):
        points, _, gaps = one(("box", "box"), [0, 0, 0.179], turn, slots=slots)
        assert len(gaps) == slots
        np.testing.assert_allclose(gaps, -0.001, atol=1e-12)
        local = np.abs(points[:, :2] @ turn[:2, :2])
        assert (local <= np.array([0.1, 0.12]) + 1e-9).all() and (np.abs(points[:, :2]) <= [0.1, 0.12 + 1e-9]).all()


def test_closest_features_of_boxes():
    """Corner to corner, edge to edge, crossed edges."""
    half = 2 * SIZES["box"]
    for shift in (half + np.array([0.01, 0.02, 0.02]), half * [1, 1, 0] + [0.03, 0.04, 0]):
        _, normal, gaps = one(("box", "box"), shift)
        excess = np.maximum(shift - half, 0)
        assert gaps.min() == pytest.approx(np.linalg.norm(excess), abs=1e-12)
        np.testing.assert_allclose(normal, excess / np.linalg.norm(excess), atol=1e-9)


def test_crossed_cylinders_touch_once():
    turn = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # z axis along y
    points, normal, gaps = one(("cylinder", "cylinder"), [0.01, 0.02, 0.199], LYING, turn)
    assert gaps == pytest.approx([-0.001], abs=1e-12)
    np.testing.assert_allclose(normal, [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(points[0], [0.01, 0, 0.0995], atol=1e-9)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_values_and_derivatives_are_finite_in_degenerate_poses(pair, dtype):
    """Same centre, touching, in line, parallel, turned by right angles."""
    shifts = [
        np.zeros(3),
        np.array([0, 0, 0.24]),
        np.array([0.2, 0, 0]),
        np.array([0.2, 0.24, 0]),
        np.array([1e-9, 0, 0]),
    ]
    poses = [(s, r) for s in shifts for r in (FACING, LYING)]
    place = lambda c: jnp.asarray(np.moveaxis(np.asarray(c, float), 0, -1), dtype)  # noqa: E731
    c1, r1 = place(np.zeros((len(poses), 3))), place(np.repeat(FACING[None], len(poses), 0))
    c2, r2 = place([s for s, _ in poses]), place([r for _, r in poses])
    sizes = [jnp.asarray(np.repeat(SIZES[k][:, None], len(poses), 1), dtype) for k in pair]
    run = program(pair, 4, dtype)
    arguments = (c1, r1, sizes[0], c2, r2, sizes[1])
    value = run(*arguments)

    def total(*a):
        point, normal, gap = run.__wrapped__(*a)
        return jnp.sum(point * point) + jnp.sum(normal[0]) + jnp.sum(jnp.where(gap < 0.5 * FAR, gap, 0))

    slopes = jax.jit(jax.grad(total, range(6)), compiler_options=QUICK)(*arguments)
    for x in (*value, *slopes):
        assert np.isfinite(np.asarray(x)).all()
    deepest = np.asarray(value[2]).min(0)
    assert deepest.min() > -0.5  # nothing deeper than the shapes
