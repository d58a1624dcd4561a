"""Hopper: a planar one-legged robot hops forward."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool

from rsim_jax.envs.core import task_class
from rsim_jax.envs.planar import PlanarRunner
from rsim_jax.lanes.fence import concatenate
from rsim_jax.structs import State


@task_class
class Hopper(PlanarRunner):
    """Gymnasium's Hopper-v5; healthy while the torso is high and upright and the whole state inside its range."""

    reward_threshold: ClassVar[float | None] = 3800.0

    xml_file: str = "hopper.xml"
    healthy_state_range: tuple[float, float] = (-100.0, 100.0)
    healthy_z_range: tuple[float, float] = (0.7, float("inf"))
    healthy_angle_range: tuple[float, float] = (-0.2, 0.2)

    def is_healthy(self, state: State) -> Bool[Array, " N"]:
        z, angle = state.q[1], state.q[2]
        rest = concatenate([state.q[2:], state.qd])
        (low, high), (z_low, z_high) = self.healthy_state_range, self.healthy_z_range
        angle_low, angle_high = self.healthy_angle_range
        inside = jnp.all((low < rest) & (rest < high), axis=0)
        return inside & (z_low < z) & (z < z_high) & (angle_low < angle) & (angle < angle_high)
