"""Actor and critic: two separate perceptrons with tanh layers, and the Gaussian that draws actions."""

from __future__ import annotations

import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Perceptron(nn.Module):
    """Hidden tanh layers and a linear one, orthogonal weights, zero biases."""

    hidden_sizes: tuple[int, ...]
    outputs: int
    output_gain: float
    dtype: Any

    @nn.compact
    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        for width in self.hidden_sizes:
            x = nn.tanh(self._layer(width, math.sqrt(2))(x))
        return self._layer(self.outputs, self.output_gain)(x)

    def _layer(self, width: int, gain: float) -> nn.Dense:
        return nn.Dense(width, dtype=self.dtype, param_dtype=self.dtype, kernel_init=nn.initializers.orthogonal(gain))


class Actor(nn.Module):
    """Mean of the action from the observation; the logarithm of the spread is a parameter of its own."""

    hidden_sizes: tuple[int, ...]
    actions: int
    log_std_init: float
    dtype: Any

    @nn.compact
    def __call__(self, obs: Float[Array, "*batch obs"]) -> tuple[Float[Array, "*batch act"], Float[Array, " act"]]:
        # the small gain keeps the first actions near zero, whatever the observation
        mean = Perceptron(self.hidden_sizes, self.actions, 0.01, self.dtype)(obs)
        start = nn.initializers.constant(self.log_std_init)
        return mean, self.param("log_std", start, (self.actions,), self.dtype)


class Critic(nn.Module):
    """Value of an observation."""

    hidden_sizes: tuple[int, ...]
    dtype: Any

    @nn.compact
    def __call__(self, obs: Float[Array, "*batch obs"]) -> Float[Array, "*batch"]:
        return Perceptron(self.hidden_sizes, 1, 1.0, self.dtype)(obs)[..., 0]


def log_prob(
    mean: Float[Array, "*batch act"], log_std: Float[Array, " act"], action: Float[Array, "*batch act"]
) -> Float[Array, "*batch"]:
    """Logarithm of the Gaussian's density at `action`."""
    z = (action - mean) * jnp.exp(-log_std)
    return -0.5 * jnp.sum(z * z, -1) - jnp.sum(log_std) - 0.5 * math.log(2 * math.pi) * mean.shape[-1]


def entropy(log_std: Float[Array, " act"]) -> Float[Array, ""]:
    """Entropy of the Gaussian in nats."""
    return jnp.sum(log_std) + 0.5 * math.log(2 * math.pi * math.e) * log_std.shape[-1]


def initial_params(actor: Actor, critic: Critic, key: Array, obs_size: int) -> dict[str, Any]:
    """Parameters of both networks as one plain tree."""
    actor_key, critic_key = jax.random.split(key)
    obs = jnp.zeros((1, obs_size), actor.dtype)
    return {"actor": actor.init(actor_key, obs), "critic": critic.init(critic_key, obs)}
