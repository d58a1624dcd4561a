"""What users and wrappers rely on: shapes, dtypes, copies, errors, attributes, pickling, one compilation."""

from __future__ import annotations

import json
import pickle

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drifter import Drifter
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers

from rsim_jax.envs import RsimVectorEnv, check_vector_env, outputs

MODES = ["next_step", "same_step", "disabled"]


def make(worlds=5, mode="next_step", limit=4, **more):
    return RsimVectorEnv(Drifter(), worlds, max_episode_steps=limit, autoreset_mode=mode, **more)


@pytest.mark.parametrize("output", ["numpy", "jax"])
@pytest.mark.parametrize("mode", MODES)
def test_checker_accepts(mode, output):
    check_vector_env(make(mode=mode, output=output))


def test_direct_base_and_mode_names():
    assert RsimVectorEnv.__bases__ == (gym.vector.VectorEnv,)
    for name in ("next_step", "NextStep", "NEXT_STEP", AutoresetMode.NEXT_STEP):
        assert make(mode=name).metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    with pytest.raises(ValueError, match="'next_step', 'same_step', 'disabled', got 'sometimes'"):
        make(mode="sometimes")


def test_metadata_belongs_to_the_instance():
    one, other = make(mode="same_step"), make(mode="disabled")
    one.metadata["render_fps"] = 1
    assert other.metadata["render_fps"] == 10 and RsimVectorEnv.metadata["render_fps"] == 50
    assert other.metadata["autoreset_mode"] is AutoresetMode.DISABLED and other.metadata["jax"] is True
    assert one.dt == 0.1 and one.max_episode_steps == 4


@pytest.mark.parametrize("mode", MODES)
def test_shapes_and_dtypes_for_all_kinds_of_action(mode):
    envs = make(mode=mode)
    envs.reset(seed=0)
    base = np.linspace(-1, 1, 5)[:, None]
    kinds = [base.astype(np.float32), base, base.tolist(), base * 3, jnp.asarray(base), base.astype(int)]
    for action in kinds[:4] if mode == "disabled" else kinds:
        obs, reward, terminated, truncated, _ = envs.step(action)
        assert obs.shape == (5, 2) and obs.dtype == np.float32 and envs.observation_space.contains(obs)
        assert reward.shape == terminated.shape == truncated.shape == (5,)
        assert reward.dtype == np.float32 and terminated.dtype == truncated.dtype == np.bool_


@pytest.mark.parametrize("action", [np.zeros((4, 1)), np.zeros(5), np.zeros((5, 2)), [["a"]] * 5, np.zeros((1, 5, 1))])
def test_wrong_actions_are_refused(action):
    envs = make()
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"\(5, 1\)"):
        envs.step(action)


@pytest.mark.parametrize("worlds", [0, -3, 2.5, "8", True])
def test_bad_numbers_of_worlds_are_refused(worlds):
    with pytest.raises(ValueError, match=r"num_envs must be a whole number of at least 1, got"):
        make(worlds)


def test_other_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="output is 'numpy' or 'jax', got 'torch'"):
        make(output="torch")
    with pytest.raises(ValueError, match="one limit for each of 5 worlds, got 2"):
        make(limit=[3, 4])
    with pytest.raises(ValueError, match="max_episode_steps must be a whole number of at least 1, got 0"):
        make(limit=0)
    with pytest.raises(ValueError, match="render_mode is None or 'rgb_array', got 'human'"):
        make(render_mode="human")
    with pytest.raises(ValueError, match=r"render_env_ids must lie in 0 \.\.\. 4, got 5"):
        make(render_env_ids=[5])
    with pytest.raises(ValueError, match="from 0 to 2\\^64 - 1, got -1"):
        make().reset(seed=[-1] * 5)


def test_order_of_calls():
    envs = make()
    with pytest.raises(ResetNeeded, match="call reset"):
        envs.step(np.zeros((5, 1)))
    envs.reset(seed=0)
    envs.close()
    envs.close()
    assert envs.closed
    for call in (lambda: envs.step(np.zeros((5, 1))), envs.reset):
        with pytest.raises(ClosedEnvironmentError, match="closed"):
            call()


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_returned_arrays_are_the_callers(mode):
    """Arrays of 20 steps equal copies taken at once, and writing into them changes nothing that follows."""
    envs, clean = make(mode=mode), make(mode=mode)
    first, reference = envs.reset(seed=1)[0], clean.reset(seed=1)[0]
    kept = [([first], [first.copy()])]
    for t in range(20):
        action = np.full((5, 1), 0.1 * np.sin(t))
        result = envs.step(action)
        expected = clean.step(action)
        arrays = jax.tree.leaves(result)
        for a, b in zip(arrays, jax.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.flags.writeable and a.base is None
        kept.append((arrays, [a.copy() for a in arrays]))
        result[0][:] = 1e9
        kept[-1][1][0][:] = 1e9
    for arrays, copies in kept:
        for a, c in zip(arrays, copies, strict=True):
            np.testing.assert_array_equal(a, c)
    assert reference.max() < 1


def test_device_output_stays_on_the_device():
    envs = make(output="jax")
    with jax.transfer_guard_device_to_host("disallow"):
        obs, info = envs.reset(seed=0)
        for _ in range(6):
            obs, reward, _, _, info = envs.step(jnp.zeros((5, 1)))
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves((obs, reward, info)))


@pytest.mark.parametrize("kind", [np.array, jnp.array])
def test_reset_mask_is_read_and_left(kind):
    envs = make(mode="disabled", limit=100)
    envs.reset(seed=0)
    before = envs.step(np.ones((5, 1)))[0]
    options = {"reset_mask": kind([True, False, True, False, False])}
    obs, info = envs.reset(options=options)
    assert "reset_mask" in options
    assert (obs[[0, 2], 1] == 0).all() and (obs[[1, 3, 4]] == before[[1, 3, 4]]).all()
    assert info["_x"].tolist() == [True, False, True, False, False]


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True] * 5, TypeError),
        (np.ones(5, int), TypeError),
        (np.ones(4, bool), ValueError),
        (np.zeros(5, bool), ValueError),
    ],
)
def test_bad_reset_masks_are_refused(mask, error):
    envs = make()
    envs.reset(seed=0)
    with pytest.raises(error, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})


def test_reset_mask_with_a_seed_starts_the_chosen_worlds_as_that_seed_does():
    envs = make()
    wanted = envs.reset(seed=9)[0]
    envs.reset(seed=0)
    obs = envs.reset(seed=9, options={"reset_mask": np.array([False, True, False, False, True])})[0]
    np.testing.assert_array_equal(obs[[1, 4]], wanted[[1, 4]])
    assert (obs[[0, 2, 3], 0] != wanted[[0, 2, 3], 0]).all()


def test_a_bad_action_is_that_worlds_fault_only():
    envs, clean = make(mode="same_step", limit=50), make(mode="same_step", limit=50)
    envs.reset(seed=2), clean.reset(seed=2)
    for t in range(6):
        action = np.full((5, 1), 0.2)
        expected = clean.step(action)
        action[3] = np.nan if t == 2 else 0.2
        obs, reward, terminated, _, info = envs.step(action)
        assert np.isfinite(obs).all() and np.isfinite(reward).all()
        others = [0, 1, 2, 4]
        np.testing.assert_array_equal(obs[others], expected[0][others])
        assert terminated.tolist() == [False, False, False, t == 2, False]
        assert info["final_info"]["not_finite"][3] == (t == 2)
    assert obs[3, 1] == 3  # went on as a new episode


def test_info_keys_and_shapes_never_change():
    envs = make(mode="same_step")
    envs.reset(seed=0)
    layouts = {jax.tree.structure((r := envs.step(np.zeros((5, 1))))[4]) for _ in range(10)}
    assert len(layouts) == 1
    assert r[4]["pair"].shape == (5, 2) and r[4]["final_obs"].shape == (5, 2)
    assert not any("episode" in key for key in r[4])


def test_call_and_attributes():
    envs = make()
    assert envs.get_attr("scale") == (0.5,) * 5 and envs.call("dt") == (0.1,) * 5
    envs.set_attr("label", "a")
    assert envs.label == "a" and envs.get_attr("label") == ("a",) * 5
    envs.set_attr("label", ["b"] * 5)
    assert envs.label == "b"
    envs.set_attr("scale", 0.01)  # a parameter of the task
    assert np.abs(envs.reset(seed=0)[0][:, 0]).max() <= 0.01
    with pytest.raises(ValueError, match="2 values for 5"):
        envs.set_attr("label", ["a", "b"])
    with pytest.raises(ValueError, match="give one value"):
        envs.set_attr("label", list("abcde"))
    assert envs.call("render") == (None,) * 5


def test_pickling_rebuilds_the_environment():
    envs = make(mode="same_step", episode_statistics=True)
    copy = pickle.loads(pickle.dumps(envs))
    np.testing.assert_array_equal(copy.reset(seed=3)[0], envs.reset(seed=3)[0])
    assert copy.autoreset_mode is AutoresetMode.SAME_STEP and copy.episode_statistics and copy.max_episode_steps == 4


def test_one_compilation_per_number_of_worlds():
    programs = (outputs.finish_with, outputs.begun)
    for program in programs:
        program.clear_cache()
    for worlds in (3, 7):
        for _ in range(2):  # a second environment of the same task compiles nothing
            envs = make(worlds)
            envs.reset(seed=0)
            for t in range(12):
                envs.step(np.zeros((worlds, 1), np.float32 if t % 2 else np.float64))
                if t % 5 == 0:
                    envs.reset()
    assert [program._cache_size() for program in programs] == [2, 2]


@pytest.mark.parametrize(
    "wrap",
    [
        wrappers.RecordEpisodeStatistics,
        wrappers.NormalizeObservation,
        wrappers.NormalizeReward,
        wrappers.ClipAction,
        lambda e: wrappers.ClipReward(e, -0.5, 0.5),
        wrappers.FlattenObservation,
        lambda e: wrappers.DtypeObservation(e, np.float64),
        wrappers.DictInfoToList,
        lambda e: wrappers.RescaleAction(e, -2.0, 2.0),
    ],
)
def test_gymnasium_wrappers_work(wrap):
    envs = wrap(make())
    envs.reset(seed=0)
    for _ in range(12):
        result = envs.step(envs.action_space.sample())
        assert len(result[0]) == 5


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_statistics_over_converted_device_output(mode):
    pytest.importorskip("array_api_compat")  # optional in Gymnasium
    envs = wrappers.RecordEpisodeStatistics(wrappers.JaxToNumpy(make(mode=mode, output="jax")))
    envs.reset(seed=0)
    lengths = []
    for _ in range(12):
        *_, info = envs.step(np.zeros((5, 1), np.float32))
        lengths += info["episode"]["l"][info["_episode"]].tolist() if "episode" in info else []
    assert lengths and set(lengths) == {4}


def test_masked_reset_keeps_the_statistics_of_other_worlds():
    envs = wrappers.RecordEpisodeStatistics(make(2, limit=100))
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(np.zeros((2, 1)))
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert envs.episode_lengths.tolist() == [0, 3]


def test_the_spec_is_json_and_makes_the_same_environment():
    envs = gym.make_vec("rsim/InvertedPendulum-v5", num_envs=2, autoreset_mode="same_step", output="jax")
    text = envs.unwrapped.spec.to_json()
    assert json.loads(text)["kwargs"]["autoreset_mode"] == "same_step"
    again = gym.make_vec(type(envs.unwrapped.spec).from_json(text), num_envs=2).unwrapped
    assert again.autoreset_mode is AutoresetMode.SAME_STEP and again.output == "jax"
