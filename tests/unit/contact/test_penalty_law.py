"""The law itself: Drake's continuous point contact at the same state, and derivatives where the shapes just touch."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rsim_jax as rsim

DRAKE = json.loads((Path(__file__).parents[2] / "reference" / "drake_point_contact.json").read_text())


def turned_back(quaternion, v):
    """R(q)' v, by the quaternion's own formula."""
    w, u = quaternion[0], np.asarray(quaternion[1:])
    return v - 2 * w * np.cross(u, v) + 2 * np.cross(u, np.cross(u, v))


@pytest.fixture(scope="module")
def spheres():
    """(model, state, report after a step) of the recorded states, one world each.

    Where only one sphere is recorded the other is far away; where two are, the ground is switched off by a penalty
    model that acts on no body.
    """
    scene = rsim.Scene(timestep=1e-5)
    scene.add_ground()
    for radius in DRAKE["radii"]:
        scene.add_sphere(radius, 1.0)
    stiffness, friction = DRAKE["stiffness"], DRAKE["friction"]
    numbers = {"kp": stiffness, "kc": stiffness * DRAKE["dissipation"], "mu": friction}
    acting = rsim.PenaltyContact(**numbers, v_lin=DRAKE["stiction_tolerance"])
    scene.set_contact_model("default", "default", (acting, rsim.PenaltyContact(**numbers, bodies=())))
    model = scene.compile(dtype="float64")
    q, qd, index = [], [], []
    for state in DRAKE["states"]:
        far = {"position": [50, 50, 50], "quaternion": [1, 0, 0, 0], "velocity": [0] * 3, "angular_velocity": [0] * 3}
        bodies = [*state["bodies"], far][:2]
        q.append(np.concatenate([[*b["position"], *b["quaternion"]] for b in bodies]))
        spin = [turned_back(b["quaternion"], np.asarray(b["angular_velocity"], float)) for b in bodies]
        qd.append(np.concatenate([[*b["velocity"], *s] for b, s in zip(bodies, spin, strict=True)]))
        index.append([int(len(state["bodies"]) == 2 and 0 in pair) for pair in model.topology.penalty_pairs])
    model = model.replace(pair_penalty_model=np.array(index).T)
    state = rsim.make_state(model, len(q)).replace(q=jnp.asarray(np.stack(q, -1)), qd=jnp.asarray(np.stack(qd, -1)))
    return rsim.contact_report(model, rsim.step(model, state))


def test_drakes_forces_at_the_same_state(spheres):
    assert np.asarray(spheres.valid).sum(0).tolist() == [1] * len(DRAKE["states"])
    for world, state in enumerate(DRAKE["states"]):
        (record,) = rsim.pair_report(spheres, world)
        assert (record.body_a, record.body_b) == ((0, 1) if len(state["bodies"]) == 1 else (1, 2))
        np.testing.assert_allclose(record.contact_force, state["force_on_last"], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(record.contact_point, state["point"], atol=1e-14)
        np.testing.assert_allclose(-record.nhat_BA_W, state["normal_into_last"], atol=1e-13)
        assert record.depth == pytest.approx(state["depth"], abs=1e-15)
        # velocities of our report are of the end of the step; Drake's sign here contradicts its documentation
        assert record.separation_speed == pytest.approx(-state["separation_speed_as_reported"], abs=1e-3)
        assert record.slip_speed == pytest.approx(state["slip_speed"], abs=1e-3)


EXPONENTS, DEPTHS = (0.5, 1.0, 1.5, 2.0), (0.0, 1e-16, 1e-12, 1e-3)
DT, KP, KC = 1e-4, 1e4, 2e3
SLIDER = f"""
<mujoco><option timestep="{DT}" gravity="0 0 0"/><worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <body pos="0 0 0.1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
    <geom name="ball" size="0.1" mass="1"/></body>
</worldbody></mujoco>
"""


@pytest.fixture(scope="module")
def slopes():
    """(change of v_z, its derivatives by height, v_z, kp and n) of a ball at rest, one world per exponent and depth."""
    model = rsim.set_contact_model(rsim.load(SLIDER, dtype="float64"), "floor", "ball", rsim.PenaltyContact(KP, KC))
    depth, n = (x.ravel() for x in np.meshgrid(DEPTHS, EXPONENTS))
    state = rsim.make_state(model, len(n))

    def change(height, v, kp, n):
        changed = model.replace(pair_penalty_kp=kp[None], pair_penalty_n=n[None])
        start = state.replace(q=state.q.at[1].set(height), qd=state.qd.at[1].set(v))
        after = rsim.step(changed, start).qd
        return jnp.sum(after[1] - v) + jnp.sum(after[0]), after

    arguments = (-jnp.asarray(depth), jnp.zeros(len(n)), jnp.full(len(n), KP), jnp.asarray(n))
    gradient = jax.jit(jax.grad(change, argnums=(0, 1, 2, 3), has_aux=True))
    found, after = gradient(*arguments)
    return depth, n, np.asarray(after[1]), [np.asarray(x) for x in found]


def test_value_and_derivatives_are_finite_at_the_touch(slopes):
    depth, n, v, gradients = slopes
    assert np.isfinite(v).all() and all(np.isfinite(g).all() for g in gradients)
    np.testing.assert_allclose(v, DT * KP * np.where(depth > 1e-15, depth, 0) ** n, rtol=1e-3)
    assert (v[depth == 0] == 0).all()


def test_derivatives_inside_are_those_of_the_law(slopes):
    depth, n, _, (height, velocity, stiffness, exponent) = slopes
    inside = depth == 1e-3
    p, n = depth[inside], n[inside]
    np.testing.assert_allclose(height[inside], -DT * KP * n * p ** (n - 1), rtol=1e-9)
    np.testing.assert_allclose(velocity[inside], -DT * KC * p**n, rtol=1e-9)
    np.testing.assert_allclose(stiffness[inside], DT * p**n, rtol=1e-9)
    np.testing.assert_allclose(exponent[inside], DT * KP * p**n * np.log(p), rtol=1e-9)
