"""Whatever has an effect and is not simulated is refused by name, all at once, unless it is ignored knowingly."""

from __future__ import annotations

import pytest

from rsim_jax.errors import ModelError
from rsim_jax.modeling import load

BALL = '<body name="b"><freejoint/><geom name="g" size=".1"/></body>'
HINGE = '<body name="b"><joint name="h"/><geom name="g" size=".1"/></body>'
FLOOR = '<geom name="floor" type="plane" size="1 1 1"/>'
MESH = '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'

CASES = {  # kind: (world, rest, what the message names)
    "tendon": (
        HINGE,
        '<tendon><fixed name="cord" stiffness="2" damping="1"><joint joint="h" coef="1"/></fixed></tendon>',
        'tendon "cord": stiffness, damping',
    ),
    "equality": (
        HINGE,
        '<tendon><fixed name="t"><joint joint="h" coef="1"/></fixed></tendon>'
        '<equality><tendon name="peg" tendon1="t"/></equality>',
        'equality "peg": tendon constraint',
    ),
    "fluid": (BALL, '<option density="1.2" viscosity="0.1"/>', "option: density 1.2, viscosity 0.1"),
    "gravcomp": (
        '<body name="b" gravcomp="1"><freejoint/><geom size=".1"/></body>',
        "",
        'body "b": gravcomp 1',
    ),
    "limit": ('<body><joint name="j" type="ball" range="0 30"/><geom size=".1"/></body>', "", 'joint "j": range 0.52'),
    "spring": ('<body><joint name="j" stiffness="1 2"/><geom size=".1"/></body>', "", 'joint "j": nonlinear'),
    "mesh": (
        FLOOR + '<body><freejoint/><geom name="g" type="mesh" mesh="ball"/></body>',
        '<asset><mesh name="ball" builtin="sphere" params="4"/></asset>',
        'geom "g": its convex hull has',
    ),
    "hfield": (
        '<geom name="hills" type="hfield" hfield="f"/>' + BALL,
        '<asset><hfield name="f" nrow="300" ncol="4" size="1 1 1 1"/></asset>',
        'geom "hills": 34 cells across under geom "g", at most 24',
    ),
    "friction": (
        FLOOR + BALL,
        '<contact><pair name="p" geom1="floor" geom2="g" friction="1 .5 0 0 0"/></contact>',
        'pair "p": friction 1, 0.5',
    ),
    "adhesion": (
        FLOOR + '<body><freejoint/><geom name="g" size=".1" adhesion="3"/></body>',
        "",
        "adhesion 3 N",
    ),
    "surfacevel": (
        '<body><freejoint/><geom name="g" size=".1" surfacevel="1 0 0 0 0 0"/></body>',
        "",
        'geom "g": surfacevel',
    ),
    "override": (BALL, '<option><flag override="enable"/></option>', "override="),
    "actuator": (
        HINGE,
        '<actuator><general name="m" joint="h" dyntype="filter" dynprm="1"/></actuator>',
        'actuator "m": activation dynamics',
    ),
    "keyframe": (
        '<body mocap="true"><geom size=".1"/></body>',
        '<keyframe><key name="k" mpos="1 2 3"/></keyframe>',
        'key "k": mpos',
    ),
    "flex": (
        '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" radius=".01" mass="1">'
        '<edge equality="true"/></flexcomp>',
        "",
        'flex "cloth"',
    ),
}  # fmt: skip


def document(world: str, rest: str) -> str:
    return f"<mujoco>{rest}<worldbody>{world}</worldbody></mujoco>"


@pytest.mark.parametrize("kind", CASES)
def test_an_unsupported_element_is_named_and_can_be_ignored(kind):
    world, rest, expected = CASES[kind]
    with pytest.raises(ModelError) as caught:
        load(document(world, rest))
    message = str(caught.value)
    assert expected in message and f"ignore=({kind!r},)" in message and message.startswith("XML text: ")
    load(document(world, rest), ignore=(kind,))


@pytest.mark.parametrize(
    ("actuator", "reason"),
    [
        ('<motor name="m" tendon="t"/>', "transmission to a tendon"),
        ('<motor name="m" site="s"/>', "transmission to a site"),
        ('<motor name="m" joint="f"/>', "acts on joint"),
        ('<intvelocity name="m" joint="h" kp="1" actrange="-1 1"/>', "activation dynamics"),
        ('<damper name="m" joint="h" kv="1" ctrlrange="0 1"/>', "gain of type affine"),
        ('<muscle name="m" joint="h" lengthrange="0 1"/>', "activation dynamics"),
        ('<position name="m" joint="h" delay="0.1" nsample="10"/>', "delay"),
    ],
)
def test_actuators_that_are_not_affine_in_one_joint_are_refused(actuator, reason):
    world = HINGE + '<body><joint name="f" type="ball"/><geom size=".1"/><site name="s"/></body>'
    rest = f'<tendon><fixed name="t"><joint joint="h" coef="1"/></fixed></tendon><actuator>{actuator}'
    text = document(world, rest + '<motor name="good" joint="h"/></actuator>')
    with pytest.raises(ModelError, match=f'actuator "m": .*{reason}'):
        load(text)
    model = load(text, ignore=("actuator",))
    assert model.topology.actuator_names == ("good",) and model.actuator_gain.shape == (1, 1)


def test_all_refusals_of_a_file_come_in_one_message_a_line_each(tmp_path):
    file = tmp_path / "robot.xml"
    body = '<body name="b" gravcomp="1"><joint name="h" stiffness="1 2"/><geom size=".1"/></body>'
    file.write_text(document(body, '<option density="3"/>' + CASES["tendon"][1]))
    with pytest.raises(ModelError) as caught:
        load(file)
    lines = str(caught.value).splitlines()
    assert len(lines) == 4 and all(line.startswith("robot.xml: ") for line in lines)
    with pytest.raises(ModelError) as caught:
        load(file, ignore=("fluid", "tendon"))
    assert [kind in str(caught.value) for kind in ("gravcomp", "nonlinear", "density", "cord")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("world", "rest"),
    [
        (HINGE, '<tendon><fixed><joint joint="h" coef="1"/></fixed></tendon>'),
        (BALL, '<equality><connect body1="b" anchor="0 0 0" active="false"/></equality>'),
        (FLOOR + '<body><freejoint/><geom type="mesh" mesh="m" contype="0" conaffinity="0"/></body>', MESH),
        ('<geom type="mesh" mesh="m"/>' + FLOOR, MESH),
        (
            '<geom type="plane" size="1 1 1" friction="1 0 0"/>'
            '<body><freejoint/><geom size=".1" condim="6" friction="1 0 0"/></body>',
            "",
        ),
        (BALL, '<option wind="1 2 3" magnetic="1 0 0" integrator="implicit" cone="elliptic" solver="CG"/>'),
        ('<body gravcomp="1"><freejoint/><geom size=".1"/></body>', '<option gravity="0 0 0"/>'),
        (HINGE, '<sensor><jointpos joint="h"/></sensor>'),
        (BALL, '<custom><numeric name="n" data="1 2"/></custom>'),
    ],
    ids=["tendon", "equality", "visual mesh", "static mesh", "condim", "options", "weightless", "sensor", "custom"],
)  # fmt: skip
def test_an_element_without_effect_loads(world, rest):
    assert load(document(world, rest)).topology.source == "XML text"


def test_an_unknown_kind_to_ignore_lists_the_kinds():
    with pytest.raises(ModelError, match=r"unknown kind 'tendons'; there are: tendon, equality"):
        load(document(BALL, ""), ignore=("tendons",))
    load(document(BALL, ""), ignore="tendon")  # one kind without a tuple
