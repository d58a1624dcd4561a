"""Errors and Jacobians of equality constraints against MuJoCo's, in its own order and with its own signs."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import rsim_jax as rsim
from rsim_jax.contact import loops
from rsim_jax.contact.anchors import Motions
from rsim_jax.dynamics.kinematics import link_poses, motion_subspace
from rsim_jax.dynamics.structure import structure
from rsim_jax.lanes.tree import take
from rsim_jax.modeling import compiled

XML = """
<mujoco><compiler angle="radian"/><worldbody>
  <body name="a" pos="0 0 1"><freejoint/><geom size=".1" pos=".1 0 0"/>
    <body name="b" pos=".3 .1 0" quat="1 .2 0 .1"><joint axis="0 1 0" ref="0.1"/><geom size=".1"/>
      <body name="shell" pos="0 .1 .2" euler=".1 .2 .3"><geom size=".05"/><site name="tip" pos=".1 .2 0"/></body>
      <body name="c" pos="0 0 .4"><joint type="ball"/><geom size=".1"/></body></body></body>
  <body name="d" pos="1 0 1"><joint type="slide" axis="1 2 0"/><joint axis="1 0 0"/><geom size=".1"/>
    <site name="socket" pos="0 .1 0" quat="1 0 1 0"/></body>
</worldbody><equality>
  <connect name="peg" body1="shell" body2="d" anchor=".1 .2 .3"/>
  <connect name="post" body1="c" anchor="0 0 .1"/>
  <connect name="sites" site1="tip" site2="socket"/>
  <weld name="glue" body1="b" body2="d" relpose=".1 .2 .3 1 .1 .2 .3" anchor=".3 .2 .1"/>
  <weld name="glued sites" site1="socket" site2="tip"/>
  <weld name="loose" body1="d" body2="a" torquescale="0"/>
  <joint name="gear" joint1="0" joint2="1" polycoef=".1 .2 .3 .4 .5"/>
  <joint name="lock" joint1="1" polycoef=".3 0 0 0 0"/>
</equality></mujoco>
""".replace('<joint axis="0 1 0" ref', '<joint name="0" axis="0 1 0" ref').replace(
    '<joint axis="1 0 0"/>', '<joint name="1" axis="1 0 0"/>'
)
WORLDS = 4


@jax.jit
def equations(model, state):
    tree = structure(model.topology)
    links, rotation, position = link_poses(model, state.q, state.kinematic_position, state.kinematic_quaternion)
    subspace = motion_subspace(model, rotation, position)
    origin = take(subspace.tree_origin, tree.dof_tree)
    motions = Motions(subspace.angular, subspace.linear, origin, dofs=tree.dof_order)
    found = loops.loop_equations(model, state, motions, links)
    return found.error, take(found.jacobian, tree.dof_position)


@functools.cache
def built():
    return rsim.load(XML, dtype="float64")


@functools.cache
def ours():
    """(q, error (E, N), jacobian (E, nv, N)) by pins, welds, equalities."""
    model = built()
    state = rsim.make_state(model, WORLDS)
    q = np.array(state.q) + np.random.default_rng(0).normal(size=state.q.shape)
    for start in (3, 8):
        q[start : start + 4] /= np.linalg.norm(q[start : start + 4], axis=0)
    error, jacobian = equations(model, state.replace(q=jnp.asarray(q)))
    return q, np.asarray(error), np.asarray(jacobian)


def theirs(q):
    """For every equality, its rows of efc_pos and efc_J, and the rotation matrices of all bodies and sites."""
    source = compiled(built())
    data = mujoco.MjData(source)
    data.qpos[:] = q
    mujoco.mj_forward(source, data)
    jacobian = data.efc_J.reshape(-1, source.nv)
    equality = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    rows = {}
    for i in range(source.neq):
        here = equality & (data.efc_id == i)
        rows[source.equality(i).name] = data.efc_pos[here], jacobian[here]
    return rows, data.xmat.reshape(-1, 3, 3), data.site_xmat.reshape(-1, 3, 3)


PINS = ("peg", "post", "sites", "glue", "glued sites", "loose")
WELDS = ("glue", "glued sites")


def test_the_file_becomes_pins_welds_and_equalities():
    topology = built().topology
    assert (topology.npin, topology.welds, topology.nequality, topology.nloop) == (6, (3, 4), 2, 26)


@pytest.mark.parametrize("name", PINS)
def test_translations(name):
    q, error, jacobian = ours()
    rows = [k * len(PINS) + PINS.index(name) for k in range(3)]
    for n in range(WORLDS):
        position, gradient = theirs(q[:, n])[0][name]
        np.testing.assert_allclose(error[rows, n], -position[:3], atol=1e-12)
        np.testing.assert_allclose(jacobian[rows, :, n], -gradient[:3], atol=1e-12)


@pytest.mark.parametrize("name", WELDS)
def test_rotations(name):
    """MuJoCo's error is the sine of half the angle, in the axes of the second frame, from b to a."""
    q, error, _ = ours()
    rows = [3 * len(PINS) + k * len(WELDS) + WELDS.index(name) for k in range(3)]
    for n in range(WORLDS):
        (position, _), bodies, sites = (x[name] if isinstance(x, dict) else x for x in theirs(q[:, n]))
        turn = bodies[built().body_id("d")] if name == "glue" else sites[0]
        mine = error[rows, n]
        half = np.sin(np.linalg.norm(mine) / 2) * mine / np.linalg.norm(mine)
        sign = np.sign(np.dot(half, turn @ position[3:]))  # a quaternion and its negative are one rotation
        np.testing.assert_allclose(half, sign * (turn @ position[3:]), atol=1e-12)


def test_the_rotation_error_changes_as_its_jacobian_says():
    """Against differences of the error itself along random motions, near zero error, where both must agree."""
    text = """<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/></body>
      <body name="b"><freejoint/><geom size=".1"/></body></worldbody>
      <equality><weld body1="a" body2="b" relpose="0 0 0 1 .2 .3 .4"/></equality></mujoco>"""
    model = rsim.load(text, dtype="float64", ignore=("pair",))
    state = rsim.make_state(model, WORLDS)
    rng = np.random.default_rng(5)
    first = rng.normal(size=(4, WORLDS))
    first /= np.linalg.norm(first, axis=0)
    relative = np.array([1, 0.2, 0.3, 0.4]) / np.linalg.norm([1, 0.2, 0.3, 0.4])
    second = np.zeros_like(first)
    for n in range(WORLDS):
        mujoco.mju_mulQuat(column := np.zeros(4), first[:, n], relative)
        second[:, n] = column
    q = np.array(state.q)
    q[3:7], q[10:14] = first, second
    error, jacobian = equations(model, state.replace(q=jnp.asarray(q)))
    assert np.abs(np.asarray(error)[3:]).max() < 1e-12
    step, u = 1e-6, rng.normal(size=(12, WORLDS))
    moved = np.array(q)
    for n in range(WORLDS):
        column = moved[:, n].copy()
        mujoco.mj_integratePos(compiled(model), column, u[:, n].copy(), step)
        moved[:, n] = column
    after, _ = equations(model, state.replace(q=jnp.asarray(moved)))
    np.testing.assert_allclose((after - error)[3:] / step, np.einsum("ein,in->en", jacobian, u)[3:], atol=1e-5)


def test_joint_polynomials():
    q, error, jacobian = ours()
    for k, name in enumerate(("gear", "lock")):
        row = 3 * (len(PINS) + len(WELDS)) + k
        for n in range(WORLDS):
            position, gradient = theirs(q[:, n])[0][name]
            np.testing.assert_allclose(error[row, n], position[0], atol=1e-12)
            np.testing.assert_allclose(jacobian[row, :, n], gradient[0], atol=1e-12)
