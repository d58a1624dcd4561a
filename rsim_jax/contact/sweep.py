"""Projected Gauss-Seidel over rows: one visit, one sweep, all sweeps.

A visit solves its own row with the others held, exactly where that is cheap, and always with the exact row solution
(`contact/single_row.py`) as its only fixed point. For a contact with block G, velocity v and impulse lam:

    stick:  lam + G^-1 (b - v), if inside the cone
    slip:   lam_z = max(0, lam_z - (v_z - b) / G_zz), then the tangent moves against the slip left by that,
            lam_t - v_t / g, and is scaled onto the disc of radius mu lam_z      (g = largest eigenvalue of G_tt)

Sweeps run forward, backward, forward, ... inside each step. A world whose largest visit changed its row velocities by
less than the tolerance in a sweep stops updating; others are not affected.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.contact.single_row import slip_energy
from rsim_jax.contact.system import Impulses, RowSystem, dot_rows, velocity_change
from rsim_jax.lanes.fence import fence, stack

UNROLLED_ROWS = 24  # rows written out in a sweep; beyond this the sweep loops over them
EPSILON = 1e-30  # below this a diagonal entry has no mobility: its row is dropped


def sweep_rows(system: RowSystem, start: Impulses, sweeps: int, slip_rule: str) -> Impulses:
    """Impulses after `sweeps` sweeps from `start`."""
    contacts, scalars = system.y.shape[0], system.scalar_y.shape[0]
    if contacts + scalars == 0 or sweeps == 0:
        return start
    inverse = _inverses(system)
    dz = velocity_change(system, start)
    carry = (tuple(start.contact[k] for k in range(contacts)), tuple(start.scalar[s] for s in range(scalars)), dz)

    def forward(carry):
        return _one_sweep(system, inverse, carry, slip_rule, reverse=False)

    def both(_, carry):
        return _one_sweep(system, inverse, forward(carry), slip_rule, reverse=True)

    carry = lax.fori_loop(0, sweeps // 2, both, carry)
    if sweeps % 2:
        carry = forward(carry)
    contact, scalar, _ = carry
    n = dz.shape[-1]
    return Impulses(
        jnp.stack(contact) if contacts else jnp.zeros((0, 3, n), dz.dtype),
        jnp.stack(scalar) if scalars else jnp.zeros((0, n), dz.dtype),
    )


def _one_sweep(system, inverse, carry, slip_rule, reverse):
    contact, scalar, dz = carry
    contact, scalar = list(contact), list(scalar)
    visits: list[tuple[Callable, list, int]] = [(_visit_scalar, scalar, s) for s in range(len(scalar))]
    visits += [(_visit_contact, contact, k) for k in range(len(contact))]
    for visit, impulses, i in reversed(visits) if reverse else visits:
        impulses[i], dz = visit(system, inverse, i, impulses[i], dz, slip_rule)
    return tuple(contact), tuple(scalar), dz


def _visit_scalar(system, inverse, s, lam, dz, slip_rule):
    y = system.scalar_y[s]
    v = dot_rows(y, dz) + system.scalar_c[s]
    new = jnp.clip(lam - (v - system.scalar_target[s]) * inverse["scalar"][s], system.low[s], system.high[s])
    change = fence(new - lam)
    return fence(lam + change), fence(dz + y * change)


def _visit_contact(system, inverse, k, lam, dz, slip_rule):
    y, c = system.y[k], system.c[k]
    v = stack([dot_rows(y[r], dz) + c[r] for r in range(3)])
    if slip_rule == "coulomb":
        new = _project(lam, v, system.target[k], system.friction[k], system.block[k], inverse, k)
    else:
        new = _exact_energy(lam, v, system.target[k], system.friction[k], system.block[k], inverse, k)
    change = fence(new - lam)
    return new, fence(dz + y[0] * change[0] + y[1] * change[1] + y[2] * change[2])


def _inverses(system: RowSystem) -> dict[str, jax.Array]:
    """Per row, once a step: 1/G_zz, 1/g, the six entries of (G + eps)^-1, the scalar diagonals."""
    xx, yy, zz, xy, xz, yz = (system.block[:, k] for k in range(6))
    half, spread = 0.5 * (xx + yy), 0.5 * (xx - yy)
    largest = half + jnp.sqrt(spread * spread + xy * xy)
    trace = xx + yy + zz
    shift = STICK_SHIFT[str(system.block.dtype)] * trace + EPSILON
    xs, ys, zs = xx + shift, yy + shift, zz + shift
    a, b, c = ys * zs - yz * yz, xz * yz - xy * zs, xy * yz - xz * ys
    d, e, f = xs * zs - xz * xz, xy * xz - xs * yz, xs * ys - xy * xy
    scale = 1 / (xs * a + xy * b + xz * c)
    return fence(
        {
            "normal": reciprocal(zz, trace),
            "tangent": reciprocal(largest, trace),
            "stick": jnp.stack([a * scale, d * scale, f * scale, b * scale, c * scale, e * scale], axis=1),
            "scalar": reciprocal(system.scalar_block, system.scalar_block),
        }
    )


STICK_SHIFT = {"float32": 3e-7, "float64": 1e-14}  # relative to the trace: keeps rank-deficient blocks invertible


def reciprocal(x: jax.Array, scale: jax.Array) -> jax.Array:
    """1 / x, or 0 where x is nothing compared with `scale` (a direction without mobility)."""
    usable = x > 1e-10 * scale + EPSILON
    return jnp.where(usable, 1 / jnp.where(usable, x, 1), 0)


def _project(lam, v, target, mu, block, inverse, k):
    xz, yz = block[4], block[5]
    error = [v[0], v[1], v[2] - target]
    ixx, iyy, izz, ixy, ixz, iyz = (inverse["stick"][k, i] for i in range(6))
    stick = stack(
        [
            lam[0] - (ixx * error[0] + ixy * error[1] + ixz * error[2]),
            lam[1] - (ixy * error[0] + iyy * error[1] + iyz * error[2]),
            lam[2] - (ixz * error[0] + iyz * error[1] + izz * error[2]),
        ]
    )
    normal = jnp.maximum(0, lam[2] - error[2] * inverse["normal"][k])
    rise = normal - lam[2]
    step = inverse["tangent"][k]
    tx = lam[0] - (v[0] + xz * rise) * step
    ty = lam[1] - (v[1] + yz * rise) * step
    radius = mu * normal
    square = tx * tx + ty * ty
    shrink = jnp.where(square > radius * radius, radius * lax.rsqrt(jnp.maximum(square, EPSILON)), 1)
    slip = fence((normal, tx, ty, shrink))
    normal, tx, ty, shrink = slip
    bound = mu * stick[2]
    sticks = (stick[2] >= 0) & (stick[0] * stick[0] + stick[1] * stick[1] <= bound * bound)
    return stack(
        [
            jnp.where(sticks, stick[0], tx * shrink),
            jnp.where(sticks, stick[1], ty * shrink),
            jnp.where(sticks, stick[2], normal),
        ]
    )


def _exact_energy(lam, v, target, mu, block, inverse, k):
    """RaiSim's rule has no cheap projection: every visit is the exact solution, by bisection."""
    return slip_energy(lam, v, target, mu, block, inverse["stick"][k])
