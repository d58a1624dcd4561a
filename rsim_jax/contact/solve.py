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
from rsim_jax.contact.system import ANGULAR_BLOCK, ROLLING, SPINNING, Impulses, RowSystem, velocities, velocity_change
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

    count = system.components * system.slots + system.scalar_y.shape[0]
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
    contacts, width = system.slots, system.components
    return Impulses(flat[: width * contacts].reshape(contacts, width, flat.shape[-1]), flat[width * contacts :])


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
    opens = opens | dead
    turns = _turning_branches(system, lam, contact, opens) if system.turning else ()
    return jax.lax.stop_gradient((opens, slips, held, wish >= system.high, turns))


def _turning_branches(system: RowSystem, lam: jax.Array, v: jax.Array, opens: jax.Array):
    """Masks (K, N): the torque across the normal is at its bound, the one along it."""
    first = 3 * system.width
    rolling, spinning = (system.angular[:, first + k] * lam[:, 2] for k in (ROLLING, SPINNING))
    across, along = jnp.hypot(lam[:, 3], lam[:, 4]), jnp.abs(lam[:, 5])
    rolls = (across >= rolling * (1 - 1e-6)) & (jnp.hypot(v[:, 3], v[:, 4]) > STICK_SPEED)
    spins = (along >= spinning * (1 - 1e-6)) & (jnp.abs(v[:, 5]) > STICK_SPEED)
    return opens | rolls, opens | spins


def _equations(rows: RowSystem, impulses: Impulses, branches, slip_rule: str) -> jax.Array:
    """F (3 K or 6 K, then S, N)."""
    opens, slips, held, at_high, turns = branches
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
    parts = [tangential, normal[:, None], *([_turning(rows, lam, v, *turns)] if rows.turning else [])]
    first = jnp.concatenate(parts, axis=1).reshape(-1, v.shape[-1])
    bound = jnp.where(at_high, rows.high, rows.low)
    bound = jnp.where(jnp.isfinite(bound), bound, 0)
    second = jnp.where(held, impulses.scalar - bound, rows.soften(scalar, impulses.scalar) - rows.scalar_target)
    return jnp.concatenate([first, second])


def _turning(rows: RowSystem, lam: jax.Array, v: jax.Array, rolls: jax.Array, spins: jax.Array) -> jax.Array:
    """Rows of F (K, 3, N) for rolling and spinning friction: no turning, or the torque at its bound against it."""
    first = 3 * rows.width
    rolling, spinning = (rows.angular[:, first + k] * lam[:, 2] for k in (ROLLING, SPINNING))
    block = [rows.angular[:, first + ANGULAR_BLOCK + k] for k in range(2)]
    omega = jnp.where(rolls[:, None], v[:, 3:5], jnp.asarray([1.0, 0.0], v.dtype)[:, None])
    against = omega / jnp.maximum(vectors.safe_norm(jnp.moveaxis(omega, 1, 0)), TURNING)[:, None]
    sign = jnp.sign(v[:, 5])
    bound = jnp.concatenate(
        [lam[:, 3:5] + rolling[:, None] * against, (lam[:, 5] + spinning * jax.lax.stop_gradient(sign))[:, None]],
        axis=1,
    )
    at_bound = jnp.stack([rolls, rolls, spins], axis=1)
    scale = jnp.stack([block[0], block[0], block[1]], axis=1)
    still = jnp.where(scale > 0, v[:, 3:], lam[:, 3:])  # without mobility there is no torque
    return jnp.where(at_bound, jnp.where(scale > 0, scale, 1) * bound, still)


TURNING = 1e-30  # rad/s


def _energy_slide(rows: RowSystem, lam, v, load, scale):
    """Cone and stationarity of the energy rule, with e = lam_t / (mu lam_z)."""
    safe = jnp.where(load > 0, load, 1)
    ex, ey = lam[:, 0] / safe, lam[:, 1] / safe
    zz = jnp.where(rows.block[:, 2] > 0, rows.block[:, 2], 1)
    mu = rows.friction
    slope = v[:, 1] * (ex + mu * rows.block[:, 4] / zz) - v[:, 0] * (ey + mu * rows.block[:, 5] / zz)
    cone = scale * (lam[:, 0] ** 2 + lam[:, 1] ** 2 - load**2) / safe
    return cone, slope
