"""Solver and integrator options, checked when they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real

from rsim_jax.errors import ModelError

SLIP_RULES = ("coulomb", "energy")
INTEGRATORS = ("semi_implicit", "trapezoid", "rk4")


@dataclass(frozen=True)
class Options:
    """How a model is stepped. Every field has a default that suits walking robots.

    Args:
        max_contacts: contact rows kept per world; None derives a number from the model. Raise it when the status
            says CONTACT_OVERFLOW; lower it for speed when few contacts are ever active.
        sweeps: solver passes over all rows in each step. More sweeps, smaller residual, slower step.
        tolerance: m/s; a world whose residual is below it stops updating. 0 always runs all sweeps.
        erp: error reduction: a fraction clamp(0.2 erp, 0, 0.3) of a penetration beyond `slop` is removed per step.
            0 never pushes bodies apart, which conserves energy exactly.
        slop: m; penetration that is left alone, so that resting contacts stay active.
        max_correction: m/s; limit on the speed with which penetration is removed.
        slip_rule: "coulomb": friction opposes slip exactly. "energy": the direction of greatest dissipation.
        warm_start: start from the impulses of the previous step.
        speculative: let fast bodies stop at a surface instead of inside it.
        limit_restitution: 0 ... 1; bounce of joint limits.
        manifold_points: 4 ... 8 contacts (a count) at most between two flat faces. 4 carry a face; raise it when
            overlaps with more corners must carry load or torque up to their very outline, at more cost per step.
        integrator: "semi_implicit" | "trapezoid" | "rk4".
        velocity_limits: joints keep the velocity limits of a URDF, as hard as their stops. Off by default: such limits
            describe a motor driver more often than the robot.

    Raises:
        ModelError: names the option, its value and what it may be.
    """

    max_contacts: int | None = None
    sweeps: int = 20
    tolerance: float = 0.0
    erp: float = 1.5
    slop: float = 1e-5
    max_correction: float = 1.0
    slip_rule: str = "coulomb"
    warm_start: bool = True
    speculative: bool = True
    limit_restitution: float = 0.0
    manifold_points: int = 4
    integrator: str = "semi_implicit"
    velocity_limits: bool = False

    def __post_init__(self) -> None:
        if self.max_contacts is not None:
            _check_integer("max_contacts", self.max_contacts, least=0)
        _check_integer("sweeps", self.sweeps, least=1)
        _check_integer("manifold_points", self.manifold_points, least=4)
        if self.manifold_points > 8:
            raise ModelError(f"Options.manifold_points = {self.manifold_points!r}: give an integer from 4 to 8")
        for name in ("tolerance", "erp", "slop", "max_correction"):
            _check_number(name, getattr(self, name), 0.0, math.inf)
        _check_number("limit_restitution", self.limit_restitution, 0.0, 1.0)
        _check_choice("slip_rule", self.slip_rule, SLIP_RULES)
        _check_choice("integrator", self.integrator, INTEGRATORS)
        for name in ("warm_start", "speculative", "velocity_limits"):
            _check_choice(name, getattr(self, name), (True, False))


def _check_integer(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ModelError(f"Options.{name} = {value!r}: give an integer of at least {least}")


def _check_number(name: str, value: object, low: float, high: float) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:
        bounds = f"of at least {low:g}" if math.isinf(high) else f"from {low:g} to {high:g}"
        raise ModelError(f"Options.{name} = {value!r}: give a finite number {bounds}")


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if not any(value is c or (isinstance(c, str) and value == c) for c in choices):
        raise ModelError(f"Options.{name} = {value!r}: give one of {', '.join(map(repr, choices))}")
