"""The derivative of the row solution: published numbers, implicit formula, finite differences, both modes."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import rows as reference

from rsim_jax.contact.solve import solve_rows
from rsim_jax.contact.system import Impulses, RowSystem, pack_contact

SWEEPS = 400  # of one row: to rounding
G = np.array([[2, 0.3, 0.5], [0.3, 1, -0.4], [0.5, -0.4, 1.5]])
C = np.array([1, 0.5, -1])
MU = 0.3
BY_VELOCITY = (
    (-0.005513, 0.044324, 0.234596),
    (0.024183, -0.194437, -0.045929),
    (0.008286, -0.066625, -0.757113),
)
BY_FRICTION = (-0.808733, -0.051179, 0.255930)
IMPULSE = {"coulomb": (-0.217947, -0.027107, 0.732087), "energy": (-0.22108, -0.01000, 0.73770)}


def system(y, c, mu, target=0.0):
    """One contact of a body with three dofs, one world."""
    none = jnp.zeros((0, 1))
    row = pack_contact(
        y[..., None], jnp.asarray(c)[:, None], jnp.asarray(target).reshape(1), jnp.asarray(mu).reshape(1)
    )
    return RowSystem(
        contact=row[None],
        angular=jnp.zeros((0, 0, 1)),
        trees=jnp.zeros((1, 0, 1), jnp.int32),
        used=jnp.ones((), jnp.int32),
        scalar_y=jnp.zeros((0, 3, 1)),
        scalar_c=none,
        scalar_target=none,
        scalar_block=none,
        scalar_softness=jnp.zeros((0, 1)),
        low=none,
        high=none,
        tolerance=jnp.zeros(()),
    )


@functools.partial(jax.jit, static_argnums=4)
def impulse(y, c, mu, target, slip_rule):
    start = Impulses(jnp.zeros((1, 3, 1)), jnp.zeros((0, 1)))
    return solve_rows(system(y, c, mu, target), start, SWEEPS, slip_rule).contact[0, :, 0]


@functools.partial(jax.jit, static_argnums=(4, 5))
def derivatives(y, c, mu, target, slip_rule, mode):
    differentiate = {"forward": jax.jacfwd, "reverse": jax.jacrev}[mode]
    return differentiate(lambda *x: impulse(*x, slip_rule), argnums=(0, 1, 2, 3))(y, c, mu, target)


Y = jnp.asarray(reference.whitened(G))


@pytest.mark.parametrize("slip_rule", ["coulomb", "energy"])
def test_sweeps_converge_to_the_exact_solution(slip_rule):
    found = impulse(Y, C, MU, 0.0, slip_rule)
    np.testing.assert_allclose(found, IMPULSE[slip_rule], atol=1e-6 if slip_rule == "coulomb" else 1e-5)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_slipping_derivatives_have_the_published_values(mode):
    _, by_c, by_mu, _ = derivatives(Y, C, MU, 0.0, "coulomb", mode)
    np.testing.assert_allclose(by_c, BY_VELOCITY, atol=2e-6)
    np.testing.assert_allclose(by_mu, BY_FRICTION, atol=2e-6)
    exact_c, exact_mu, _ = reference.slip_derivatives(G, C, MU, np.asarray(impulse(Y, C, MU, 0.0, "coulomb")))
    np.testing.assert_allclose(by_c, exact_c, atol=1e-7)
    np.testing.assert_allclose(by_mu, exact_mu, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "c", "mu", "slip_rule"),
    [
        ("slip", (1.0, 0.5, -1.0), 0.3, "coulomb"),
        ("slip", (1.0, 0.5, -1.0), 0.3, "energy"),
        ("stick", (0.1, 0.05, -1.0), 0.8, "coulomb"),
        ("open", (1.0, 0.5, 1.0), 0.3, "coulomb"),
    ],
)
def test_derivatives_equal_finite_differences_in_both_modes(name, c, mu, slip_rule):
    step, arguments = 1e-5, (Y, jnp.asarray(c), jnp.asarray(mu), jnp.asarray(0.1))
    forward = derivatives(*arguments, slip_rule, "forward")
    reverse = derivatives(*arguments, slip_rule, "reverse")
    value = np.asarray(impulse(*arguments, slip_rule))
    assert (name == "open") == (value[2] == 0)
    assert (name == "slip") == (np.hypot(*value[:2]) > 0.999 * mu * value[2] > 0)
    for which, (f, r) in enumerate(zip(forward, reverse, strict=True)):
        np.testing.assert_allclose(f, r, rtol=1e-9, atol=1e-9)
        argument = np.asarray(arguments[which], float)
        numeric = np.zeros((3, argument.size))
        for k in range(argument.size):
            ends = []
            for sign in (1, -1):
                moved = argument.copy().reshape(-1)
                moved[k] += sign * step
                changed = [*arguments]
                changed[which] = jnp.asarray(moved.reshape(argument.shape))
                ends.append(np.asarray(impulse(*changed, slip_rule)))
            numeric[:, k] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(np.asarray(f).reshape(3, -1), numeric, atol=2e-5)
