"""Walker2d: a planar biped walks forward."""

from __future__ import annotations

from jaxtyping import Array, Bool

from rsim_jax.envs.core import task_class
from rsim_jax.envs.planar import PlanarRunner
from rsim_jax.structs import State


@task_class
class Walker2d(PlanarRunner):
    """Gymnasium's Walker2d-v5; healthy while the torso's height and angle are inside their ranges."""

    xml_file: str = "walker2d_v5.xml"
    healthy_z_range: tuple[float, float] = (0.8, 2.0)
    healthy_angle_range: tuple[float, float] = (-1.0, 1.0)

    def is_healthy(self, state: State) -> Bool[Array, " N"]:
        z, angle = state.q[1], state.q[2]
        (z_low, z_high), (low, high) = self.healthy_z_range, self.healthy_angle_range
        return (z_low < z) & (z < z_high) & (low < angle) & (angle < high)
