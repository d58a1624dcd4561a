"""Ant: a four-legged robot runs forward."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Key

from rsim_jax.envs.core import Outcome, Task, free_start, normal, split_keys, task_class
from rsim_jax.envs.quantities import body_frames, body_major, contact_wrench
from rsim_jax.lanes.fence import concatenate
from rsim_jax.structs import Model, State


@task_class
class Ant(Task):
    """Gymnasium's Ant-v5: forward speed + healthy reward - control cost - contact cost."""

    max_episode_steps: ClassVar[int | None] = 1000
    reward_threshold: ClassVar[float | None] = 6000.0
    state_terms: ClassVar[tuple[str, ...]] = ("x_position", "y_position", "distance_from_origin")

    xml_file: str = "ant.xml"
    frame_skip: int = 5
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 0.5
    contact_cost_weight: float = 5e-4
    healthy_reward: float = 1.0
    main_body: int | str = 1
    terminate_when_unhealthy: bool = True
    healthy_z_range: tuple[float, float] = (0.2, 1.0)
    contact_force_range: tuple[float, float] = (-1.0, 1.0)
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True
    include_cfrc_ext_in_observation: bool = True

    def initial(self, keys: Key[Array, " N"]) -> tuple[Array, Array]:
        kq, kv = split_keys(keys)
        q = free_start(self.model, kq, self.reset_noise_scale)
        return q, normal(kv, self.model.nv, self.reset_noise_scale, self.dtype)

    def outcome(self, model: Model, before: State, after: State, action: Array) -> Outcome:
        body = self.main_body if isinstance(self.main_body, int) else model.body_id(self.main_body)
        frames, start = body_frames(model, after), body_frames(model, before)
        x_speed, y_speed = (frames.position[:2, body] - start.position[:2, body]) / (model.dt * self.frame_skip)
        wrench = jnp.clip(body_major(contact_wrench(model, after, frames)), *self.contact_force_range)
        healthy = self.is_healthy(after)
        forward = self.forward_reward_weight * x_speed
        survive = self.healthy_reward * healthy.astype(self.dtype)
        control = self.ctrl_cost_weight * jnp.sum(action**2, axis=0)
        contact = self.contact_cost_weight * jnp.sum(wrench**2, axis=0)
        position = after.q[2:] if self.exclude_current_positions_from_observation else after.q
        parts = [position, after.qd] + ([wrench] if self.include_cfrc_ext_in_observation else [])
        return Outcome(
            obs=concatenate(parts),
            reward=forward + survive - control - contact,
            terminated=~healthy & self.terminate_when_unhealthy,
            terms={
                "x_position": after.q[0],
                "y_position": after.q[1],
                "distance_from_origin": jnp.sqrt(after.q[0] ** 2 + after.q[1] ** 2),
                "x_velocity": x_speed,
                "y_velocity": y_speed,
                "reward_forward": forward,
                "reward_ctrl": -control,
                "reward_contact": -contact,
                "reward_survive": survive,
            },
            info={},
        )

    def is_healthy(self, state: State) -> Bool[Array, " N"]:
        """Torso height inside its range (bounds included)."""
        low, high = self.healthy_z_range
        return (low <= state.q[2]) & (state.q[2] <= high)
