"""Acting: the policy and the task in turn, for a fixed number of steps, as one scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rsim_jax.structs import record


class Trajectory:
    """What the learner needs of T steps in N worlds; learning is sample-major, so features come last here."""

    obs: Float[Array, "T N d"]  # normalised, as the policy saw it
    final_obs: Float[Array, "T N d"]  # normalised, after the step and before any reset
    action: Float[Array, "T N act"]  # as drawn, before clipping to the actuators' range
    log_prob: Float[Array, "T N"]
    reward: Float[Array, "T N"]
    terminated: Bool[Array, "T N"]
    truncated: Bool[Array, "T N"]


Trajectory = record(Trajectory)


class Report:
    """What people want to see of the same steps."""

    raw_obs: Float[Array, "T N d"]  # for the running moments
    episode_return: Float[Array, "T N"]  # totals, valid where an episode ended
    episode_length: Int[Array, "T N"]
    terms: dict[str, Float[Array, "T N"]]
    not_finite: Bool[Array, "T N"]


Report = record(Report)


def to_control(action: Float[Array, "N act"], low: Float[Array, " act"], high: Float[Array, " act"]) -> Array:
    """Controls (act, N) of actions scaled to [-1, 1]; where a range is infinite the action is the control."""
    bounded = jnp.isfinite(low) & jnp.isfinite(high)
    middle = jnp.where(bounded, (low + high) / 2, jnp.zeros_like(low))
    half = jnp.where(bounded, (high - low) / 2, jnp.ones_like(low))
    return jnp.clip(middle + half * action, low, high).T


def collect(
    task: Any,
    env: Any,
    draw: Callable[[Array, Array], tuple[Array, Array]],
    seen: Callable[[Array], Array],
    keys: Array,
) -> tuple[Any, Trajectory, Report]:
    """Step all worlds once per key.

    Args:
        task: a `BatchedTask`.
        env: its state.
        draw: (normalised observations (N, d), key) -> actions (N, act) and their log probabilities (N,).
        seen: raw observations (N, d) -> normalised ones.
        keys: one random key per step.
    """
    low, high = task.task.action_range

    def advance(env: Any, key: Array) -> tuple[Any, tuple[Trajectory, Report]]:
        raw = env.obs.T
        obs = seen(raw)
        action, log_prob = draw(obs, key)
        after = task.advance(env, to_control(action, low, high))
        step = Trajectory(
            obs, seen(after.final_obs.T), action, log_prob, after.reward, after.terminated, after.truncated
        )
        report = Report(raw, after.episode_return, after.episode_length, after.terms, after.info["not_finite"])
        # fresh starts of all worlds cost as much as a few physics steps, and most steps end no episode
        after = jax.lax.cond(jnp.any(after.done), task.finish_same_step, lambda state: state, after)
        return after, (step, report)

    env, (trajectory, report) = jax.lax.scan(advance, env, keys)
    return env, trajectory, report
