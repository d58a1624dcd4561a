"""What observations read: against closed forms and MuJoCo."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import rsim_jax as rsim
from rsim_jax.envs import make
from rsim_jax.envs.files import gymnasium_assets
from rsim_jax.envs.quantities import body_frames, body_roots, com_velocity, composite_inertia, limit_force


def test_limit_force_holds_a_cart_against_its_stop():
    """Poles hanging at rest, motor pushing by 5 N: the stop (range less margin) pushes back by 5 N, inwards."""
    task = make("inverted_double_pendulum")
    state = task.reset(jax.random.key(0), 2)
    q = jnp.array([[0.99, -0.99], [np.pi, np.pi], [0.0, 0.0]], jnp.float32)
    state = state.replace(physics=state.physics.replace(q=q, qd=jnp.zeros_like(q)))
    for _ in range(40):
        state = task.step(state, jnp.array([[0.01, -0.01]], jnp.float32))
    np.testing.assert_allclose(limit_force(task.model, state.physics)[0], [-5.0, 5.0], rtol=1e-2)
    np.testing.assert_allclose(state.obs[-1], [-5.0, 5.0], rtol=1e-2)


def test_spatial_quantities_equal_mujocos():
    """cinert and cvel of two trees (a floating humanoid and, beside it, a free box) at random states."""
    text = (gymnasium_assets() / "humanoid.xml").read_text()
    box = '<body name="box" pos="2 1 1"><freejoint/><geom type="box" size=".1 .2 .3" mass="2"/></body></worldbody>'
    text = text.replace("</worldbody>", box)
    source = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(source)
    model = rsim.load(text, dtype=jnp.float64)
    assert body_roots(model.topology) == tuple(source.body_rootid)
    rng = np.random.default_rng(0)
    q = np.stack([source.qpos0 + rng.normal(size=source.nq) for _ in range(3)], axis=1)
    for start in (3, source.nq - 4):
        q[start : start + 4] /= np.linalg.norm(q[start : start + 4], axis=0)
    qd = rng.normal(size=(source.nv, 3))
    state = rsim.make_state(model, 3).replace(q=jnp.asarray(q), qd=jnp.asarray(qd))

    @jax.jit
    def ours(model, state):
        frames = body_frames(model, state)
        return composite_inertia(model, frames), com_velocity(model, state, frames)

    inertia, velocity = ours(model, state)
    for world in range(3):
        data.qpos, data.qvel = q[:, world], qd[:, world]
        mujoco.mj_forward(source, data)
        np.testing.assert_allclose(inertia[..., world].T, data.cinert[1:], atol=1e-9)
        np.testing.assert_allclose(velocity[..., world].T, data.cvel[1:], atol=1e-9)
