"""A pinch grasp: what two pads hold by friction does not creep."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from physics.trials import G, run

import rsim_jax as rsim

FORCES = np.array([12.0, 24.0, 60.0])  # N of each pad, one world each
GRASP = """
<mujoco><option timestep="0.002"/>
  <default><geom friction="0.7" contype="1" conaffinity="2"/><joint axis="1 0 0" type="slide"/></default>
  <worldbody>
    <body pos="-0.03 0 0"><joint name="left"/><geom type="box" size="0.01 0.03 0.03" mass="0.1"/></body>
    <body pos="0.03 0 0"><joint name="right"/><geom type="box" size="0.01 0.03 0.03" mass="0.1"/></body>
    <body name="held"><freejoint/>
      <geom type="capsule" size="0.02 0.02" euler="90 0 0" mass="0.045" contype="2" conaffinity="1"/></body>
  </worldbody>
  <actuator><motor joint="left"/><motor joint="right" gear="-1"/></actuator>
</mujoco>"""


@pytest.mark.parametrize(
    ("dtype", "options", "creep"),
    [
        ("float64", rsim.Options(), 1e-6),
        ("float32", rsim.Options(), 1e-4),  # its positions round at 4e-9 m a step
    ],
)
def test_a_pinched_capsule_does_not_slip(dtype, options, creep):
    """45 g between two pads at mu = 0.7: below 1 um/s, at the shipped default; the pads press as they are told."""
    model = rsim.load(GRASP, options=options, dtype=dtype)
    ctrl = np.stack([FORCES, FORCES])
    seen = run(model, rsim.make_state(model, 3), 1.5, every=50, ctrl=ctrl)
    held = seen.q[:, 2:5]
    early = int(np.argmin(np.abs(seen.time - 0.5)))
    assert np.abs(held[-1] - held[early]).max() < creep
    np.testing.assert_allclose(seen.load[-1], 2 * FORCES, rtol=1e-4)
    assert np.abs(held[early, 2]).max() < 1e-3
    force = rsim.net_contact_force(model, seen.state)[:, model.body_id("held")]
    np.testing.assert_allclose(force[2], 0.045 * G * np.ones(3), rtol=2e-3)
    assert jnp.all(seen.state.status == 0)
