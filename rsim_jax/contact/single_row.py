"""The exact solution of one contact row: open, stick or slip.

Given the row's block G (3x3, symmetric positive semi-definite), its velocity without its own impulse c, the target b
and mu, with cc = c - (0, 0, b):

    open    cc_z > 0:  lam = 0
    stick   lam = -G^-1 cc lies in the cone |lam_t| <= mu lam_z
    slip    lam = (r e, r / mu), e = (cos t, sin t), on the cone with v_z kept at its target:
            r(t) = -mu (cc_z / G_zz) / (1 + mu rho . e),   rho = (G_xz, G_yz) / G_zz
            v_t(t) = Gb r e + cb,   Gb_jk = G_jk - rho_k G_jz,   cb = cc_t - (G_xz, G_yz) cc_z / G_zz

Which slip direction t is a rule. "coulomb": friction opposes slip, the root of e x v_t with e . v_t < 0. "energy"
(RaiSim): least energy lam' G lam / 2 + lam' cc on that conic, the root of v_t . (tangent of the conic). They agree
where normal and tangent are not coupled (rho = 0).

Search: the cone seen from the stick impulse is the arc t_s +- arccos(mu lam_s,z / |lam_s,t|); one end has the sign of
the start, and bisection there finds the root (reference: Hwangbo, Lee, Hutter, "Per-contact iteration method for
solving contact dynamics", RA-L 2018). Blocks whose arc shows no sign change are searched on the full circle.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

HALVINGS = 52  # of a bracket: rounding of float64
SAMPLES = 96  # directions tried on the full circle
TINY = 1e-30
RANK = 64  # eigenvalues below this many roundings of the largest are directions without mobility


def solve_row(
    G: jax.Array, c: jax.Array, mu: jax.Array, b: float | jax.Array = 0.0, slip_rule: str = "coulomb"
) -> jax.Array:
    """Impulse (3, N) of N separate contacts, exact to rounding.

    Args:
        G: (3, 3, N) Delassus blocks, order (tangent, tangent, normal), 1/kg.
        c: (3, N) contact velocity without the contact's own impulse, m/s.
        mu: (N,) friction coefficients.
        b: target normal velocity, m/s, scalar or (N,).
        slip_rule: "coulomb" or "energy".

    Raises:
        ValueError: for shapes that do not fit or an unknown rule.
    """
    if slip_rule not in ("coulomb", "energy"):
        raise ValueError(f"slip_rule is {slip_rule!r}; choose 'coulomb' or 'energy'")
    G, c, mu = jnp.asarray(G), jnp.asarray(c), jnp.asarray(mu)
    if G.ndim != 3 or G.shape[:2] != (3, 3) or c.shape != (3, G.shape[2]) or mu.shape != (G.shape[2],):
        raise ValueError(f"expected G (3, 3, N), c (3, N), mu (N,); got {G.shape}, {c.shape}, {mu.shape}")
    block = tuple(G[i, k] for i, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    cc = (c[0], c[1], c[2] - b)
    stick = _stick(block, cc)
    slip = _circle_slip(block, cc, mu, stick, slip_rule)
    return _choose(block, cc, mu, stick, slip)


def _choose(block, cc, mu, stick, slip):
    """Open, stick or slip, component by component."""
    inside = (stick[2] >= 0) & (stick[0] ** 2 + stick[1] ** 2 <= (mu * stick[2]) ** 2)
    opens = (cc[2] > 0) | (block[2] <= TINY)
    return jnp.stack([jnp.where(opens, 0, jnp.where(inside, s, p)) for s, p in zip(stick, slip, strict=True)])


def _stick(block, cc):
    """-G^-1 cc; where G is singular, the least impulse that stops what can be stopped.

    The inverse by cofactors keeps blocks of very unequal eigenvalues exact, the pseudo-inverse those of lower rank in
    oblique axes: the second is taken where it leaves a hundred times less velocity.
    """
    plain, least = _inverse_times(block, cc), _pseudo_inverse_times(block, cc)
    better = _speed(block, cc, least) < 0.01 * _speed(block, cc, plain)
    return tuple(jnp.where(better, x, y) for x, y in zip(least, plain, strict=True))


def _speed(block, cc, impulse):
    """Largest component of cc + G impulse."""
    xx, yy, zz, xy, xz, yz = block
    x, y, z = impulse
    left = (cc[0] + xx * x + xy * y + xz * z, cc[1] + xy * x + yy * y + yz * z, cc[2] + xz * x + yz * y + zz * z)
    return jnp.max(jnp.abs(jnp.stack(left)), axis=0)


def _inverse_times(block, cc):
    """-(G + shift)^-1 cc by cofactors, the shift far below rounding of G."""
    xx, yy, zz, xy, xz, yz = block
    shift = 8 * jnp.finfo(xx.dtype).eps * (xx + yy + zz) + TINY
    xs, ys, zs = xx + shift, yy + shift, zz + shift
    a, b, c = ys * zs - yz * yz, xz * yz - xy * zs, xy * yz - xz * ys
    d, e, f = xs * zs - xz * xz, xy * xz - xs * yz, xs * ys - xy * xy
    scale = -1 / (xs * a + xy * b + xz * c)
    return (
        scale * (a * cc[0] + b * cc[1] + c * cc[2]),
        scale * (b * cc[0] + d * cc[1] + e * cc[2]),
        scale * (c * cc[0] + e * cc[1] + f * cc[2]),
    )


def _pseudo_inverse_times(block, cc):
    """-G^+ cc by eigenvectors."""
    xx, yy, zz, xy, xz, yz = block
    rows = [jnp.stack(row, axis=-1) for row in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))]
    values, directions = jnp.linalg.eigh(jnp.stack(rows, axis=-2))
    mobile = values > RANK * jnp.finfo(xx.dtype).eps * values[:, -1:] + TINY
    inverse = jnp.where(mobile, 1 / jnp.where(mobile, values, 1), 0)
    along = inverse * sum(directions[:, i] * cc[i][:, None] for i in range(3))
    return tuple(-jnp.sum(directions[:, i] * along, axis=-1) for i in range(3))


def _conic(block, cc, mu, ex, ey):
    """(1 + mu rho . e, v_t scaled by it) at the direction (ex, ey): no division, so no pole."""
    xx, yy, zz, xy, xz, yz = block
    inverse = 1 / jnp.maximum(zz, TINY)
    rx, ry = xz * inverse, yz * inverse
    denominator = 1 + mu * (rx * ex + ry * ey)
    radius = -mu * cc[2] * inverse
    vx = radius * ((xx - rx * xz) * ex + (xy - ry * xz) * ey) + denominator * (cc[0] - rx * cc[2])
    vy = radius * ((xy - rx * yz) * ex + (yy - ry * yz) * ey) + denominator * (cc[1] - ry * cc[2])
    return denominator, vx, vy


def _slope(block, cc, mu, ex, ey, slip_rule):
    """(g, denominator, v_t . e): g changes sign at the root of the rule; all scaled by the denominator."""
    denominator, vx, vy = _conic(block, cc, mu, ex, ey)
    ax, ay = ex, ey
    if slip_rule == "energy":
        inverse = 1 / jnp.maximum(block[2], TINY)
        ax, ay = ex + mu * block[4] * inverse, ey + mu * block[5] * inverse
    return vy * ax - vx * ay, denominator, vx * ex + vy * ey


def _on_cone(block, cc, mu, angle):
    """The impulse on the cone in direction `angle` that keeps v_z at its target."""
    ex, ey = jnp.cos(angle), jnp.sin(angle)
    denominator, _, _ = _conic(block, cc, mu, ex, ey)
    usable = denominator > TINY
    normal = jnp.where(usable, -cc[2] / (jnp.maximum(block[2], TINY) * jnp.where(usable, denominator, 1)), 0)
    return mu * normal * ex, mu * normal * ey, normal


def _arc_angle(block, cc, mu, stick, slip_rule):
    """Bisection on the arc that the stick impulse sees."""
    start = jnp.arctan2(stick[1], stick[0])
    length = jnp.sqrt(stick[0] ** 2 + stick[1] ** 2)
    phi = jnp.arccos(jnp.clip(mu * stick[2] / jnp.maximum(length, TINY), -1, 1))
    g0, _, _ = _slope(block, cc, mu, jnp.cos(start), jnp.sin(start), slip_rule)
    sign = jnp.sign(g0)
    return _bisect(block, cc, mu, slip_rule, start, start - sign * phi, sign)


def _bisect(block, cc, mu, slip_rule, low, high, sign):
    """Keep `low` where g has `sign` and the denominator is positive; beyond a pole counts as past the root."""

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        g, denominator, _ = _slope(block, cc, mu, jnp.cos(middle), jnp.sin(middle), slip_rule)
        before = (g * sign > 0) & (denominator > 0)
        return jnp.where(before, middle, low), jnp.where(before, high, middle)

    low, high = jax.lax.fori_loop(0, HALVINGS, halve, (low, high))
    return 0.5 * (low + high)


def _circle_slip(block, cc, mu, stick, slip_rule):
    """Slip impulse: the arc's root, or the best root on the full circle where that one is better."""
    arc = _arc_angle(block, cc, mu, stick, slip_rule)
    dtype = cc[0].dtype
    edges = jnp.linspace(-jnp.pi, jnp.pi, SAMPLES + 1, dtype=dtype)[:, None]
    many = tuple(x[None] for x in block)
    wide = tuple(x[None] for x in cc)
    g, _, _ = _slope(many, wide, mu[None], jnp.cos(edges), jnp.sin(edges), slip_rule)
    middles = 0.5 * (edges[:-1] + edges[1:])
    badness = _badness(many, wide, mu[None], middles, slip_rule)
    badness = jnp.where(g[:-1] * g[1:] <= 0, badness, jnp.inf)
    best = jnp.argmin(badness, axis=0)
    chosen = jnp.arange(SAMPLES)[:, None] == best[None]
    low = jnp.sum(jnp.where(chosen, edges[:-1], 0), axis=0)
    high = jnp.sum(jnp.where(chosen, edges[1:], 0), axis=0)
    sign = jnp.sign(jnp.sum(jnp.where(chosen, g[:-1], 0), axis=0))
    circle = _bisect(block, cc, mu, slip_rule, low, high, sign)
    better = _badness(block, cc, mu, circle, slip_rule) < _badness(block, cc, mu, arc, slip_rule)
    return _on_cone(block, cc, mu, jnp.where(better, circle, arc))


def _badness(block, cc, mu, angle, slip_rule):
    """What the rule minimises at a direction; infinite where the cone is not met with a positive impulse."""
    ex, ey = jnp.cos(angle), jnp.sin(angle)
    g, denominator, along = _slope(block, cc, mu, ex, ey, slip_rule)
    valid = denominator > 0
    safe = jnp.where(valid, denominator, 1)
    if slip_rule == "coulomb":  # speed of slip that friction does not oppose
        return jnp.where(valid, (jnp.abs(g) + jnp.maximum(along, 0)) / safe, jnp.inf)
    x, y, z = _on_cone(block, cc, mu, angle)
    xx, yy, zz, xy, xz, yz = block
    quadratic = 0.5 * (xx * x * x + yy * y * y + zz * z * z) + xy * x * y + xz * x * z + yz * y * z
    return jnp.where(valid, quadratic + x * cc[0] + y * cc[1] + z * cc[2], jnp.inf)
