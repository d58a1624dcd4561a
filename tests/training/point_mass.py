"""A task that compiles in a second: push a point mass to the origin of a line. Pure JAX, no simulator.

It follows the same protocol as the real tasks and runs under the real `BatchedTask`. `offset` and `scale` make its
observations awkward on purpose, `reward_scale` its rewards.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from rsim_jax.envs.batch import BatchedTask
from rsim_jax.envs.core import TaskState, split_keys, task_class, uniform
from rsim_jax.structs import record
from rsim_jax.training.config import PPOConfig, TrainConfig

DT = 0.1
LIMIT = 2.0


class Line:
    """Position and velocity of every world's mass, (N,)."""

    x: Array
    v: Array


Line = record(Line)


class Numbers:
    """Stands for the simulator's model: numbers that do not change the compiled program."""

    offset: Array
    scale: Array
    reward_scale: Array

    nv = 1  # a small robot, whose worlds make one block


Numbers = record(Numbers)


@task_class
class PointMass:
    """Force in [-2, 2]; reward 1 - x^2 - 0.1 v^2; ends beyond |x| = 2."""

    model: Numbers
    block_size = 256
    dtype: str = "float32"

    action_size = 1

    @property
    def action_range(self) -> tuple[Array, Array]:
        return jnp.full((1,), -2.0, self.dtype), jnp.full((1,), 2.0, self.dtype)

    def restart(self, keys: Array) -> TaskState:
        stream, draw = split_keys(keys)
        x, v = uniform(draw, 2, 1.0, self.dtype)
        zero = jnp.zeros_like(x)
        return self._state(Line(x, v), stream, zero, zero)

    def step(self, state: TaskState, action: Array) -> TaskState:
        v = state.physics.v + DT * action[0]
        x = state.physics.x + DT * v
        return self._state(Line(x, v), state.key, 1 - x * x, -0.1 * v * v, jnp.abs(x) > LIMIT)

    def _state(self, line: Line, key: Array, near: Array, slow: Array, terminated: Array | None = None) -> TaskState:
        flag = jnp.zeros(line.x.shape, bool)
        obs = self.model.offset[:, None] + self.model.scale[:, None] * jnp.stack([line.x, line.v])
        return TaskState(
            physics=line,
            key=key,
            parameters={},
            obs=obs,
            reward=self.model.reward_scale * (near + slow),
            terminated=flag if terminated is None else terminated,
            terms={"near": near, "slow": slow},
            info={"not_finite": flag},
        )


def batched(
    max_episode_steps: int = 50,
    offset: tuple[float, float] = (0.0, 0.0),
    scale: tuple[float, float] = (1.0, 1.0),
    reward_scale: float = 1.0,
) -> BatchedTask:
    numbers = (jnp.asarray(value, "float32") for value in (offset, scale, reward_scale))
    return BatchedTask(PointMass(model=Numbers(*numbers)), max_episode_steps)


def config(**ppo: object) -> TrainConfig:
    """Settings small enough for a test; keyword arguments replace PPO's."""
    small = {"num_envs": 64, "unroll_length": 16, "total_steps": 20 * 1024, "epochs": 4, "minibatches": 4}
    return TrainConfig(task="point_mass", ppo=PPOConfig(**{**small, "hidden_sizes": (16, 16), **ppo}))
