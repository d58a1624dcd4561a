"""The optimiser steps of one PPO update: epochs of shuffled minibatches, shared by all devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Key

from rsim_jax.structs import record
from rsim_jax.training.config import PPOConfig
from rsim_jax.training.networks import Actor, Critic, entropy, log_prob

AXIS = "worlds"  # name of the mesh axis
ADAM_EPSILON = 1e-5
ADVANTAGE_EPSILON = 1e-8  # a minibatch whose advantages are all equal teaches nothing


class Samples:
    """T N samples of one update; the leading two axes may be flattened to one."""

    obs: Float[Array, "T N d"]
    action: Float[Array, "T N act"]
    log_prob: Float[Array, "T N"]  # of the policy that acted
    advantage: Float[Array, "T N"]
    target: Float[Array, "T N"]  # for the critic


Samples = record(Samples)
Learned = tuple[Array, Any]  # parameters as one vector, and the optimiser's state


@dataclass(frozen=True)
class Learner:
    """What does not change while learning: settings, networks and the devices that share the samples."""

    ppo: PPOConfig
    actor: Actor
    critic: Critic
    mesh: Mesh

    def optimizer(self) -> optax.GradientTransformation:
        """Adam on the clipped gradient; the learning rate, which depends on the run, is applied by `improve`."""
        return optax.chain(optax.clip_by_global_norm(self.ppo.max_grad_norm), optax.scale_by_adam(eps=ADAM_EPSILON))

    def start(self, params: Any) -> Any:
        """The optimiser's state before the first step; it sees all parameters as one vector."""
        return self.optimizer().init(ravel_pytree(params)[0])

    def improve(
        self, params: Any, opt: Any, samples: Samples, key: Key[Array, ""], rate: Float[Array, ""]
    ) -> tuple[Any, Any, dict[str, Array]]:
        """Parameters and optimiser after all minibatches, and the mean losses of the last pass.

        Every device shuffles and cuts its own worlds' samples. Where the worlds or the minibatches do not divide by
        the number of devices, all devices do the same work.

        Args:
            params: of both networks.
            opt: state of the optimiser.
            samples: of one roll-out, spread over the devices by worlds.
            key: for the order of the samples.
            rate: learning rate.
        """
        shards = self.mesh.size
        per_device = self.ppo.num_envs // shards * self.ppo.unroll_length
        split = self.ppo.num_envs % shards == 0 and per_device % self.ppo.minibatches == 0
        shared = PartitionSpec()
        worlds = PartitionSpec(None, AXIS) if split else shared

        # one vector: a few long operations and one message per step instead of many short ones
        vector, tree = ravel_pytree(params)

        def on_device(vector: Array, opt: Any, samples: Samples, key: Array, rate: Array) -> Any:
            own = jax.random.fold_in(key, jax.lax.axis_index(AXIS)) if split else key
            flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), samples)
            return self._epochs((vector, opt), flat, own, lambda *step: self._step(*step, tree, rate))

        spread = jax.shard_map(
            on_device,
            mesh=self.mesh,
            in_specs=(shared, shared, worlds, shared, shared),
            out_specs=shared,
            check_vma=False,  # the results are equal on all devices because their gradients are averaged
        )
        (vector, opt), losses = spread(vector, opt, samples, key, rate)
        return tree(vector), opt, losses

    def _epochs(self, learned: Learned, flat: Samples, key: Array, step: Any) -> tuple[Learned, dict[str, Array]]:
        def epoch(learned: Learned, key: Array) -> tuple[Learned, dict[str, Array]]:
            order = jax.random.permutation(key, flat.log_prob.shape[0])
            parts = jax.tree.map(lambda x: x[order].reshape(self.ppo.minibatches, -1, *x.shape[1:]), flat)
            learned, losses = jax.lax.scan(step, learned, parts)
            return learned, jax.tree.map(jnp.mean, losses)

        def unless_far(carry: Any, key: Array) -> tuple[Any, None]:
            learned, losses = carry
            limit = jnp.inf if self.ppo.target_kl is None else self.ppo.target_kl
            return jax.lax.cond(losses["kl"] > limit, lambda: carry, lambda: epoch(learned, key)), None

        keys = jax.random.split(key, self.ppo.epochs)
        losses = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(epoch, learned, key)[1])
        return jax.lax.scan(unless_far, (learned, losses), keys)[0]

    def _step(self, learned: Learned, part: Samples, tree: Any, rate: Array) -> tuple[Learned, dict[str, Array]]:
        vector, opt = learned
        grad, losses = jax.grad(lambda vector: self._loss(tree(vector), part), has_aux=True)(vector)
        flat, back = ravel_pytree((grad, losses))
        grad, losses = back(jax.lax.pmean(flat, AXIS))
        change, opt = self.optimizer().update(grad, opt)
        return (vector - rate * change, opt), losses

    def _loss(self, params: Any, part: Samples) -> tuple[Array, dict[str, Array]]:
        """-E min(r A, clip(r) A) + c_v E (V - target)^2 / 2 - c_e H, with r the ratio of new to old probability."""
        ppo = self.ppo
        mean, log_std = self.actor.apply(params["actor"], part.obs)
        log_ratio = log_prob(mean, log_std, part.action) - part.log_prob
        ratio = jnp.exp(log_ratio)
        advantage = (part.advantage - part.advantage.mean()) / (part.advantage.std() + ADVANTAGE_EPSILON)
        clipped = jnp.clip(ratio, 1 - ppo.clip, 1 + ppo.clip)
        policy_loss = -jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))
        error = self.critic.apply(params["critic"], part.obs) - part.target
        value_loss = 0.5 * jnp.mean(error**2)
        bonus = entropy(log_std)
        losses = {
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "entropy": bonus,
            "kl": jnp.mean(ratio - 1 - log_ratio),
            "clip_fraction": jnp.mean(jnp.abs(ratio - 1) > ppo.clip, dtype=ratio.dtype),
            "explained_variance": 1 - jnp.var(error) / (jnp.var(part.target) + ADVANTAGE_EPSILON),
        }
        return policy_loss + ppo.value_coef * value_loss - ppo.entropy_coef * bonus, losses
