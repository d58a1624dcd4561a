"""The motion of a step before any row acts.

semi_implicit and trapezoid: (M + W) (u* - u) = dt (tau + applied - c); rk4: see runge_kutta.
"""

from __future__ import annotations

import jax

from rsim_jax.dynamics.assembly import Applied, FreeMotion, assemble
from rsim_jax.dynamics.runge_kutta import runge_kutta
from rsim_jax.lanes.fence import fence
from rsim_jax.structs import Model, State


def free_motion(model: Model, state: State, ctrl: jax.Array, applied: Applied) -> FreeMotion:
    """The free velocity by the model's integrator; `applied` is called in every derivative."""
    if model.topology.integrator == "rk4":
        return runge_kutta(model, state, ctrl, applied)
    body, qdd, lag, penalty = assemble(model, state, ctrl, applied)
    u = fence(state.qd + model.dt * qdd)
    rate = (0.5 * (state.qd + u) if model.topology.integrator == "trapezoid" else u) + lag
    return FreeMotion(body, u, fence(rate), penalty)
