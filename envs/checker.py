"""The checker that Gymnasium lacks: does a vector environment keep the promises of its API?"""

from __future__ import annotations

import copy
import itertools
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

_SEED = 20  # any number; the checks compare runs of equal seeds


def check_vector_env(envs: gym.vector.VectorEnv, max_steps: int = 1000) -> None:
    """Check spaces, shapes, dtypes, seeding, copies, infos, reset masks and the declared autoreset mode.

    Some episode must end within `max_steps` steps of random actions: give the environment a short time limit. The
    environment is reset several times and left open.

    Raises:
        AssertionError: naming the first promise that is broken.
    """
    _check_declarations(envs)
    _check_reset(envs)
    _check_seeding(envs)
    _check_steps_and_copies(envs)
    match envs.metadata["autoreset_mode"]:
        case AutoresetMode.NEXT_STEP:
            _check_next_step(envs, max_steps)
        case AutoresetMode.SAME_STEP:
            _check_same_step(envs, max_steps)
        case AutoresetMode.DISABLED:
            _check_disabled(envs, max_steps)
    _check_reset_mask(envs)


def _check_declarations(envs: gym.vector.VectorEnv) -> None:
    _require(isinstance(envs, gym.vector.VectorEnv), f"a gymnasium.vector.VectorEnv, got {type(envs).__name__}")
    _require(isinstance(envs.num_envs, int) and envs.num_envs > 0, f"num_envs is a positive int, got {envs.num_envs!r}")
    for kind in ("observation", "action"):
        single, batched = getattr(envs, f"single_{kind}_space"), getattr(envs, f"{kind}_space")
        expected = batch_space(single, envs.num_envs)
        _require(batched == expected, f"{kind}_space is the single space, num_envs times: {expected}, got {batched}")
    mode = envs.metadata.get("autoreset_mode")
    _require(
        isinstance(mode, AutoresetMode),
        f"metadata['autoreset_mode'] is a gymnasium.vector.AutoresetMode, got {mode!r}",
    )


def _check_reset(envs: gym.vector.VectorEnv) -> None:
    result = envs.reset(seed=_SEED)
    _require(isinstance(result, tuple) and len(result) == 2, "reset returns (observations, info)")
    obs, info = result
    _check_obs(envs, obs, "reset")
    _check_info(envs, info, "reset")


def _check_seeding(envs: gym.vector.VectorEnv) -> None:
    first, _ = envs.reset(seed=_SEED)
    first = np.array(first)
    actions = _actions(envs, 3)
    run = [np.array(envs.step(action)[0]) for action in actions]
    again, _ = envs.reset(seed=_SEED)
    _require(np.array_equal(first, np.array(again)), "reset with one seed gives the same observations every time")
    for k, action in enumerate(actions):
        _require(
            np.array_equal(run[k], np.array(envs.step(action)[0])),
            f"one seed and the same actions give the same observations; step {k + 1} differs",
        )
    other, _ = envs.reset(seed=_SEED + 100)
    if np.array_equal(first, np.array(other)):
        return  # starts are not random
    _require(envs.num_envs == 1 or not (first == first[:1]).all(), "worlds start differently, not all alike")
    starts = [np.array(other), np.array(envs.reset()[0]), np.array(envs.reset()[0])]
    _require(
        not any(np.array_equal(a, b) for a, b in itertools.combinations(starts, 2)),
        "reset without a seed continues the random stream, it does not repeat an earlier start",
    )
    sequence, _ = envs.reset(seed=[_SEED + i for i in range(envs.num_envs)])
    _check_obs(envs, sequence, "reset with a sequence of seeds")


def _check_steps_and_copies(envs: gym.vector.VectorEnv) -> None:
    envs.reset(seed=_SEED)
    kept, keys = [], None
    for action in _actions(envs, 5):
        result = _step_some(envs, action)
        obs, rewards, terminations, truncations, info = result
        _check_obs(envs, obs, "step")
        _check_lane(envs, rewards, "rewards", np.floating)
        _check_lane(envs, terminations, "terminations", np.bool_)
        _check_lane(envs, truncations, "truncations", np.bool_)
        _require(np.isfinite(np.array(rewards)).all(), "rewards are finite")
        _check_info(envs, info, "step")
        keys = keys or set(info)
        _require(set(info) == keys, f"every step has the same info keys; these come and go: {sorted(keys ^ set(info))}")
        arrays = [obs, rewards, terminations, truncations]
        kept.append((arrays, [np.array(a) for a in arrays]))
    for arrays, copies in kept:
        same = all(np.array_equal(np.array(a), c) for a, c in zip(arrays, copies, strict=True))
        _require(same, "returned arrays are the caller's: later steps do not write into them")


def _check_next_step(envs: gym.vector.VectorEnv, max_steps: int) -> None:
    """The step after an end ignores the action: replayed with two different actions it is the same."""
    actions, done, _ = _run_to_an_end(envs, max_steps)
    last = envs.action_space.sample()
    obs, rewards, terminations, truncations, _ = envs.step(last)
    obs = np.array(obs)
    _require((np.array(rewards)[done] == 0).all(), "next-step autoreset: the reset step has reward 0")
    flags = np.array(terminations) | np.array(truncations)
    _require(not flags[done].any(), "next-step autoreset: the reset step is neither terminated nor truncated")
    envs.reset(seed=_SEED)
    for action in actions:
        envs.step(action)
    other = np.array(last)
    other[done] = np.array(envs.action_space.sample())[done]
    again = np.array(envs.step(other)[0])
    _require(np.array_equal(obs[done], again[done]), "next-step autoreset: the reset step ignores the action")


def _check_same_step(envs: gym.vector.VectorEnv, max_steps: int) -> None:
    actions, done, _ = _run_to_an_end(envs, max_steps)
    envs.reset(seed=_SEED)
    for action in actions[:-1]:
        envs.step(action)
    obs, *_, info = envs.step(actions[-1])
    for key in ("final_obs", "final_info"):
        _require(key in info and f"_{key}" in info, f"same-step autoreset: info has {key} and _{key}")
        mask = np.array(info[f"_{key}"])
        _require(np.array_equal(mask, done), f"same-step autoreset: _{key} marks exactly the finished worlds")
    final = info["final_obs"]
    for i in np.flatnonzero(done):
        _require(
            envs.single_observation_space.contains(np.array(final[i])),
            f"same-step autoreset: final_obs of world {i} lies in the observation space",
        )
        _require(
            not np.array_equal(np.array(final[i]), np.array(obs[i])),
            f"same-step autoreset: the observation of world {i} is that of the reset, not the final one",
        )


def _check_disabled(envs: gym.vector.VectorEnv, max_steps: int) -> None:
    _, done, final = _run_to_an_end(envs, max_steps)
    obs = np.array(envs.reset(options={"reset_mask": done})[0])
    for i in range(envs.num_envs):
        if done[i]:
            _require(not np.array_equal(obs[i], final[i]), f"autoreset disabled: a masked reset restarts world {i}")
        else:
            _require(np.array_equal(obs[i], final[i]), f"autoreset disabled: a masked reset leaves world {i} alone")
    _check_obs(envs, envs.step(envs.action_space.sample())[0], "autoreset disabled, step after a masked reset")


def _check_reset_mask(envs: gym.vector.VectorEnv) -> None:
    if envs.num_envs == 1:
        return
    envs.reset(seed=_SEED)
    before = np.array(_step_some(envs, _actions(envs, 1)[0])[0])
    mask = np.zeros(envs.num_envs, bool)
    mask[0] = True
    options = {"reset_mask": mask.copy()}
    obs, info = envs.reset(seed=_SEED + 1, options=options)
    obs = np.array(obs)
    _require(
        "reset_mask" in options, "reset reads options['reset_mask'] and leaves it there: wrappers look at it after"
    )
    _require(np.array_equal(options["reset_mask"], mask), "reset does not write into the mask")
    _require(np.array_equal(before[1:], obs[1:]), "a masked reset leaves the observations of other worlds as they were")
    _require(not np.array_equal(before[0], obs[0]), "a masked reset restarts the chosen world")
    _check_info(envs, info, "masked reset")
    for key, value in info.items():
        if key.startswith("_"):
            _require(not np.array(value)[1:].any(), f"a masked reset reports only on the chosen worlds; {key} does not")


def _run_to_an_end(envs: gym.vector.VectorEnv, max_steps: int) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Random actions from a seed until some world finishes: the actions, which worlds, the last observations."""
    envs.reset(seed=_SEED)
    actions = []
    for _ in range(max_steps):
        actions.append(envs.action_space.sample())
        obs, _, terminations, truncations, _ = envs.step(actions[-1])
        done = np.array(terminations) | np.array(truncations)
        if done.any():
            return actions, done, np.array(obs)
    raise AssertionError(f"no episode ended within {max_steps} steps: give the environment a shorter time limit")


def _step_some(envs: gym.vector.VectorEnv, action: Any) -> tuple[Any, ...]:
    """A step; without autoreset finished worlds are restarted afterwards, so that the next step is allowed."""
    result = envs.step(action)
    done = np.array(result[2]) | np.array(result[3])
    if envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED and done.any():
        envs.reset(options={"reset_mask": done})
    return result


def _actions(envs: gym.vector.VectorEnv, count: int) -> list[Any]:
    space = copy.deepcopy(envs.action_space)
    space.seed(_SEED)
    return [space.sample() for _ in range(count)]


def _check_obs(envs: gym.vector.VectorEnv, obs: Any, where: str) -> None:
    space = envs.observation_space
    if isinstance(space, gym.spaces.Box):
        _require(obs.shape == space.shape, f"{where}: observations have shape {space.shape}, got {obs.shape}")
        _require(obs.dtype == space.dtype, f"{where}: observations have dtype {space.dtype}, got {obs.dtype}")
    _require(space.contains(np.array(obs)), f"{where}: observations lie in the observation space")


def _check_lane(envs: gym.vector.VectorEnv, value: Any, what: str, kind: type) -> None:
    shape = getattr(value, "shape", None)
    _require(shape == (envs.num_envs,), f"{what} are an array of shape ({envs.num_envs},), got {shape or type(value)}")
    _require(np.issubdtype(value.dtype, kind), f"{what} are of dtype {kind.__name__}, got {value.dtype}")


def _check_info(envs: gym.vector.VectorEnv, info: Any, where: str) -> None:
    """Every key is an array or dict with world axis first and has a boolean mask `_key`."""
    _require(isinstance(info, dict), f"{where}: info is a dict, got {type(info).__name__}")
    for key, value in info.items():
        if key.startswith("_"):
            _require(key[1:] in info, f"{where}: info has the mask {key} without {key[1:]}")
            _require(
                getattr(value, "shape", None) == (envs.num_envs,) and value.dtype == np.bool_,
                f"{where}: the mask info[{key!r}] is boolean, one per world",
            )
            continue
        _require(f"_{key}" in info, f"{where}: info[{key!r}] needs the mask info['_{key}']")
        if isinstance(value, dict):
            _check_info(envs, value, f"{where}: info[{key!r}]")
        else:
            _require(len(value) == envs.num_envs, f"{where}: info[{key!r}] has one entry per world, got {len(value)}")


def _require(condition: bool, promise: str) -> None:
    if not condition:
        raise AssertionError(f"broken promise: {promise}")
