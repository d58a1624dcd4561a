"""HalfCheetah: a planar two-legged robot runs forward."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Key

from rsim_jax.envs.core import Outcome, Task, normal, split_keys, task_class, uniform
from rsim_jax.lanes.fence import concatenate
from rsim_jax.structs import Model, State


@task_class
class HalfCheetah(Task):
    """Gymnasium's HalfCheetah-v5: forward speed - control cost; never terminates."""

    max_episode_steps: ClassVar[int | None] = 1000
    reward_threshold: ClassVar[float | None] = 4800.0
    state_terms: ClassVar[tuple[str, ...]] = ("x_position",)

    xml_file: str = "half_cheetah.xml"
    frame_skip: int = 5
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 0.1
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True

    def initial(self, keys: Key[Array, " N"]) -> tuple[Array, Array]:
        kq, kv = split_keys(keys)
        q = self.model.default_q + uniform(kq, self.model.nq, self.reset_noise_scale, self.dtype)
        return q, normal(kv, self.model.nv, self.reset_noise_scale, self.dtype)

    def outcome(self, model: Model, before: State, after: State, action: Array) -> Outcome:
        speed = (after.q[0] - before.q[0]) / (model.dt * self.frame_skip)
        forward = self.forward_reward_weight * speed
        control = self.ctrl_cost_weight * jnp.sum(action**2, axis=0)
        position = after.q[1:] if self.exclude_current_positions_from_observation else after.q
        return Outcome(
            obs=concatenate([position, after.qd]),
            reward=forward - control,
            terminated=jnp.zeros(speed.shape, bool),
            terms={
                "x_position": after.q[0],
                "x_velocity": speed,
                "reward_forward": forward,
                "reward_ctrl": -control,
            },
            info={},
        )
