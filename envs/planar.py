"""What Hopper and Walker2d share: a planar robot that is paid for going forward and for staying healthy."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Key

from rsim_jax.envs.core import Outcome, Task, split_keys, task_class, uniform
from rsim_jax.lanes.fence import concatenate
from rsim_jax.structs import Model, State


@task_class
class PlanarRunner(Task):
    """reward = forward speed + healthy reward - control cost; q starts with x, z and the torso's angle."""

    max_episode_steps: ClassVar[int | None] = 1000
    state_terms: ClassVar[tuple[str, ...]] = ("x_position", "z_distance_from_origin")

    frame_skip: int = 4
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 1e-3
    healthy_reward: float = 1.0
    terminate_when_unhealthy: bool = True
    reset_noise_scale: float = 5e-3
    exclude_current_positions_from_observation: bool = True

    def is_healthy(self, state: State) -> Bool[Array, " N"]:
        """Whether the robot may go on."""
        raise NotImplementedError

    def initial(self, keys: Key[Array, " N"]) -> tuple[Array, Array]:
        kq, kv = split_keys(keys)
        q = self.model.default_q + uniform(kq, self.model.nq, self.reset_noise_scale, self.dtype)
        return q, uniform(kv, self.model.nv, self.reset_noise_scale, self.dtype)

    def outcome(self, model: Model, before: State, after: State, action: Array) -> Outcome:
        speed = (after.q[0] - before.q[0]) / (model.dt * self.frame_skip)
        healthy = self.is_healthy(after)
        forward = self.forward_reward_weight * speed
        survive = self.healthy_reward * healthy.astype(self.dtype)
        control = self.ctrl_cost_weight * jnp.sum(action**2, axis=0)
        position = after.q[1:] if self.exclude_current_positions_from_observation else after.q
        return Outcome(
            obs=concatenate([position, jnp.clip(after.qd, -10, 10)]),
            reward=forward + survive - control,
            terminated=~healthy & self.terminate_when_unhealthy,
            terms={
                "x_position": after.q[0],
                "z_distance_from_origin": after.q[1] - model.default_q[1],
                "x_velocity": speed,
                "reward_forward": forward,
                "reward_ctrl": -control,
                "reward_survive": survive,
            },
            info={},
        )
