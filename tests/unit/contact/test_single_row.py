"""The exact solution of one contact: published values, and the laws of contact on a hundred thousand blocks."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import contact_blocks, coulomb

import rsim_jax as rsim

CHUNK = 10_000
COUPLED = np.array([[2, 0.3, 0.5], [0.3, 1, -0.4], [0.5, -0.4, 1.5]])
PLAIN = np.diag([2, 1, 1.5])
SLIDING = np.array([1, 0.5, -1])
# (block, velocity, mu, rule, impulse, velocity after)
KNOWN = {
    "coupled, Coulomb": (COUPLED, SLIDING, 0.3, "coulomb", (-0.217947, -0.027107, 0.732087), (0.922018, 0.114674, 0)),
    "coupled, energy": (COUPLED, SLIDING, 0.3, "energy", (-0.22108, -0.01000, 0.73770), (0.92368, 0.12860, 0)),
    "uncoupled, Coulomb": (PLAIN, SLIDING, 0.3, "coulomb", (-0.17125, -0.10332, 0.66667), (0.65750, 0.39668, 0)),
    "uncoupled, energy": (PLAIN, SLIDING, 0.3, "energy", (-0.17125, -0.10332, 0.66667), (0.65750, 0.39668, 0)),
}
DIGITS = {"coupled, Coulomb": 1e-6}  # the others are known to five digits
PAINLEVE = np.array([[3.4, 0, 1.2], [0, 1, 0], [1.2, 0, 1.6]])


@functools.partial(jax.jit, static_argnames="slip_rule")
def solve(G, c, mu, b, slip_rule):
    return rsim.solve_row(G, c, mu, b, slip_rule)


def solved(G, c, mu, slip_rule="coulomb", b=0.0, dtype=np.float64):
    """Impulses (M, 3) of many cases, in chunks of one shape."""
    parts = []
    target = np.broadcast_to(np.asarray(b, dtype), mu.shape)
    for start in range(0, len(mu), CHUNK):
        part = slice(start, start + CHUNK)
        lam = solve(
            jnp.asarray(G[part].transpose(1, 2, 0), dtype),
            jnp.asarray(c[part].T, dtype),
            jnp.asarray(mu[part], dtype),
            jnp.asarray(target[part]),
            slip_rule,
        )
        parts.append(np.asarray(lam, np.float64).T)
    return np.concatenate(parts)


@pytest.fixture(scope="module")
def cases(gymnasium_assets):
    """A hundred thousand (G, c, mu): half arbitrary, half the feet of an ant and a hopper."""
    rng = np.random.default_rng(0)
    parts = [contact_blocks.arbitrary(5 * CHUNK, rng)]
    parts += [contact_blocks.of_feet(gymnasium_assets / "ant.xml", 4 * CHUNK, rng)]
    parts += [contact_blocks.of_feet(gymnasium_assets / "hopper.xml", CHUNK, rng, planar=True)]
    G = np.concatenate(parts)
    c = rng.normal(size=(len(G), 3)) * np.array([1, 1, 2])
    planar = slice(9 * CHUNK, None)  # rank 2, and no velocity where there is no mobility
    c[planar] = np.einsum("mij,mj->mi", G[planar], c[planar])
    return G, c, rng.uniform(0.05, 1.5, len(G))


def size(G, c, lam):
    """The velocities that a case handles: its rounding errors are this times epsilon."""
    return np.linalg.norm(c, axis=1) + np.trace(G, axis1=1, axis2=2) * np.linalg.norm(lam, axis=1)


@pytest.mark.parametrize("name", KNOWN)
def test_known_values(name):
    G, c, mu, rule, impulse, velocity = KNOWN[name]
    lam = solved(G[None], c[None], np.array([mu]), rule)[0]
    allowed = DIGITS.get(name, 1e-5)
    np.testing.assert_allclose(lam, impulse, atol=allowed)
    np.testing.assert_allclose(G @ lam + c, velocity, atol=allowed)


def test_energy_rule_is_five_degrees_off_the_slip_where_normal_and_tangent_are_coupled():
    lam = solved(COUPLED[None], SLIDING[None], np.array([0.3]), "energy")[0]
    v = COUPLED @ lam + SLIDING
    cosine = -(lam[:2] @ v[:2]) / np.linalg.norm(lam[:2]) / np.linalg.norm(v[:2])
    assert np.degrees(np.arccos(cosine)) == pytest.approx(5.34, abs=0.01)


def test_impact_without_collision_sticks_and_a_separating_contact_stays_open():
    """Painleve's block: an approaching contact has the sticking solution alone; a leaving one takes the open one."""
    G = np.stack([PAINLEVE, PAINLEVE])
    c = np.array([[1, 0, -0.01], [1, 0, 0.01]])
    lam = solved(G, c, np.full(2, 1.8))
    np.testing.assert_allclose(lam[0], (-0.4030, 0, 0.3085), atol=1e-6)
    np.testing.assert_allclose(PAINLEVE @ lam[0] + c[0], 0, atol=1e-12)
    np.testing.assert_array_equal(lam[1], 0)


def test_no_solution_is_lost_under_coulombs_rule(cases):
    """Every impulse obeys Signorini's and Coulomb's laws; where one does not, brute force must not do better."""
    G, c, mu = cases
    lam = solved(G, c, mu)
    scale = size(G, c, lam)
    ours = coulomb.residual(G, c, mu, lam) / scale
    doubtful = np.flatnonzero(ours > 1e-9)
    _, brute = coulomb.solve(G[doubtful], c[doubtful], mu[doubtful])
    lost = ours[doubtful] > np.maximum(1e-9, 2 * brute / scale[doubtful])
    assert not lost.any(), (lost.sum(), ours[doubtful][lost].max(), doubtful[lost][:5])
    assert (coulomb.energy(G, c, lam) <= 1e-12 * scale).all()
    sliding = np.linalg.norm(lam[:, :2], axis=1) >= 0.999 * mu * lam[:, 2]
    held = lam[:, 2] > 0
    counts = (~held).sum(), (held & sliding).sum(), (held & ~sliding).sum()
    assert min(counts) > 5_000, f"open, slip, stick: {counts}"


def test_brute_force_finds_the_same(cases):
    """A sample of feet, on which the whole circle of directions is searched."""
    G, c, mu = (x[5 * CHUNK : 9 * CHUNK : 20] for x in cases)
    lam = solved(G, c, mu)
    theirs, brute = coulomb.solve(G, c, mu)
    scale = size(G, c, lam)
    found = brute / scale < 1e-9
    same = np.trace(G, axis1=1, axis2=2) * np.linalg.norm(lam - theirs, axis=1) <= 1e-6 * scale
    assert found.mean() > 0.999 and same[found].mean() > 0.999, (found.mean(), same[found].mean())


def test_energy_rule_finds_the_least_energy(cases):
    G, c, mu = (x[:: len(cases[2]) // 10_000] for x in cases)
    lam = solved(G, c, mu, "energy")
    v = np.einsum("mij,mj->mi", G, lam) + c
    scale = size(G, c, lam)
    free = c[:, 2] > 0
    assert (lam[free] == 0).all()
    push = np.linalg.norm(lam[:, :2], axis=1)
    assert (push <= mu * lam[:, 2] + 1e-12 * scale).all()
    assert (np.abs(v[~free, 2]) <= 1e-9 * scale[~free]).all()
    slips = ~free & (push >= (1 - 1e-9) * mu * lam[:, 2])
    _, least = coulomb.least_energy_slip(G[slips], c[slips], mu[slips])
    ours = coulomb.energy(G[slips], c[slips], lam[slips])
    assert (ours <= least + 1e-9 * np.abs(least)).all()
    assert (coulomb.energy(G, c, lam) <= 1e-12 * scale).all()


@pytest.mark.parametrize("slip_rule", ["coulomb", "energy"])
def test_a_target_velocity_is_met(cases, slip_rule):
    G, c, mu = (x[:CHUNK] for x in cases)
    b = np.random.default_rng(3).uniform(0, 1, CHUNK)
    lam = solved(G, c, mu, slip_rule, b)
    v = np.einsum("mij,mj->mi", G, lam) + c
    loaded = c[:, 2] < b
    assert (np.abs(v[:, 2] - b) <= 1e-12 * size(G, c, lam))[loaded].all()
    assert (lam[~loaded] == 0).all()


def test_single_precision(cases):
    """The laws hold to the rounding of the case's own size."""
    G, c, mu = (x[:: len(cases[2]) // CHUNK][:CHUNK] for x in cases)
    lam = solved(G, c, mu, dtype=np.float32)
    assert np.isfinite(lam).all()
    error = coulomb.residual(G, c, mu, lam) / size(G, c, lam)
    assert error.max() < 5e-4, np.sort(error)[-5:]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("slip_rule", ["coulomb", "energy"])
def test_degenerate_blocks_are_finite(rank, slip_rule, dtype):
    rng = np.random.default_rng(rank)
    G = contact_blocks.arbitrary(CHUNK, rng, rank)
    if rank == 2:  # a planar robot: no mobility across its plane
        G[: CHUNK // 2, 1, :] = G[: CHUNK // 2, :, 1] = 0
    c = rng.normal(size=(CHUNK, 3))
    lam = solved(G, c, rng.uniform(0.05, 1.5, CHUNK), slip_rule, dtype=dtype)
    assert np.isfinite(lam).all()
    assert (lam[:, 2] >= 0).all()


@pytest.mark.parametrize("rank", [1, 2])
def test_sticking_at_blocks_of_lower_rank_in_oblique_frames(rank):
    """An arm of one or two joints: no velocity where there is no mobility, so the contact can stop entirely."""
    rng = np.random.default_rng(rank)
    G = contact_blocks.arbitrary(CHUNK, rng, rank)
    c = np.einsum("mij,mj->mi", G, rng.normal(size=(CHUNK, 3)))
    mu = np.full(CHUNK, 1.0)
    lam = solved(G, c, mu)
    error = coulomb.residual(G, c, mu, lam) / size(G, c, lam)
    least = -np.einsum("mij,mj->mi", np.linalg.pinv(G), c)
    sticks = (c[:, 2] < 0) & (np.linalg.norm(least[:, :2], axis=1) < 0.9 * mu * least[:, 2])
    assert sticks.sum() > 1_000
    assert error[sticks].max() < 1e-9, np.quantile(error[sticks], [0.5, 0.9, 1])


def test_a_planar_contact_obeys_the_laws_in_its_plane():
    """Rank 2 with the third direction at rest: what every contact of hopper, cheetah and walker looks like."""
    rng = np.random.default_rng(5)
    factor = rng.normal(size=(CHUNK, 2, 2))
    G = np.zeros((CHUNK, 3, 3))
    G[:, ::2, ::2] = factor @ factor.transpose(0, 2, 1)
    c = rng.normal(size=(CHUNK, 3)) * np.array([1, 0, 1])
    mu = rng.uniform(0.05, 1.5, CHUNK)
    lam = solved(G, c, mu)
    assert (coulomb.residual(G, c, mu, lam) / size(G, c, lam)).max() < 1e-9
    assert (np.abs(lam[:, 1]) <= 1e-9 * np.maximum(1, np.linalg.norm(lam, axis=1))).all()
    c[:, 1] = rng.normal(size=CHUNK)  # a belt that runs across the plane: slip that no impulse can stop
    lam = solved(G, c, mu)
    assert (coulomb.residual(G, c, mu, lam) / size(G, c, lam)).max() < 1e-9
    assert (lam[c[:, 2] < 0, 1] * c[c[:, 2] < 0, 1] <= 0).all()
