"""Scoring a policy: whole episodes, deterministic actions, nothing learned and nothing counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from rsim_jax.training.policy import Policy

STEPS_MAX = 10_000  # for tasks without a time limit


@dataclass(frozen=True)
class Score:
    """Totals of each episode, in order of the worlds."""

    returns: np.ndarray
    lengths: np.ndarray

    @property
    def mean(self) -> float:
        return float(np.mean(self.returns))

    @property
    def spread(self) -> float:
        """Standard deviation between episodes."""
        return float(np.std(self.returns))

    def __str__(self) -> str:
        steps = float(np.mean(self.lengths))
        return f"return {self.mean:.1f} +- {self.spread:.1f}, {steps:.0f} steps, {len(self.returns)} episodes"


@jax.jit
def _episodes(policy: Policy, task: Any, start: Any) -> tuple[Array, Array]:
    """Step every world until its first episode is over."""
    limit = min(task.max_episode_steps or STEPS_MAX, STEPS_MAX)

    def unfinished(carry: tuple[Any, Array]) -> Array:
        return ~jnp.all(carry[0].done) & (carry[1] < limit)

    def step(carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, count = carry
        return task.finish_live(state, task.advance(state, policy.act(state.obs))), count + 1

    state, _ = jax.lax.while_loop(unfinished, step, (start, jnp.zeros((), jnp.int32)))
    return state.episode_return, state.episode_length


def evaluate(policy: Policy, task: Any, episodes: int, seed: int) -> Score:
    """One episode in each of `episodes` worlds of our own task.

    Args:
        task: a `BatchedTask`.
        seed: of the starts.
    """
    start = jax.jit(type(task).reset, static_argnums=2)(task, jax.random.key(seed), episodes)
    returns, lengths = jax.device_get(_episodes(policy, task, start))
    return Score(np.asarray(returns, float), np.asarray(lengths))


def evaluate_in_gymnasium(policy: Policy, env_id: str, params: dict[str, Any], episodes: int, seed: int) -> Score:
    """The same policy, unchanged, in Gymnasium's own MuJoCo task.

    Args:
        env_id: as Gymnasium registers it, for example Hopper-v5.
        params: keyword arguments of the task.
        seed: of the first episode; the next ones count on.

    Raises:
        ConfigError: when Gymnasium refuses the task or its parameters.
    """
    import gymnasium

    from rsim_jax.training.config import ConfigError

    try:
        env = gymnasium.make(env_id, **params)
    except (gymnasium.error.Error, TypeError) as error:
        raise ConfigError(f"Gymnasium cannot make {env_id} with {params}: {error}") from None
    act = jax.jit(lambda policy, obs: policy.act(obs))
    dtype = policy.low.dtype
    totals = []
    with env:
        for episode in range(episodes):
            obs, _ = env.reset(seed=seed + episode)
            total, length, over = 0.0, 0, False
            while not over and length < STEPS_MAX:
                action = np.asarray(act(policy, jnp.asarray(obs, dtype)[:, None]))[:, 0]
                obs, reward, terminated, truncated, _ = env.step(action.astype(env.action_space.dtype))
                total, length, over = total + float(reward), length + 1, terminated or truncated
            totals.append((total, length))
    returns, lengths = zip(*totals, strict=True)
    return Score(np.array(returns), np.array(lengths))
