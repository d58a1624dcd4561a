"""What a scene adds to a compiled model: materials of pairs, surface velocities, initial velocities."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import mujoco
import numpy as np

from rsim_jax.modeling.candidates import FIRST, OWN, SECOND
from rsim_jax.modeling.derive import as_leaf
from rsim_jax.modeling.links import rotation
from rsim_jax.modeling.material import Material
from rsim_jax.structs import FREE, Model, Topology

_UNDEFINED = Material()


@dataclass(frozen=True)
class GeomSurface:
    """Material of a geom (None: MJCF friction) and velocity of its surface, m/s in world axes."""

    geom: mujoco.MjsGeom
    material: str | None
    velocity: np.ndarray


@dataclass(frozen=True)
class BodyStart:
    """Initial velocity of a body, m/s and rad/s in world axes."""

    body: mujoco.MjsBody
    quaternion: np.ndarray
    velocity: np.ndarray
    angular_velocity: np.ndarray


def with_surfaces(model: Model, surfaces: Sequence[GeomSurface], materials: Mapping[frozenset[str], Material]) -> Model:
    """Pair leaves from the materials of the two geoms.

    Two materials use their pair's parameters. A material against a robot that keeps its MJCF friction takes the
    robot's friction; two such robots keep what MuJoCo's rule gave.
    """
    material = {s.geom.id: s.material for s in surfaces}
    names = (
        "friction",
        "restitution",
        "restitution_threshold",
        "static_friction",
        "static_friction_velocity",
        "rolling_friction",
        "spinning_friction",
    )
    leaves = {name: np.asarray(getattr(model, f"pair_{name}"), np.float64).copy() for name in names}
    source = np.asarray(model.pair_from_geoms).copy()
    lever = np.asarray(model.pair_lever, np.float64).copy()
    sliding = np.asarray(model.geom_friction)[0, :, 0]
    for p, (a, b) in enumerate(model.topology.pair_geoms):
        kinds = material[a], material[b]
        if None not in kinds:
            values = materials.get(frozenset(kinds), _UNDEFINED)
            static = values.friction if values.static_friction is None else values.static_friction
            for name in names:
                leaves[name][p] = static if name == "static_friction" else getattr(values, name)
            source[p] = OWN
            lever[:, p, 0] = _levers(model.topology, a, b)
        elif kinds != (None, None):
            source[p], geom = (FIRST, a) if kinds[0] is None else (SECOND, b)
            leaves["friction"][p] = leaves["static_friction"][p] = sliding[geom]
    velocity = np.zeros((3, model.ngeom, 1))
    for surface in surfaces:
        velocity[:, surface.geom.id, 0] = surface.velocity
    arrays = {f"pair_{name}": as_leaf(value, model.dtype) for name, value in leaves.items()}
    moving = as_leaf(np.asarray(model.geom_surface_velocity) + velocity, model.dtype)
    topology = dataclasses.replace(
        model.topology,
        angular_friction=bool(np.any(leaves["rolling_friction"]) or np.any(leaves["spinning_friction"])),
    )
    return dataclasses.replace(
        model,
        **arrays,
        topology=topology,
        pair_lever=as_leaf(lever, model.dtype),
        pair_from_geoms=jax.device_put(source),
        geom_surface_velocity=moving,
    )


def _levers(topology: Topology, a: int, b: int) -> tuple[float, float]:
    """Weights of the distances to the centres of mass: the mean over those of the two that are single free bodies."""
    parents = set(topology.joint_parent)

    def single(geom: int) -> float:
        link = topology.geom_link[geom]
        return float(link < topology.njnt and topology.joint_type[link] == FREE and link not in parents)

    weights = single(a), single(b)
    return tuple(w / max(sum(weights), 1) for w in weights)


def with_starts(model: Model, starts: Sequence[BodyStart]) -> Model:
    """default_qd of free bodies (angular part turned into body axes) and default velocities of kinematic ones."""
    t = model.topology
    qd = np.asarray(model.default_qd, np.float64).copy()
    linear, angular = np.zeros((3, t.nkin, 1)), np.zeros((3, t.nkin, 1))
    for start in starts:
        link = t.body_link[start.body.id]
        if link < t.njnt:
            first = t.joint_dadr[link]
            assert t.joint_type[link] == FREE
            qd[first : first + 3, 0] = start.velocity
            qd[first + 3 : first + 6, 0] = rotation(start.quaternion).T @ start.angular_velocity
        else:
            linear[:, link - t.njnt, 0] = start.velocity
            angular[:, link - t.njnt, 0] = start.angular_velocity
    return dataclasses.replace(
        model,
        default_qd=as_leaf(qd, model.dtype),
        kinematic_default_velocity=as_leaf(linear, model.dtype),
        kinematic_default_angular_velocity=as_leaf(angular, model.dtype),
    )
