"""Exact elimination of bilateral rows against a dense solution of the same equations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rsim_jax.contact import elimination

NV, WORLDS, TOLERANCE = 7, 3, {"float32": 2e-5, "float64": 1e-12}


def problem(seed=0):
    """Whitened rows (5, NV, WORLDS), the fourth the sum of two others, the fifth without mobility; errors to match."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(5, NV, WORLDS))
    error = rng.normal(size=(5, WORLDS))
    y[3], error[3] = y[0] + 2 * y[1], error[0] + 2 * error[1]
    y[4] = 0
    return y, error


@jax.jit
def solved(y, error, other, lam):
    basis = elimination.eliminate(y, error)
    clear, shares = elimination.keep_clear(basis, other)
    taken = jnp.sum(shares * lam[:, None], axis=0)
    impulses = elimination.loop_impulses(basis, taken)
    return elimination.change(basis), clear, impulses


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_change_and_impulses_equal_the_dense_solution(dtype):
    y, error = problem()
    rng = np.random.default_rng(1)
    other, lam = rng.normal(size=(2, NV, WORLDS)), rng.normal(size=(2, WORLDS))
    change, clear, impulses = (np.asarray(x) for x in solved(*(jnp.asarray(x, dtype) for x in (y, error, other, lam))))
    for n in range(WORLDS):
        Y = y[:, :, n]
        pinv = np.linalg.pinv(Y)
        np.testing.assert_allclose(change[:, n], pinv @ error[:, n], atol=10 * TOLERANCE[dtype])
        np.testing.assert_allclose(clear[..., n], other[..., n] @ (np.eye(NV) - pinv @ Y), atol=TOLERANCE[dtype])
        total = Y.T @ impulses[:, n] + other[..., n].T @ lam[:, n]
        np.testing.assert_allclose((Y @ total)[:4], error[:4, n], atol=20 * TOLERANCE[dtype])
        assert impulses[3, n] == impulses[4, n] == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nearly_parallel_rows_stay_orthogonal(dtype):
    """Two rows 1e-3 from parallel: what is left of another row has nothing of either, to rounding."""
    rng = np.random.default_rng(2)
    y = rng.normal(size=(2, NV, 1))
    y[1] = y[0] + 1e-3 * y[1]
    other = rng.normal(size=(1, NV, 1))
    _, clear, _ = solved(*(jnp.asarray(x, dtype) for x in (y, np.zeros((2, 1)), other, np.zeros((1, 1)))))
    left = np.einsum("ei,i->e", y[..., 0], np.asarray(clear, float)[0, :, 0])
    assert np.abs(left).max() < 20 * np.finfo(dtype).eps


def test_a_row_inside_the_loop_space_loses_all_its_mobility():
    y, error = problem()
    inside = (0.3 * y[0] - y[1])[None]
    _, clear, _ = solved(*(jnp.asarray(x, jnp.float32) for x in (y, error, inside, np.zeros((1, WORLDS)))))
    assert not np.asarray(clear).any()


def test_derivatives_are_finite_and_right_with_dropped_rows():
    y, error = (jnp.asarray(x) for x in problem())
    direction = jnp.asarray(np.random.default_rng(3).normal(size=y.shape)).at[3:].set(0)
    direction = direction.at[3].set(direction[0] + 2 * direction[1])  # stays redundant

    @jax.jit
    def value(h):
        return jnp.sum(elimination.change(elimination.eliminate(y + h * direction, error)) ** 2)

    slope = jax.jit(jax.grad(value))(0.0)
    assert slope == pytest.approx(float(value(1e-6) - value(-1e-6)) / 2e-6, rel=1e-6)
