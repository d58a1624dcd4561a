"""InvertedPendulum: keep a pole on a cart upright."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Key

from rsim_jax.envs.core import Outcome, Task, split_keys, task_class, uniform
from rsim_jax.lanes.fence import concatenate
from rsim_jax.structs import Model, State


@task_class
class InvertedPendulum(Task):
    """Gymnasium's InvertedPendulum-v5: reward 1 for every step that ends with the pole within 0.2 rad of upright."""

    max_episode_steps: ClassVar[int | None] = 1000
    reward_threshold: ClassVar[float | None] = 950.0

    xml_file: str = "inverted_pendulum.xml"
    frame_skip: int = 2
    reset_noise_scale: float = 0.01

    def initial(self, keys: Key[Array, " N"]) -> tuple[Array, Array]:
        kq, kv = split_keys(keys)
        q = self.model.default_q + uniform(kq, self.model.nq, self.reset_noise_scale, self.dtype)
        return q, uniform(kv, self.model.nv, self.reset_noise_scale, self.dtype)

    def outcome(self, model: Model, before: State, after: State, action: Array) -> Outcome:
        terminated = jnp.abs(after.q[1]) > 0.2
        reward = (~terminated).astype(self.dtype)
        obs = concatenate([after.q, after.qd])
        return Outcome(obs=obs, reward=reward, terminated=terminated, terms={"reward_survive": reward}, info={})
