"""Running moments against NumPy's on the concatenated data."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from rsim_jax.training import normalizer

CENTRE, SPREAD = np.array([100.0, -5.0]), np.array([10.0, 0.1])


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-11)])
def test_merged_moments_equal_those_of_all_samples(dtype, tolerance):
    rng = np.random.default_rng(1)
    batches = [CENTRE + SPREAD * rng.normal(size=(7, n, 2)) for n in (1, 50, 3, 200)]
    moments = normalizer.fresh((2,), jnp.dtype(dtype))
    for batch in batches:
        moments = normalizer.merge(moments, jnp.asarray(batch, dtype))
    everything = np.concatenate([batch.reshape(-1, 2) for batch in batches])
    assert int(moments.count) == len(everything)
    np.testing.assert_allclose(moments.mean, everything.mean(0), rtol=tolerance)
    np.testing.assert_allclose(moments.var, everything.var(0), rtol=20 * tolerance)
    assert moments.mean.dtype == moments.var.dtype == dtype


def test_float32_keeps_its_digits_over_a_long_run():
    """A hundred million samples, fed as 2,000 batches that are all alike: nothing may drift."""
    rng = np.random.default_rng(2)
    batch = jnp.asarray(CENTRE + SPREAD * rng.normal(size=(50_000, 2)), jnp.float32)
    moments = normalizer.fresh((2,), jnp.dtype("float32"))
    first = normalizer.merge(moments, batch)
    for _ in range(2000):
        moments = normalizer.merge(moments, batch)
    assert int(moments.count) == 100_000_000
    np.testing.assert_allclose(moments.mean, first.mean, rtol=1e-6)
    np.testing.assert_allclose(moments.var, first.var, rtol=1e-4)


def test_count_does_not_overflow():
    moments = normalizer.fresh((1,), jnp.dtype("float32"))
    full = normalizer.Moments(moments.mean, moments.var, jnp.asarray(normalizer.COUNT_MAX, jnp.int32))
    after = normalizer.merge(full, jnp.ones((1000, 1), jnp.float32))
    assert int(after.count) == normalizer.COUNT_MAX
    assert 0 < float(after.mean[0]) < 1e-5


def test_normalize_and_clip():
    moments = normalizer.Moments(jnp.array([100.0, 0.0]), jnp.array([100.0, 0.0]), jnp.int32(5))
    seen = normalizer.normalize(moments, jnp.array([[110.0, 0.0], [100.0, 1.0], [1e6, -1e6]]))
    np.testing.assert_allclose(seen, [[1.0, 0.0], [0.0, 10.0], [10.0, -10.0]], rtol=1e-6)


def test_rewards_keep_sign_and_zero():
    moments = normalizer.Moments(jnp.array(50.0), jnp.array(4.0), jnp.int32(5))
    np.testing.assert_allclose(normalizer.rescale(moments, jnp.array([0.0, 2.0, -3.0, 99.0])), [0.0, 1.0, -1.5, 10.0])


def test_discounted_returns_restart_with_the_episode():
    reward = jnp.ones((4, 1))
    done = jnp.array([[False], [True], [False], [False]])
    last, history = normalizer.discounted_returns(jnp.array([2.0]), reward, done, 0.5)
    np.testing.assert_allclose(history[:, 0], [2.0, 2.0, 1.0, 1.5])
    np.testing.assert_allclose(last, [1.5])
