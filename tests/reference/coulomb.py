"""One frictional contact by brute force, from the textbook: every branch is tried and judged by the laws themselves.

Contact velocity v = G lam + c, order (tangent, tangent, normal), target normal velocity b. The laws:

    Signorini   v_n >= b, lam_n >= 0, (v_n - b) lam_n = 0
    Coulomb     |lam_t| <= mu lam_n, and where it slips lam_t = -mu lam_n v_t / |v_t|

Arrays have the case on the first axis: G (M, 3, 3), c and lam (M, 3), mu (M,).
"""

from __future__ import annotations

import numpy as np

DIRECTIONS = 720  # angles tried before bisection
HALVINGS = 60


def residual(G, c, mu, lam, b=0.0):
    """How far lam is from obeying the laws, in velocity: (M,)."""
    v = np.einsum("mij,mj->mi", G, lam) + c
    weight = np.trace(G, axis1=1, axis2=2)
    slip, push = np.linalg.norm(v[:, :2], axis=1), np.linalg.norm(lam[:, :2], axis=1)
    bound = mu * lam[:, 2]
    normal = np.abs(np.minimum(v[:, 2] - b, weight * lam[:, 2]))
    cone = weight * np.maximum(push - bound, 0)
    along = v[:, :2] / np.maximum(slip, 1e-300)[:, None]
    opposed = np.linalg.norm(lam[:, :2] + bound[:, None] * along, axis=1)
    return np.maximum(np.maximum(normal, cone), np.minimum(slip, weight * opposed))


def energy(G, c, lam):
    """Change of kinetic energy that an impulse brings: lam' G lam / 2 + lam' c."""
    return 0.5 * np.einsum("mi,mij,mj->m", lam, G, lam) + np.sum(lam * c, axis=1)


def solve(G, c, mu, b=0.0):
    """(lam, residual) of the best of all branches."""
    c = c - np.array([0, 0, 1]) * np.broadcast_to(b, mu.shape)[:, None]
    candidates = [np.zeros_like(c), -np.einsum("mij,mj->mi", np.linalg.pinv(G), c)]
    candidates += _slipping(G, c, mu, _against_slip)
    scores = np.array([residual(G, c, mu, lam) for lam in candidates])
    best = np.argmin(scores, axis=0)
    chosen = np.array(candidates)[best, np.arange(len(mu))]
    return chosen, scores.min(axis=0)


def least_energy_slip(G, c, mu):
    """The slipping impulse of least energy (v_n = 0, on the cone) and its energy, by scanning all directions."""
    angles = np.linspace(-np.pi, np.pi, DIRECTIONS, endpoint=False)
    best, value = np.zeros_like(mu), np.full_like(mu, np.inf)
    for angle in angles:
        lam, usable = _on_cone(G, c, mu, np.full_like(mu, angle))
        here = np.where(usable, energy(G, c, lam), np.inf)
        best, value = np.where(here < value, angle, best), np.minimum(here, value)
    low, high = best - 2 * np.pi / DIRECTIONS, best + 2 * np.pi / DIRECTIONS
    for _ in range(HALVINGS):  # golden section would save little here
        thirds = low + (high - low) / 3, high - (high - low) / 3
        energies = [np.where(u, energy(G, c, lam), np.inf) for lam, u in (_on_cone(G, c, mu, t) for t in thirds)]
        left = energies[0] < energies[1]
        low, high = np.where(left, low, thirds[0]), np.where(left, thirds[1], high)
    lam, _ = _on_cone(G, c, mu, 0.5 * (low + high))
    return lam, energy(G, c, lam)


def _on_cone(G, c, mu, angle):
    """(impulse in direction `angle` with |lam_t| = mu lam_n and v_n = 0, whether lam_n > 0)."""
    direction = np.stack([mu * np.cos(angle), mu * np.sin(angle), np.ones_like(mu)], axis=1)
    along = np.einsum("mj,mj->m", G[:, 2], direction)
    size = -c[:, 2] / np.where(along == 0, 1, along)
    return direction * size[:, None], (along > 0) & (size > 0)


def _against_slip(G, c, lam, angle):
    """Component of slip across the direction of the impulse: zero where friction opposes slip, or helps it."""
    v = np.einsum("mij,mj->mi", G, lam) + c
    return v[:, 1] * np.cos(angle) - v[:, 0] * np.sin(angle)


def _slipping(G, c, mu, condition):
    """Impulses at all roots of `condition` over the circle of directions, one list entry per bracket in use."""
    angles = np.linspace(-np.pi, np.pi, DIRECTIONS + 1)
    found, counts = [], np.zeros(len(mu), int)
    before, usable_before = None, None
    brackets = np.zeros((0, len(mu)))
    for k, angle in enumerate(angles):
        lam, usable = _on_cone(G, c, mu, np.full_like(mu, angle))
        value = condition(G, c, lam, np.full_like(mu, angle))
        if k:
            crosses = (value * before <= 0) & usable & usable_before
            if np.any(crosses):
                while len(brackets) <= counts[crosses].max():
                    brackets = np.vstack([brackets, np.full(len(mu), np.nan)])
                brackets[counts[crosses], np.flatnonzero(crosses)] = k
                counts[crosses] += 1
        before, usable_before = value, usable
    for row in brackets:
        mine = np.flatnonzero(~np.isnan(row))
        lam = np.zeros_like(c)
        lam[mine] = _bisect(G[mine], c[mine], mu[mine], condition, angles, row[mine].astype(int))
        found.append(lam)
    return found


def _bisect(G, c, mu, condition, angles, k):
    low, high = angles[k - 1], angles[k]
    sign = np.sign(condition(G, c, _on_cone(G, c, mu, low)[0], low))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        same = condition(G, c, _on_cone(G, c, mu, middle)[0], middle) * sign > 0
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return _on_cone(G, c, mu, 0.5 * (low + high))[0]
