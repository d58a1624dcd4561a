"""InvertedDoublePendulum: keep two poles on a cart upright."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from rsim_jax.envs.core import Outcome, Task, normal, split_keys, task_class, uniform
from rsim_jax.envs.quantities import body_frames, limit_force, site_position
from rsim_jax.lanes.fence import concatenate
from rsim_jax.structs import Model, State


@task_class
class InvertedDoublePendulum(Task):
    """Gymnasium's InvertedDoublePendulum-v5: the tip stays above 1 m, near x = 0 and y = 2 m, and moves slowly."""

    max_episode_steps: ClassVar[int | None] = 1000
    reward_threshold: ClassVar[float | None] = 9100.0

    xml_file: str = "inverted_double_pendulum.xml"
    frame_skip: int = 5
    healthy_reward: float = 10.0
    reset_noise_scale: float = 0.1

    def initial(self, keys: Key[Array, " N"]) -> tuple[Array, Array]:
        kq, kv = split_keys(keys)
        q = self.model.default_q + uniform(kq, self.model.nq, self.reset_noise_scale, self.dtype)
        return q, normal(kv, self.model.nv, self.reset_noise_scale, self.dtype)

    def outcome(self, model: Model, before: State, after: State, action: Array) -> Outcome:
        x, _, height = site_position(model, 0, body_frames(model, after))
        terminated = height <= 1
        distance = 0.01 * x**2 + (height - 2) ** 2
        speed = 1e-3 * after.qd[1] ** 2 + 5e-3 * after.qd[2] ** 2
        survive = self.healthy_reward * (~terminated).astype(self.dtype)
        return Outcome(
            obs=self._observe(model, after),
            reward=survive - distance - speed,
            terminated=terminated,
            terms={"reward_survive": survive, "distance_penalty": -distance, "velocity_penalty": -speed},
            info={},
        )

    def _observe(self, model: Model, state: State) -> Float[Array, "9 N"]:
        """Cart position, sines and cosines of the angles, clipped velocities, clipped constraint force on the cart."""
        angles = state.q[1:]
        force = jnp.clip(limit_force(model, state)[:1], -10, 10)
        return concatenate([state.q[:1], jnp.sin(angles), jnp.cos(angles), jnp.clip(state.qd, -10, 10), force])
