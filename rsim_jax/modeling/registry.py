"""The compiled MuJoCo model behind each loaded model: what rendering draws and tests compare with."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import OrderedDict

import mujoco
import numpy as np

from rsim_jax.errors import ModelError
from rsim_jax.structs import Model, Topology

_KEPT = 256  # models; the oldest are forgotten
_FIXED = ("body_offset", "joint_offset", "joint_rotation", "geom_offset", "geom_rotation", "hull_vertices", "default_q")
_compiled: OrderedDict[tuple[Topology, bytes], mujoco.MjModel] = OrderedDict()


def register(model: Model, compiled: mujoco.MjModel) -> None:
    """Remember where a model comes from."""
    key = _key(model)
    _compiled[key] = compiled
    _compiled.move_to_end(key)
    while len(_compiled) > _KEPT:
        _compiled.popitem(last=False)


def compiled(model: Model) -> mujoco.MjModel:
    """The MuJoCo model that `model` was made from, with the values of its file (replaced leaves do not show).

    Raises:
        ModelError: when the model was not loaded in this process, or too many were loaded since.
    """
    found = _compiled.get(_key(model))
    if found is None:
        raise ModelError(f"{model.topology.source}: its MuJoCo model is not kept in this process; load it again")
    return found


def _key(model: Model) -> tuple[Topology, bytes]:
    """Topology, less what follows from replaced leaves, and the leaves that nobody can replace."""
    digest = hashlib.sha1()
    for name in _FIXED:
        digest.update(np.asarray(getattr(model, name)).tobytes())
    return dataclasses.replace(model.topology, angular_friction=False), digest.digest()
