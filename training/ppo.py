"""Proximal policy optimisation: roll-out, advantages and all optimiser steps of one update in one compiled program.

The worlds, and with them the samples, are spread over all local devices; every device takes its part of each
minibatch and the gradients are averaged. Parameters are the same on all of them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, Key

from rsim_jax.structs import record
from rsim_jax.training import gae, normalizer
from rsim_jax.training.config import PPOConfig, TrainConfig
from rsim_jax.training.learner import AXIS, Learner, Samples
from rsim_jax.training.networks import Actor, Critic, initial_params, log_prob
from rsim_jax.training.normalizer import Moments
from rsim_jax.training.rollout import Report, Trajectory, collect


class TrainState:
    """Everything that changes during training. A run goes on from it bit for bit."""

    params: dict[str, Any]
    optimizer: Any
    obs_moments: Moments
    return_moments: Moments
    returns: Float[Array, " N"]  # discounted return so far of each world's episode, for reward normalisation
    env: Any  # BatchState
    key: Key[Array, ""]
    updates: Int[Array, ""]  # also the position in the learning-rate schedule


TrainState = record(TrainState)


@dataclass(frozen=True)
class Trainer:
    """The compiled programs of one run.

    Attributes:
        config: settings of the run.
        task: the `BatchedTask` to learn.
        learner: networks, optimiser steps and the devices that share the worlds.
    """

    config: TrainConfig
    task: Any
    learner: Learner

    def start(self) -> TrainState:
        """The state before the first update."""
        state = jax.jit(self._initial)(jax.random.key(self.config.seed), self.task)
        return self.place(state)

    def template(self) -> TrainState:
        """Shapes and dtypes of the state; nothing is computed."""
        return jax.eval_shape(self._initial, jax.random.key(self.config.seed), self.task)

    def place(self, state: TrainState) -> TrainState:
        """The state with every leaf on the devices where `compile` expects it."""
        return jax.device_put(state, self.shardings(state))

    def shardings(self, state: TrainState) -> TrainState:
        """Leaves per world are spread over the devices, all others are copied to each."""
        everywhere = NamedSharding(self.learner.mesh, PartitionSpec())
        worlds = self.config.ppo.num_envs
        divides = worlds % self.learner.mesh.size == 0

        def spread(leaf: Array) -> NamedSharding:
            if not divides or leaf.ndim == 0 or leaf.shape[-1] != worlds:
                return everywhere
            return NamedSharding(self.learner.mesh, PartitionSpec(*[None] * (leaf.ndim - 1), AXIS))

        tree = jax.tree.map(lambda _: everywhere, state)
        return dataclasses.replace(tree, env=jax.tree.map(spread, state.env), returns=spread(state.returns))

    def program(self, state: TrainState, donate: bool = True) -> Any:
        """The jitted update (state, task) -> (state, metrics), which keeps the state where it is.

        Args:
            state: of the layout that `place` gives.
            donate: reuse the memory of the state, which then cannot be used again.
        """
        out = (self.shardings(state), NamedSharding(self.learner.mesh, PartitionSpec()))
        return jax.jit(self._update, out_shardings=out, donate_argnums=0 if donate else ())

    def compile(self, state: TrainState) -> Any:
        """The update as a compiled program, state -> (state, metrics); it refuses any other layout of the state."""
        task = jax.device_put(self.task, NamedSharding(self.learner.mesh, PartitionSpec()))
        compiled = self.program(state).lower(state, task).compile()
        return lambda state: compiled(state, task)

    def _initial(self, key: Array, task: Any) -> TrainState:
        ppo, dtype = self.config.ppo, self.learner.actor.dtype
        network_key, env_key, key = jax.random.split(key, 3)
        env = task.reset(env_key, ppo.num_envs)
        params = initial_params(self.learner.actor, self.learner.critic, network_key, env.obs.shape[0])
        return TrainState(
            params=params,
            optimizer=self.learner.start(params),
            obs_moments=normalizer.fresh((env.obs.shape[0],), dtype),
            return_moments=normalizer.fresh((), dtype),
            returns=jnp.zeros((ppo.num_envs,), dtype),
            env=env,
            key=key,
            updates=jnp.zeros((), jnp.int32),
        )

    def _update(self, state: TrainState, task: Any) -> tuple[TrainState, dict[str, Array]]:
        ppo = self.config.ppo
        key, act_key, learn_key = jax.random.split(state.key, 3)

        def seen(obs: Array) -> Array:
            return normalizer.normalize(state.obs_moments, obs) if ppo.normalize_observations else obs

        def draw(obs: Array, key: Array) -> tuple[Array, Array]:
            mean, log_std = self.learner.actor.apply(state.params["actor"], obs)
            action = mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape, mean.dtype)
            return action, log_prob(mean, log_std, action)

        env, trajectory, report = collect(task, state.env, draw, seen, jax.random.split(act_key, ppo.unroll_length))
        done = trajectory.terminated | trajectory.truncated
        returns, history = normalizer.discounted_returns(state.returns, trajectory.reward, done, ppo.gamma)
        return_moments = normalizer.merge(state.return_moments, history)
        reward = normalizer.rescale(return_moments, trajectory.reward) if ppo.normalize_rewards else trajectory.reward

        rate = learning_rate(ppo, state.updates, self.config.num_updates).astype(self.learner.actor.dtype)
        samples = self._samples(state.params, trajectory, reward)
        params, opt, losses = self.learner.improve(state.params, state.optimizer, samples, learn_key, rate)
        new = TrainState(
            params=params,
            optimizer=opt,
            obs_moments=normalizer.merge(state.obs_moments, report.raw_obs),
            return_moments=return_moments,
            returns=returns,
            env=env,
            key=key,
            updates=state.updates + 1,
        )
        return new, {**losses, **summarize(trajectory, report), "learning_rate": rate}

    def _samples(self, params: dict[str, Any], trajectory: Trajectory, reward: Array) -> Samples:
        """The trajectory with advantages and critic targets, judged by the critic before its update."""
        value = self.learner.critic.apply(params["critic"], trajectory.obs)
        next_value = self.learner.critic.apply(params["critic"], trajectory.final_obs)
        ppo = self.config.ppo
        advantage = gae.advantages(
            reward, value, next_value, trajectory.terminated, trajectory.truncated, ppo.gamma, ppo.gae_lambda
        )
        return Samples(trajectory.obs, trajectory.action, trajectory.log_prob, advantage, advantage + value)


def build(config: TrainConfig, task: Any, devices: list[jax.Device]) -> Trainer:
    """The trainer of a config on a task.

    Args:
        task: a `BatchedTask`, in the precision that the config asks for.
        devices: those that share the worlds; the same that the task's step uses.
    """
    ppo, dtype = config.ppo, jnp.dtype(config.dtype)
    actor = Actor(ppo.hidden_sizes, task.task.action_size, ppo.log_std_init, dtype)
    critic = Critic(ppo.hidden_sizes, dtype)
    return Trainer(config, task, Learner(ppo, actor, critic, Mesh(devices, (AXIS,))))


def learning_rate(ppo: PPOConfig, updates: Int[Array, ""], num_updates: int) -> Float[Array, ""]:
    """Constant, or falling linearly to zero over the run."""
    left = 1.0 - updates / num_updates if ppo.anneal_learning_rate else jnp.ones(())
    return ppo.learning_rate * left


def summarize(trajectory: Trajectory, report: Report) -> dict[str, Array]:
    """Means of one update for people: episodes that ended, reward terms per step, worlds that broke."""
    done = trajectory.terminated | trajectory.truncated
    episodes = jnp.sum(done)

    def mean_at_end(value: Array) -> Array:
        return jnp.sum(jnp.where(done, value, jnp.zeros_like(value))) / episodes  # nan when no episode ended

    terms = {f"terms/{name}": jnp.mean(value) for name, value in report.terms.items()}
    return {
        "episodes": episodes,
        "episode_return": mean_at_end(report.episode_return),
        "episode_length": mean_at_end(report.episode_length),
        "reward": jnp.mean(trajectory.reward),
        "not_finite": jnp.sum(report.not_finite),
        **terms,
    }
