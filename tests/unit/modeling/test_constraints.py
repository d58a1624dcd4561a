"""Pins, welds, equalities and wires at load time: what files become, and every mistake of a scene."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from model_files import path

import rsim_jax as rsim
from rsim_jax.errors import ModelError

TWO = """<body name="a"><freejoint/><geom size=".1" mass="1"/><site name="s" pos="0 0 .1"/></body>
  <body name="b" pos="0 0 1"><freejoint/><geom size=".1" mass="1"/><site name="t"/></body>
  <body name="c" pos="1 0 1"><joint name="h"/><joint name="k" axis="1 0 0"/><geom size=".1" mass="1"/></body>"""


def loaded(rest, **keywords):
    text = f"<mujoco><compiler angle='radian'/><worldbody><site name='fixed'/>{TWO}</worldbody>{rest}</mujoco>"
    return rsim.load(text, dtype=jnp.float64, ignore=("pair", *keywords.pop("ignore", ())), **keywords)


def tendon(attributes, ends="s t"):
    sites = "".join(f'<site site="{site}"/>' for site in ends.split())
    return f'<tendon><spatial name="w" {attributes}>{sites}</spatial></tendon>'


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('range="0 2"', [("stiff", "stretch", 2.0, 0.0, 0.0)]),
        ('range="0 2" margin=".1"', [("stiff", "stretch", 1.9, 0.0, 0.0)]),
        ('stiffness="5" springlength=".3"', [("compliant", "both", 0.3, 5.0, 0.0)]),
        ('damping="2"', [("compliant", "both", 0.9, 0.0, 2.0)]),
        ('stiffness="5" springlength="0 .3"', [("compliant", "stretch", 0.3, 5.0, 0.0)]),
        (
            'range="0 2" stiffness="5" damping="1" springlength="1"',
            [("stiff", "stretch", 2.0, 0.0, 0.0), ("compliant", "both", 1.0, 5.0, 1.0)],
        ),
        ("", []),
    ],
)
def test_straight_tendons_are_wires(attributes, expected):
    model = loaded(tendon(attributes))
    t = model.topology
    leaves = (np.asarray(x)[:, 0].tolist() for x in (model.wire_length, model.wire_stiffness, model.wire_damping))
    found = list(zip(t.wire_kind, t.wire_resist, *leaves, strict=True))
    assert [f[:2] for f in found] == [e[:2] for e in expected]
    np.testing.assert_allclose([f[2:] for f in found], [e[2:] for e in expected], atol=1e-12)
    assert t.wire_names == ("w",) * len(expected)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (tendon('range="1 2"'), 'tendon "w": lower range 1'),
        (tendon('range="0 2"', "s t fixed"), 'tendon "w": limited of a tendon is not simulated'),
        (tendon('stiffness="1" frictionloss="1"'), 'tendon "w": frictionloss of a tendon'),
        (tendon('stiffness="1" springlength=".1 .2"'), r'tendon "w": springlength 0.1 0.2'),
        (tendon('stiffness="1" damping="1" springlength="0 .2"'), r'tendon "w": springlength 0 0.2'),
        ('<equality><tendon name="e" tendon1="w"/></equality>' + tendon(""), 'equality "e": tendon constraint'),
    ],
)
def test_other_tendons_are_refused_by_name(rest, message):
    with pytest.raises(ModelError, match=message):
        loaded(rest)
    assert loaded(rest, ignore=("tendon", "equality")).topology.nwire == 0


def test_a_coupling_tendon_is_refused_with_all_that_its_class_gave_it():
    """B85: the default class holds stiffness, damping and range of the fixed tendon."""
    with pytest.raises(ModelError, match='tendon "couple": stiffness, damping, limited of a tendon are not simulated'):
        rsim.load(path("b85_fixed_tendon.xml"))


def test_disabled_and_inactive_constraints_are_not_there():
    equality = '<equality><connect body1="a" body2="b" anchor="0 0 0"{}/></equality>'
    assert loaded(equality.format("")).topology.npin == 1
    assert loaded(equality.format(' active="false"')).topology.npin == 0
    off = '<option><flag equality="disable"/></option>'
    assert loaded(off + equality.format("")).topology.npin == 0


MIMIC = Path(path("b05_mimic.urdf")).read_text()


def test_a_mimic_joint_is_a_joint_equality_also_in_a_scene():
    scene = rsim.Scene()
    scene.add_articulation(path("b05_mimic.urdf"), name="hand")
    for model in (rsim.load(path("b05_mimic.urdf")), scene.compile()):
        assert model.topology.equality_joints == ((1, 0),)
        np.testing.assert_allclose(model.equality_coefficients[:, 0, 0], [0.02, -0.5, 0, 0, 0], atol=1e-7)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('mimic joint="lead"', 'mimic joint="gone"', 'joint "follow": mimic of joint "gone": there is no other joint'),
        ('mimic joint="lead"', 'mimic joint="follow"', 'mimic of joint "follow": there is no other joint'),
        ('multiplier="-0.5"', 'multiplier="half"', 'mimic of joint "lead": .*give numbers'),
        ('multiplier="-0.5"', 'multiplier="nan"', "multiplier nan, offset 0.02; give finite"),
        ('name="lead" type="prismatic"', 'name="lead" type="fixed"', "mimic of joint .* about one axis"),
        ('velocity="10"', 'velocity="fast"', 'joint "lead": velocity limit fast'),
    ],
)
def test_a_wrong_mimic_or_velocity_limit_is_named(old, new, message):
    with pytest.raises(ModelError, match=message):
        rsim.load(MIMIC.replace(old, new, 1))


def test_velocity_limits_of_a_urdf_count_when_asked_for():
    text = MIMIC.replace('type="prismatic"', 'type="continuous"', 1)
    assert rsim.load(text).topology.limited_joints == (1,)
    model = rsim.load(text, options=rsim.Options(velocity_limits=True))
    assert model.topology.limited_joints == (0, 1)
    np.testing.assert_array_equal(model.joint_velocity_limit, [[10], [10]])
    scene = rsim.Scene()
    scene.add_articulation(text, name="hand")
    model = scene.compile(options=rsim.Options(velocity_limits=True))
    np.testing.assert_array_equal(model.joint_velocity_limit, [[10], [10]])


def test_values_without_a_place_are_refused():
    model = loaded(tendon('range="0 2"'))
    for leaf, message in (
        ({"joint_velocity_limit": np.full((14, 1), 3.0)}, "joint_velocity_limit of dof 0: it has no limit row"),
        ({"wire_stiffness": np.ones((1, 1))}, "wire_stiffness of wire 0: it is not compliant"),
        ({"wire_length": -np.ones((1, 1))}, "wire_length contains -1"),
    ):
        with pytest.raises(ModelError, match=message):
            model.replace(**leaf)
    assert model.replace(wire_length=np.ones((1, 5))).wire_length.shape == (1, 5)


def scene():
    """World, two spheres, one kinematic sphere, one welded body: ids 0 ... 4."""
    built = rsim.Scene()
    for kinematic in (False, False, True):
        built.add_sphere(0.1, 1.0, kinematic=kinematic)
    built.add_articulation('<mujoco><worldbody><body name="post"><geom size=".1"/></body></worldbody></mujoco>')
    return built


ZERO = (0, 0, 0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: s.add_pin(0, 9, ZERO, ZERO), r"pin 0 \(body 0 and body 9\): body 9 does not .* to 4"),
        (lambda s: s.add_pin(-1, 1, ZERO, ZERO), "body -1 does not exist"),
        (lambda s: s.add_pin("a", 1, ZERO, ZERO), "body 'a' does not exist"),
        (lambda s: s.add_pin(1, 1, ZERO, ZERO), "both ends are on the same body"),
        (lambda s: s.add_pin(0, 1, (0, 0), ZERO), "anchor_a = .*give 3 numbers"),
        (lambda s: s.add_pin(0, 3, ZERO, ZERO), "scene: pin 0: bodies 0 and 3 cannot move against each other"),
        (lambda s: s.add_pin(0, 4, ZERO, ZERO), "scene: pin 0: bodies 0 and 4 cannot move"),
        (lambda s: s.add_wire(4, 3, ZERO, ZERO, 1.0), "scene: wire 0: bodies 4 and 3 cannot move"),
        (lambda s: s.add_wire(0, 7, ZERO, ZERO, 1.0), "wire 0 .*body 7 does not exist"),
        (lambda s: s.add_wire(0, 1, ZERO, ZERO, -1.0), "length = -1"),
        (lambda s: s.add_wire(0, 1, ZERO, ZERO, 1.0, kind="rope"), "kind = 'rope': give one of 'stiff', 'compliant'"),
        (lambda s: s.add_wire(0, 1, ZERO, ZERO, 1.0, resist="bend"), "resist = 'bend'"),
        (lambda s: s.add_wire(0, 1, ZERO, ZERO, 1.0, kind="compliant"), "stiffness is missing"),
        (lambda s: s.add_wire(0, 1, ZERO, ZERO, 1.0, kind="compliant", stiffness=-1), "stiffness = -1"),
        (lambda s: s.add_wire(0, 1, ZERO, ZERO, 1.0, kind="compliant", stiffness=1, damping=-1), "damping = -1"),
        (lambda s: s.add_wire(0, 1, ZERO, ZERO, 1.0, stiffness=5), "stiffness or damping of a stiff wire"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_scene_is_named_before_the_first_step(build, message):
    built = scene()
    with pytest.raises(ModelError, match=message):
        build(built)
        built.compile()


def test_numbers_of_pins_and_wires_come_first_and_in_order():
    built = scene()
    rest = '<equality><weld body1="a"/></equality>' + tendon('range="0 2"')
    text = f"<mujoco><worldbody>{TWO}</worldbody>{rest}</mujoco>"
    built.add_articulation(text, name="more")
    assert [built.add_pin(0, 1, ZERO, ZERO), built.add_pin(3, 2, ZERO, ZERO)] == [0, 1]
    assert built.add_wire(1, 2, ZERO, ZERO, 1.0) == 0
    t = built.compile(ignore=("pair",)).topology
    assert t.pin_bodies == ((0, 1), (3, 2), (5, 0)) and t.welds == (2,)
    assert t.wire_bodies == ((1, 2), (5, 6)) and t.wire_names == ("", "more/w")
