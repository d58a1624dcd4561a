"""Is the step short enough for the stiffness of compliant contacts?

A body that rests on a contact with stiffness k = dF_n/dp and damping c = dF_n/dp' at its rest depth moves near it by
x'' = -(k x + c x') / m. One step of the integrator maps (x, dt x') by a 2x2 matrix of a = dt c / m and b = dt^2 k / m;
the rest is stable while the matrix's eigenvalues are at most 1. Without damping that is dt < 2 sqrt(m / k) for
semi_implicit, 2.8 sqrt(m / k) for rk4 and no step at all for the trapezoid rule, which needs dt < 2 c / k.

Below its linear zone friction is a damper mu F_n / v_lin and must obey dt < 2 m v_lin / (mu F_n) (2.8 for rk4), or
slip changes sign every step, bounded by mu F_n dt / m.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import jax.numpy as jnp
import mujoco
import numpy as np

from rsim_jax.errors import ModelError
from rsim_jax.modeling.material import PenaltyContact
from rsim_jax.modeling.names import label
from rsim_jax.modeling.registry import compiled
from rsim_jax.structs import Model, PenaltyGeometry, PenaltyParameters, PenaltyVelocity

GRAVITY = 9.81  # m/s^2: load of a scene that has none
FRICTION_LIMIT = {"semi_implicit": 2.0, "trapezoid": 2.0, "rk4": 2.785}  # of dt times a damper's rate
_DEPTHS = np.geomspace(1e-10, 1.0, 1001)  # m, where a user's law is looked at
_RATE = 1e-2  # m/s
_ROUNDING = 1e-13


def check_step(model: Model, penalties: Mapping[int, PenaltyContact]) -> None:
    """Refuse a model whose step is too long for a contact at rest; warn where friction will chatter.

    Args:
        model: with penalty pairs, as loaded.
        penalties: the penalty models to look at, by number.

    Raises:
        ModelError: with the pair, its stiffness and mass, the limit and the remedies.
    """
    topology, source = model.topology, compiled(model)
    dt, integrator = float(model.dt), topology.integrator
    gravity = float(np.linalg.norm(np.asarray(model.gravity)[:, 0])) or GRAVITY
    chattering = ""
    for pair, number in zip(topology.penalty_pairs, np.asarray(model.pair_penalty_model)[:, 0], strict=True):
        penalty = penalties.get(int(number))
        mass, carried = _masses(source, pair)
        if penalty is None or penalty.allow_unstable or mass == 0:
            continue
        geoms = " with ".join(label(source, "geom", g) for g in pair)
        load = carried * gravity
        k, c = rest_stiffness(penalty, load)
        if not is_stable(integrator, dt, k, c, mass):
            raise ModelError(f"{topology.source}: {_too_stiff(geoms, integrator, dt, k, c, mass)}")
        limit = FRICTION_LIMIT[integrator] * mass * penalty.v_lin / max(penalty.mu * load, np.finfo(float).tiny)
        if penalty.law is None and dt > limit and not chattering:
            chattering = (
                f"{topology.source}: friction of {geoms} (mu = {penalty.mu:g}, v_lin = {penalty.v_lin:g} m/s) is not "
                f"resolved by a step of {dt:g} s, and slip at rest changes sign every step: shorten the step to "
                f"{limit:.2g} s or raise v_lin to {penalty.v_lin * dt / limit:.2g} m/s"
            )
    if chattering:
        warnings.warn(chattering, stacklevel=4)


def _too_stiff(geoms: str, integrator: str, dt: float, k: float, c: float, mass: float) -> str:
    limit = longest_step(integrator, dt, k, c, mass)
    numbers = f"contact of {geoms} has a stiffness of {k:.3g} N/m for {mass:.3g} kg at rest"
    other = "" if integrator == "rk4" else "use rk4, "
    remedy = f"lower kp, {other}or set allow_unstable=True"
    if limit == 0:
        return f"{numbers} and too little damping for any step of {integrator}: raise kc, {remedy}"
    return f"{numbers}, which {integrator} can step by {limit:.2g} s at most, not {dt:g} s: shorten the step, {remedy}"


def _masses(source: mujoco.MjModel, pair: tuple[int, int]) -> tuple[float, float]:
    """(effective mass that the contact moves, mass that it may have to carry), kg; (0, 0) if nothing can move."""
    bodies = [int(source.geom_bodyid[g]) for g in pair]
    inverse = sum(float(source.body_invweight0[b, 0]) for b in bodies)
    if inverse <= 0:
        return 0.0, 0.0
    trees = [float(source.body_subtreemass[source.body_rootid[b]]) for b in bodies if source.body_invweight0[b, 0] > 0]
    return 1 / inverse, min(trees)


def rest_stiffness(penalty: PenaltyContact, load: float) -> tuple[float, float]:
    """(dF_n/dp, dF_n/dp') at the depth where a penalty model carries `load` (N); zeros if it never does."""
    if penalty.law is not None:
        return _law_stiffness(penalty, load)
    if penalty.kp == 0:
        return 0.0, 0.0
    depth = (load / penalty.kp) ** (1 / penalty.n)
    return penalty.n * load / depth, penalty.kc * load / penalty.kp


def _law_stiffness(penalty: PenaltyContact, load: float) -> tuple[float, float]:
    """The same for a user's law, by differences."""
    shape = (1, len(_DEPTHS))
    up = jnp.broadcast_to(jnp.asarray([0.0, 0.0, 1.0])[:, None, None], (3, *shape))
    names = ("kp", "kc", "n", "mu", "v_lin")
    parameters = PenaltyParameters(**{name: jnp.full((1, 1), float(getattr(penalty, name))) for name in names})
    geometry = PenaltyGeometry(depth=jnp.asarray(_DEPTHS)[None], point=0 * up, normal=up)

    def normal(rate: float) -> np.ndarray:
        force, _ = penalty.law(parameters, geometry, PenaltyVelocity(rate=jnp.full(shape, rate), slip=0 * up))
        return np.asarray(force, np.float64)[0]

    force = normal(0.0)
    carries = np.flatnonzero(force >= load)
    if not len(carries) or carries[0] == 0:
        return 0.0, 0.0
    i = carries[0]
    slope = (force[i] - force[i - 1]) / (_DEPTHS[i] - _DEPTHS[i - 1])
    return float(slope), float((normal(_RATE)[i] - force[i]) / _RATE)


def is_stable(integrator: str, dt: float, k: float, c: float, mass: float) -> bool:
    """Whether small motions about the rest do not grow from step to step."""
    a, b = dt * c / mass, dt * dt * k / mass
    match integrator:
        case "semi_implicit":
            step = np.array([[1 - b, 1 - a], [-b, 1 - a]])
        case "trapezoid":
            step = np.array([[1 - b / 2, 1 - a / 2], [-b, 1 - a]])
        case _:
            rate = np.array([[0, 1], [-b, -a]])
            step = sum((np.linalg.matrix_power(rate, p) / f for p, f in ((1, 1), (2, 2), (3, 6), (4, 24))), np.eye(2))
    trace, determinant = (
        np.trace(step),
        np.linalg.det(step),
    )  # Jury's conditions: a double eigenvalue is ill-conditioned
    return bool(abs(determinant) <= 1 + _ROUNDING and abs(trace) <= 1 + determinant + _ROUNDING)


def longest_step(integrator: str, dt: float, k: float, c: float, mass: float) -> float:
    """The longest stable step below an unstable one, s; 0 if there is none above a thousandth of it."""
    low, high = dt * 1e-3, dt
    if not is_stable(integrator, low, k, c, mass):
        return 0.0
    for _ in range(40):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if is_stable(integrator, middle, k, c, mass) else (low, middle)
    return float(low)
