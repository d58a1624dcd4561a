"""Ends of episodes in the three autoreset modes, against single worlds that are never reset automatically."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from drifter import Drifter
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from rsim_jax.envs import RsimVectorEnv

LIMITS = (3, 4, 5, 6)


def make(mode, limits=LIMITS, **more):
    return RsimVectorEnv(Drifter(), len(limits), max_episode_steps=limits, autoreset_mode=mode, **more)


def actions(steps, seed=0, worlds=4):
    return np.random.default_rng(seed).uniform(-0.3, 0.3, (steps, worlds, 1)).astype(np.float32)


def single_world_episode(seed, world, moves):
    """First observation and the following ones of the world's first episode, without autoreset."""
    envs = RsimVectorEnv(Drifter(), 4, max_episode_steps=100, autoreset_mode="disabled")
    rows = [envs.reset(seed=seed)[0][world]]
    rows += [envs.step(move)[0][world] for move in moves]
    return rows


def test_same_step_keeps_the_last_observation():
    envs, moves = make("same_step"), actions(6)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    envs.reset(seed=5)
    for t, move in enumerate(moves):
        obs, reward, terminated, truncated, info = envs.step(move)
        ended = np.array([(t + 1) % limit == 0 for limit in LIMITS])
        assert (truncated == ended).all() and not terminated.any() and (reward == 1).all()
        assert (info["_final_obs"] == ended).all() and (info["_final_info"] == ended).all()
        for world, limit in enumerate(LIMITS):
            if t + 1 != limit:
                continue
            expected = single_world_episode(5, world, moves[:limit])[-1]
            np.testing.assert_allclose(info["final_obs"][world], expected, atol=1e-6)
            assert info["final_info"]["x"][world] == info["final_obs"][world, 0]
            assert info["x"][world] == obs[world, 0] != info["final_obs"][world, 0]
            assert obs[world, 1] == 0  # the first observation of the new episode
            assert not info["_reward_alive"][world] and info["_x"][world]


def test_next_step_returns_the_reset_one_step_later_and_ignores_the_action():
    envs, moves = make("next_step"), actions(8)
    envs.reset(seed=5)
    first_end = dict.fromkeys(range(4))
    for t, move in enumerate(moves):
        wild = move.copy()
        for world, limit in enumerate(LIMITS):
            if t == limit:
                wild[world] = 1e6  # must be ignored
        obs, reward, terminated, truncated, info = envs.step(wild)
        for world, limit in enumerate(LIMITS):
            if t + 1 == limit:
                assert truncated[world] and reward[world] == 1
                expected = single_world_episode(5, world, moves[:limit])[-1]
                np.testing.assert_allclose(obs[world], expected, atol=1e-6)
                first_end[world] = obs[world].copy()
            if t == limit:
                assert not truncated[world] and not terminated[world] and reward[world] == 0
                assert obs[world, 1] == 0 and abs(obs[world, 0]) <= 0.5
                assert not info["_reward_alive"][world]
    assert all(row is not None for row in first_end.values())


def test_disabled_waits_for_a_masked_reset():
    envs, moves = make("disabled"), actions(3)
    envs.reset(seed=5)
    for move in moves:
        obs, _, _, truncated, _ = envs.step(move)
    assert truncated.tolist() == [True, False, False, False]
    with pytest.raises(gym.error.ResetNeeded, match=r"worlds \[0\] have finished"):
        envs.step(moves[0])
    after, info = envs.reset(options={"reset_mask": truncated})
    assert after[0, 1] == 0 and (after[1:] == obs[1:]).all()
    assert info["_x"].tolist() == [True, False, False, False]
    assert envs.step(moves[0])[0][0, 1] == 1


def test_disabled_on_the_device_holds_finished_worlds():
    envs, moves = make("disabled", output="jax"), actions(4)
    envs.reset(seed=5)
    seen = [envs.step(move) for move in moves]
    assert (np.array(seen[3][0])[0] == np.array(seen[2][0])[0]).all()
    assert np.array(seen[3][1])[0] == 0 and bool(seen[3][3][0])


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_episode_statistics_are_exact(mode):
    """Lengths and returns of 3 and 4, one report an episode, from Gymnasium's wrapper and from the built-in ones."""
    reported = {}
    for kind in ("wrapper", "own"):
        envs = make(mode, (3, 4), episode_statistics=kind == "own")
        envs = RecordEpisodeStatistics(envs) if kind == "wrapper" else envs
        envs.reset(seed=0)
        lists = ([], [])
        for move in actions(30, worlds=2):
            *_, info = envs.step(move)
            for world in range(2):
                if "_episode" in info and info["_episode"][world]:
                    lists[world].append((float(info["episode"]["r"][world]), int(info["episode"]["l"][world])))
        reported[kind] = lists
    pause = mode == "next_step"  # the reset takes a step of its own
    for lists in reported.values():
        for limit, reports in zip((3, 4), lists, strict=True):
            assert reports == [(float(limit), limit)] * ((30 - limit) // (limit + pause) + 1)


def test_all_modes_give_the_same_episodes():
    """Same seed: the sequence of first observations of a world's episodes does not depend on the mode."""
    starts = {}
    for mode in ("same_step", "next_step"):
        envs = make(mode)
        rows = [[row] for row in envs.reset(seed=3)[0]]
        for move in actions(20):
            obs = envs.step(move)[0]
            for world in range(4):
                if obs[world, 1] == 0:
                    rows[world].append(obs[world])
        starts[mode] = [np.array(r[:3]) for r in rows]
    for a, b in zip(starts["same_step"], starts["next_step"], strict=True):
        np.testing.assert_array_equal(a, b)


def test_every_episode_starts_anew():
    """No cached start: starts differ within and across worlds, and repeat with the seed."""

    def run(seed):
        envs = RsimVectorEnv(Drifter(), 8, max_episode_steps=5, autoreset_mode="same_step")
        rows = [envs.reset(seed=seed)[0][:, 0]]
        for move in actions(100, worlds=8):
            obs = envs.step(move)[0]
            if (obs[:, 1] == 0).all():
                rows.append(obs[:, 0])
        return np.array(rows)

    starts = run(0)
    assert starts.shape == (21, 8)
    assert np.unique(starts).size >= 0.95 * starts.size
    np.testing.assert_array_equal(starts, run(0))
    assert np.intersect1d(starts, run(1)).size == 0


def test_worlds_start_differently_and_do_not_depend_on_their_number():
    many = RsimVectorEnv(Drifter(), 64).reset(seed=0)[0]
    few = RsimVectorEnv(Drifter(), 5).reset(seed=0)[0]
    assert np.unique(many[:, 0]).size == 64
    np.testing.assert_array_equal(many[:5], few)


def test_a_sequence_of_seeds_gives_what_single_worlds_give():
    envs = RsimVectorEnv(Drifter(), 3)
    obs, _ = envs.reset(seed=[7, 8, 7])
    single = [RsimVectorEnv(Drifter(), 1).reset(seed=s)[0][0] for s in (7, 8, 7)]
    np.testing.assert_array_equal(obs, single)
    with pytest.raises(ValueError, match="one for each of 3 worlds, got 2"):
        envs.reset(seed=[1, 2])
