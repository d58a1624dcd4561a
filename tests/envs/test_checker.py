"""The vector checker finds each kind of fault: one broken environment per promise."""

from __future__ import annotations

import numpy as np
import pytest
from drifter import Drifter

from rsim_jax.envs import RsimVectorEnv, check_vector_env


class SameBuffer(RsimVectorEnv):
    def step(self, actions):
        result = super().step(actions)
        self.buffer = getattr(self, "buffer", np.zeros_like(result[0]))
        self.buffer[:] = result[0]
        return self.buffer, *result[1:]


class OneFlag(RsimVectorEnv):
    def step(self, actions):
        obs, reward, terminated, truncated, info = super().step(actions)
        return obs, reward, terminated, bool(truncated.any()), info


class DoubleReward(RsimVectorEnv):
    def step(self, actions):
        obs, reward, terminated, truncated, info = super().step(actions)
        return obs.astype(np.float64), reward, terminated, truncated, info


class ForgetsSeed(RsimVectorEnv):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None, options=options)


class RepeatsStart(RsimVectorEnv):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=4 if seed is None and options is None else seed, options=options)


class PopsMask(RsimVectorEnv):
    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed, options=options)
        (options or {}).pop("reset_mask", None)
        return result


class ResetsAll(RsimVectorEnv):
    def reset(self, *, seed=None, options=None):
        if options:
            options = {"reset_mask": np.ones(self.num_envs, bool)} | {"was": options["reset_mask"]}
            result = super().reset(seed=seed, options=options)
            options["reset_mask"] = options.pop("was")
            return result
        return super().reset(seed=seed)


class LosesMask(RsimVectorEnv):
    def step(self, actions):
        *rest, info = super().step(actions)
        return *rest, {key: value for key, value in info.items() if key != "_x"}


class LosesFinalObs(RsimVectorEnv):
    def step(self, actions):
        *rest, info = super().step(actions)
        return *rest, {key: value for key, value in info.items() if "final_obs" not in key}


class SaysNextStep(RsimVectorEnv):
    """Declares next-step autoreset and does it in the same step."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs | {"autoreset_mode": "same_step"})
        self.metadata["autoreset_mode"] = type(self.autoreset_mode).NEXT_STEP


@pytest.mark.parametrize(
    ("cls", "mode", "words"),
    [
        (SameBuffer, "next_step", "do not write"),
        (OneFlag, "next_step", "truncations are an array"),
        (DoubleReward, "next_step", "dtype"),
        (ForgetsSeed, "next_step", "same observations every time"),
        (RepeatsStart, "next_step", "continues the random stream"),
        (PopsMask, "next_step", "leaves it there"),
        (ResetsAll, "next_step", "other worlds as they were"),
        (LosesMask, "next_step", "mask"),
        (LosesFinalObs, "same_step", "final_obs"),
        (SaysNextStep, "next_step", "next-step autoreset"),
    ],
)
def test_faults_are_found(cls, mode, words):
    envs = cls(Drifter(), 3, max_episode_steps=7, autoreset_mode=mode)
    with pytest.raises(AssertionError, match=words):
        check_vector_env(envs)


def test_endless_episodes_are_an_error_not_a_pass():
    envs = RsimVectorEnv(Drifter(scale=0.0), 3, max_episode_steps=10_000)
    with pytest.raises(AssertionError, match="shorter time limit"):
        check_vector_env(envs, max_steps=5)
