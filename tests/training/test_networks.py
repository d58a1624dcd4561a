"""The Gaussian against its definition, and the networks' starting values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.training import networks


def test_density_integrates_to_one():
    grid = jnp.linspace(-8.0, 8.0, 401)
    x, y = jnp.meshgrid(grid, grid)
    points = jnp.stack([x, y], -1)
    density = jnp.exp(networks.log_prob(jnp.array([0.3, -0.2]), jnp.array([0.1, -0.5]), points))
    assert abs(float(density.sum() * (grid[1] - grid[0]) ** 2) - 1) < 1e-4


def test_entropy_is_the_mean_of_minus_log_density():
    log_std = jnp.array([0.4, -0.3])
    z = jax.random.normal(jax.random.key(0), (200_000, 2))
    samples = jnp.exp(log_std) * z
    estimate = -networks.log_prob(jnp.zeros(2), log_std, samples).mean()
    assert abs(float(estimate - networks.entropy(log_std))) < 0.01


def test_start():
    """Orthogonal layers, nearly zero actions, the asked spread, and no parameter shared by actor and critic."""
    actor = networks.Actor((32, 32), 3, -0.7, jnp.float32)
    critic = networks.Critic((32, 32), jnp.float32)
    params = networks.initial_params(actor, critic, jax.random.key(0), 5)
    mean, log_std = actor.apply(params["actor"], jax.random.normal(jax.random.key(1), (100, 5), jnp.float32))
    assert float(jnp.abs(mean).max()) < 0.1
    np.testing.assert_allclose(log_std, -0.7)
    kernel = params["actor"]["params"]["Perceptron_0"]["Dense_1"]["kernel"]
    np.testing.assert_allclose(kernel.T @ kernel, 2 * np.eye(32), atol=1e-5)
    assert set(params) == {"actor", "critic"}
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(params))
    assert critic.apply(params["critic"], jnp.zeros((4, 6, 5), jnp.float32)).shape == (4, 6)
