"""A world's bits depend on nothing but the world: not on N, its neighbours, NaN next door, or how steps are grouped."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rsim_jax as rsim
from rsim_jax import pipeline

STEPS = 20
MANY = 300


@pytest.fixture(scope="module")
def hopper(gymnasium_assets):
    """(model, state of 300 different worlds near the ground, ctrls (STEPS, nu, 300))."""
    model = rsim.load(str(gymnasium_assets / "hopper.xml"))
    rng = np.random.default_rng(0)
    state = rsim.make_state(model, MANY)
    q = np.asarray(state.q) + rng.uniform(-0.2, 0.2, state.q.shape)
    q[1] = np.asarray(state.q)[1] + rng.uniform(-0.1, 0.02, MANY)
    state = state.replace(q=jnp.asarray(q, jnp.float32), qd=jnp.asarray(rng.normal(size=state.qd.shape), jnp.float32))
    return model, state, jnp.asarray(rng.uniform(-1, 1, (STEPS, model.nu, MANY)), jnp.float32)


def chosen(tree, worlds):
    return jax.tree.map(lambda x: x[..., worlds], tree)


def stepped(model, state, ctrls):
    for ctrl in ctrls:
        state = rsim.step(model, state, ctrl)
    return state


def check_bits(a, b):
    for one, two in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(two))


@pytest.fixture(scope="module")
def reference(hopper):
    model, state, ctrls = hopper
    return stepped(model, state, ctrls)


def test_the_trial_has_contacts_in_many_worlds(reference):
    touching = np.asarray(reference.rows.active[0])
    assert touching.mean() > 0.1


@pytest.mark.parametrize(
    "worlds",
    [
        [0],
        list(range(7)),
        list(range(100, 164)),
        [299, 3, 150, 3, 3],
    ],
    ids=["1", "7", "64", "mixed"],
)
def test_any_number_of_worlds_and_any_neighbours(hopper, reference, worlds):
    model, state, ctrls = hopper
    alone = stepped(model, chosen(state, np.array(worlds)), ctrls[..., np.array(worlds)])
    check_bits(alone, chosen(reference, np.array(worlds)))


def positions_and_velocities(state):
    return state.q, state.qd


def test_a_rollout_is_its_steps(hopper, reference):
    model, state, ctrls = hopper
    worlds = np.arange(64)
    state, ctrls = chosen(state, worlds), ctrls[..., worlds]
    end, (q, qd) = rsim.rollout(model, state, ctrls, output=positions_and_velocities)
    check_bits(end, chosen(reference, worlds))
    np.testing.assert_array_equal(q[-1], end.q)
    np.testing.assert_array_equal(qd[0], rsim.step(model, state, ctrls[0]).qd)


def test_a_kilometre_away_everything_happens_alike(hopper):
    model, state, ctrls = hopper
    worlds = np.arange(64)
    state, ctrls = chosen(state, worlds), ctrls[..., worlds]
    here = stepped(model, state, ctrls)
    away = stepped(model, state.replace(q=state.q.at[0].add(1000)), ctrls)
    np.testing.assert_allclose(here.qd, away.qd, atol=1e-4)
    np.testing.assert_allclose(here.q[1:], away.q[1:], atol=1e-4)


def test_a_broken_world_is_named_frozen_and_resettable_and_its_neighbours_do_not_notice(hopper, reference):
    """B46: NaN in one world's velocity, 1e30 N on another."""
    model, state, ctrls = hopper
    worlds = np.arange(16)
    state, ctrls = chosen(state, worlds), ctrls[..., worlds]
    half = stepped(model, state, ctrls[:10])
    force = np.zeros((model.nv, 16), np.float32)
    force[0, 7] = 1e30
    broken = rsim.apply_generalized_force(model, half.replace(qd=half.qd.at[0, 3].set(jnp.nan)), force)
    after = stepped(model, broken, ctrls[10:])
    bad = np.flatnonzero(np.asarray(after.status) & int(rsim.Status.NOT_FINITE))
    assert bad.tolist() == [3, 7]
    assert all(np.isfinite(np.asarray(x)).all() for x in jax.tree.leaves(after))
    others = np.array([w for w in worlds if w not in (3, 7)])
    check_bits(chosen(after, others), chosen(reference, others))
    mask = jnp.asarray(np.isin(worlds, (3, 7)))
    reset = stepped(model, rsim.select(mask, state, after), ctrls[:10])
    check_bits(chosen(reset, np.array([3, 7])), chosen(half, np.array([3, 7])))


def test_stepping_and_resetting_trace_each_program_once(hopper):
    """The state that comes out has the shapes, dtypes and weak types of the one that goes in."""
    model, _, ctrls = hopper
    state = rsim.make_state(model, 16)
    ctrl = ctrls[0, :, :16]
    counts = []
    for k in range(100):
        state = rsim.step(model, state, ctrl)
        if k % 10 == 0:
            state = rsim.select(jnp.arange(16) % 3 == k % 3, rsim.make_state(model, 16), state)
        counts.append((pipeline._step_blocks._cache_size(), pipeline._pad._cache_size(), pipeline._cut._cache_size()))
    assert len(set(counts)) == 1, counts
    fresh = functools.partial(jax.tree.map, lambda x: (x.shape, x.dtype, x.aval.weak_type))
    assert fresh(state) == fresh(rsim.make_state(model, 16))
