"""The loss against NumPy, and one optimiser step against Adam's formula."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh

from rsim_jax.training.config import PPOConfig
from rsim_jax.training.learner import AXIS, Learner, Samples
from rsim_jax.training.networks import Actor, Critic, initial_params

STEPS, WORLDS, OBS, ACTIONS = 6, 8, 3, 2
DTYPE = jnp.dtype("float64")


def learner(**settings):
    ppo = PPOConfig(num_envs=WORLDS, unroll_length=STEPS, epochs=1, minibatches=1, **settings)
    mesh = Mesh(jax.local_devices()[:1], (AXIS,))
    return Learner(ppo, Actor((4,), ACTIONS, -0.3, DTYPE), Critic((4,), DTYPE), mesh)


@functools.cache
def problem():
    """Parameters away from their start, and samples whose probabilities have changed a lot."""
    rng = np.random.default_rng(0)
    shapes = {"obs": (OBS,), "action": (ACTIONS,), "log_prob": (), "advantage": (), "target": ()}
    samples = Samples(**{name: jnp.asarray(rng.normal(size=(STEPS, WORLDS, *s))) for name, s in shapes.items()})
    one = learner()
    params = initial_params(one.actor, one.critic, jax.random.key(1), OBS)
    params = jax.tree.map(lambda x: x + 0.3 * rng.normal(size=x.shape), params)
    close = samples.log_prob * 0.3 + one_log_prob(params, samples)
    return params, dataclasses.replace(samples, log_prob=jnp.asarray(close))


def forward(tree, obs):
    layers = tree["params"].get("Perceptron_0", tree["params"])
    hidden = np.tanh(obs @ layers["Dense_0"]["kernel"] + layers["Dense_0"]["bias"])
    return hidden @ layers["Dense_1"]["kernel"] + layers["Dense_1"]["bias"]


def one_log_prob(params, samples):
    mean, log_std = forward(params["actor"], np.asarray(samples.obs)), params["actor"]["params"]["log_std"]
    density = -0.5 * ((np.asarray(samples.action) - mean) / np.exp(log_std)) ** 2 - log_std - 0.5 * np.log(2 * np.pi)
    return np.asarray(density).sum(-1)


def expected_loss(params, samples, ppo):
    ratio = np.exp(one_log_prob(params, samples) - np.asarray(samples.log_prob))
    advantage = np.asarray(samples.advantage)
    advantage = (advantage - advantage.mean()) / advantage.std()
    gain = np.where(  # an improvement beyond the clip is worth nothing more, a deterioration always counts
        advantage > 0, np.minimum(ratio, 1 + ppo.clip) * advantage, np.maximum(ratio, 1 - ppo.clip) * advantage
    )
    value = forward(params["critic"], np.asarray(samples.obs))[..., 0]
    spread = 0.5 * np.log(2 * np.pi * np.e) * ACTIONS + float(np.sum(params["actor"]["params"]["log_std"]))
    critic = 0.5 * ((value - np.asarray(samples.target)) ** 2).mean()
    return float(-gain.mean() + ppo.value_coef * critic - ppo.entropy_coef * spread)


@pytest.mark.parametrize("settings", [{}, {"entropy_coef": 0.1}, {"value_coef": 2.0}, {"clip": 0.05}])
def test_loss(settings):
    params, samples = problem()
    one = learner(**settings)
    loss, report = one._loss(params, samples)
    assert 0.2 < float(report["clip_fraction"]) < 0.95  # both sides of the clip occur
    assert float(loss) == pytest.approx(expected_loss(params, samples, one.ppo), rel=1e-6)


@pytest.mark.parametrize(("max_grad_norm", "clipped"), [(0.01, True), (1e6, False)])
def test_first_step_is_adams(max_grad_norm, clipped):
    """m / (1 - beta1) = g and v / (1 - beta2) = g^2 after one step: the parameters move by rate g / (|g| + eps)."""
    params, samples = problem()
    one = learner(max_grad_norm=max_grad_norm)
    gradient = ravel_pytree(jax.grad(lambda p: one._loss(p, samples)[0])(params))[0]
    norm = np.linalg.norm(gradient)
    assert (norm > max_grad_norm) == clipped
    gradient = np.asarray(gradient) * min(1.0, max_grad_norm / norm)
    expected = np.asarray(ravel_pytree(params)[0]) - 0.01 * gradient / (np.abs(gradient) + 1e-5)
    moved, _, _ = one.improve(params, one.start(params), samples, jax.random.key(0), jnp.asarray(0.01, DTYPE))
    np.testing.assert_allclose(ravel_pytree(moved)[0], expected, rtol=1e-9, atol=1e-12)
