"""PPO that knows nothing but Gymnasium's public vector API: what a user's own training loop looks like.

The environment resets in Gymnasium's default way (next step): the observation returned by an ending step is the true
last one, so a truncated episode bootstraps from it, and the row that follows is the reset, which no loss may use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import flax.linen as nn
import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Policy(nn.Module):
    """Means and log deviations of a Gaussian action, and the value, from separate tanh networks."""

    actions: int

    @nn.compact
    def __call__(self, obs):
        def network(outputs, scale):
            x = obs
            for _ in range(2):
                x = nn.tanh(nn.Dense(64, kernel_init=nn.initializers.orthogonal(2**0.5))(x))
            return nn.Dense(outputs, kernel_init=nn.initializers.orthogonal(scale))(x)

        deviation = self.param("log_deviation", nn.initializers.zeros, (self.actions,))
        return network(self.actions, 0.01), jnp.broadcast_to(deviation, (self.actions,)), network(1, 1.0)[..., 0]


class Batch(NamedTuple):
    """Transitions, (T, N, ...); `live` is false on reset rows."""

    obs: np.ndarray
    action: np.ndarray
    log_prob: np.ndarray
    advantage: np.ndarray
    target: np.ndarray
    live: np.ndarray


def log_density(mean, log_deviation, action):
    """Of a diagonal Gaussian."""
    z = (action - mean) / jnp.exp(log_deviation)
    return jnp.sum(-0.5 * z**2 - log_deviation - 0.5 * jnp.log(2 * jnp.pi), axis=-1)


def advantages(rewards, values, terminated, done, gamma, lam):
    """Generalised advantages (T, N) from values (T + 1, N): no value beyond a termination, no sum beyond an end."""
    advantage, result = np.zeros_like(rewards[0]), np.zeros_like(rewards)
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * values[t + 1] * ~terminated[t] - values[t]
        advantage = delta + gamma * lam * ~done[t] * advantage
        result[t] = advantage
    return result


class Learner:
    """The policy, its optimiser and the clipped update."""

    def __init__(self, observations: int, actions: int, seed: int, rate: float, updates: int) -> None:
        self.net = Policy(actions)
        self.key, init = jax.random.split(jax.random.key(seed))
        self.params = self.net.init(init, jnp.zeros((1, observations)))
        schedule = optax.linear_schedule(rate, 0.1 * rate, updates)
        self.optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(schedule, eps=1e-5))
        self.memory = self.optimiser.init(self.params)

    def act(self, obs):
        self.key, draw = jax.random.split(self.key)
        return jax.device_get(self._act(self.params, obs, draw))

    @partial(jax.jit, static_argnums=0)
    def _act(self, params, obs, key):
        mean, log_deviation, value = self.net.apply(params, obs)
        action = mean + jnp.exp(log_deviation) * jax.random.normal(key, mean.shape)
        return action, log_density(mean, log_deviation, action), value

    @partial(jax.jit, static_argnums=0)
    def update(self, params, memory, batch):
        def loss(params):
            mean, log_deviation, value = self.net.apply(params, batch.obs)
            weight = batch.live / batch.live.sum()
            centred = batch.advantage - jnp.sum(weight * batch.advantage)
            scaled = centred / (jnp.sqrt(jnp.sum(weight * centred**2)) + 1e-8)
            ratio = jnp.exp(log_density(mean, log_deviation, batch.action) - batch.log_prob)
            gain = jnp.minimum(ratio * scaled, jnp.clip(ratio, 0.8, 1.2) * scaled)
            return jnp.sum(weight * (0.5 * (value - batch.target) ** 2 - gain))

        change, memory = self.optimiser.update(jax.grad(loss)(params), memory, params)
        return optax.apply_updates(params, change), memory


def train(
    envs: gym.vector.VectorEnv,
    updates: int,
    steps: int,
    seed: int = 0,
    rate: float = 1e-3,
    epochs: int = 8,
    minibatches: int = 8,
    gamma: float = 0.99,
    report: Callable[[int, float], None] = lambda update, score: None,
) -> list[float]:
    """Mean return of the episodes that ended in each update's roll-out (the previous mean where none did).

    `envs` must include Gymnasium's `RecordEpisodeStatistics`, which reports returns before any scaling of rewards.
    """
    lam, rng = 0.95, np.random.default_rng(seed)
    total = updates * epochs * minibatches
    learner = Learner(envs.single_observation_space.shape[0], envs.single_action_space.shape[0], seed, rate, total)
    obs, _ = envs.reset(seed=seed)
    resetting = np.zeros(envs.num_envs, bool)
    scores = []
    for update in range(updates):
        rows, finished = [], []
        for _ in range(steps):
            action, log_prob, value = learner.act(obs)
            after, reward, terminated, truncated, info = envs.step(action)
            done = terminated | truncated
            rows.append((obs, action, log_prob, value, np.asarray(reward, np.float32), terminated, done, ~resetting))
            finished += info["episode"]["r"][done].tolist() if "episode" in info else []
            obs, resetting = after, done
        observed, actions, log_probs, values, rewards, terminations, ends, live = map(np.stack, zip(*rows, strict=True))
        values = np.concatenate([values, learner.act(obs)[2][None]])
        advantage = advantages(rewards, values, terminations, ends, gamma, lam)
        batch = Batch(observed, actions, log_probs, advantage, advantage + values[:-1], live)
        flat = Batch(*(x.reshape(-1, *x.shape[2:]) for x in batch))
        for _ in range(epochs):
            for chosen in np.array_split(rng.permutation(len(flat.live)), minibatches):
                piece = Batch(*(x[chosen] for x in flat))
                learner.params, learner.memory = learner.update(learner.params, learner.memory, piece)
        scores.append(float(np.mean(finished)) if finished else (scores[-1] if scores else 0.0))
        report(update, scores[-1])
    return scores
