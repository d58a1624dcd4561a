"""A planar two-link arm that observes its angles and the position of its tip."""

from __future__ import annotations

from rsim_jax.envs import Outcome, Task, task_class
from rsim_jax.envs.core import split_keys, uniform
from rsim_jax.envs.quantities import body_frames, site_position
from rsim_jax.lanes.fence import concatenate

LENGTHS = (0.5, 0.4)
XML = """
<mujoco model="arm">
  <option timestep="0.01" gravity="0 0 0"/>
  <worldbody>
    <body name="upper">
      <joint name="shoulder" axis="0 0 1" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.03" contype="0" conaffinity="0"/>
      <body name="lower" pos="0.5 0 0">
        <joint name="elbow" axis="0 0 1" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" contype="0" conaffinity="0"/>
        <site name="tip" pos="0.4 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="shoulder" ctrlrange="-1 1"/>
    <motor joint="elbow" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""


@task_class
class Arm(Task):
    """obs = (angles, tip); reward = -distance of the tip from the shoulder; never terminates."""

    def initial(self, keys):
        kq, kv = split_keys(keys)
        return uniform(kq, 2, 3.0, self.dtype), uniform(kv, 2, 0.1, self.dtype)

    def outcome(self, model, before, after, action):
        tip = site_position(model, 0, body_frames(model, after))
        distance = (tip[0] ** 2 + tip[1] ** 2) ** 0.5
        return Outcome(
            obs=concatenate([after.q, tip]),
            reward=-distance,
            terminated=distance < 0,
            terms={"reach": distance},
            info={},
        )
