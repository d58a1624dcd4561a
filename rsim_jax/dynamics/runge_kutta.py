"""Classical fourth-order Runge-Kutta over (q, qd), four derivative evaluations a step.

Quaternions move in the chart q = q0 exp(v): the stages and the sum are taken in v, whose rate is that of
`integrate.chart_rate`, so the step is fourth order for every joint (Munthe-Kaas, "High order Runge-Kutta methods on
manifolds", Applied Numerical Mathematics 1999). Forces from outside see each stage's own q, qd and time, and kinematic
bodies where they are at that time.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from rsim_jax.dynamics.assembly import Applied, FreeMotion, assemble
from rsim_jax.dynamics.integrate import advance, advance_kinematic, chart_rate
from rsim_jax.lanes.fence import fence
from rsim_jax.structs import Model, PenaltyContacts, State


def runge_kutta(model: Model, state: State, ctrl: jax.Array, applied: Applied) -> FreeMotion:
    """FreeMotion with u* = u + dt/6 (a1 + 2 a2 + 2 a3 + a4) and the mean rate; Body is that of the first evaluation."""
    dt, first = model.dt, None
    rate, acceleration = 0.0, 0.0
    here, moved = state, jnp.zeros_like(state.qd)
    penalties: list[tuple[float, PenaltyContacts | None]] = []
    for share, ahead in ((1 / 6, 0.5), (1 / 3, 0.5), (1 / 3, 1.0), (1 / 6, None)):
        body, qdd, _, penalty = assemble(model, here, ctrl, applied)
        penalties.append((share, penalty))
        first = body if first is None else first
        along = chart_rate(model, moved, here.qd)
        rate, acceleration = rate + share * along, acceleration + share * qdd
        if ahead is not None:
            moved = fence(ahead * dt * along)
            here = state.replace(
                q=advance(model, state.q, along, ahead * dt),
                qd=fence(state.qd + ahead * dt * qdd),
                time=state.time + ahead * dt,
                **advance_kinematic(model, state, ahead * dt),
            )
    return FreeMotion(first, fence(state.qd + dt * acceleration), fence(rate), _mean(penalties))


def _mean(penalties: list[tuple[float, PenaltyContacts | None]]) -> PenaltyContacts | None:
    """The first stage's contacts with the mean force, which is what the step's impulse is made of."""
    first = penalties[0][1]
    if first is None:
        return None
    return dataclasses.replace(first, force=fence(sum(share * penalty.force for share, penalty in penalties)))
