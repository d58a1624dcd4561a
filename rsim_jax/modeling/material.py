"""What two surfaces do to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rsim_jax.errors import ModelError
from rsim_jax.modeling import checks


@dataclass(frozen=True)
class Material:
    """Contact parameters of a pair of materials.

    Args:
        friction: Coulomb coefficient of slipping contacts.
        restitution: 0 ... 1; a contact leaves with restitution (approach speed - threshold).
        restitution_threshold: m/s; slower approaches do not bounce.
        static_friction: coefficient at rest; None: equal to `friction`.
        static_friction_velocity: m/s; the slip speed at which the coefficient has fallen to `friction`.
        rolling_friction: not available yet, must be 0.
        spinning_friction: not available yet, must be 0.

    Raises:
        ModelError: names the argument and the value.
    """

    friction: float = 0.8
    restitution: float = 0.0
    restitution_threshold: float = 0.01
    static_friction: float | None = None
    static_friction_velocity: float = 1e-3
    rolling_friction: float = 0.0
    spinning_friction: float = 0.0

    def __post_init__(self) -> None:
        for name in ("friction", "restitution_threshold", "rolling_friction", "spinning_friction"):
            checks.number("Material", name, getattr(self, name), low=0)
        checks.number("Material", "restitution", self.restitution, low=0, high=1)
        checks.number("Material", "static_friction_velocity", self.static_friction_velocity, low=0, above=True)
        if self.static_friction is not None:
            checks.number("Material", "static_friction", self.static_friction, low=0)
        for name in ("rolling_friction", "spinning_friction"):
            if getattr(self, name) > 0:
                raise ModelError(f"Material: {name} = {getattr(self, name):g}: not available yet, give 0")


@dataclass(frozen=True)
class PenaltyContact:
    """Spring-damper contact of a pair; `Scene.set_contact_model` does not accept it yet."""

    kp: float
    kc: float
    n: float = 1.0
    mu: float = 0.5
    v_lin: float = 1e-3
    law: Callable | None = None
    bodies: Sequence[int] | None = None


@dataclass(frozen=True)
class Soil:
    """Deformable ground; `Scene.set_contact_model` does not accept it yet."""

    k_c: float
    k_phi: float
    n: float
    cohesion: float
    friction_angle: float
    shear_displacement: float
    elastic_stiffness: float
