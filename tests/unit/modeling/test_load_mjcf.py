"""What MJCF means, element by element: published faults of other loaders and the values that are right."""

from __future__ import annotations

import os
import time
from pathlib import Path

import jax.numpy as jnp
import model_walk
import numpy as np
import pytest
from model_files import path

from rsim_jax.errors import ModelError
from rsim_jax.modeling import Options, compiled, load
from rsim_jax.structs import HINGE, SLIDE


def load64(name, **keywords):
    return load(path(name), dtype=jnp.float64, **keywords)


def model_of(body: str, extra: str = "", **keywords):
    return load(f"<mujoco>{extra}<worldbody>{body}</worldbody></mujoco>", dtype=jnp.float64, **keywords)


def test_b02_nested_default_classes_are_resolved_and_replaced_not_merged():
    model = load64("b02_defaults.xml")
    joint = {n: model.joint_id(n) for n in ("ja", "jb", "jc", "jd")}
    assert [model.topology.joint_type[j] for j in joint.values()] == [SLIDE, SLIDE, HINGE, HINGE]
    axes = [[0, 0, -1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    np.testing.assert_allclose(model.joint_axis[:, list(joint.values()), 0].T, axes, atol=1e-12)
    np.testing.assert_allclose(model.joint_damping[:, 0], [2, 2, 2, 0.5])
    assert [model.topology.joint_limited[j] for j in joint.values()] == [True, False, False, False]
    np.testing.assert_allclose(model.joint_range[:, joint["ja"], 0], [0, 0.04])
    geoms = [model.geom_id(n) for n in ("ga", "gb", "gc", "gd", "ge")]
    np.testing.assert_allclose(model.geom_friction[0, geoms, 0], [0.9, 0.3, 0.9, 0.3, 0.9])
    np.testing.assert_allclose(model.geom_size[0, geoms, 0], [0.1, 0.05, 0.1, 0.02, 0.07])
    bodies = [model.body_id(n) for n in "abcd"]
    np.testing.assert_allclose(model.body_mass[bodies, 0], [2.35619, 2.09440, 0.016755, 0.718378], rtol=1e-5)


def test_b03_fromto_gives_centre_length_and_direction():
    model = load64("b03_fromto.xml")
    ends = {
        "up": ([0, 0, 0], [0, 0, 1]),
        "down": ([0, 0, 0], [0, 0, -1]),
        "diag": ([0.1, 0, 0], [0.4, 0.4, -1.2]),
        "side": ([0, 0, 0], [0, -0.5, 0]),
    }
    for name, (start, end) in ends.items():
        g, start, end = model.geom_id(name), np.array(start), np.array(end)
        body = model.topology.geom_body[g]
        centre = model.geom_offset[:, g, 0] - model.body_offset[:, body, 0]
        np.testing.assert_allclose(centre, (start + end) / 2, atol=1e-9)
        assert model.geom_size[1, g, 0] == pytest.approx(np.linalg.norm(end - start) / 2, rel=1e-9)
        along = (end - start) / np.linalg.norm(end - start)
        assert abs(np.asarray(model.geom_rotation[:, 2, g, 0]) @ along) == pytest.approx(1, abs=1e-9)


def test_b04_euler_sequences_and_compiler_elements_of_included_files():
    expected = {
        ("b04_euler_main.xml", "m"): [0.925754, 0.307131, -0.159933, 0.151891],
        ("b04_euler_main.xml", "p"): [0.925754, 0.307131, -0.159933, 0.151891],
        ("b04_euler_upper.xml", "u"): [0.771739, 0.309727, -0.210110, 0.514143],
    }
    for (file, body), quaternion in expected.items():
        model = load64(file)
        rotation = model.body_rotation[:, :, model.body_id(body), 0]
        np.testing.assert_allclose(rotation, model_walk.matrix(quaternion), atol=1e-5)


def test_b09_ref_shifts_the_pose_and_springref_the_spring():
    model = load64("b09_ref.xml")
    q0 = np.asarray(model.default_q[:, 0])
    np.testing.assert_allclose(q0, [1.25, 0.523599], atol=1e-6)
    tip, lift = model.geom_id("tip"), model.body_id("lift")
    for q, expected_tip, torque in ((q0, [0.3, 0, 1.75], -1.39626), (np.zeros(2), [0.259808, 0, 0.65], 0.698132)):
        x, _ = model_walk.placed(model, "geom", model.topology.geom_link, q)
        np.testing.assert_allclose(x[tip], expected_tip, atol=1e-5)
        spring = -model.joint_stiffness[1, 0] * (q[1] - model.joint_spring_ref[1, 0])
        assert float(spring) == pytest.approx(torque, abs=1e-5)
    x, _ = model_walk.placed(model, "body", model.topology.body_link, np.zeros(2))
    assert x[lift][2] == pytest.approx(0, abs=1e-12)


def test_b10_a_freejoint_takes_no_joint_defaults_and_a_free_joint_does():
    model = load64("b10_freejoint_defaults.xml")
    np.testing.assert_array_equal(model.joint_armature[:, 0], [0] * 6 + [1] * 6)
    np.testing.assert_array_equal(model.joint_damping[:, 0], [0] * 6 + [1] * 6)


def test_b11_frictionloss_comes_from_a_class():
    model = load64("b11_frictionloss.xml")
    assert model.topology.dof_friction == (True,) and float(model.joint_friction[0, 0]) == 2


def test_b12_meshes_of_included_files_are_found_from_anywhere(tmp_path, monkeypatch):
    scene = path("b12_include/scene.xml")
    monkeypatch.chdir(tmp_path)
    for source in (scene, os.path.relpath(scene)):
        model = load(source, dtype=jnp.float64)
        body = model.body_id("r")
        assert float(model.body_mass[body, 0]) == pytest.approx(4.5, abs=1e-4)
        np.testing.assert_allclose(model.body_com[:, body, 0], [0.075] * 3, atol=1e-5)
        assert model.hull_vertices.shape == (3, 4, 1, 1) and model.topology.npair == 1


def test_b86_keyframes_have_unit_quaternions_and_their_layout():
    model = load64("b86_keyframe.xml")
    assert (model.nq, model.nv, model.topology.keyframe_names) == (12, 10, ("home",))
    assert float(model.key_time[0]) == 0.25
    q = np.asarray(model.key_q[:, 0])
    np.testing.assert_allclose(q, [1, 2, 0.7, 0, 0, 0, 1, 0.5**0.5, 0, 0.5**0.5, 0, 0.4], atol=1e-8)
    np.testing.assert_allclose(model.key_qd[:, 0], [0.1, 0, 0, 0, 0, 0.5, 0, 0, 0, 0])
    np.testing.assert_allclose(model.key_ctrl[:, 0], [0.4])
    x, _ = model_walk.placed(model, "body", model.topology.body_link, q)
    np.testing.assert_allclose(x[model.body_id("tip")], [0.8, 2, 0.6], atol=1e-5)


def test_a_keyframe_of_the_wrong_length_is_refused(tmp_path):
    text = Path(path("b86_keyframe.xml")).read_text()
    short = tmp_path / "short.xml"
    short.write_text(text.replace("0.70710678 0  0.4", "0.70710678 0"))
    with pytest.raises(ModelError, match=r'short\.xml: key "home": qpos has 11 numbers; this model needs 12'):
        load(short)
    with pytest.raises(ModelError, match="ctrl has 2 numbers; this model needs 1"):
        load(text.replace('ctrl="0.4"', 'ctrl="0.4 1"'))


def test_actuators_of_every_affine_kind():
    model = model_of(
        '<body><joint name="h" range="-1 1" actuatorfrcrange="-7 6"/><geom size=".1"/></body>'
        '<body><joint name="s" type="slide"/><geom size=".1"/></body>',
        extra="""<actuator><motor joint="s" gear="3" ctrlrange="-2 1"/><position joint="h" kp="5" kv=".5"/>
        <velocity joint="h" kv="4" forcerange="-9 8"/>
        <general joint="s" gaintype="fixed" gainprm="2" biastype="affine" biasprm="1 -3 -4" gear="-2"/></actuator>""",
    )
    assert model.topology.actuator_dof == (1, 0, 0, 1)
    np.testing.assert_allclose(model.actuator_gear[:, 0], [3, 1, 1, -2])
    np.testing.assert_allclose(model.actuator_gain[:, 0], [1, 5, 4, 2])
    np.testing.assert_allclose(model.actuator_bias[:, :, 0].T, [[0, 0, 0], [0, -5, -0.5], [0, 0, -4], [1, -3, -4]])
    inf = np.inf
    np.testing.assert_array_equal(model.actuator_ctrl_range[:, :, 0], [[-2, -inf, -inf, -inf], [1, inf, inf, inf]])
    np.testing.assert_array_equal(model.actuator_force_range[:, :, 0], [[-inf, -inf, -9, -inf], [inf, inf, 8, inf]])
    np.testing.assert_array_equal(model.joint_force_range[:, :, 0], [[-7, -inf], [6, inf]])


def test_flags_that_switch_physics_off_are_obeyed():
    body = (
        '<geom type="plane" size="1 1 1"/><body>'
        '<joint name="j" range="-1 1" stiffness="3" damping="2" frictionloss="1"/>'
        '<geom size=".1"/></body>'
    )
    rest = '<actuator><position joint="j" kp="4" ctrlrange="-1 1"/></actuator>'

    def with_flag(name):
        return model_of(body, extra=f'<option><flag {name}="disable"/></option>{rest}')

    plain = model_of(body, extra=rest).topology
    assert (plain.npair, plain.joint_limited, plain.dof_friction) == (1, (True,), (True,))
    assert with_flag("contact").topology.npair == 0
    assert with_flag("limit").topology.joint_limited == (False,)
    assert with_flag("frictionloss").topology.dof_friction == (False,)
    assert float(with_flag("spring").joint_stiffness[0, 0]) == 0
    assert float(with_flag("damper").joint_damping[0, 0]) == 0
    assert not np.any(with_flag("gravity").gravity)
    assert float(with_flag("clampctrl").actuator_ctrl_range[1, 0, 0]) == np.inf
    assert not np.any(with_flag("actuation").actuator_gain) and not np.any(with_flag("actuation").actuator_bias)
    everything = with_flag("constraint").topology
    assert (everything.npair, everything.joint_limited, everything.dof_friction) == (0, (False,), (False,))


def test_mocap_bodies_are_kinematic_links_with_their_welded_children():
    model = model_of(
        '<body name="hand" mocap="true" pos="1 2 3"><body name="thumb" pos="0 0 1"><geom size=".1"/></body></body>'
        '<body name="ball"><freejoint/><geom size=".1"/></body>'
    )
    t = model.topology
    assert (t.nkin, t.kinematic_body, t.nlink, t.world) == (1, (1,), 3, 2)
    assert [t.body_link[model.body_id(n)] for n in ("world", "hand", "thumb", "ball")] == [2, 1, 1, 0]
    np.testing.assert_allclose(model.kinematic_position[:, 0, 0], [1, 2, 3])
    np.testing.assert_allclose(model.body_offset[:, model.body_id("thumb"), 0], [0, 0, 1])


def test_surface_velocity_of_a_static_belt_is_turned_into_world_axes():
    model = model_of('<geom type="box" size="1 1 .1" euler="0 0 90" surfacevel="2 0 0 0 0 0"/>')
    np.testing.assert_allclose(model.geom_surface_velocity[:, 0, 0], [0, 2, 0], atol=1e-12)


def test_a_base_is_freed_and_welded_on_request():
    ant = path("ant.xml")
    assert (load(ant).nv, load(ant, floating_base=False).nv, load(ant, floating_base=True).nv) == (14, 8, 14)
    arm = '<mujoco><worldbody><body name="arm" pos="0 0 1"><geom size=".1"/></body></worldbody></mujoco>'
    assert load(arm).nv == 0 and load(arm, floating_base=True).nv == 6
    np.testing.assert_allclose(load(arm, floating_base=True).default_q[:, 0], [0, 0, 1, 1, 0, 0, 0])
    with pytest.raises(ModelError, match="needs one root body without joints; found none"):
        load(path("hopper.xml"), floating_base=True)
    with pytest.raises(ModelError, match="floating_base=3"):
        load(arm, floating_base=3)


def test_models_without_joints_geoms_or_actuators_have_empty_leaves():
    model = load("<mujoco/>")
    assert (model.nq, model.nv, model.nu, model.ngeom, model.njnt, model.nbody) == (0, 0, 0, 0, 0, 1)
    assert model.link_inertia.shape == (6, 0, 1) and model.joint_force_range.shape == (2, 0, 1)


def test_dtype_and_equality_of_topologies():
    first, second = load(path("ant.xml")), load(path("ant.xml"))
    assert first.topology == second.topology and hash(first.topology) == hash(second.topology)
    assert first.dtype == jnp.float32 and load64("ant.xml").link_inertia.dtype == jnp.float64
    for dtype in (jnp.float16, int, "nonsense"):
        with pytest.raises(ModelError, match="dtype="):
            load(path("ant.xml"), dtype=dtype)


def test_the_mujoco_model_behind_each_model_is_kept_apart():
    bodies = [f'<body pos="{x} 0 0"><freejoint/><geom size=".1"/></body>' for x in (1, 2)]
    models = [model_of(body) for body in bodies]
    assert models[0].topology == models[1].topology
    assert [compiled(m).body_pos[1, 0] for m in models] == [1, 2]
    with pytest.raises(ModelError, match="load it again"):
        compiled(models[0].__class__(**{**models[0].__dict__, "default_q": models[0].default_q + 5}))


def test_ant_loads_within_a_second():
    load(path("hopper.xml"))
    start = time.perf_counter()
    load(path("ant.xml"))
    assert time.perf_counter() - start < 1.0


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("/no/such/robot.xml", "no such file"),
        ("<mujoco><worldbody><geom/></worldbody></mujoco>", "XML text: .*size"),
        ("<mujoco><nonsense/></mujoco>", "XML text: .*nonsense"),
        ("<mujoco", "XML text: "),
        (3, "source 3: give the path"),
    ],
)
def test_unreadable_sources_name_the_source(source, message):
    with pytest.raises(ModelError, match=message):
        load(source)


def test_options_reach_the_model():
    numbers = {"tolerance": 1e-4, "erp": 0.5, "slop": 2e-5, "max_correction": 3.0, "limit_restitution": 0.25}
    words = {"slip_rule": "energy", "integrator": "rk4", "warm_start": False, "speculative": False}
    options = Options(max_contacts=3, sweeps=7, **numbers, **words)
    model = load64("ant.xml", options=options)
    t = model.topology
    assert (t.max_contacts, t.sweeps, t.slip_rule, t.integrator) == (3, 7, "energy", "rk4")
    assert (t.warm_start, t.speculative) == (False, False)
    assert {name: float(getattr(model, name)) for name in numbers} == numbers
    with pytest.raises(ModelError, match="options="):
        load(path("ant.xml"), options={"sweeps": 3})
