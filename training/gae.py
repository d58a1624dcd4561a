"""Generalised advantage estimation (Schulman et al. 2016) that knows why an episode ended.

A *termination* is part of the task: nothing follows, the value after it is zero. A *truncation* (time limit) only cuts
our view: what would have followed is the critic's value of the last observation of that episode. Both stop the sum,
so that nothing leaks from one episode into another.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def advantages(
    reward: Float[Array, "T N"],
    value: Float[Array, "T N"],
    next_value: Float[Array, "T N"],
    terminated: Bool[Array, "T N"],
    truncated: Bool[Array, "T N"],
    gamma: float,
    lam: float,
) -> Float[Array, "T N"]:
    """A_t = delta_t + gamma lam A_(t+1) within an episode, delta_t = r_t + gamma V(s'_t) - V(s_t).

    Args:
        reward: reward of each step.
        value: critic at the observation before the step.
        next_value: critic at the observation after the step and before any reset.
        terminated: the task ended with this step; wins where `truncated` is set as well.
        truncated: the time limit cut the episode after this step.
        gamma: discount per step.
        lam: decay of the estimator.
    """
    delta = reward + gamma * jnp.where(terminated, jnp.zeros_like(next_value), next_value) - value
    decay = jnp.where(terminated | truncated, jnp.zeros_like(delta), jnp.full_like(delta, gamma * lam))

    def earlier(following: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        advantage = step[0] + step[1] * following
        return advantage, advantage

    return jax.lax.scan(earlier, jnp.zeros_like(delta[0]), (delta, decay), reverse=True)[1]
