"""Episodes in many worlds at once: time limits, resets, statistics. Pure, jit-able, scan-able.

Trainers build on `BatchedTask`; the Gymnasium classes are layouts of the same transitions.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

import rsim_jax as rsim
from rsim_jax.envs.core import Task, TaskState, world_keys
from rsim_jax.structs import record


class BatchState:
    """N worlds between two actions, and what the last step produced.

    `task`, and so `obs`, belong to the state that the next action acts on. `reward`, `terminated`, `truncated`,
    `final_obs`, `terms`, `info`, `episode_return` and `episode_length` belong to the last step, before any reset.
    """

    task: TaskState
    reward: Float[Array, " N"]
    terminated: Bool[Array, " N"]  # the task ended: no value beyond this step
    truncated: Bool[Array, " N"]  # the time limit ended it: bootstrap from final_obs (both may be true)
    final_obs: Float[Array, "d N"]  # true observation after the last step; equals obs where no reset happened
    terms: dict[str, Float[Array, " N"]]
    info: dict[str, Array]
    episode_return: Float[Array, " N"]  # sum of rewards of the last step's episode up to and including that step
    episode_length: Int[Array, " N"]  # number of its steps; on finished worlds these two are the episode's totals
    running_return: Float[Array, " N"]  # the same two for the episode that continues: 0 after a reset
    running_length: Int[Array, " N"]

    @property
    def obs(self) -> Float[Array, "d N"]:
        """What the next action may look at: after an automatic reset the first observation of the new episode."""
        return self.task.obs

    @property
    def done(self) -> Bool[Array, " N"]:
        return self.terminated | self.truncated

    def replace(self, **fields: Any) -> BatchState:
        """A copy with new fields."""
        return dataclasses.replace(self, **fields)


BatchState = record(BatchState)


class BatchedTask:
    """A task with a time limit and resets.

    A pytree like the task itself: pass it to `jax.jit` as an argument, or close over it. The carry of `jax.lax.scan`
    is the `BatchState`:

        batched = BatchedTask(make("Hopper-v5"), max_episode_steps=1000)
        state = batched.reset(jax.random.key(0), num_worlds=1024)
        def act(state, key):
            action = policy(state.obs, key)                    # (nu, N)
            after = batched.step(state, action)                # finished worlds already restarted
            return after, (state.obs, action, after.reward, after.terminated, after.truncated, after.final_obs)
        state, trajectory = jax.lax.scan(act, state, keys)

    Attributes:
        task: any `Task`.
        max_episode_steps: steps after which an episode is truncated: one number, one per world, or None.
    """

    task: Task
    max_episode_steps: int | tuple[int, ...] | None = None

    def reset(self, key: Key[Array, ""], num_worlds: int) -> BatchState:
        """Start every world; world i draws from fold_in(key, i) whatever the number of worlds."""
        return self.restart_all(world_keys(key, num_worlds))

    def step(self, state: BatchState, action: Float[Array, "nu N"]) -> BatchState:
        """One step of every world; worlds that finish are restarted in the same step.

        Args:
            action: (nu, N), as the task's `step`.
        """
        after = self.advance(state, action)
        return self.finish_same_step(after, self.fresh(after))

    def fresh(self, state: BatchState) -> TaskState:
        """A new episode for every world, from its own stream."""
        return self.task.restart(state.task.key)

    @jax.jit
    def finish_same_step(self, after: BatchState, fresh: TaskState | None = None) -> BatchState:
        """Restart the worlds that the step finished; what it produced stays readable.

        Args:
            fresh: the new episodes (`fresh(after)`), when they are computed by a program of their own.
        """
        fresh = self.fresh(after) if fresh is None else fresh
        ended = after.done
        return after.replace(
            task=rsim.select(ended, fresh, after.task),
            running_return=jnp.where(ended, 0, after.running_return),
            running_length=jnp.where(ended, 0, after.running_length),
        )

    @jax.jit
    def finish_next_step(self, before: BatchState, after: BatchState, fresh: TaskState | None = None) -> BatchState:
        """Restart the worlds that had finished before the step: its action did not count for them.

        They have reward 0 and both flags false (Gymnasium's NEXT_STEP). `fresh` as in `finish_same_step`.
        """
        fresh = self.fresh(after) if fresh is None else fresh
        return rsim.select(before.done, self._begun(fresh), after)

    @jax.jit
    def finish_live(self, before: BatchState, after: BatchState) -> BatchState:
        """Worlds that had finished before the step wait, with reward 0, to be restarted."""
        return rsim.select(before.done, before.replace(reward=jnp.zeros_like(before.reward)), after)

    def advance(self, state: BatchState, action: Float[Array, "nu N"]) -> BatchState:
        """One step of every world, no reset."""
        return self._counted(state, self.task.step(state.task, action))

    @jax.jit
    def _counted(self, state: BatchState, task: TaskState) -> BatchState:
        length = state.running_length + 1
        total = state.running_return + task.reward
        return BatchState(
            task=task,
            reward=task.reward,
            terminated=task.terminated,
            truncated=self._out_of_time(length),
            final_obs=task.obs,
            terms=task.terms,
            info=task.info,
            episode_return=total,
            episode_length=length,
            running_return=total,
            running_length=length,
        )

    def restart_all(self, keys: Key[Array, " N"]) -> BatchState:
        """Start every world from its own key."""
        return self._begun(self.task.restart(keys))

    def restart_some(self, state: BatchState, mask: Bool[Array, " N"], keys: Key[Array, " N"]) -> BatchState:
        """Start the worlds of `mask` from the keys given (`state.task.key` continues their streams).

        As after a user's reset, flags, reward and statistics begin again there.
        """
        return rsim.select(mask, self.restart_all(keys), state)

    @jax.jit
    def _begun(self, task: TaskState) -> BatchState:
        """The state of new episodes: nothing reported about a last step."""
        zero = jnp.zeros_like(task.reward)
        count = jnp.zeros(zero.shape, jnp.int32)
        flag = jnp.zeros(zero.shape, bool)
        return BatchState(
            task=task,
            reward=zero,
            terminated=flag,
            truncated=flag,
            final_obs=task.obs,
            terms=task.terms,
            info=task.info,
            episode_return=zero,
            episode_length=count,
            running_return=zero,
            running_length=count,
        )

    def _out_of_time(self, length: Int[Array, " N"]) -> Bool[Array, " N"]:
        if self.max_episode_steps is None:
            return jnp.zeros(length.shape, bool)
        return length >= jnp.asarray(self.max_episode_steps, length.dtype)


BatchedTask = record(BatchedTask, static=("max_episode_steps",))
