"""Humanoid: a two-legged robot with arms walks forward."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from rsim_jax.envs.core import Outcome, Task, free_start, split_keys, task_class, uniform
from rsim_jax.envs.quantities import (
    BodyFrames,
    actuator_force,
    body_frames,
    body_major,
    com_velocity,
    composite_inertia,
    contact_wrench,
    fixed_tendons,
    mass_centre,
    tendon_motion,
)
from rsim_jax.lanes.fence import concatenate
from rsim_jax.structs import Model, State


@task_class
class Humanoid(Task):
    """Gymnasium's Humanoid-v5: speed of the centre of mass + healthy reward - control cost - contact cost."""

    max_episode_steps: ClassVar[int | None] = 1000
    state_terms: ClassVar[tuple[str, ...]] = ("x_position", "y_position", "distance_from_origin")

    xml_file: str = "humanoid.xml"
    frame_skip: int = 5
    forward_reward_weight: float = 1.25
    ctrl_cost_weight: float = 0.1
    contact_cost_weight: float = 5e-7
    contact_cost_range: tuple[float, float] = (-float("inf"), 10.0)
    healthy_reward: float = 5.0
    terminate_when_unhealthy: bool = True
    healthy_z_range: tuple[float, float] = (1.0, 2.0)
    reset_noise_scale: float = 1e-2
    exclude_current_positions_from_observation: bool = True
    include_cinert_in_observation: bool = True
    include_cvel_in_observation: bool = True
    include_qfrc_actuator_in_observation: bool = True
    include_cfrc_ext_in_observation: bool = True
    tendons: tuple[tuple[tuple[int, float], ...], ...] = ()  # filled by `load` from the model's file

    @classmethod
    def load(cls, **params: Any) -> Humanoid:
        task = super().load(**params)
        return dataclasses.replace(task, tendons=fixed_tendons(task.model))

    def initial(self, keys: Key[Array, " N"]) -> tuple[Array, Array]:
        kq, kv = split_keys(keys)
        q = free_start(self.model, kq, self.reset_noise_scale)
        return q, uniform(kv, self.model.nv, self.reset_noise_scale, self.dtype)

    def outcome(self, model: Model, before: State, after: State, action: Array) -> Outcome:
        frames, start = body_frames(model, after), body_frames(model, before)
        travelled = mass_centre(model, frames)[:2] - mass_centre(model, start)[:2]
        x_speed, y_speed = travelled / (model.dt * self.frame_skip)
        wrench = body_major(contact_wrench(model, after, frames))
        healthy = self.is_healthy(after)
        forward = self.forward_reward_weight * x_speed
        survive = self.healthy_reward * healthy.astype(self.dtype)
        control = self.ctrl_cost_weight * jnp.sum(action**2, axis=0)
        contact = jnp.clip(self.contact_cost_weight * jnp.sum(wrench**2, axis=0), *self.contact_cost_range)
        length, velocity = tendon_motion(model, after, self.tendons)
        return Outcome(
            obs=self._observe(model, after, action, frames, wrench),
            reward=forward + survive - control - contact,
            terminated=~healthy & self.terminate_when_unhealthy,
            terms={
                "x_position": after.q[0],
                "y_position": after.q[1],
                "distance_from_origin": jnp.sqrt(after.q[0] ** 2 + after.q[1] ** 2),
                "x_velocity": x_speed,
                "y_velocity": y_speed,
                "reward_survive": survive,
                "reward_forward": forward,
                "reward_ctrl": -control,
                "reward_contact": -contact,
            },
            info={"tendon_length": length, "tendon_velocity": velocity},
        )

    def _observe(
        self, model: Model, state: State, action: Array, frames: BodyFrames, wrench: Array
    ) -> Float[Array, "d N"]:
        parts = [state.q[2:] if self.exclude_current_positions_from_observation else state.q, state.qd]
        if self.include_cinert_in_observation:
            parts.append(body_major(composite_inertia(model, frames)))
        if self.include_cvel_in_observation:
            parts.append(body_major(com_velocity(model, state, frames)))
        if self.include_qfrc_actuator_in_observation:
            parts.append(actuator_force(model, state, action)[6:])
        if self.include_cfrc_ext_in_observation:
            parts.append(wrench)
        return concatenate(parts)

    def is_healthy(self, state: State) -> Bool[Array, " N"]:
        """Torso height inside its range (bounds excluded)."""
        low, high = self.healthy_z_range
        return (low < state.q[2]) & (state.q[2] < high)
