"""Poses, velocities, mass matrix, bias, energy, momentum, Jacobians and free steps equal MuJoCo's at random states."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from reference import live_mujoco

import rsim_jax as rsim

WORLDS = 100
STANDARD = (
    "inverted_pendulum.xml",
    "inverted_double_pendulum.xml",
    "hopper.xml",
    "half_cheetah.xml",
    "walker2d_v5.xml",
    "ant.xml",
    "humanoid.xml",
)
OTHERS = (
    "reacher.xml",
    "swimmer.xml",
    "pusher_v5.xml",
    "b01_inertial_rpy.urdf",
    "b02_defaults.xml",
    "b03_fromto.xml",
    "b04_euler_main.xml",
    "b04_euler_upper.xml",
    "b05_mimic.urdf",
    "b09_ref.xml",
    "b10_freejoint_defaults.xml",
    "b11_frictionloss.xml",
    "b12_include/scene.xml",
    "b14_nested_spin.xml",
    "b16_heavy_damping.xml",
    "b18_limit_isolation.xml",
    "b19_parallel_capsules.xml",
    "b24_masks.xml",
    "b86_keyframe.xml",
)
IGNORED = ("fluid", "mimic", "equality", "mesh")  # what some of the files hold and no quantity compared here feels
WHOLE = ("hopper.xml", "ant.xml", "b01_inertial_rpy.urdf", "b09_ref.xml", "b14_nested_spin.xml", "b86_keyframe.xml")
QUICK = ("inverted_pendulum.xml", "inverted_double_pendulum.xml", "hopper.xml", "ant.xml")  # to compile a step
PER_BODY = ("position", "rotation", "linear_velocity", "angular_velocity")  # ..., nbody, worlds
ALLOWED = {"float64": 1e-9, "float32": 2e-4}  # worst |a - b| / max |b| allowed


@jax.jit
def main_queries(model, state):
    """Mass matrix, bias, poses and velocities in one program."""
    position, quaternion = rsim.body_pose(model, state)
    linear, angular = rsim.body_velocity(model, state)
    w, x, y, z = quaternion
    rotation = jnp.stack(
        [
            jnp.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]),
            jnp.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]),
            jnp.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]),
        ]
    )
    return {
        "mass_matrix": rsim.mass_matrix(model, state),
        "bias_force": rsim.bias_force(model, state),
        "position": position,
        "rotation": rotation,
        "linear_velocity": linear,
        "angular_velocity": angular,
    }


@jax.jit
def further_queries(model, state, point):
    """Energy, momentum, and the Jacobian of a point of the last body."""
    kinetic, potential = rsim.energy(model, state)
    momentum, angular_momentum = rsim.momentum(model, state)
    return {
        "jacobian": rsim.jacobian(model, state, model.nbody - 1, point),
        "potential": potential,
        "kinetic": kinetic,
        "momentum": momentum,
        "angular_momentum": angular_momentum,
    }


def path_of(name, models, assets):
    return next(folder / name for folder in (models, assets) if (folder / name).exists())


@functools.cache
def oracle(path):
    """(compiled, q, qd, offset, MuJoCo's quantities) of a model file."""
    compiled = live_mujoco.read(path)
    q, qd = live_mujoco.random_states(compiled, WORLDS, seed=1)
    offset = np.random.default_rng(2).normal(size=(3, WORLDS))
    return compiled, q, qd, offset, live_mujoco.quantities(compiled, q, qd, compiled.nbody - 1, offset)


def worst(ours, theirs):
    return np.abs(np.asarray(ours) - theirs).max(initial=0) / max(np.abs(theirs).max(initial=0), 1e-12)


def loaded(name, dtype, models, assets):
    """(MuJoCo's quantities, ours) of a file at the same random states."""
    path = path_of(name, models, assets)
    _, q, qd, offset, expected = oracle(path)
    model = rsim.load(path, ignore=IGNORED, options=rsim.Options(max_contacts=0), dtype=dtype)
    state = rsim.make_state(model, WORLDS).replace(q=jnp.asarray(q, dtype), qd=jnp.asarray(qd, dtype))
    return model, state, expected["position"][:, -1] + offset, expected


def check(found, expected, dtype):
    """Largest relative error of every quantity; MuJoCo drops the welded root of a URDF, we keep it in reports."""
    found = {
        key: value[..., -expected[key].shape[-2] :, :] if key in PER_BODY else value for key, value in found.items()
    }
    errors = {key: worst(value, expected[key]) for key, value in found.items()}
    assert all(value.dtype == dtype for value in found.values())
    assert max(errors.values()) <= ALLOWED[dtype], errors


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((n, "float64") for n in STANDARD + OTHERS),
        *(pytest.param(n, "float32", marks=() if n in WHOLE else pytest.mark.slow) for n in STANDARD),
    ],
)
def test_mass_matrix_bias_poses_and_velocities_equal_mujocos(name, dtype, models, gymnasium_assets):
    model, state, _, expected = loaded(name, dtype, models, gymnasium_assets)
    check(main_queries(model, state), expected, dtype)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in WHOLE else pytest.mark.slow) for n in STANDARD + OTHERS]
)
def test_energy_momentum_and_jacobian_equal_mujocos(name, models, gymnasium_assets):
    model, state, point, expected = loaded(name, "float64", models, gymnasium_assets)
    check(further_queries(model, state, jnp.asarray(point)), expected, "float64")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(n, d, marks=() if n in QUICK and d == "float64" else pytest.mark.slow)
        for n in STANDARD
        for d in ("float64", "float32")
    ],
)
def test_a_free_step_equals_mujocos_euler_and_implicitfast_steps(name, dtype, models, gymnasium_assets):
    """Motors and joint damping: both schemes solve (M + dt damping) du = dt (tau - damping u - c)."""
    path = path_of(name, models, gymnasium_assets)
    compiled = live_mujoco.read(path)
    q, qd = live_mujoco.random_states(compiled, WORLDS, seed=3)
    low, high = compiled.actuator_ctrlrange.T
    ctrl = np.random.default_rng(4).uniform(low[:, None], high[:, None], (compiled.nu, WORLDS))
    model = rsim.load(path, options=rsim.Options(max_contacts=0), dtype=dtype)
    qd = 0.2 * qd
    state = rsim.make_state(model, WORLDS).replace(q=jnp.asarray(q, dtype), qd=jnp.asarray(qd, dtype))
    after = rsim.step(model, state, jnp.asarray(ctrl, dtype))
    assert not np.any(after.rows.active), "no joint limit may act, or nothing is compared"
    for integrator in (mujoco.mjtIntegrator.mjINT_EULER, mujoco.mjtIntegrator.mjINT_IMPLICITFAST):
        q_after, qd_after = live_mujoco.free_steps(compiled, q, qd, ctrl, integrator)
        change = worst(np.asarray(after.qd, np.float64) - qd, qd_after - qd)
        assert change <= 10 * ALLOWED[dtype], (integrator, change)
        assert worst(after.q, q_after) <= ALLOWED[dtype]
