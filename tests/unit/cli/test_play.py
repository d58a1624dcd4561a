"""`rsim play` on a task without physics: what is shown, how long, how fast, and what is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import imageio.v3 as iio
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from rsim_jax.cli import play
from rsim_jax.envs.batch import BatchedTask
from rsim_jax.envs.core import TaskState, split_keys, task_class
from rsim_jax.structs import record

BALL = """<mujoco><worldbody><camera name="front" pos="0 -3 0" xyaxes="1 0 0 0 0 1"/>
  <body><joint type="slide" axis="1 0 0"/><geom size=".2" rgba="1 0 0 1"/></body></worldbody></mujoco>"""


class Line:
    """What play reads of the physics."""

    q: Any
    kinematic_position: Any
    kinematic_quaternion: Any


Line = record(Line)


@task_class
class Mover:
    """The action is the step; reward 1; ends beyond x = 1. World i starts at -i / 8."""

    model: Any = None
    dt = 0.01

    def restart(self, keys):
        worlds = keys.shape[0]
        return self._state(-jnp.arange(worlds, dtype=jnp.float32) / 8, split_keys(keys)[0])

    def step(self, state, action):
        return self._state(state.physics.q[0] + action[0], state.key)

    def _state(self, x, key):
        none = jnp.zeros((3, 0, x.shape[0])), jnp.zeros((4, 0, x.shape[0]))
        flag = x != x
        one = jnp.ones_like(x)
        return TaskState(Line(x[None], *none), key, {}, x[None], one, x > 1, {}, {"not_finite": flag})


class Steady:
    """A policy of constant action."""

    action: Any

    def act(self, obs):
        return jnp.full_like(obs, self.action)


Steady = record(Steady)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Plays Mover at a given speed; returns status, standard output and error, and the video's frames and rate."""

    def go(speed: float, limit: int | None, *argv: str):
        monkeypatch.setattr(play, "_load", lambda args: (BatchedTask(Mover(), limit), Steady(jnp.float32(speed))))
        monkeypatch.setattr(play, "_drawn", lambda task: mujoco.MjModel.from_xml_string(BALL))
        status = play.main([str(tmp_path), "--width", "64", "--height", "48", "--camera", "front", *argv])
        out, err = capsys.readouterr()
        video = tmp_path / "play.mp4"
        if not video.exists():
            return SimpleNamespace(status=status, out=out, err=err, path=video)
        frames, rate = iio.imread(video, plugin="FFMPEG"), iio.immeta(video, plugin="FFMPEG")["fps"]
        return SimpleNamespace(status=status, out=out, err=err, path=video, frames=frames, rate=rate)

    return go


def centre(frame: np.ndarray) -> float:
    r, g, b = np.moveaxis(frame.astype(int), -1, 0)
    return float(np.nonzero((r > 60) & (r > 2 * g) & (r > 2 * b))[1].mean())


def test_frames_cover_the_episodes_at_real_time_speed(run):
    played = run(0.02, 30, "--worlds", "3")
    assert played.status == 0 and played.err == ""
    # 30 steps of 10 ms, every 4th shown, the start included: 8 frames at 25 per second; three tiles on a 2 x 2 grid
    assert played.frames.shape == (8, 2 * 48 + 2, 2 * 64 + 2, 3) and played.rate == pytest.approx(25)
    assert centre(played.frames[0, :48, :64]) < centre(played.frames[-1, :48, :64]) - 5
    assert centre(played.frames[0, :48, 66:]) < centre(played.frames[0, :48, :64]) - 1  # world 1 starts to the left
    assert (
        played.out == f"mean return 30.0 (30.0 in 30 steps, 30.0 in 30 steps, 30.0 in 30 steps)\nvideo: {played.path}\n"
    )


def test_a_finished_world_waits_for_the_others(run):
    played = run(0.125, 200, "--worlds", "2")
    assert played.out.startswith("mean return 9.5 (9.0 in 9 steps, 10.0 in 10 steps)")
    assert len(played.frames) == 3  # after 0, 4 and 8 steps


@pytest.mark.parametrize(("steps", "frames"), [(8, 3), (120, 31)])
def test_steps_limit_what_is_shown_and_counted(run, steps, frames):
    played = run(0.0, None, "--worlds", "1", "--steps", str(steps))
    assert played.out.startswith(f"mean return {steps}.0 ({steps}.0 in {steps} steps)")
    assert len(played.frames) == frames


def test_what_cannot_be_played_is_one_line_and_leaves_nothing(run, tmp_path, capsys):
    for argv, words in (
        (["--camera", "rear"], "no camera 'rear'; it has: front"),
        (["--video", str(tmp_path / "out.gif")], "must end in .mp4"),
        (["--video", str(tmp_path / "none" / "out.mp4")], "no folder"),
    ):
        played = run(0.1, 5, *argv)
        assert played.status == 1 and played.out == "" and played.err.count("\n") == 1 and words in played.err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_run_or_a_wrong_number_is_one_line(tmp_path, capsys):
    for argv, status, words in ((["nothing"], 1, "no run folder nothing"), (["x", "--worlds", "0"], 2, "at least 1")):
        assert play.main(argv) == status
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and words in err
