"""Soft scalar rows: solution, residual and derivative against the linear equations they stand for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.contact.residual import residuals
from rsim_jax.contact.solve import solve_rows
from rsim_jax.contact.system import WIDTH, Impulses, RowSystem, velocities, velocity_change

Y = np.random.default_rng(0).normal(size=(3, 4))
C, TARGET = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.2, -0.1])
SOFTNESS = np.array([0.0, 2.0, 1e4])  # hard, soft, very soft


def system(softness, c):
    y = jnp.asarray(Y)[..., None]
    column = jnp.asarray(c)[:, None]
    return RowSystem(
        contact=jnp.zeros((0, 3 * 4 + WIDTH, 1)),
        angular=jnp.zeros((0, 0, 1)),
        trees=jnp.zeros((0, 0, 1), jnp.int32),
        used=jnp.zeros((), jnp.int32),
        scalar_y=y,
        scalar_c=column,
        scalar_target=jnp.asarray(TARGET)[:, None],
        scalar_block=jnp.sum(y * y, axis=1),
        scalar_softness=jnp.asarray(softness)[:, None],
        low=jnp.full((3, 1), -jnp.inf),
        high=jnp.full((3, 1), jnp.inf),
        tolerance=jnp.zeros(()),
    )


@jax.jit
def solved(softness, c):
    rows = system(softness, c)
    impulses = solve_rows(rows, Impulses(jnp.zeros((0, 3, 1)), jnp.zeros((3, 1))), 100, "coulomb")
    residual = residuals(rows, impulses, *velocities(rows, velocity_change(rows, impulses)))
    return impulses.scalar[:, 0], residual[:, 0]


def exact(softness, c):
    """(W + softness) lam = target - c."""
    return np.linalg.solve(Y @ Y.T + np.diag(softness), TARGET - c)


def test_soft_rows_solve_the_linear_equations_and_have_no_residual():
    impulse, residual = solved(SOFTNESS, C)
    np.testing.assert_allclose(impulse, exact(SOFTNESS, C), rtol=1e-9)
    assert np.abs(np.asarray(residual)).max() < 1e-9


def test_their_derivatives_are_those_of_the_linear_equations():
    by_softness, by_c = jax.jit(jax.jacrev(lambda s, c: solved(s, c)[0], argnums=(0, 1)))(SOFTNESS, C)
    inverse = np.linalg.inv(Y @ Y.T + np.diag(SOFTNESS))
    np.testing.assert_allclose(by_c, -inverse, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(by_softness, -inverse * exact(SOFTNESS, C), rtol=1e-6, atol=1e-9)
