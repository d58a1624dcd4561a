"""Blocks that spin, tip or stand on four legs, and a rod caught by its own friction."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics.bank_scenes import FOOT, TABLE_COM, entry, feet, per_world
from physics.trials import G, block_on_plane, run, tilted, worlds

import rsim_jax as rsim

WORLDS = 16  # as many as in other tests of the block
DT = 0.001
TIPPING = np.degrees(np.arctan(0.2 / 0.4))  # of a block twice as high as wide


@functools.cache
def blocks():
    """0: spins; 1, 2: on a slope at the edge of tipping; 3, 4: pushed there at 0.4 m; 5: pushed, slides."""
    n = WORLDS
    kind = np.minimum(np.arange(n), 5)
    height = np.array([0.1, 0.4, 0.4, 0.8, 0.8, 0.1])[kind]
    model = block_on_plane("float64")
    size, inertia = (np.repeat(np.array(x), n, axis=-1) for x in (model.geom_size, model.body_inertia))
    size[2, 1] = height / 2
    inertia[0, 1] = inertia[1, 1] = (0.2**2 + height**2) / 12
    gravity = tilted(np.array([0, TIPPING - 0.5, TIPPING + 0.5, 0, 0, 0])[kind])
    limit = 0.2 / (2 * 0.4)  # F / (m g) beyond which a push at 0.4 m tips a block 0.2 m wide
    gravity[0] += G * np.array([0, 0, 0, limit * 0.98, limit * 1.02, 0.6])[kind]
    spin = np.zeros((3, n))
    spin[2, 0] = 10
    model, state = worlds(
        model,
        n,
        DT,
        spin=spin,
        gravity=gravity,
        height=height / 2 - 0.05,
        geom_size=size,
        body_inertia=inertia,
        pair_friction=np.array([0.5, 1, 1, 0.5, 0.5, 0.5])[kind],
    )
    return run(model, state, 1.5)


def tilt(seen, world):
    x, y = seen.q[:, 4, world], seen.q[:, 5, world]
    return np.degrees(np.arccos(np.clip(1 - 2 * (x * x + y * y), -1, 1)))


def test_a_box_spinning_flat_stops_in_time():
    """t = I w0 / (mu m g rho) with equal loads on four corners at rho from the centre, which stays."""
    seen = blocks()
    rho, inertia = np.hypot(0.1, 0.1), (0.2**2 + 0.2**2) / 12
    right = inertia * 10 / (0.5 * G * rho)
    assert right == pytest.approx(0.096107, abs=1e-6)
    stopped = seen.time[np.flatnonzero(np.abs(seen.qd[:, 5, 0]) < 1e-9)[0]]
    assert stopped == pytest.approx(right, abs=2 * DT)
    assert np.abs(seen.q[:, :2, 0]).max() < 1e-4
    assert np.abs(seen.q[:, 2, 0] - 0.05).max() < 1e-5


@pytest.mark.parametrize(("stands", "tips"), [(1, 2), (3, 4)])
def test_a_block_tips_where_its_weight_leaves_its_foot(stands, tips):
    """On a slope at atan(w / h) +- 0.5 degrees; under a push of m g w / (2 z) +- 2 %."""
    seen = blocks()
    assert tilt(seen, stands).max() < 1e-3
    assert np.abs(seen.qd[-1, :, stands]).max() < 1e-6
    assert tilt(seen, tips).max() > 5


def test_a_low_block_slides_under_the_push_that_would_tip_a_high_one():
    """0.6 m g at half the height of a block as low as 0.1 m, mu 0.5."""
    seen = blocks()
    assert tilt(seen, 5).max() < 1e-6
    np.testing.assert_allclose(seen.qd[:, 0, 5], 0.1 * G * seen.time, rtol=1e-6)


ROD = np.array([1.0, 1.0, 0.0, 0.0])  # m/s; the tip runs into its own lean in the first two worlds


@functools.cache
def standing():
    """Table and rod; the rod touches the ground with its tip, which slides at ROD along x."""
    model = per_world(feet(), 4)
    state = rsim.make_state(model, 4)
    qd = np.array(state.qd)
    qd[entry(model, "rod_x")[1]] = -ROD
    state = state.replace(qd=jnp.asarray(qd))
    return model, qd, run(model, state, 0.5)


def test_a_table_on_four_legs_carries_its_weight_at_its_centre_of_mass():
    """Sum and both moments to 1e-6; the share of each leg is not determined."""
    model, _, seen = standing()
    report = jax.tree.map(np.asarray, rsim.contact_report(model, seen.state))
    mine = report.valid[:, 0] & (report.body_b[:, 0] == model.body_id("table"))
    assert mine.sum() == 4
    force, point = report.contact_force[:, mine, 0], report.contact_point[:, mine, 0]
    np.testing.assert_allclose(force.sum(axis=1), [0, 0, 4 * G], atol=1e-6)
    centre = np.array([20 + TABLE_COM[0], TABLE_COM[1], 0.5])
    moment = np.cross((point - centre[:, None]).T, force.T).sum(axis=0)
    np.testing.assert_allclose(moment, 0, atol=1e-6)
    q, d = entry(model, "table")
    assert np.abs(seen.qd[:, d : d + 6]).max() < 1e-9
    assert np.abs(seen.q[:, q + 2]).max() < FOOT * 1e-3


def test_a_rod_that_runs_into_its_own_lean_is_caught_at_once():
    """Painleve: 63.435 degrees, mu 1.8 above the critical 4/3: the tip stops in one step, no energy is gained."""
    model, start, seen = standing()
    rows = [entry(model, name)[1] for name in ("rod_x", "rod_z", "rod_turn")]
    state = rsim.make_state(feet(), len(seen.time) + 1)
    kinetic, height = [], []
    for world in (0, 2):
        q = np.concatenate([np.asarray(rsim.make_state(model, 1).q)[None, :, 0], seen.q[:, :, world]]).T
        qd = np.zeros((model.nv, len(seen.time) + 1))
        qd[rows] = np.concatenate([start[None, :, world], seen.qd[:, :, world]])[:, rows].T
        mass = np.asarray(rsim.mass_matrix(feet(), state.replace(q=jnp.asarray(q))))
        kinetic.append(0.5 * np.einsum("in,ijn,jn->n", qd, mass, qd))
        lean = q[entry(model, "rod_turn")[0]]
        height.append(
            q[entry(model, "rod_z")[0]] + 0.5 * np.sin(np.radians(63.435) - lean) - 0.5 * np.sin(np.radians(63.435))
        )
    assert np.isfinite(seen.q).all() and np.isfinite(seen.qd).all()
    slip = seen.qd[0, rows[0]] - 0.001 * seen.qd[0, rows[2]]  # of the lowest point of the tip's sphere
    assert np.abs(slip[:2]).max() < 1e-6
    assert kinetic[0][1] <= kinetic[0][0] * (1 + 1e-12)
    for energy, z in zip(kinetic, height, strict=True):
        total = energy + G * z
        assert (np.diff(total) < 5e-3 * G * 0.5).all() and total.max() <= total[0] + 1e-3
