"""Two free spheres without gravity: impacts of given restitution, and spheres with a common centre."""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from physics.trials import EXACT, run

import rsim_jax as rsim

MODELS = Path(__file__).parents[1] / "models"
OFFSETS = (0.0, 1e-12, 1e-20)
PLACE = np.array([0.3, -0.2, 0.7])


@functools.cache
def scene():
    """(model, state): worlds 0 to 2 are impacts at e = 1, 0, 0.5 of 1 kg on 3 kg; 3 to 5 coincide."""
    model = rsim.load(str(MODELS / "b26_coincident_spheres.xml"), options=EXACT["float64"], dtype="float64")
    mass, inertia = (np.repeat(np.array(x), 6, axis=-1) for x in (model.body_mass, model.body_inertia))
    mass[2, :3], inertia[:, 2, :3] = 3, 3 * inertia[:, 2, :3]
    restitution = np.array([[1, 0, 0.5, 0, 0, 0]], float)
    model = model.replace(
        body_mass=mass, body_inertia=inertia, pair_restitution=restitution, pair_restitution_threshold=np.zeros((1, 6))
    )
    state = rsim.make_state(model, 6)
    q, qd = np.array(state.q), np.array(state.qd)
    q[:3], q[7:10] = PLACE[:, None], PLACE[:, None]
    q[0, :3] -= 0.25
    q[7, 3:] += OFFSETS
    qd[0, :3] = 1
    return model, state.replace(q=jnp.asarray(q), qd=jnp.asarray(qd))


@functools.cache
def half_a_second():
    return run(*scene(), 0.5)


def test_restitution_of_two_bodies():
    seen = half_a_second()
    np.testing.assert_allclose(seen.qd[-1, 0, :3], [-0.5, 0.25, -0.125], atol=1e-9)
    np.testing.assert_allclose(seen.qd[-1, 6, :3], [0.5, 0.25, 0.375], atol=1e-9)
    assert np.abs(seen.qd[-1][[1, 2, 7, 8], :3]).max() < 1e-9


def test_spheres_with_a_common_centre_have_one_contact_and_part_along_its_normal():
    """B26: no direction is given, so any unit normal will do; momentum stays zero."""
    model, state = scene()
    found = jax.tree.map(np.asarray, rsim.detect(model, state))
    assert (found.valid[:, 3:].sum(axis=0) == 1).all()
    np.testing.assert_allclose(found.point_pair.depth[0, 3:], 0.2, atol=1e-5)
    normal = found.point_pair.nhat_BA_W[:, 0, 3:]
    np.testing.assert_allclose(np.linalg.norm(normal, axis=0), 1, atol=1e-9)
    seen = half_a_second()
    assert np.isfinite(seen.q).all() and np.isfinite(seen.qd).all()
    apart = seen.q[-1, 7:10, 3:] - seen.q[-1, :3, 3:]
    assert (np.linalg.norm(apart, axis=0) > 0.199).all()
    along = np.abs(np.sum(apart * normal, axis=0)) / np.linalg.norm(apart, axis=0)
    np.testing.assert_allclose(along, 1, atol=1e-6)
    assert np.abs(seen.qd[:, :3, 3:] + seen.qd[:, 6:9, 3:]).max() < 1e-9
