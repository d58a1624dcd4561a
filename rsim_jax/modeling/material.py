"""What two surfaces do to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

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
        rolling_friction: bound of the torque that resists rolling, over normal force and distance from the contact to
            the centre of mass (mean of two single bodies); a length in m where neither body is a single one.
        spinning_friction: the same about the contact's normal.

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


@dataclass(frozen=True)
class PenaltyContact:
    """Compliant contact: a nonlinear spring and damper along the normal, regularised Coulomb friction across it.

    With p the depth, p' its rate and v_t the slip velocity (see `contact/penalty.py`):

        F_n = max(0, kp p^n + kc p^n p'),    F_t = -mu F_n v_t / max(|v_t|, v_lin)

    The force is explicit in every integrator, so the step must resolve the spring: about 10 steps in a contact of
    pi sqrt(m / k) s give a rebound to 1 %. Where the contact of a body at rest would be unstable the model is refused.

    Args:
        kp: stiffness, N/m^n.
        kc: damping, N s/m^(n + 1); kc / kp is the dissipation of Hunt and Crossley, s/m.
        n: exponent, above 0; 1.5 is Hertz's.
        mu: coefficient of friction.
        v_lin: m/s; slip speed below which friction is proportional to slip. A body that sticks creeps with a share of
            it. The step must resolve this, too: dt < 2 m v_lin / (mu F_n), or friction chatters.
        law: (PenaltyParameters, PenaltyGeometry, PenaltyVelocity) -> (F_n (C, N), F_t (3, C, N)) in N, in JAX, instead
            of the law above. F_t acts on B, world axes. Both count only where the shapes overlap. Pass the same
            function object again, or the step is compiled again.
        bodies: ids or names of the bodies of a sub-tree, or a mask over all bodies; None: no restriction. Between two
            bodies that are not among them there is no contact.
        allow_unstable: simulate even where the step is too long for the stiffness.

    Raises:
        ModelError: names the argument and the value.
    """

    kp: float
    kc: float
    n: float = 1.0
    mu: float = 0.5
    v_lin: float = 1e-3
    law: Callable | None = None
    bodies: Sequence[int | str] | Sequence[bool] | None = None
    allow_unstable: bool = False

    def __post_init__(self) -> None:
        for name in ("kp", "kc", "mu"):
            checks.number("PenaltyContact", name, getattr(self, name), low=0)
        for name in ("n", "v_lin"):
            checks.number("PenaltyContact", name, getattr(self, name), low=0, above=True)
        if self.law is not None and not callable(self.law):
            raise ModelError(f"PenaltyContact: law = {self.law!r}: give a function or None")
        if self.bodies is not None:
            bodies = (self.bodies,) if isinstance(self.bodies, str) else self.bodies
            try:
                object.__setattr__(self, "bodies", tuple(np.asarray(bodies).tolist()))
            except TypeError:
                raise ModelError(f"PenaltyContact: bodies = {self.bodies!r}: give a list of ids or names") from None


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
