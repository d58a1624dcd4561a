"""The compiled programs behind the Gymnasium classes: resets and layouts, world first.

They are module-level functions of a `BatchedTask`, which is a pytree: every environment of the same task, parameters
and number of worlds shares one compiled program, however often it is built.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode
from jaxtyping import Array, Bool, Key

from rsim_jax.envs.batch import BatchedTask, BatchState
from rsim_jax.envs.core import TaskState, world_keys

Info = dict[str, Any]
Transition = tuple[Array, Array, Array, Array, Info]


def finish(
    batched: BatchedTask,
    before: BatchState,
    after: BatchState,
    mode: AutoresetMode,
    statistics: bool = False,
    wait: bool = False,
) -> tuple[BatchState, Transition]:
    """Resets and layout of an autoreset mode: state, (observations, rewards, terminations, truncations, info).

    With `wait` the host looks at the flags first and spares new episodes that no world needs.
    """
    ended = before.done if mode is AutoresetMode.NEXT_STEP else after.done
    needed = mode is not AutoresetMode.DISABLED and not (wait and not np.asarray(ended).any())
    fresh = batched.fresh(after) if needed else after.task
    return finish_with(batched, before, after, fresh, mode=mode, statistics=statistics)


@functools.partial(jax.jit, static_argnames=("mode", "statistics"))
def finish_with(
    batched: BatchedTask,
    before: BatchState,
    after: BatchState,
    fresh: TaskState,
    mode: AutoresetMode,
    statistics: bool,
) -> tuple[BatchState, Transition]:
    """`finish` with the new episodes given, where any are needed: they are a program of their own."""
    pending = before.done
    match mode:
        case AutoresetMode.SAME_STEP:
            state = batched.finish_same_step(after, fresh)
            info = _task_info(batched, state.task, stepped=~state.done)
            info |= _pair("final_obs", state.final_obs.T, state.done)
            info |= _pair("final_info", _masked(state.terms | state.info, state.done), state.done)
        case AutoresetMode.NEXT_STEP:
            state = batched.finish_next_step(before, after, fresh)
            info = _task_info(batched, state.task, stepped=~pending)
        case AutoresetMode.DISABLED:
            state = batched.finish_live(before, after)
            info = _task_info(batched, state.task, stepped=jnp.ones_like(pending))
    if statistics:
        ended = state.done & ~_held(mode, pending)
        info |= _pair("episode", {"r": state.episode_return, "l": state.episode_length}, ended)
    return state, (state.obs.T, state.reward, state.terminated, state.truncated, info)


@jax.jit
def begun(batched: BatchedTask, state: BatchState, mask: Bool[Array, " N"]) -> tuple[Array, Info]:
    """The layout of a reset of the worlds of `mask`: all observations (N, d), info of the mask.

    It tells what is known of fresh worlds: state terms and info, nothing that only a step measures.
    """
    named = {name: state.task.terms[name] for name in batched.task.state_terms}
    return state.obs.T, _masked(named | state.task.info, mask)


@jax.jit
def plain(batched: BatchedTask, state: BatchState) -> Transition:
    """The layout of a step without any reset."""
    info = _task_info(batched, state.task, stepped=jnp.ones_like(state.terminated))
    return state.obs.T, state.reward, state.terminated, state.truncated, info


def _held(mode: AutoresetMode, pending: Array) -> Array:
    """Worlds that had finished before and wait: their episode was reported then."""
    return pending & (mode is AutoresetMode.DISABLED)


def _task_info(batched: BatchedTask, task: TaskState, stepped: Bool[Array, " N"]) -> Info:
    """Terms and info of every world; what only a step measures is masked out where there was a reset."""
    everywhere = jnp.ones_like(stepped)
    always = (*batched.task.state_terms, *task.info)
    info: Info = {}
    for name, value in (task.terms | task.info).items():
        info |= _pair(name, jnp.moveaxis(value, -1, 0), everywhere if name in always else stepped)
    return info


def _masked(values: dict[str, Array], mask: Bool[Array, " N"]) -> Info:
    info: Info = {}
    for name, value in values.items():
        info |= _pair(name, jnp.moveaxis(value, -1, 0), mask)
    return info


def _pair(name: str, value: Any, mask: Bool[Array, " N"]) -> Info:
    """A key of Gymnasium's vector info and its mask."""
    return {name: value, f"_{name}": mask}


def seed_words(seeds: Sequence[int]) -> np.ndarray:
    """Low and high 32 bits of every seed, (n, 2).

    Raises:
        ValueError: for something that is not a whole number from 0 to 2^64 - 1.
    """
    for seed in seeds:
        if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
            raise ValueError(f"a seed is a whole number from 0 to 2^64 - 1, got {seed!r}")
    return np.array([[int(seed) & 0xFFFFFFFF, int(seed) >> 32] for seed in seeds], np.uint32)


@functools.partial(jax.jit, static_argnames="num_worlds")
def keys_of_seed(words: Any, num_worlds: int) -> Key[Array, " N"]:
    """World i's stream for one seed, given as its low and high 32 bits: fold_in(key(seed), i)."""
    return world_keys(_seed_key(words), num_worlds)


@jax.jit
def keys_of_seeds(words: Any) -> Key[Array, " N"]:
    """The streams of worlds that each have a seed (N, 2): what world 0 of that seed would have."""
    return jax.vmap(lambda word: jax.random.fold_in(_seed_key(word), 0))(jnp.asarray(words))


def _seed_key(words: Any) -> Key[Array, ""]:
    return jax.random.fold_in(jax.random.key(words[0]), words[1])
