"""rsim_jax: batched rigid-body simulation with exact Coulomb contact, for reinforcement learning on JAX."""

from __future__ import annotations

from rsim_jax.contact.reports import pair_report
from rsim_jax.contact.single_row import solve_row
from rsim_jax.errors import ModelError, Status, explain
from rsim_jax.modeling import Material, Options, PenaltyContact, Scene, Soil, load, set_contact_model
from rsim_jax.pipeline import (
    contact_report,
    net_contact_force,
    rollout,
    solver_residual,
    step,
    wire_tension,
)
from rsim_jax.pipeline import detect_contacts as detect
from rsim_jax.runtime import configure
from rsim_jax.sensing.quantities import (
    apply_force,
    bias_force,
    body_pose,
    body_velocity,
    center_of_mass,
    energy,
    jacobian,
    mass_matrix,
    momentum,
)
from rsim_jax.states import apply_generalized_force, make_state, select, set_kinematic, set_wire_tension, write
from rsim_jax.structs import ContactRows, Model, PointPairContactInfo, State

__all__ = [
    "ContactRows",
    "Material",
    "Model",
    "ModelError",
    "Options",
    "PenaltyContact",
    "PointPairContactInfo",
    "Scene",
    "Soil",
    "State",
    "Status",
    "apply_force",
    "apply_generalized_force",
    "bias_force",
    "body_pose",
    "body_velocity",
    "center_of_mass",
    "configure",
    "contact_report",
    "detect",
    "energy",
    "explain",
    "jacobian",
    "load",
    "make_state",
    "mass_matrix",
    "momentum",
    "net_contact_force",
    "pair_report",
    "rollout",
    "select",
    "set_contact_model",
    "set_kinematic",
    "set_wire_tension",
    "solve_row",
    "solver_residual",
    "step",
    "wire_tension",
    "write",
]
