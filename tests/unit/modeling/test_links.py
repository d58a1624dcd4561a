"""Poses and inertial properties of links against MuJoCo's own kinematics and mass matrix."""

from __future__ import annotations

import jax.numpy as jnp
import model_walk
import mujoco
import numpy as np
import pytest
from model_files import ALL, path

from rsim_jax.modeling import compiled, load

IGNORE = ("fluid", "pair", "mesh", "mimic")
MANY_JOINTS = """<mujoco><worldbody>
  <body mocap="true" pos="1 2 3" quat="1 1 0 0"><geom size=".1"/>
    <body pos="0 .1 .2"><joint pos=".1 0 0" axis="1 2 3"/><geom size=".1"/></body></body>
  <body pos="0 0 1"><joint type="slide" axis="1 1 0" ref=".4"/><joint axis="0 1 1" pos="0 0 .2" ref="20"/>
    <joint axis="1 0 1" pos=".1 0 .2"/><geom size=".1" pos=".3 0 0"/>
    <body pos=".1 0 0" euler="10 20 30"><joint type="slide" axis="0 0 1"/><joint type="ball" pos=".1 .2 .3"/>
      <geom type="box" size=".1 .2 .3"/>
      <body pos="0 .2 0" euler="0 40 0"><geom type="capsule" size=".05 .2" euler="30 0 0"/><site pos="0 0 .5"/>
        <body pos="0 0 .3" euler="50 0 0"><joint axis="1 0 0" pos="0 .1 0"/><geom size=".1" pos="0 0 .1"/></body>
      </body></body></body>
</worldbody></mujoco>"""


def random_state(compiled_model: mujoco.MjModel, seed: int) -> mujoco.MjData:
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(compiled_model)
    data.qpos[:] = rng.normal(size=compiled_model.nq)
    data.qvel[:] = rng.normal(size=compiled_model.nv)
    mujoco.mj_normalizeQuat(compiled_model, data.qpos)
    mujoco.mj_forward(compiled_model, data)
    return data


@pytest.mark.parametrize("source", [MANY_JOINTS, *ALL], ids=lambda s: "many joints" if "<" in s else s)
def test_bodies_geoms_and_sites_lie_where_mujoco_puts_them(source):
    model = load(path(source), ignore=IGNORE, dtype=jnp.float64)
    mj = compiled(model)
    for seed in range(3):
        data = random_state(mj, seed)
        for what, links, position, rotation in (
            ("body", model.topology.body_link, data.xpos, data.xmat),
            ("geom", model.topology.geom_link, data.geom_xpos, data.geom_xmat),
            ("site", model.topology.site_link, data.site_xpos, data.site_xmat),
        ):
            x, R = model_walk.placed(model, what, links, data.qpos)
            np.testing.assert_allclose(x, position, rtol=0, atol=1e-12)
            np.testing.assert_allclose(R.reshape(-1, 9), rotation, rtol=0, atol=1e-12)


@pytest.mark.parametrize("source", [MANY_JOINTS, *ALL], ids=lambda s: "many joints" if "<" in s else s)
def test_links_have_the_kinetic_energy_of_the_mass_matrix(source):
    model = load(path(source), ignore=IGNORE, dtype=jnp.float64)
    mj, t = compiled(model), model.topology
    data = random_state(mj, 7)
    mass_matrix = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, data, mass_matrix)
    expected = data.qvel @ mass_matrix @ data.qvel / 2 - mj.dof_armature @ data.qvel**2 / 2
    energy = 0.0
    for j in range(t.njnt):
        if t.joint_body.count(t.joint_body[j]) > 1 and t.body_link[t.joint_body[j]] != j:
            assert model.link_mass[j, 0] == 0  # only the last joint of a body carries it
            continue
        velocity = np.zeros(6)  # angular, linear at the body's origin, in its own axes, which are the link's
        mujoco.mj_objectVelocity(mj, data, mujoco.mjtObj.mjOBJ_XBODY, t.joint_body[j], velocity, 1)
        xx, yy, zz, xy, xz, yz = np.asarray(model.link_inertia[:, j, 0])
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        centre = velocity[3:] + np.cross(velocity[:3], np.asarray(model.link_com[:, j, 0]))
        energy += float(model.link_mass[j, 0]) * centre @ centre / 2 + velocity[:3] @ inertia @ velocity[:3] / 2
    assert energy == pytest.approx(expected, rel=1e-10, abs=1e-14)


def test_a_long_chain_loads_fast_and_keeps_its_order():
    for count in (44, 100, 300):
        open_body = (
            '<body pos="{x} 0 0"><joint axis="0 1 0"/>'
            '<inertial pos="0.05 0 0" mass="0.1" diaginertia="1e-5 8.3333e-5 8.3333e-5"/>'
        )
        bodies = "".join(open_body.format(x=0.1 if i else 0) for i in range(count)) + "</body>" * count
        model = load(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>", dtype=jnp.float64)
        assert model.nv == count and model.topology.joint_parent == (count, *range(count - 1))
        assert float(model.link_mass.sum()) == pytest.approx(0.1 * count, rel=1e-12)


def test_a_welded_payload_counts_like_one_body():
    model = load(path("b14_nested_spin.xml"), dtype=jnp.float64)
    np.testing.assert_allclose(model.link_mass[:, 0], [0.2, 0.2], rtol=1e-14)
    np.testing.assert_allclose(model.link_inertia[:, 1], model.link_inertia[:, 0], rtol=1e-12, atol=1e-18)
