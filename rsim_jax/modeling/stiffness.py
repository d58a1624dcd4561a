"""Is the step short enough for the stiffness of compliant contacts?

A body that rests on a contact with stiffness k = dF_n/dp and damping c = dF_n/dp' at its rest depth moves near it by
x'' = -(k x + c x') / m. One step of the integrator maps (x, dt x') by a 2x2 matrix of a = dt c / m and b = dt^2 k / m;
the rest is stable while the matrix's eigenvalues are at most 1. Without damping that is dt < 2 sqrt(m / k) for
semi_implicit, 2.8 sqrt(m / k) for rk4 and no step at all for the trapezoid rule, which needs dt < 2 c / k.

That is not enough for an impact, which a step may see only once its depth is v dt: the first force must not turn more
than the approach speed v around, F_n(v dt, v) dt / m <= 2 v, or the body may leave faster than it came.

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
IMPACT = 3.0  # m/s: a fall of half a metre
FRICTION_LIMIT = {"semi_implicit": 2.0, "trapezoid": 2.0, "rk4": 2.785}  # of dt times a damper's rate
_DEPTHS = np.geomspace(1e-10, 1.0, 1001)  # m, where a user's law is looked at
_RATE = 1e-2  # m/s
_ROUNDING = 1e-13


def check_step(model: Model, penalties: Mapping[int, PenaltyContact]) -> None:
    """Refuse a model whose step is too long for a contact at rest; warn of impacts and friction it does not resolve.

    Args:
        model: with penalty pairs, as loaded.
        penalties: the penalty models to look at, by number.

    Raises:
        ModelError: with the pair, its stiffness and mass, the limit and the remedies.
    """
    topology, source = model.topology, compiled(model)
    dt, integrator = float(model.dt), topology.integrator
    gravity = float(np.linalg.norm(np.asarray(model.gravity)[:, 0])) or GRAVITY
    doubts: dict[str, str] = {}  # one of a kind
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
        speed = fastest_impact(penalty, dt, mass)
        if speed < IMPACT:
            doubts.setdefault(
                "impact",
                f"an impact of {geoms} ({mass:.3g} kg) faster than {speed:.2g} m/s may gain energy at a step of "
                f"{dt:g} s: shorten the step or lower kp and kc",
            )
        limit = FRICTION_LIMIT[integrator] * mass * penalty.v_lin / max(penalty.mu * load, np.finfo(float).tiny)
        if penalty.law is None and dt > limit:
            doubts.setdefault(
                "friction",
                f"friction of {geoms} (mu = {penalty.mu:g}, v_lin = {penalty.v_lin:g} m/s) is not resolved by a step "
                f"of {dt:g} s, and slip at rest changes sign every step: shorten the step to {limit:.2g} s or raise "
                f"v_lin to {penalty.v_lin * dt / limit:.2g} m/s",
            )
    for text in doubts.values():
        warnings.warn(f"{topology.source}: {text}", stacklevel=4)


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


def normal_force(penalty: PenaltyContact, depth: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """F_n (n,) of a penalty model at depths and their rates (n,)."""
    if penalty.law is None:
        return np.maximum(0, depth**penalty.n * (penalty.kp + penalty.kc * rate))
    up = jnp.broadcast_to(jnp.asarray([0.0, 0.0, 1.0])[:, None, None], (3, 1, len(depth)))
    names = ("kp", "kc", "n", "mu", "v_lin")
    parameters = PenaltyParameters(**{name: jnp.full((1, 1), float(getattr(penalty, name))) for name in names})
    geometry = PenaltyGeometry(depth=jnp.asarray(depth)[None], point=0 * up, normal=up)
    force, _ = penalty.law(parameters, geometry, PenaltyVelocity(rate=jnp.asarray(rate)[None], slip=0 * up))
    return np.asarray(force, np.float64)[0]


def rest_stiffness(penalty: PenaltyContact, load: float) -> tuple[float, float]:
    """(dF_n/dp, dF_n/dp') where a penalty model carries `load` (N), by differences; zeros if it never does."""
    rest = np.zeros_like(_DEPTHS)
    force = normal_force(penalty, _DEPTHS, rest)
    carries = np.flatnonzero(force >= load)
    if not len(carries):
        return 0.0, 0.0
    i = max(carries[0], 1)
    slope = (force[i] - force[i - 1]) / (_DEPTHS[i] - _DEPTHS[i - 1])
    return float(slope), float((normal_force(penalty, _DEPTHS, rest + _RATE)[i] - force[i]) / _RATE)


def fastest_impact(penalty: PenaltyContact, dt: float, mass: float) -> float:
    """Approach speed from which on a body may leave faster than it came, m/s; inf if it is above IMPACT."""
    speed = np.geomspace(1e-2, IMPACT, 100)
    gains = np.flatnonzero(normal_force(penalty, speed * dt, speed) * dt > 2 * mass * speed)
    return float(speed[gains[0]]) if len(gains) else np.inf


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
