"""From nothing to a video with the two commands a user types, in fresh processes without a display."""

from __future__ import annotations

import os
import subprocess
import sys

import imageio.v3 as iio
import pytest


@pytest.mark.slow
def test_a_trained_run_becomes_a_video_without_a_display(tmp_path):
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}

    def rsim(*argv: str) -> str:
        command = [sys.executable, "-m", "rsim_jax", *argv]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1200)
        assert done.returncode == 0, done.stderr
        return done.stdout

    small = ("--ppo.num_envs", "64", "--ppo.total_steps", "8192", "--log.name", "small", "--log.progress", "False")
    rsim("train", "inverted_pendulum", *small)
    said = rsim("play", "runs/small", "--worlds", "2", "--steps", "40", "--width", "96", "--height", "64")
    assert said.startswith("mean return ") and said.splitlines()[-1] == "video: runs/small/play.mp4"
    frames = iio.imread(tmp_path / "runs" / "small" / "play.mp4", plugin="FFMPEG")
    assert frames.shape[1:] == (64, 2 * 96 + 2, 3)
    assert frames[0].std() > 2  # something is to be seen
