"""A task without physics: a point on a line, known in closed form, for tests of everything around the physics."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from rsim_jax.envs import Task, TaskState, task_class
from rsim_jax.envs.core import split_keys, uniform


@task_class
class Drifter(Task):
    """x moves by 0.1 action; reward 1 a step; ends at |x| > 1; obs is (x, steps); starts are uniform in +-0.5."""

    state_terms: ClassVar[tuple[str, ...]] = ("x",)

    model: Any = None
    scale: float = 0.5

    dt = 0.1
    dtype = jnp.float32
    action_size = 1
    block_size = 256
    action_range = (jnp.array([-1.0]), jnp.array([1.0]))

    @jax.jit
    def restart(self, keys):
        kept, starts = split_keys(keys)
        x = uniform(starts, 1, self.scale, jnp.float32)[0]
        zero, flag = jnp.zeros_like(x), jnp.zeros(x.shape, bool)
        return TaskState(
            physics={"x": x, "steps": zero},
            key=kept,
            parameters={},
            obs=jnp.stack([x, zero]),
            reward=zero,
            terminated=flag,
            terms={"x": x, "reward_alive": zero},
            info={"not_finite": flag, "pair": jnp.stack([x, x])},
        )

    @jax.jit
    def step(self, state, action):
        x = state.physics["x"] + 0.1 * action[0]
        steps = state.physics["steps"] + 1
        bad = ~jnp.isfinite(x)
        x = jnp.where(bad, state.physics["x"], x)
        one = jnp.where(bad, 0, jnp.ones_like(x))
        return state.replace(
            physics={"x": x, "steps": steps},
            obs=jnp.stack([x, steps]),
            reward=one,
            terminated=(jnp.abs(x) > 1) | bad,
            terms={"x": x, "reward_alive": one},
            info={"not_finite": bad, "pair": jnp.stack([x, x])},
        )
