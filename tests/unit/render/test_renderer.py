"""Pictures: sizes, intrinsics, depth, freshness, cameras, and no display."""

from __future__ import annotations

import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest

from rsim_jax.render import Renderer

BALL = """
<mujoco>
  <visual><headlight ambient="0.5 0.5 0.5"/></visual>
  <worldbody>
    <light pos="0 0 4"/>
    <geom type="plane" size="3 3 .1" rgba=".3 .3 .3 1"/>
    <camera name="front" pos="0 -3 0.6" xyaxes="1 0 0 0 0 1"/>
    <camera name="near" pos="0 -1 0.6" xyaxes="1 0 0 0 0 1"/>
    <body name="ball" pos="-0.5 0 0.2"><freejoint/><geom type="sphere" size=".2" rgba="1 0 0 1"/></body>
  </worldbody>
</mujoco>"""

TARGET = """
<mujoco>
  <statistic extent="1"/><visual><map znear="0.01"/></visual>
  <worldbody>
    <camera name="eye" pos="0 0 0" xyaxes="1 0 0 0 0 1" fovy="45"/>
    <body pos="0 2 0"><freejoint/><geom type="sphere" size="0.1" rgba="1 0 0 1"/></body>
  </worldbody>
</mujoco>"""


def redness(picture: np.ndarray) -> np.ndarray:
    """Pixels that are mostly red."""
    r, g, b = np.moveaxis(picture.astype(int), -1, 0)
    return (r > 60) & (r > 2 * g) & (r > 2 * b)


@pytest.fixture(scope="module")
def ball() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(BALL)


def test_pictures_have_the_size_asked_for(ball):
    q = ball.qpos0[:, None]
    with Renderer(ball, 360, 240, "front") as large, Renderer(ball, 64, 48, "near") as small:
        for renderer, shape in ((large, (240, 360)), (small, (48, 64)), (large, (240, 360))):
            (picture,), (depth,) = renderer.frames(q), renderer.depth(q)
            assert picture.shape == (*shape, 3) and picture.dtype == np.uint8
            assert depth.shape == shape and depth.dtype == np.float32


def test_larger_than_the_model_s_own_buffer(ball):
    with Renderer(ball, ball.vis.global_.offwidth + 100, 500) as renderer:
        assert renderer.frames(ball.qpos0[:, None])[0].shape == (500, ball.vis.global_.offwidth + 100, 3)


def test_focal_length_follows_the_field_of_view():
    model = mujoco.MjModel.from_xml_string(TARGET)
    with Renderer(model, 360, 240, "eye") as renderer:
        (picture,), (depth,) = renderer.frames(model.qpos0[:, None]), renderer.depth(model.qpos0[:, None])
    red = redness(picture)
    width = red.any(axis=0).sum()
    # outline of a sphere: tan(asin(r / d)) against tan(fovy / 2) over half the height
    expected = 2 * 120 * np.tan(np.arcsin(0.1 / 2)) / np.tan(np.deg2rad(22.5))
    assert abs(expected - 29.0) < 0.1
    assert abs(width - expected) <= 1.5
    assert depth[120, 180] == pytest.approx(1.9, abs=2e-3)
    rows, columns = np.nonzero(red)
    assert abs(rows.mean() - 119.5) < 1 and abs(columns.mean() - 179.5) < 1


def test_depth_is_along_the_axis_not_the_ray():
    wall = '<mujoco><worldbody><camera name="eye" xyaxes="1 0 0 0 0 1"/><geom type="box" size="9 .5 9" pos="0 2.5 0"/>'
    model = mujoco.MjModel.from_xml_string(wall + "</worldbody></mujoco>")
    with Renderer(model, 80, 60, "eye") as renderer:
        (depth,) = renderer.depth(np.zeros((0, 1)))
    np.testing.assert_allclose(depth, 2.0, atol=5e-3)


@pytest.mark.parametrize("worlds", [1, 4])
def test_the_first_frame_after_a_reset_is_the_reset_state(ball, worlds):
    start = np.repeat(ball.qpos0[:, None], worlds, axis=1)
    end = start.copy()
    end[0] = 0.5
    with Renderer(ball, 96, 64, "front") as used, Renderer(ball, 96, 64, "front") as fresh:
        before = used.frames(end)
        after, reference = used.frames(start), fresh.frames(start)
    for i in range(worlds):
        assert np.abs(after[i].astype(int) - reference[i]).max() <= 1
        assert np.nonzero(redness(after[i]))[1].mean() < 40 < 56 < np.nonzero(redness(before[i]))[1].mean()


def test_each_world_is_drawn_from_its_own_state(ball):
    q = np.repeat(ball.qpos0[:, None], 3, axis=1)
    q[0] = (-0.5, 0.0, 0.5)
    with Renderer(ball, 96, 64, "front") as renderer:
        left, middle, right = (np.nonzero(redness(f))[1].mean() for f in renderer.frames(q))
    assert left < middle - 5 < right - 10


def test_without_a_named_camera_the_view_follows_a_floating_body(ball):
    q = np.repeat(ball.qpos0[:, None], 2, axis=1)
    q[:2, 1] = 1.5
    with Renderer(ball, 96, 64) as renderer:
        centres = [np.mean(np.nonzero(redness(f)), axis=1) for f in renderer.frames(q)]
    np.testing.assert_allclose(centres[0], centres[1], atol=1.0)


def test_kinematic_bodies_are_drawn_where_they_are():
    xml = """<mujoco><worldbody><camera name="eye" pos="0 -2 0" xyaxes="1 0 0 0 0 1"/>
      <body name="paddle" mocap="true"><geom type="sphere" size=".1" rgba="1 0 0 1"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    position = np.zeros((3, 1, 2))
    position[0, 0] = (-0.4, 0.4)
    with Renderer(model, 96, 64, "eye") as renderer:
        frames = renderer.frames(np.zeros((0, 2)), position, np.tile([[[1.0]], [[0]], [[0]], [[0]]], (1, 1, 2)))
    left, right = (np.nonzero(redness(f))[1].mean() for f in frames)
    assert left < 40 and right > 56


def test_bad_requests_say_what_is_wrong(ball):
    with pytest.raises(ValueError, match=r"no camera 'back'; it has: front, near"):
        Renderer(ball, 32, 32, "back")
    with pytest.raises(ValueError, match="at least one pixel"):
        Renderer(ball, 0, 32)
    with Renderer(ball, 32, 32) as renderer:
        with pytest.raises(ValueError, match=r"q must have shape \(7, N\), got \(3, 2\)"):
            renderer.frames(np.zeros((3, 2)))
        q = np.repeat(ball.qpos0[:, None], 3, axis=1)
        q[1, 1] = np.nan
        with pytest.raises(ValueError, match="q of world 1 is not finite"):
            renderer.frames(q)
    with pytest.raises(ValueError, match="closed"):
        renderer.frames(ball.qpos0[:, None])


RED_BOX = """
import mujoco, numpy as np
from rsim_jax.render import Renderer
xml = '''<mujoco><worldbody><light pos="0 -2 1" dir="0 1 -.3"/><camera name="eye" pos="0 -2 0" xyaxes="1 0 0 0 0 1"/>
<geom type="box" size=".3 .3 .3" rgba="1 0 0 1"/></worldbody></mujoco>'''
for _ in range(2):
    renderer = Renderer(mujoco.MjModel.from_xml_string(xml), 64, 48, "eye")
    picture, = renderer.frames(np.zeros((0, 1)))
    r, g, b = picture[24, 32].astype(int)
    assert r > 60 and r > 2 * g and r > 2 * b, picture[24, 32]
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 1
print("drawn")
"""


def run_without_display(code: str, **extra: str) -> subprocess.CompletedProcess:
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM")
    environment = {k: v for k, v in os.environ.items() if k not in hidden} | extra
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)


def test_draws_without_a_display_in_a_fresh_process_and_ends_silently():
    done = run_without_display(RED_BOX)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "drawn\n"
    assert done.stderr == ""  # nothing at interpreter exit, though no renderer was closed


@pytest.mark.parametrize("name", ["osmesa", "glfw", "nonsense"])
def test_a_backend_asked_for_draws_or_is_refused_by_name(name):
    choose_first = "from rsim_jax.render import backend; backend.choose()\n"
    done = run_without_display(choose_first + RED_BOX, MUJOCO_GL=name)
    if done.returncode == 0:
        assert done.stdout == "drawn\n"
    else:
        last = done.stderr.strip().splitlines()[-1]
        assert name in last and ("RenderError" in last or "invalid value" in last)  # the latter is MuJoCo's own


def test_importing_needs_no_display_and_loads_no_opengl():
    code = "import rsim_jax.render, sys; print(sorted(m for m in sys.modules if m.split('.')[0] == 'OpenGL'))"
    done = run_without_display(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
