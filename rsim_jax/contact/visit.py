"""One visit of a contact row inside a sweep: the exact solution of `contact/single_row.py`, cheap and branch-free.

Slip directions are measured from the stick impulse's tangent, which points along the frame's first axis after a
rotation of the block: e = (c, s) / p with c = 1 - t^2, s = 2 t, p = 1 + t^2, t = tan(angle / 2). On the cone, v_z at
its target (single_row's notation, R = -mu cc_z / G_zz, (gamma, delta) = mu rho, b = cb) the rule's condition times
p^2 is a quartic in t, so that a halving costs four multiply-adds and no trigonometry:

    coulomb: R (A12 (c^2 - s^2) + (A22 - A11) c s) + (p + gamma c + delta s) (b_y c - b_x s)
    energy:  the same + p (gamma v_y - delta v_x) p

The root is bracketed by the visible arc, 0 <= |t| <= tan(phi / 2), cos phi = mu lam_s,z / |lam_s,t|. The first probe
halves the angle, later ones are regula falsi with the Illinois weights. Past a pole of the cone counts as past the
root.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax.lanes.fence import concatenate, fence, stack

PROBES = 3  # after the first: two more change no residual of the benchmark, one less ten times as many
WIDEST_ARC = -0.9999  # cosine of the widest half-arc searched
POLE = 1e-3  # smallest denominator of the cone, relative to 1
TINY = 1e-30


def exact_contact(cc: jax.Array, mu: jax.Array, block: jax.Array, inverse: jax.Array, slip_rule: str) -> jax.Array:
    """New impulse (3, N) of a row with velocity cc (3, N) without its own impulse and target.

    Block (6, N), inverse (7, N) as `inverse_block` gives. Rows without mobility get zero.
    """
    ixx, iyy, izz, ixy, ixz, iyz = (inverse[k] for k in range(6))
    stick = stack(
        [
            -(ixx * cc[0] + ixy * cc[1] + ixz * cc[2]),
            -(ixy * cc[0] + iyy * cc[1] + iyz * cc[2]),
            -(ixz * cc[0] + iyz * cc[1] + izz * cc[2]),
        ]
    )
    turned = _turn(stick, mu)
    conic = _conic(block, cc, turned, mu, inverse[6], slip_rule)
    t = _root(conic, turned[2])
    return _choose(cc, stick, mu, inverse[6], turned, conic, t)


def inverse_block(block: jax.Array) -> jax.Array:
    """(7, N) of a block (6, N): the entries of (G + shift)^-1 (xx yy zz xy xz yz) and 1 / G_zz, zero without mobility.

    The shift keeps blocks of rank 2 and 1 invertible; it is far below the rounding of their largest entry's effect.
    """
    xx, yy, zz, xy, xz, yz = (block[k] for k in range(6))
    trace = xx + yy + zz
    shift = SHIFT[str(block.dtype)] * trace + TINY
    xs, ys, zs = xx + shift, yy + shift, zz + shift
    a, b, c = ys * zs - yz * yz, xz * yz - xy * zs, xy * yz - xz * ys
    d, e, f = xs * zs - xz * xz, xy * xz - xs * yz, xs * ys - xy * xy
    cofactors = stack([a, d, f, b, c, e, reciprocal(zz, trace)])
    scale = fence(1 / (xs * cofactors[0] + xy * cofactors[3] + xz * cofactors[4]))
    return concatenate([fence(cofactors[:6] * scale), cofactors[6:]])


def within_bounds(torque: jax.Array, rolling: jax.Array, spinning: jax.Array) -> jax.Array:
    """Torque impulse (3, N) of a contact, scaled into |t_xy| <= rolling and |t_z| <= spinning (N,)."""
    square = torque[0] * torque[0] + torque[1] * torque[1]
    beyond = square > rolling * rolling
    scale = jnp.where(beyond, rolling * lax.rsqrt(jnp.where(beyond, square, 1)), 1)
    return stack([scale * torque[0], scale * torque[1], jnp.clip(torque[2], -spinning, spinning)])


SHIFT = {"float32": 2e-7, "float64": 1e-14}  # of the inverse, relative to the trace


def reciprocal(x: jax.Array, scale: jax.Array) -> jax.Array:
    """1 / x, or 0 where x is nothing compared with `scale` (a direction without mobility)."""
    usable = x > 1e-10 * scale + TINY
    return jnp.where(usable, 1 / jnp.where(usable, x, 1), 0)


def _turn(stick: jax.Array, mu: jax.Array) -> jax.Array:
    """(3, N): unit tangent of the stick impulse (x, y), tan(phi / 2) of the visible half-arc."""
    square = stick[0] * stick[0] + stick[1] * stick[1]
    usable = square > TINY
    inverse = lax.rsqrt(jnp.where(usable, square, 1))
    cosine = jnp.clip(mu * stick[2] * inverse, WIDEST_ARC, 1)
    x, y = jnp.where(usable, stick[0] * inverse, 1), jnp.where(usable, stick[1] * inverse, 0)
    return stack([x, y, jnp.sqrt((1 - cosine) / (1 + cosine))])


def _conic(block, cc, turned, mu, inverse_zz, slip_rule):
    """(8, N): quartic (5), then the cone's denominator (3), in the frame turned to the stick impulse's tangent."""
    xx, yy, zz, xy, xz, yz = (block[k] for k in range(6))
    ax, ay = turned[0], turned[1]
    rx, ry = (ax * xz + ay * yz) * inverse_zz, (ax * yz - ay * xz) * inverse_zz
    a11 = ax * ax * xx + 2 * ax * ay * xy + ay * ay * yy - rx * rx * zz
    a22 = ay * ay * xx - 2 * ax * ay * xy + ax * ax * yy - ry * ry * zz
    a12 = ax * ay * (yy - xx) + (ax * ax - ay * ay) * xy - rx * ry * zz
    bx, by = ax * cc[0] + ay * cc[1] - rx * cc[2], ax * cc[1] - ay * cc[0] - ry * cc[2]
    reduced = stack([a11, a22, a12, bx, by, mu * rx, mu * ry, -mu * cc[2] * inverse_zz])
    a11, a22, a12, bx, by, gamma, delta, radius = (reduced[k] for k in range(8))
    alpha, beta = radius * a12, radius * (a22 - a11)
    turn = delta * by - gamma * bx
    quartic = [
        alpha + by * (1 + gamma),
        2 * (beta - bx + turn),
        -6 * alpha - 2 * gamma * by - 4 * delta * bx,
        -2 * (beta + bx + turn),
        alpha - by * (1 - gamma),
    ]
    if slip_rule == "energy":
        lift = gamma * by - delta * bx
        even = radius * (gamma * a12 - delta * a11) + lift * gamma
        odd = 2 * (radius * (gamma * a22 - delta * a12) + lift * delta)
        extra = (even + lift, odd, 2 * lift, odd, lift - even)
        quartic = [q + e for q, e in zip(quartic, extra, strict=True)]
    return stack([*quartic, 1 + gamma, 2 * delta, 1 - gamma])


def _root(conic: jax.Array, arc: jax.Array) -> jax.Array:
    """Root of the quartic between 0 and the end of the arc on the side where it changes sign."""
    p0, p1, p2, p3, p4, q0, q1, q2 = (conic[k] for k in range(8))
    sign = jnp.where(p0 < 0, -1.0, 1.0).astype(arc.dtype)

    def evaluate(t):
        return sign * ((((p4 * t + p3) * t + p2) * t + p1) * t + p0), (q2 * t + q1) * t + q0 <= 0

    low, high = jnp.zeros_like(arc), -sign * arc
    f_low = jnp.abs(p0)
    f_high, beyond = evaluate(high)
    f_high = jnp.where(beyond | (f_high >= 0), -f_low, f_high)
    side = jnp.zeros_like(arc)
    t = high / (1 + jnp.sqrt(1 + arc * arc))  # half the angle
    for _ in range(PROBES + 1):
        f, beyond = evaluate(t)
        past = beyond | (f <= 0)
        f = jnp.where(beyond, -f_low, f)
        f_low, f_high = (
            jnp.where(past, jnp.where(side > 0, 0.5 * f_low, f_low), f),
            jnp.where(past, f, jnp.where(side < 0, 0.5 * f_high, f_high)),
        )
        low, high = jnp.where(past, low, t), jnp.where(past, t, high)
        side = jnp.where(past, 1.0, -1.0).astype(arc.dtype)
        span = f_low - f_high
        weight = jnp.where(span > 0, f_low / jnp.where(span > 0, span, 1), 0.5)
        t = low + (high - low) * jnp.clip(weight, 0, 1)
    return fence(t)


def _choose(cc, stick, mu, inverse_zz, turned, conic, t):
    """Open, stick or slip."""
    p = 1 / (1 + t * t)
    c, s = (1 - t * t) * p, 2 * t * p
    denominator = jnp.maximum(((conic[7] * t + conic[6]) * t + conic[5]) * p, POLE)
    normal = jnp.maximum(-cc[2] * inverse_zz / denominator, 0)
    bound = mu * stick[2]
    inside = (stick[2] >= 0) & (stick[0] * stick[0] + stick[1] * stick[1] <= bound * bound)
    closed = (cc[2] <= 0) & (inverse_zz > 0)
    sticks, slips = closed & inside, closed & ~inside
    load = mu * normal
    slide = (load * (turned[0] * c - turned[1] * s), load * (turned[1] * c + turned[0] * s), normal)
    return stack([jnp.where(slips, a, jnp.where(sticks, b, 0)) for a, b in zip(slide, stick, strict=True)])
