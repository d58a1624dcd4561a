"""The seven tasks against Gymnasium's own environments at the same states.

Our physics makes the states; Gymnasium's environment is put into each of them (`mj_forward`), is told our contact
forces, and its own code computes observation, reward and end.
"""

from __future__ import annotations

import functools
import inspect

import gymnasium as gym
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from gymnasium.envs.mujoco.humanoid_v5 import mass_center

import rsim_jax as rsim
import rsim_jax.envs
from rsim_jax.envs import RsimVectorEnv, make
from rsim_jax.envs.core import world_keys
from rsim_jax.envs.registry import TASKS

NAMES = list(TASKS)
WORLDS = 3
STEPS = {"Ant-v5": 12, "Humanoid-v5": 12}  # long enough to land


@pytest.fixture(scope="module", params=NAMES)
def episode(request):
    """(name, task, state before the last step, state after it, its action), float32 as shipped."""
    envs = RsimVectorEnv(request.param, WORLDS, autoreset_mode="disabled", output="jax")
    envs.reset(seed=1)
    envs.action_space.seed(1)
    for _ in range(STEPS.get(request.param, 4)):
        before, action = envs.state, envs.action_space.sample()
        envs.step(action)
    return request.param, envs.task, before.task, envs.state.task, action


def position_of(env):
    """What Gymnasium's class differentiates to get its velocity."""
    match type(env).__name__:
        case "AntEnv":
            return env.data.body(1).xpos[:2].copy()
        case "HumanoidEnv":
            return mass_center(env.model, env.data)
        case _:
            return env.data.qpos[:1].copy()


def push_contacts(env, report, world):
    """Our contact forces as forces on MuJoCo's bodies: the same cfrc_ext, computed by MuJoCo's own code."""
    model, data = env.model, env.data
    data.xfrc_applied[:] = 0
    for k in np.flatnonzero(np.asarray(report.valid)[:, world]):
        force = np.asarray(report.contact_force, float)[:, k, world]
        point = np.asarray(report.contact_point, float)[:, k, world]
        for body, sign in ((report.body_b[k, world], 1), (report.body_a[k, world], -1)):
            if body > 0:
                arm = point - data.xipos[body]
                data.xfrc_applied[body] += sign * np.concatenate([force, np.cross(arm, force)])
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)


def gymnasium_step(env, before, after, action, report, world):
    """(obs, reward, terminated, info) of Gymnasium's code for the step from `before` to `after`."""
    env.set_state(np.asarray(before.q, float)[:, world], np.asarray(before.qd, float)[:, world])
    start = position_of(env)
    env.data.ctrl[:] = action
    env.set_state(np.asarray(after.q, float)[:, world], np.asarray(after.qd, float)[:, world])
    push_contacts(env, report, world)
    env.do_simulation = lambda *args: None  # the step has been made
    if type(env).__name__ in ("InvertedPendulumEnv", "InvertedDoublePendulumEnv"):
        obs, reward, terminated, _, info = env.step(action)
        return obs, reward, terminated, info
    velocity = (position_of(env) - start) / env.dt
    reward, info = env._get_rew(velocity[0], action)
    info |= (
        env._get_reset_info() | {"x_velocity": velocity[0]} | ({"y_velocity": velocity[1]} if velocity.size > 1 else {})
    )
    healthy = getattr(env, "is_healthy", True)
    return env._get_obs(), reward, not healthy and env._terminate_when_unhealthy, info


def test_step_parity(episode):
    name, task, before, after, action = episode
    report = jax.device_get(rsim.contact_report(task.model, after.physics))
    if name in STEPS:
        assert np.asarray(report.valid).any()  # or the contact terms are not tested
    for world in range(WORLDS):
        env = gym.make(name).unwrapped
        env.reset(seed=0)
        obs, reward, terminated, info = gymnasium_step(env, before.physics, after.physics, action[world], report, world)
        scale = 1 + np.abs(obs)
        np.testing.assert_allclose(np.asarray(after.obs)[:, world] / scale, obs / scale, atol=2e-4)
        np.testing.assert_allclose(after.reward[world], reward, atol=2e-3, rtol=1e-4)
        assert bool(after.terminated[world]) == bool(terminated)
        ours = after.terms | after.info
        assert set(info) | {"not_finite"} == set(ours)
        for key, value in info.items():
            np.testing.assert_allclose(ours[key][..., world], value, atol=2e-3, rtol=1e-4, err_msg=key)


@pytest.mark.parametrize("name", NAMES)
def test_spaces_and_registration_parity(name):
    ours, theirs = gym.make(f"rsim/{name}"), gym.make(name)
    assert ours.observation_space.shape == theirs.observation_space.shape
    np.testing.assert_array_equal(ours.observation_space.low, theirs.observation_space.low)
    assert ours.action_space == theirs.action_space
    assert ours.spec.max_episode_steps == theirs.spec.max_episode_steps == 1000
    assert ours.spec.reward_threshold == theirs.spec.reward_threshold
    assert ours.unwrapped.metadata["render_fps"] == theirs.unwrapped.metadata["render_fps"]
    np.testing.assert_allclose(ours.unwrapped.dt, theirs.unwrapped.dt, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_and_defaults_are_gymnasiums(name):
    theirs = inspect.signature(type(gym.make(name).unwrapped).__init__).parameters
    task = make(name)
    for key, parameter in theirs.items():
        if key in ("self", "kwargs", "default_camera_config"):
            continue
        assert getattr(task, key) == parameter.default, key


@functools.partial(jax.jit, static_argnames="worlds")
def drawn(task, worlds):
    """Starts of that many worlds."""
    return task.initial(world_keys(jax.random.key(0), worlds))


@pytest.mark.parametrize("name", NAMES)
def test_reset_parity(name):
    """Starts are spread as Gymnasium's: same bounds and deviations, entry by entry."""
    task = make(name)
    env = gym.make(name).unwrapped
    starts = drawn(task, 4000)
    theirs = []
    for seed in range(300):
        env.reset(seed=seed)
        theirs.append((env.data.qpos - env.init_qpos, env.data.qvel.copy()))
    rests = (env.init_qpos, env.init_qvel)
    for ours, other, rest in zip(starts, zip(*theirs, strict=True), rests, strict=True):
        ours, other = np.asarray(ours) - rest[:, None], np.array(other).T
        if name in ("Ant-v5", "Humanoid-v5") and len(rest) == env.model.nq:
            ours, other = ours[7:], other[7:]  # the free joint has a test of its own
        np.testing.assert_allclose(ours.std(axis=1), other.std(axis=1), rtol=0.25)
        assert np.abs(ours.mean(axis=1)).max() < 0.2 * other.std()
        # the largest of many draws is 1.7 deviations for uniform noise and over 3 for normal noise
        assert (np.abs(ours).max() / ours.std() < 1.8) == (np.abs(other).max() / other.std() < 1.8)


@pytest.mark.parametrize("name", ["Ant-v5", "Humanoid-v5"])
def test_free_starts_are_unit_and_near_gymnasiums(name):
    """Gymnasium leaves the noisy quaternion as it is and MuJoCo normalises it in use; ours is normalised."""
    task = make(name)
    q, _ = drawn(task, 500)
    np.testing.assert_allclose(np.linalg.norm(np.asarray(q[3:7]), axis=0), 1, atol=1e-6)
    assert np.abs(np.asarray(q[:3] - task.model.default_q[:3])).max() <= task.reset_noise_scale
    assert 0.4 < np.asarray(q[4:7]).std() / (task.reset_noise_scale / np.sqrt(3)) < 1.2


def test_parameters_change_what_they_name():
    """Observation sizes, reward weights and ends follow the keyword arguments, as in Gymnasium."""
    variants = [
        ("Ant-v5", {"include_cfrc_ext_in_observation": False}),
        ("Ant-v5", {"exclude_current_positions_from_observation": False}),
        ("Humanoid-v5", {"include_cinert_in_observation": False, "include_cfrc_ext_in_observation": False}),
        ("Humanoid-v5", {"include_cvel_in_observation": False, "include_qfrc_actuator_in_observation": False}),
        ("Hopper-v5", {"exclude_current_positions_from_observation": False}),
        ("Walker2d-v5", {"exclude_current_positions_from_observation": False}),
        ("HalfCheetah-v5", {"exclude_current_positions_from_observation": False}),
    ]
    for name, params in variants:
        assert make(name, **params).observation_size == gym.make(name, **params).observation_space.shape[0], params


@jax.jit
def judge(task, rest, q, qd):
    """Which worlds end, when put at q (nq, N) and qd (nv, N)."""
    state = rest.replace(q=q, qd=qd)
    return task.outcome(task.model, state, state, jnp.zeros((task.action_size, q.shape[1]), task.dtype)).terminated


def ends(task, q, qd):
    """The same for rows of states, as NumPy has them."""
    rest = rsim.make_state(task.model, len(q))
    return judge(task, rest, jnp.asarray(np.array(q).T, task.dtype), jnp.asarray(np.array(qd).T, task.dtype)).tolist()


@pytest.mark.parametrize(
    ("name", "entry", "values"),
    [
        ("InvertedPendulum-v5", 1, (0.19, 0.21, -0.21)),
        ("InvertedDoublePendulum-v5", 1, (0.9, 1.2)),
        ("Hopper-v5", 1, (0.71, 0.69)),
        ("Hopper-v5", 2, (0.19, 0.21, -0.21)),
        ("Walker2d-v5", 1, (0.81, 0.79, 2.01)),
        ("Walker2d-v5", 2, (0.99, 1.01, -1.01)),
        ("Ant-v5", 2, (0.21, 0.19, 1.01)),
        ("Humanoid-v5", 2, (1.01, 0.99, 2.01)),
        ("HalfCheetah-v5", 1, (-5.0, 5.0)),
    ],
)
def test_ends_on_both_sides_of_every_bound(name, entry, values):
    env = gym.make(name).unwrapped
    env.reset(seed=0)
    env.do_simulation = lambda *args: None
    rows, terminated = [], []
    for value in values:
        rows.append(env.init_qpos.copy())
        rows[-1][entry] = value
        env.set_state(rows[-1], env.init_qvel)
        terminated.append(bool(env.step(np.zeros(env.model.nu))[2]))
    assert ends(make(name), rows, [env.init_qvel] * len(rows)) == terminated


def test_hopper_ends_when_any_velocity_is_wild():
    task = make("Hopper-v5")
    q, wild = [np.asarray(task.model.default_q)[:, 0]] * 2, [np.zeros(6), np.eye(6)[4] * 101]
    assert ends(task, q, wild) == [False, True]
    assert ends(make("Hopper-v5", terminate_when_unhealthy=False), q, wild) == [False, False]


def test_names_and_bad_parameters():
    for name in ("half_cheetah", "HalfCheetah", "HalfCheetah-v5", "rsim/HalfCheetah-v5"):
        assert rsim_jax.envs.task_id(name) == "HalfCheetah-v5"
    with pytest.raises(ValueError, match=r"no task named 'cheetah'; there are: InvertedPendulum-v5, .*half_cheetah"):
        make("cheetah")
    with pytest.raises(TypeError, match=r"Hopper has no parameter 'speed'; it has: .*healthy_z_range"):
        make("hopper", speed=3)
    with pytest.raises(FileNotFoundError, match=r"no model file .*nothing\.xml"):
        make("hopper", xml_file="nothing.xml")
