"""Scenes: ids, inertias, starts, materials, articulations and every mistake by name."""

from __future__ import annotations

import jax.numpy as jnp
import model_walk
import numpy as np
import pytest
from model_files import path

from rsim_jax.collision.pair_table import candidates
from rsim_jax.errors import ModelError
from rsim_jax.modeling import Material, Options, PenaltyContact, Scene, Soil, compiled
from rsim_jax.structs import BOX, CAPSULE, CYLINDER, PLANE, SPHERE


def pair(model, a: int, b: int) -> int:
    """Index of the only pair of two bodies."""
    bodies = [{model.topology.geom_body[g] for g in geoms} for geoms in model.topology.pair_geoms]
    assert bodies.count({a, b}) == 1
    return bodies.index({a, b})


def test_shapes_have_their_ids_sizes_masses_and_inertias():
    scene = Scene()
    scene.add_ground(height=0.25)
    ids = [
        scene.add_sphere(0.2, 3.0, (0, 0, 1), name="ball"),
        scene.add_box((0.2, 0.4, 0.6), 2.0, position=(1, 0, 1), name="crate"),
        scene.add_capsule(0.1, 0.5, 1.5, position=(2, 0, 1), name="pill"),
    ]
    model = scene.compile(dtype=jnp.float64)
    assert ids == [model.body_id(n) for n in ("ball", "crate", "pill")] == [1, 2, 3]
    assert model.topology.geom_type == (PLANE, SPHERE, BOX, CAPSULE) and (model.nq, model.nv) == (21, 18)
    np.testing.assert_allclose(model.geom_offset[:, 0, 0], [0, 0, 0.25])
    np.testing.assert_allclose(model.geom_size[:, 1:, 0].T, [[0.2, 0, 0], [0.1, 0.2, 0.3], [0.1, 0.25, 0]])
    np.testing.assert_allclose(model.link_mass[:, 0], [3, 2, 1.5])
    np.testing.assert_allclose(model.link_inertia[:, 0, 0], [0.4 * 3 * 0.04] * 3 + [0] * 3, atol=1e-12)
    x, y, z = 0.04, 0.16, 0.36
    np.testing.assert_allclose(model.link_inertia[:3, 1, 0], 2 / 12 * np.array([y + z, x + z, x + y]), atol=1e-12)
    assert (float(model.dt), model.gravity[:, 0].tolist()) == (0.002, [0, 0, -9.81])


def test_a_cylinder_and_options():
    scene = Scene(timestep=0.01, gravity=(0, 0, -1.62))
    scene.add_ground()
    scene.add_cylinder(0.1, 0.4, 2.0)
    model = scene.compile(options=Options(max_contacts=3, erp=0.0), dtype=jnp.float64)
    assert model.topology.geom_type[1] == CYLINDER and model.topology.max_contacts == 3 and float(model.erp) == 0
    np.testing.assert_allclose(model.link_inertia[2, 0, 0], 2.0 * 0.01 / 2, rtol=1e-12)
    assert (float(model.dt), float(model.gravity[2, 0])) == (0.01, -1.62)


def test_an_inertia_may_be_given_as_moments_or_as_a_tensor():
    tensor = np.array([[0.3, 0.02, 0.01], [0.02, 0.4, 0.03], [0.01, 0.03, 0.5]])
    scene = Scene()
    scene.add_sphere(0.1, 1.0, inertia=(0.1, 0.2, 0.25))
    scene.add_sphere(0.1, 1.0, inertia=tensor)
    model = scene.compile(dtype=jnp.float64)
    np.testing.assert_allclose(model.link_inertia[:, 0, 0], [0.1, 0.2, 0.25, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(model.link_inertia[:, 1, 0], [0.3, 0.4, 0.5, 0.02, 0.01, 0.03], atol=1e-9)


def test_starts_put_angular_velocity_into_body_axes():
    quaternion = (0.5, 0.5, 0.5, 0.5)  # x -> y -> z -> x
    scene = Scene()
    scene.add_sphere(0.1, 1.0, (1, 2, 3), tuple(2 * c for c in quaternion), (4, 5, 6), (0.1, 0.2, 0.3))
    model = scene.compile(dtype=jnp.float64)
    np.testing.assert_allclose(model.default_q[:, 0], [1, 2, 3, *quaternion], atol=1e-12)
    np.testing.assert_allclose(model.default_qd[:3, 0], [4, 5, 6])
    in_world = model_walk.matrix(quaternion) @ np.asarray(model.default_qd[3:, 0])
    np.testing.assert_allclose(in_world, [0.1, 0.2, 0.3], atol=1e-12)


def test_kinematic_bodies_have_a_pose_and_velocities_but_no_entries_in_q():
    scene = Scene()
    scene.add_box((1, 1, 1), 1.0, (0, 0, 1), (0, 1, 0, 0), (1, 0, 0), (0, 0, 2), kinematic=True, name="lift")
    scene.add_sphere(0.1, 1.0, name="ball", surface_velocity=(0, 3, 0))
    model = scene.compile(dtype=jnp.float64)
    assert (model.nv, model.topology.nkin, model.topology.kinematic_body) == (6, 1, (1,))
    np.testing.assert_allclose(model.kinematic_position[:, 0, 0], [0, 0, 1])
    np.testing.assert_allclose(model.kinematic_quaternion[:, 0, 0], [0, 1, 0, 0])
    np.testing.assert_allclose(model.kinematic_default_velocity[:, 0, 0], [1, 0, 0])
    np.testing.assert_allclose(model.kinematic_default_angular_velocity[:, 0, 0], [0, 0, 2])
    np.testing.assert_allclose(model.geom_surface_velocity[:, :, 0].T, [[0, 0, 0], [0, 3, 0]])


def test_materials_are_looked_up_in_either_order_and_have_defaults():
    scene = Scene()
    scene.add_ground(material="steel", surface_velocity=(1, 0, 0))
    rubber = scene.add_sphere(0.1, 1.0, material="rubber")
    wood = scene.add_sphere(0.1, 1.0, material="wood")
    scene.set_material_pair("rubber", "steel", Material(0.3, 0.5, 0.02, 0.6, 2e-3))
    model = scene.compile(dtype=jnp.float64)
    names = ("friction", "restitution", "restitution_threshold", "static_friction", "static_friction_velocity")

    def values(a, b):
        return [float(getattr(model, f"pair_{n}")[pair(model, a, b), 0]) for n in names]

    assert values(0, rubber) == [0.3, 0.5, 0.02, 0.6, 2e-3]
    assert values(0, wood) == values(rubber, wood) == [0.8, 0.0, 0.01, 0.8, 1e-3]
    np.testing.assert_allclose(model.geom_surface_velocity[:, 0, 0], [1, 0, 0])


def test_articulations_keep_their_friction_or_take_a_material():
    body = '<body name="a"><joint name="j"/><geom size=".1" friction=".35"/></body>'
    arm = f'<mujoco model="arm"><worldbody>{body}</worldbody></mujoco>'
    scene = Scene()
    scene.add_ground(height=-5)
    first = scene.add_articulation(arm, (1, 0, 0))
    ball = scene.add_sphere(0.1, 1.0)
    second = scene.add_articulation(arm, (2, 0, 0), (0, 0, 0, 1), material="glove")
    third = scene.add_articulation(arm, name="left", floating_base=None)
    scene.set_material_pair("glove", "default", Material(friction=0.15))
    model = scene.compile(dtype=jnp.float64)
    assert model.topology.body_names == ("world", "arm/a", "", "arm_2/a", "left/a")
    assert [first, ball, second, third] == [1, 2, 3, 4]
    friction = {b: float(model.pair_friction[pair(model, 0, b), 0]) for b in (first, ball, second, third)}
    assert friction == pytest.approx({first: 0.35, ball: 0.8, second: 0.15, third: 0.35})
    assert float(model.pair_friction[pair(model, first, third), 0]) == pytest.approx(0.35)
    q = np.asarray(model.default_q[:, 0])
    x, _ = model_walk.placed(model, "body", model.topology.body_link, q)
    np.testing.assert_allclose(x[[first, second]], [[1, 0, 0], [2, 0, 0]], atol=1e-12)


def test_a_robot_file_in_a_scene_moves_with_its_pose_and_leaves_its_options_behind(capfd):
    scene = Scene(timestep=0.001)
    body = scene.add_articulation(path("ant.xml"), (3, 4, 0), (0.5**0.5, 0, 0, 0.5**0.5), name="ant")
    after = scene.add_sphere(0.1, 1.0, name="after")
    model = scene.compile(dtype=jnp.float64)
    assert (body, after) == (model.body_id("ant/torso"), model.body_id("after"))
    np.testing.assert_allclose(model.default_q[:7, 0], [3, 4, 0.75, 0.5**0.5, 0, 0, 0.5**0.5], atol=1e-12)
    assert float(model.dt) == 0.001 and capfd.readouterr().err == ""


def test_a_urdf_can_float_in_a_scene():
    scene = Scene()
    scene.add_ground()
    scene.add_articulation(path("b05_mimic.urdf"), (0, 0, 2))
    model = scene.compile()
    assert model.nv == 2
    with pytest.raises(ModelError, match='link "palm": it moves but has no mass'):
        scene.add_articulation(path("b05_mimic.urdf"), floating_base=True)


def test_a_scene_can_be_compiled_again_after_more_was_added():
    scene = Scene()
    scene.add_sphere(0.1, 1.0)
    first = scene.compile()
    scene.add_sphere(0.2, 2.0)
    assert (first.nv, scene.compile().nv) == (6, 12) and compiled(first).nbody == 2


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda s: s.add_sphere(0, 1.0, name="ball"), r'sphere "ball": radius = 0: give a number above 0'),
        (lambda s: s.add_sphere(0.1, -1), r"sphere \(body 1\): mass = -1"),
        (lambda s: s.add_sphere(0.1, 0.0), r"sphere \(body 1\): mass = 0"),
        (lambda s: s.add_sphere(float("nan"), 1), "radius = nan: give finite"),
        (lambda s: s.add_box((1, 0, 1), 1), r"box \(body 1\): size contains 0"),
        (lambda s: s.add_box((1, 1), 1), "size = .*give 3 numbers"),
        (lambda s: s.add_capsule(0.1, -0.2, 1), "capsule .*length = -0.2"),
        (lambda s: s.add_cylinder("wide", 1, 1), "radius = 'wide': give numbers"),
        (lambda s: s.add_sphere(0.1, 1, position=(0, 0, float("inf"))), "position = .*finite"),
        (lambda s: s.add_sphere(0.1, 1, quaternion=(0, 0, 0, 0)), "quaternion is zero"),
        (lambda s: s.add_sphere(0.1, 1, velocity=(1, 2)), "velocity = .*give 3"),
        (lambda s: s.add_sphere(0.1, 1, inertia=(1, 1, 3)), "inertia with principal moments 1, 1, 3"),
        (lambda s: s.add_sphere(0.1, 1, inertia=(1, -1, 3)), "all must be positive"),
        (lambda s: s.add_sphere(0.1, 1, inertia=np.ones((2, 2))), "inertia = .*symmetric 3x3"),
        (lambda s: s.add_sphere(0.1, 1, material=3), "material = 3: give a name"),
        (lambda s: s.add_sphere(0.1, 1, name=""), "name = ''"),
        (lambda s: s.add_ground(float("nan")), "ground: height = nan"),
        (lambda s: s.set_material_pair("a", "b", 0.8), "give an rsim_jax.Material"),
        (lambda s: s.set_material_pair("a", 2, Material()), "2: give the names"),
        (lambda s: s.add_articulation("/no/arm.xml"), "no such file"),
        (lambda s: s.add_articulation("<mujoco/>", position=(1, 2)), "articulation XML text: position"),
        (lambda s: s.add_mesh(np.zeros((4, 3)), 1.0), "mesh .body 1.: 4 points in one plane have no volume; give"),
        (lambda s: s.add_mesh(np.eye(3), 1.0, name="m"), 'mesh "m": 3 points in one plane'),
        (lambda s: s.add_mesh("nowhere.obj", 1.0), "nowhere.obj: no such file; give the path"),
        (lambda s: s.add_mesh(np.full((4, 3), np.nan), 1.0), "vertices_or_path = ... nan ...: give finite"),
        (lambda s: s.add_heightfield([[0, np.nan], [0, 0]], 1, 1), "heightfield 0: heights = .*: give finite numbers"),
        (lambda s: s.add_heightfield([0, 1], 1, 1), r"heights of shape \(2,\): give \(ny, nx\)"),
        (lambda s: s.add_heightfield(np.zeros((3, 3)), 1, 0), "size_y = 0: give a number above 0"),
        (lambda s: s.set_contact_model("a", None, PenaltyContact(1e4, 10)), "None: give the name of a material"),
        (lambda s: s.set_contact_model("a", "b", Soil(1, 1, 1, 1, 1, 1, 1)), "set_contact_model with a Soil is not"),
        (lambda s: s.compile(options=3), "options=3"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_value(build, message):
    with pytest.raises(ModelError, match=message):
        build(Scene())


@pytest.mark.parametrize("arguments", [{"timestep": 0}, {"timestep": float("nan")}, {"gravity": (0, 0)}])
def test_a_bad_scene_is_refused(arguments):
    with pytest.raises(ModelError, match=f"scene: {next(iter(arguments))} = "):
        Scene(**arguments)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("friction", -0.1),
        ("friction", float("nan")),
        ("restitution", 1.1),
        ("restitution", -0.1),
        ("restitution_threshold", -1),
        ("static_friction", -0.2),
        ("static_friction_velocity", 0),
        ("rolling_friction", -0.1),
        ("spinning_friction", float("inf")),
        ("spinning_friction", "much"),
    ],
)
def test_a_bad_material_is_refused(name, bad):
    with pytest.raises(ModelError, match=f"Material: {name} = "):
        Material(**{name: bad})


def test_repeated_names_are_refused():
    scene = Scene()
    scene.add_sphere(0.1, 1, name="ball")
    with pytest.raises(ModelError, match='sphere "ball": the name is taken'):
        scene.add_sphere(0.1, 1, name="ball")
    assert scene.compile().nv == 6  # the refused one left nothing behind
    scene.add_articulation(path("b09_ref.xml"), name="arm")
    with pytest.raises(ModelError, match="name = 'arm': give a string that no other articulation has"):
        scene.add_articulation(path("b09_ref.xml"), name="arm")


def test_boxes_and_cylinders_of_a_scene_touch():
    scene = Scene()
    scene.add_cylinder(0.1, 0.2, 1)
    scene.add_box((1, 1, 1), 1)
    for points in (4, 8):
        topology = scene.compile(options=Options(manifold_points=points)).topology
        assert topology.npair == 1
        assert len(candidates(topology)) == points
