"""Load time: MJCF, URDF and scenes to a Model, strictly checked."""

from __future__ import annotations

from rsim_jax.modeling.load import load
from rsim_jax.modeling.material import Material, PenaltyContact, Soil
from rsim_jax.modeling.options import Options
from rsim_jax.modeling.penalty import set_contact_model
from rsim_jax.modeling.registry import compiled
from rsim_jax.modeling.scene import Scene

__all__ = ["Material", "Options", "PenaltyContact", "Scene", "Soil", "compiled", "load", "set_contact_model"]
