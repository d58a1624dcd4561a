"""URDF: inertial frames, effort limits, mesh addresses, bases, and robots that no physics can move."""

from __future__ import annotations

import jax.numpy as jnp
import model_walk
import numpy as np
import pytest
from model_files import path

from rsim_jax.errors import ModelError
from rsim_jax.modeling import compiled, load

INERTIA = '<inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/>'
INERTIAL = f'<inertial><mass value="2"/>{INERTIA}</inertial>'


def robot(*parts: str) -> str:
    return f'<robot name="r">{"".join(parts)}</robot>'


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(parent: str, child: str, kind: str = "continuous", inside: str = "") -> str:
    return (
        f'<joint name="{parent}_{child}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="0 1 0"/>{inside}</joint>'
    )


def mesh(address: str, tag: str = "collision") -> str:
    return f'<{tag}><geometry><mesh filename="{address}"/></geometry></{tag}>'


@pytest.mark.parametrize("rpy", [(0, 0, np.pi / 2), (0.3, -0.4, 0.5)])
def test_b01_the_inertial_frame_is_rotated(rpy):
    text = open(path("b01_inertial_rpy.urdf")).read().replace("0 0 1.5707963267948966", " ".join(map(str, rpy)))  # noqa: SIM115
    model = load(text, dtype=jnp.float64)
    roll, pitch, yaw = (model_walk.axis_angle(axis, angle) for axis, angle in zip(np.eye(3), rpy, strict=True))
    frame = yaw @ pitch @ roll
    tensor = frame @ np.diag([0.10, 0.25, 0.30]) @ frame.T
    expected = [tensor[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(model.link_inertia[:, 0, 0], expected, atol=1e-9)


def test_b05_a_mimic_joint_is_an_equality_between_two_joints():
    model = load(path("b05_mimic.urdf"))
    assert model.topology.equality_joints == ((1, 0),)
    assert model.topology.joint_names == ("lead", "follow")
    np.testing.assert_array_equal(model.joint_force_range[:, :, 0], [[-100, -100], [100, 100]])
    np.testing.assert_array_equal(model.joint_range[:, :, 0], [[-1, -1], [1, 1]])
    assert model.nu == 0


def test_b06_moving_links_without_mass_are_refused_by_name():
    with pytest.raises(ModelError) as caught:
        load(path("b06_massless_chain.urdf"))
    assert ["cart_x" in line or "cart_y" in line for line in str(caught.value).splitlines()] == [True, True]


def test_b07_impossible_moments_are_refused_by_name():
    with pytest.raises(
        ModelError, match=r'b07_bad_inertia.urdf: link "finger": principal moments 2e-07, 8e-07, 1.5e-06'
    ):
        load(path("b07_bad_inertia.urdf"))


def test_a_massless_link_may_carry_a_fixed_one_with_mass_and_geometry_weighs_nothing():
    ball = '<collision><geometry><sphere radius="1"/></geometry></collision>'
    text = robot(link("base", ball), joint("base", "arm"), link("arm", ball), joint("arm", "tip", "fixed"), link("tip"))
    model = load(text, dtype=jnp.float64)
    assert model.topology.body_names == ("world", "base", "arm", "tip")
    np.testing.assert_allclose(model.body_mass[:, 0], [0, 0, 0, 2])
    np.testing.assert_allclose(model.link_mass[:, 0], [2])


def test_limits_dynamics_and_effort():
    inside = '<limit lower="-1" upper="2" effort="5" velocity="3"/><dynamics damping=".3" friction=".2"/>'
    model = load(robot(link("base"), joint("base", "arm", "revolute", inside), link("arm")), dtype=jnp.float64)
    np.testing.assert_allclose(model.joint_range[:, 0, 0], [-1, 2])
    np.testing.assert_allclose(model.joint_force_range[:, 0, 0], [-5, 5])
    assert (float(model.joint_damping[0, 0]), float(model.joint_friction[0, 0])) == (0.3, 0.2)
    assert model.topology.dof_friction == (True,)


def test_the_root_is_welded_unless_it_is_asked_to_float():
    text = robot(link("base"), joint("base", "arm"), link("arm"))
    assert [load(text, floating_base=f).nv for f in (None, False, True)] == [1, 1, 7]
    massless = robot(link("base", ""), joint("base", "arm"), link("arm"))
    assert load(massless).nv == 1
    with pytest.raises(ModelError, match='link "base": it moves but has no mass'):
        load(massless, floating_base=True)


@pytest.fixture
def workspace(tmp_path):
    """ws/robots/{meshes/tet.obj, urdf/r.urdf}; the package is called robots."""
    obj = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"
    (tmp_path / "ws/robots/meshes").mkdir(parents=True)
    (tmp_path / "ws/robots/urdf").mkdir()
    (tmp_path / "ws/robots/meshes/tet.obj").write_text(obj)
    (tmp_path / "ws/robots/meshes/tet.dae").write_text("<COLLADA/>")
    return tmp_path


def load_with_mesh(folder, address, tag="collision", **keywords):
    file = folder / "ws/robots/urdf/r.urdf"
    file.write_text(robot(link("base", INERTIAL + mesh(address, tag))))
    return load(file, floating_base=True, ignore=("mesh",), **keywords)


@pytest.mark.parametrize(
    "address", ["package://robots/meshes/tet.obj", "../meshes/tet.obj", "file://{ws}/robots/meshes/tet.obj"]
)
def test_meshes_are_found_by_package_relative_and_absolute_address(workspace, address):
    model = load_with_mesh(workspace, address.format(ws=workspace / "ws"))
    assert compiled(model).nmesh == 1 and float(model.body_mass[1, 0]) == 2


def test_package_dirs_come_first_and_may_be_the_package_itself(workspace):
    (workspace / "elsewhere").mkdir()
    (workspace / "ws/robots").rename(workspace / "elsewhere/robots")
    (workspace / "ws/robots/urdf").mkdir(parents=True)
    with pytest.raises(
        ModelError, match=r'link "base": mesh package://robots/meshes/tet.obj not found; .*package_dirs'
    ):
        load_with_mesh(workspace, "package://robots/meshes/tet.obj")
    for folder in (workspace / "elsewhere", workspace / "elsewhere/robots"):
        model = load_with_mesh(workspace, "package://robots/meshes/tet.obj", package_dirs=(folder,))
        assert compiled(model).nmesh == 1


def test_mujocos_meshdir_extension_is_obeyed(workspace):
    file = workspace / "ws/robots/urdf/r.urdf"
    extension = '<mujoco><compiler meshdir="../meshes"/></mujoco>'
    file.write_text(robot(extension, link("base", INERTIAL + mesh("package://lost/tet.obj"))))
    assert compiled(load(file)).nmesh == 1


def test_unreadable_collision_meshes_are_named_and_visual_ones_do_not_matter(workspace):
    with pytest.raises(ModelError, match=r"tet\.dae: format not readable; convert it"):
        load_with_mesh(workspace, "../meshes/tet.dae")
    for address in ("../meshes/tet.dae", "package://gone/x.stl"):
        assert load_with_mesh(workspace, address, tag="visual").ngeom == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (robot(link("a"), "<xacro:macro/>").replace("<robot", '<robot xmlns:xacro="x"'), "expand it first"),
        ('<robot name="r"><link></robot>', "not well-formed XML"),
        (robot(link("a", '<inertial><mass value="-1"/>' + INERTIA + "</inertial>")), 'link "a": mass -1'),
        (robot(link("a", '<inertial><mass value="x"/>' + INERTIA + "</inertial>")), 'link "a": mass nan'),
        (robot(link("a", '<inertial><mass value="1"/></inertial>')), 'link "a": <inertial> without <inertia>'),
        (robot(link("a", INERTIAL.replace('ixx=".1"', 'ixx="q"'))), 'link "a": inertia .*give numbers'),
        (robot(link("a", INERTIAL.replace('ixx=".1"', 'ixx="-.1"'))), 'link "a": .*cannot be negative'),
        (robot(link("a", INERTIAL.replace('ixx=".1"', 'ixx="inf"'))), 'link "a": inertia is not finite'),
    ],
)
def test_broken_files_are_refused_in_words(text, message):
    with pytest.raises(ModelError, match=message):
        load(text)
