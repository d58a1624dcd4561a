"""`rsim list` and `rsim inspect` say what is true, checked against MuJoCo and Gymnasium."""

from __future__ import annotations

import gymnasium
import mujoco
import pytest

from rsim_jax.cli import inspect
from rsim_jax.cli import list as listing
from rsim_jax.cli.arguments import model_path

ROBOT = """<mujoco model="cart">
  <option timestep="0.004" gravity="0 0 -3" integrator="implicitfast" cone="elliptic" solver="CG"/>
  <default><geom solref="0.05 0.9"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="cart" pos="0 0 1">
      <joint name="rail" type="slide" axis="1 0 0" range="-1.5 1.5" limited="true" damping="0.25"/>
      <geom type="box" size=".2 .1 .1" mass="2"/>
      <body name="pole" pos="0 0 .1">
        <joint name="swing" type="hinge" axis="0 1 0" frictionloss="0.1"/>
        <geom type="sphere" size=".1" pos="0 0 .6" mass="0.5"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="rail" gear="20" ctrlrange="-3 3" ctrllimited="true"/></actuator>
</mujoco>"""


@pytest.fixture
def cart(tmp_path):
    path = tmp_path / "cart.xml"
    path.write_text(ROBOT)
    return path


def lines(capsys) -> list[list[str]]:
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_inspect_shows_every_part_and_what_is_not_used(cart, capsys):
    assert inspect.main([str(cart)]) == 0
    text = capsys.readouterr().out
    words = [line.split() for line in text.splitlines()]
    assert "nq 2, nv 2, nu 1, bodies 3, joints 2, geoms 3, mass 2.5 kg" in text
    assert ["2", "pole", "cart", "0.5", "sphere"] in words
    assert ["0", "rail", "slide", "cart", "-1.5", "...", "1.5", "0.25", "0"] in words
    assert ["1", "swing", "hinge", "pole", "-", "0", "0"] in words
    assert ["0", "push", "rail", "1", "20", "-3", "...", "3"] in words
    assert ["plane_box", "1", "8"] in words and ["plane_sphere", "1", "1"] in words and ["all", "2", "9"] in words
    assert "1 joint limits, 1 joint frictions" in text
    assert "timestep = 0.004 s" in text and "gravity = 0 0 -3 m/s^2" in text
    unused = text[text.index("read and not used") :]
    assert "integrator = implicitfast" in unused and "solver = cg" in unused and "cone = elliptic" in unused
    assert "0.05 0.9" in unused and "bytes of state per world" in unused


def test_inspect_passes_refusals_on(capsys):
    assert inspect.main(["swimmer"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "fluid forces are not simulated" in err
    assert inspect.main(["swimmer", "--ignore", "fluid"]) == 0
    capsys.readouterr()
    assert inspect.main(["swimmer", "--ignore", "fluid,magic"]) == 1
    assert "unknown kind 'magic'" in capsys.readouterr().err


def test_list_has_every_task_with_gymnasium_s_sizes(capsys):
    assert listing.main([]) == 0
    rows = {words[0]: words for words in lines(capsys) if words and words[0].startswith("rsim/")}
    assert len(rows) >= 7
    for name, words in rows.items():
        theirs = gymnasium.make(name.removeprefix("rsim/"))
        obs, act = theirs.observation_space.shape[0], theirs.action_space.shape[0]
        limit, skip = theirs.spec.max_episode_steps, theirs.unwrapped.frame_skip
        theirs.close()
        assert [int(word.replace(",", "")) for word in words[1:]] == [obs, act, limit, skip]


def test_list_has_the_presets_and_the_pairs(capsys):
    assert listing.main([]) == 0
    out = lines(capsys)
    assert ["hopper"] in out and ["capsule", "capsule", "2"] in out and ["plane", "box", "8"] in out
    assert ["mesh", "mesh", "4"] in out and ["box", "box", "4", "(up", "to", "8)"] in out
    assert not any(words[:2] == ["plane", "plane"] for words in out)
    assert listing.main(["everything"]) == 2


def test_mass_is_mujoco_s(capsys):
    assert inspect.main(["hopper"]) == 0
    mass = mujoco.MjModel.from_xml_path(str(model_path("hopper"))).body_mass.sum()
    assert f"mass {mass:.6g} kg" in capsys.readouterr().out
