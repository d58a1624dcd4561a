"""Classical fourth-order Runge-Kutta over (q, qd), four derivative evaluations a step.

Quaternions move in the chart q = q0 exp(v): the stages and the sum are taken in v, whose rate is that of
`integrate.chart_rate`, so the step is fourth order for every joint (Munthe-Kaas, "High order Runge-Kutta methods on
manifolds", Applied Numerical Mathematics 1999).
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from rsim_jax.dynamics.assembly import FreeMotion, assemble
from rsim_jax.dynamics.integrate import advance, chart_rate
from rsim_jax.lanes.fence import fence
from rsim_jax.structs import Model, State


def runge_kutta(model: Model, state: State, ctrl: jax.Array, applied: Callable[[State], jax.Array]) -> FreeMotion:
    """FreeMotion with u* = u + dt/6 (a1 + 2 a2 + 2 a3 + a4) and the mean rate; Body is that of the first evaluation."""
    dt, first = model.dt, None
    rate, acceleration = 0.0, 0.0
    q, qd, moved = state.q, state.qd, jnp.zeros_like(state.qd)
    for share, ahead in ((1 / 6, 0.5), (1 / 3, 0.5), (1 / 3, 1.0), (1 / 6, None)):
        here = state.replace(q=q, qd=qd)
        body, qdd, _ = assemble(model, here, q, qd, ctrl, applied(here))
        first = body if first is None else first
        along = chart_rate(model, moved, qd)
        rate, acceleration = rate + share * along, acceleration + share * qdd
        if ahead is not None:
            moved = fence(ahead * dt * along)
            q = advance(model, state.q, along, ahead * dt)
            qd = fence(state.qd + ahead * dt * qdd)
    return FreeMotion(first, fence(state.qd + dt * acceleration), fence(rate))
