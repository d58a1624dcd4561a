"""Arithmetic with components first and worlds last, against NumPy, in both precisions and at its singular points."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from rsim_jax.lanes import blocks, quaternions, spatial, tree, trigonometry, vectors
from rsim_jax.lanes.fence import concatenate, stack

N = 64
ROUNDING = {"float32": 2e-6, "float64": 1e-14}
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def unit(rng, dtype):
    quaternion = rng.normal(size=(4, N))
    return jnp.asarray(quaternion / np.linalg.norm(quaternion, axis=0), dtype)


def matrices_by_mujoco(quaternion):
    result = np.zeros((N, 9))
    for n in range(N):
        mujoco.mju_quat2Mat(result[n], np.asarray(quaternion[:, n], float))
    return result.reshape(N, 3, 3).transpose(1, 2, 0)


@DTYPES
def test_quaternions_turn_like_matrices(rng, dtype):
    a, b = unit(rng, dtype), unit(rng, dtype)
    np.testing.assert_allclose(quaternions.to_matrix(a), matrices_by_mujoco(a), atol=ROUNDING[dtype])
    product = np.einsum("ijn,jkn->ikn", matrices_by_mujoco(a), matrices_by_mujoco(b))
    np.testing.assert_allclose(quaternions.to_matrix(quaternions.multiply(a, b)), product, atol=2 * ROUNDING[dtype])
    back = quaternions.from_matrix(quaternions.to_matrix(a))
    np.testing.assert_allclose(back * jnp.sign(jnp.sum(back * a, axis=0)), a, atol=4 * ROUNDING[dtype])


@DTYPES
def test_half_turns_have_a_quaternion(dtype):
    """The trace is -1 there: every one of the four forms is needed."""
    for k in range(4):
        quaternion = jnp.eye(4, dtype=dtype)[:, k : k + 1]
        found = quaternions.from_matrix(quaternions.to_matrix(quaternion))
        np.testing.assert_allclose(np.abs(found), quaternion, atol=1e-7)


@DTYPES
@pytest.mark.parametrize("angle", [0.0, 1e-8, 1e-4, 1e-3, 0.5, 3.0])
def test_exponential_and_logarithm_are_inverse(rng, dtype, angle):
    axis = rng.normal(size=(3, N))
    v = jnp.asarray(angle * axis / np.linalg.norm(axis, axis=0), dtype)
    turn = quaternions.exponential(v)
    exact = np.concatenate(
        [np.full((1, N), np.cos(angle / 2)), np.sin(angle / 2) * axis / np.linalg.norm(axis, axis=0)]
    )
    np.testing.assert_allclose(turn, exact, atol=ROUNDING[dtype])
    np.testing.assert_allclose(quaternions.logarithm(turn), v, atol=4 * ROUNDING[dtype])


def test_exponential_has_the_right_derivative_at_zero():
    derivative = jax.jacfwd(quaternions.exponential)(jnp.zeros(3))
    np.testing.assert_allclose(derivative, np.concatenate([np.zeros((1, 3)), np.eye(3) / 2]), atol=1e-12)


@DTYPES
def test_quaternions_of_any_length_become_unit(dtype):
    """Down to the smallest numbers and up to the largest; zero becomes the identity."""
    sizes = np.array([1e-30, 1e-3, 1, 1e3, 1e30, 0])
    found = quaternions.normalize(jnp.asarray(np.outer([0.8, 0.2, -0.4, 0.4], sizes), dtype))
    np.testing.assert_allclose(found[:, :5], np.outer([0.8, 0.2, -0.4, 0.4], np.ones(5)), rtol=2e-6)
    np.testing.assert_array_equal(found[:, 5], [1, 0, 0, 0])


@DTYPES
def test_sine_and_cosine(dtype):
    """To 1e-7 for |x| < 1e4 in single precision; exact derivatives of each other."""
    x = jnp.asarray(np.concatenate([np.linspace(-20, 20, 4001), np.linspace(-1e4, 1e4, 4001), [0.0]]), dtype)
    for found, exact in zip(trigonometry.sincos(x), (np.sin, np.cos), strict=True):
        np.testing.assert_allclose(
            found, exact(np.asarray(x, np.float64)), atol=1.5e-7 if dtype == "float32" else 1e-15
        )
    sine, cosine = trigonometry.sincos(x)
    tangents = jax.jvp(trigonometry.sincos, (x,), (jnp.ones_like(x),))[1]
    np.testing.assert_array_equal(tangents[0], cosine)
    np.testing.assert_array_equal(tangents[1], -sine)


@DTYPES
def test_vectors(rng, dtype):
    a, b = (jnp.asarray(rng.normal(size=(3, 5, N)), dtype) for _ in range(2))
    m = jnp.asarray(rng.normal(size=(3, 3, 5, N)), dtype)
    allowed = {"rtol": 10 * ROUNDING[dtype], "atol": 10 * ROUNDING[dtype]}
    np.testing.assert_allclose(vectors.dot(a, b), np.sum(np.asarray(a) * b, axis=0), **allowed)
    np.testing.assert_allclose(vectors.cross(a, b), np.cross(a, b, axis=0), **allowed)
    np.testing.assert_allclose(vectors.rotate(m, a), np.einsum("ijkn,jkn->ikn", m, a), **allowed)
    np.testing.assert_allclose(vectors.matmul(m, m), np.einsum("ijkn,jlkn->ilkn", m, m), **allowed)


@DTYPES
def test_lengths_are_safe_at_zero_and_far_below_the_square_root_of_the_smallest_number(dtype):
    v = jnp.asarray([[3.0, 0.0, 3e-30], [4.0, 0.0, 4e-30], [0.0, 0.0, 0.0]], dtype)
    fallback = jnp.asarray([[0.0], [0.0], [1.0]], dtype)
    direction, length = vectors.normalize(v, fallback)
    np.testing.assert_allclose(direction.T, [[0.6, 0.8, 0], [0, 0, 1], [0.6, 0.8, 0]], atol=1e-6)
    np.testing.assert_allclose(length, [5, 0, 5e-30], rtol=1e-6)
    np.testing.assert_allclose(vectors.safe_norm(v)[:2], [5, 0])
    for norm in (lambda x: vectors.safe_norm(x).sum(), lambda x: vectors.normalize(x, fallback)[0].sum()):
        assert np.isfinite(jax.grad(norm)(v)).all()


def test_spatial_products_are_those_of_featherstones_matrices(rng):
    """Built as 6 x 6 matrices: X x, X x*, and the inertia about a point off the centre of mass."""

    def skew(a):
        return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])

    w, v, a, b = rng.normal(size=(4, 3))
    mass, centre, about_centre = 2.0, rng.normal(size=3), np.cov(rng.normal(size=(3, 9)))
    inertia = about_centre + mass * skew(centre) @ skew(centre).T
    whole = np.block([[inertia, mass * skew(centre)], [mass * skew(centre).T, mass * np.eye(3)]])
    numbers = [mass, *(mass * centre), *np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2]]

    def lanes(x):
        return jnp.asarray(x)[:, None, None]

    pair, other = (lanes(w), lanes(v)), (lanes(a), lanes(b))
    motion = np.block([[skew(w), np.zeros((3, 3))], [skew(v), skew(w)]])
    six = np.concatenate([a, b])
    flat = lambda pair: np.concatenate([np.asarray(x)[:, 0, 0] for x in pair])  # noqa: E731
    np.testing.assert_allclose(flat(spatial.momentum(lanes(np.array(numbers)), pair)), whole @ np.concatenate([w, v]))
    np.testing.assert_allclose(flat(spatial.cross_motion(pair, other)), motion @ six)
    np.testing.assert_allclose(flat(spatial.cross_force(pair, other)), -motion.T @ six)
    np.testing.assert_allclose(spatial.power(pair, other)[0, 0], np.concatenate([w, v]) @ six)


@pytest.mark.parametrize("index", [(0, 1, 2, 3, 4), (3,), (), (4, 0, 1, 1), tuple(range(4, -1, -1)) * 9])
def test_take_and_segment_sum(rng, index):
    x = rng.normal(size=(2, 5, 3))
    np.testing.assert_array_equal(tree.take(jnp.asarray(x), index), x[:, list(index)])
    y = rng.normal(size=(2, len(index), 3))
    expected = np.zeros((2, 5, 3))
    for i, k in enumerate(index):
        expected[:, k] += y[:, i]
    np.testing.assert_allclose(tree.segment_sum(jnp.asarray(y), index, 5), expected, atol=1e-12)


def test_stack_and_concatenate_take_any_number_of_parts(rng):
    parts = [rng.normal(size=(2, N)) for _ in range(19)]
    np.testing.assert_array_equal(stack(parts, axis=1), np.stack(parts, axis=1))
    np.testing.assert_array_equal(concatenate([jnp.asarray(p) for p in parts], axis=0), np.concatenate(parts))


@pytest.mark.parametrize("count", [1, 5, 8, 20])
def test_blocks_see_their_own_worlds_and_leaves(count):
    """Shared leaves, leaves per world, padding that is never seen again."""
    size = 4
    total = blocks.padded_count(count, size)
    assert total >= count and total % size == 0
    x = jnp.arange(count, dtype=jnp.float64)[None]
    shared = {"same": jnp.asarray([[2.0]]), "own": blocks.pad(10 * x, total) if count > 1 else 10 * x}

    def fn(leaves, worlds):
        assert worlds.shape[-1] <= size
        return leaves["same"] * worlds + leaves["own"]

    found = blocks.map_blocks(fn, shared, blocks.pad(x, total), size)
    np.testing.assert_array_equal(found[..., :count], 12 * np.arange(count)[None])
