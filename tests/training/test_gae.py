"""Advantages against numbers worked out by hand and against a plain double loop."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from rsim_jax.training import gae

REWARD, VALUE, NEXT = [1.0, 2.0, 3.0], [0.5, 1.0, 1.5], [1.0, 1.5, 2.0]


def run(next_value, terminated, truncated):
    columns = [jnp.asarray(x)[:, None] for x in (REWARD, VALUE, next_value, terminated, truncated)]
    return np.asarray(gae.advantages(*columns, gamma=0.9, lam=0.8))[:, 0]


@pytest.mark.parametrize(
    ("next_value", "terminated", "truncated", "expected"),
    [
        # deltas 1 + .9 - .5, 2 + 1.35 - 1, 3 + 1.8 - 1.5, chained with .9 x .8
        pytest.param(NEXT, [0, 0, 0], [0, 0, 0], [4.80272, 4.726, 3.3], id="no end"),
        # the second delta is 2 - 1, and nothing of the third reaches it
        pytest.param(NEXT, [0, 1, 0], [0, 0, 0], [2.12, 1.0, 3.3], id="termination"),
        # the last observation of the cut episode is worth 4: the second delta is 2 + 3.6 - 1
        pytest.param([1.0, 4.0, 2.0], [0, 0, 0], [0, 1, 0], [4.712, 4.6, 3.3], id="truncation"),
        pytest.param([1.0, 4.0, 2.0], [0, 1, 0], [0, 1, 0], [2.12, 1.0, 3.3], id="both at once"),
        # the third delta is 3 - 1.5, the second 2.35 + .72 x 1.5, the first 1.4 + .72 x 3.43
        pytest.param(NEXT, [0, 0, 1], [0, 0, 0], [3.8696, 3.43, 1.5], id="at the last step"),
    ],
)
def test_hand_computed(next_value, terminated, truncated, expected):
    np.testing.assert_allclose(run(next_value, np.array(terminated, bool), np.array(truncated, bool)), expected, 1e-6)


def test_equals_definition():
    """A_t = sum_k (gamma lam)^k delta_(t+k) until the episode ends, summed forwards."""
    rng = np.random.default_rng(0)
    steps, worlds, gamma, lam = 40, 5, 0.97, 0.9
    reward, value, following = rng.normal(size=(3, steps, worlds))
    terminated, truncated = rng.random((2, steps, worlds)) < 0.1
    expected = np.zeros((steps, worlds))
    for n in range(worlds):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                bootstrap = 0.0 if terminated[k, n] else gamma * following[k, n]
                expected[t, n] += weight * (reward[k, n] + bootstrap - value[k, n])
                if terminated[k, n] or truncated[k, n]:
                    break
                weight *= gamma * lam
    result = gae.advantages(reward, value, following, terminated, truncated, gamma, lam)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
