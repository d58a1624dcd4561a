"""Classical fourth-order Runge-Kutta over (q, qd), four derivative evaluations a step.

Rates are averaged with the classical weights and q moves once on the manifold by their mean, so the step is fourth
order in the joint coordinates of hinges and slides.
"""

from __future__ import annotations

from collections.abc import Callable

import jax

from rsim_jax.dynamics.assembly import FreeMotion, assemble
from rsim_jax.dynamics.integrate import advance
from rsim_jax.lanes.fence import fence
from rsim_jax.structs import Model, State


def runge_kutta(model: Model, state: State, ctrl: jax.Array, applied: Callable[[State], jax.Array]) -> FreeMotion:
    """FreeMotion with u* = u + dt/6 (a1 + 2 a2 + 2 a3 + a4) and the mean rate; Body is that of the first evaluation."""
    dt, first = model.dt, None
    rate, acceleration = 0.0, 0.0
    q, qd = state.q, state.qd
    for share, ahead in ((1 / 6, 0.5), (1 / 3, 0.5), (1 / 3, 1.0), (1 / 6, None)):
        here = state.replace(q=q, qd=qd)
        body, qdd = assemble(model, here, q, qd, ctrl, applied(here))
        first = body if first is None else first
        rate, acceleration = rate + share * qd, acceleration + share * qdd
        if ahead is not None:
            q = advance(model, state.q, qd, ahead * dt)
            qd = fence(state.qd + ahead * dt * qdd)
    return FreeMotion(first, fence(state.qd + dt * acceleration), fence(rate))
