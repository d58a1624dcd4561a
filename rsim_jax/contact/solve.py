"""The row solution as a function with derivatives.

Forward: sweeps. Derivative: not through the sweeps but through the equations the solution satisfies. At the solution
every row is open, sticking or slipping (a bounded scalar row: free or at a bound; a free soft one has v + gamma lam
at its target) and obeys F(lam; rows) = 0:

    open:   lam = 0
    stick:  v = (0, 0, b)
    slip:   v_z = b,  lam_t + mu lam_z v_t / |v_t| = 0          ("coulomb")
            v_z = b,  |lam_t|^2 = mu^2 lam_z^2,  g(lam_t) = 0   ("energy", see single_row)

so dlam = -(dF/dlam)^-1 dF(rows). One linear solve per world; being linear in the tangent it transposes, so forward
and reverse mode both work. At a switch the branch of the value is taken.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from rsim_jax.contact.sweep import sweep_rows
from rsim_jax.contact.system import Impulses, RowSystem, velocities, velocity_change
from rsim_jax.contact.visit import reciprocal
from rsim_jax.lanes import vectors

HYPERSTATIC_SHIFT = 1e-9  # keeps the derivative's linear system regular when contacts share a load in many ways
STICK_SPEED = 1e-7  # m/s below which a contact counts as sticking in the derivative, times the dtype's scale
LOADED = 1e-12  # N s


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def solve_rows(system: RowSystem, start: Impulses, sweeps: int, slip_rule: str) -> Impulses:
    """Impulses of all rows by `sweeps` projected Gauss-Seidel sweeps from `start` (no derivative in `start`)."""
    return sweep_rows(system, start, sweeps, slip_rule)


@solve_rows.defjvp
def _solve_rows_jvp(sweeps, slip_rule, primals, tangents):
    system, start = primals
    solution = solve_rows(system, start, sweeps, slip_rule)
    branches = _branches(system, solution)

    def equations(impulses, rows):
        return _equations(rows, impulses, branches, slip_rule)

    count = 3 * system.slots + system.scalar_y.shape[0]
    n = system.worlds
    unit = jnp.eye(count, dtype=system.contact.dtype)

    def column(direction):
        tangent = _unflatten(jnp.broadcast_to(direction[:, None], (count, n)), system)
        return jax.jvp(lambda impulses: equations(impulses, system), (solution,), (tangent,))[1]

    matrix = jnp.moveaxis(jax.vmap(column)(unit), (0, 1, 2), (2, 1, 0))  # (N, equation, unknown)
    _, driving = jax.jvp(lambda rows: equations(solution, rows), (system,), (tangents[0],))
    shift = HYPERSTATIC_SHIFT * jnp.eye(count, dtype=matrix.dtype)
    change = -jnp.linalg.solve(matrix + shift, driving.T[..., None])[..., 0].T
    return solution, _unflatten(change, system)


def _unflatten(flat: jax.Array, system: RowSystem) -> Impulses:
    contacts = system.slots
    return Impulses(flat[: 3 * contacts].reshape(contacts, 3, flat.shape[-1]), flat[3 * contacts :])


def _branches(system: RowSystem, solution: Impulses):
    """Masks at the solution: contact open, contact slipping; scalar row held at a bound."""
    contact, scalar = velocities(system, velocity_change(system, solution))
    lam = solution.contact
    speed = jnp.hypot(contact[:, 0], contact[:, 1])
    tangent = jnp.hypot(lam[:, 0], lam[:, 1])
    bound = system.friction * lam[:, 2]
    scale = jnp.finfo(speed.dtype).eps / jnp.finfo(jnp.float64).eps
    opens = lam[:, 2] <= LOADED
    slips = ~opens & (tangent >= bound * (1 - 1e-6)) & (speed > STICK_SPEED * min(scale, 1e3))
    free = reciprocal(system.scalar_stiffness, system.scalar_stiffness)
    wish = solution.scalar - (system.soften(scalar, solution.scalar) - system.scalar_target) * free
    held = (wish <= system.low) | (wish >= system.high) | (free == 0)
    dead = reciprocal(system.block[:, 2], system.block[:, 2]) == 0
    return jax.lax.stop_gradient((opens | dead, slips, held, wish >= system.high))


def _equations(rows: RowSystem, impulses: Impulses, branches, slip_rule: str) -> jax.Array:
    """F (3 K + S, N)."""
    opens, slips, held, at_high = branches
    contact, scalar = velocities(rows, velocity_change(rows, impulses))
    lam, v = impulses.contact, contact
    scale = jnp.where(opens, 1, rows.block[:, 0] + rows.block[:, 1])  # velocity per impulse: rows of like size
    moving = jnp.where(slips[:, None], v[:, :2], jnp.asarray([1.0, 0.0], v.dtype)[:, None])
    direction = moving / vectors.safe_norm(jnp.moveaxis(moving, 1, 0))[:, None]
    load = rows.friction * lam[:, 2]
    slide = scale[:, None] * (lam[:, :2] + load[:, None] * direction)
    if slip_rule == "energy":
        slide = jnp.stack(_energy_slide(rows, lam, v, load, scale), axis=1)
    # A tangent without mobility cannot stick by velocity: its impulse stays as it is.
    mobile = jnp.stack([reciprocal(rows.block[:, k], rows.block[:, 2]) > 0 for k in range(2)], axis=1)
    stick = jnp.where(mobile, v[:, :2], scale[:, None] * (lam[:, :2] - jax.lax.stop_gradient(lam[:, :2])))
    tangential = jnp.where(opens[:, None], lam[:, :2], jnp.where(slips[:, None], slide, stick))
    normal = jnp.where(opens, lam[:, 2], v[:, 2] - rows.target)
    first = jnp.concatenate([tangential, normal[:, None]], axis=1).reshape(-1, v.shape[-1])
    bound = jnp.where(at_high, rows.high, rows.low)
    bound = jnp.where(jnp.isfinite(bound), bound, 0)
    second = jnp.where(held, impulses.scalar - bound, rows.soften(scalar, impulses.scalar) - rows.scalar_target)
    return jnp.concatenate([first, second])


def _energy_slide(rows: RowSystem, lam, v, load, scale):
    """Cone and stationarity of the energy rule, with e = lam_t / (mu lam_z)."""
    safe = jnp.where(load > 0, load, 1)
    ex, ey = lam[:, 0] / safe, lam[:, 1] / safe
    zz = jnp.where(rows.block[:, 2] > 0, rows.block[:, 2], 1)
    mu = rows.friction
    slope = v[:, 1] * (ex + mu * rows.block[:, 4] / zz) - v[:, 0] * (ey + mu * rows.block[:, 5] / zz)
    cone = scale * (lam[:, 0] ** 2 + lam[:, 1] ** 2 - load**2) / safe
    return cone, slope
