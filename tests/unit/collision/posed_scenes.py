"""Scenes of free bodies in given poses, for this package and for MuJoCo, and MuJoCo's contacts as the oracle."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from rsim_jax.collision.narrow_phase import FAR, detect
from rsim_jax.modeling.load import load
from rsim_jax.structs import Links, Model


@dataclass(frozen=True)
class Found:
    """One contact, normal from the geom with the lower id to the other."""

    point: np.ndarray
    normal: np.ndarray
    gap: float


def xml_of(*geoms: str, margin: float = 0.0) -> str:
    """A scene with one geom per body, free but for planes, which may not move; geom ids follow the arguments."""
    text = ""
    for geom in geoms:
        joint = "" if 'type="plane"' in geom else "<freejoint/>"
        text += f'<body>{joint}<geom margin="{margin}" {geom}/></body>'
    return f"<mujoco><worldbody>{text}</worldbody></mujoco>"


def links_of(model: Model, position: np.ndarray, quaternion: np.ndarray, origin: np.ndarray | None = None) -> Links:
    """Links of free bodies at `position` (nbody, 3, N), `quaternion` (nbody, 4, N)."""
    count, _, worlds = position.shape
    rotation = np.zeros((3, 3, count + 1, worlds))
    for i in range(count):
        for n in range(worlds):
            matrix = np.zeros(9)
            mujoco.mju_quat2Mat(matrix, quaternion[i, :, n])
            rotation[:, :, i, n] = matrix.reshape(3, 3)
    rotation[:, :, count] = np.eye(3)[:, :, None]
    origin = np.zeros((3, worlds)) if origin is None else origin
    places = np.concatenate([position.transpose(1, 0, 2) - origin[:, None], -origin[:, None]], axis=1)
    dtype = model.dtype
    return Links(jnp.asarray(rotation, dtype), jnp.asarray(places, dtype), jnp.asarray(origin, dtype))


def random_quaternions(rng: np.random.Generator, count: int, worlds: int) -> np.ndarray:
    """(count, 4, worlds) unit quaternions, uniform."""
    quaternion = rng.normal(size=(count, 4, worlds))
    return quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)


def detected(model: Model, links: Links) -> list[list[Found]]:
    """This package's existing candidates, world by world, at world positions."""
    candidates = jax.tree.map(np.asarray, jax.jit(detect)(model, links))
    found = []
    for n in range(candidates.gap.shape[1]):
        origin = np.asarray(links.origin)[:, n]
        found.append(
            [
                Found(candidates.point[:, c, n] + origin, candidates.normal[:, c, n], float(candidates.gap[c, n]))
                for c in range(candidates.gap.shape[0])
                if candidates.gap[c, n] < 0.5 * FAR
            ]
        )
    return found


def by_mujoco(xml: str, position: np.ndarray, quaternion: np.ndarray) -> list[list[Found]]:
    """MuJoCo's contacts of the same poses, world by world; its own sign of the normal is turned to ours."""
    mj = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(mj)
    found = []
    for n in range(position.shape[2]):
        for i in range(position.shape[0]):
            data.qpos[7 * i : 7 * i + 3] = position[i, :, n]
            data.qpos[7 * i + 3 : 7 * i + 7] = quaternion[i, :, n]
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_collision(mj, data)
        world = []
        for contact in data.contact:
            sign = 1 if contact.geom[0] < contact.geom[1] else -1
            world.append(Found(contact.pos.copy(), sign * contact.frame[:3], float(contact.dist)))
        found.append(world)
    return found


def scene(*geoms: str, margin: float = 0.0, dtype: object = jnp.float64) -> tuple[Model, str]:
    """The same geoms as a model of this package and as XML for MuJoCo."""
    xml = xml_of(*geoms, margin=margin)
    return load(xml, dtype=dtype), xml
