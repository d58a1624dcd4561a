"""Signed distance of convex shapes by its dual, slowly: the largest separation over all directions.

separation(n) = n . (c2 - c1) - h1(n) - h2(-n), with h the support function of a shape about its centre, is the gap
along n. Its maximum over unit n is the distance of shapes that are apart and minus the depth of shapes that overlap.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def support(shape, n):
    """h(n) for n (..., 3); shape = (kind, centre, rotation (3, 3), size)."""
    kind, _, rotation, size = shape
    local = n @ rotation
    if kind == "box":
        return np.abs(local) @ size
    radial = np.hypot(local[..., 0], local[..., 1])
    if kind == "cylinder":
        return size[0] * radial + size[1] * np.abs(local[..., 2])
    if kind == "capsule":
        return size[0] * np.linalg.norm(local, axis=-1) + size[1] * np.abs(local[..., 2])
    return size[0] * np.linalg.norm(local, axis=-1)


def separation(first, second, n):
    return n @ (second[1] - first[1]) - support(first, n) - support(second, -n)


def sphere(count):
    """(count, 3) evenly spread unit vectors."""
    i = np.arange(count) + 0.5
    z, angle = 1 - 2 * i / count, np.pi * (1 + 5**0.5) * i
    r = np.sqrt(1 - z * z)
    return np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=-1)


GRID = sphere(4000)


def signed_distance(first, second, polish=6):
    """(gap, normal from first to second): grid and shape axes, then simplex searches from the best few."""
    axes1, axes2 = first[2].T, second[2].T
    crossed = np.cross(axes1[:, None], axes2[None]).reshape(-1, 3)
    crossed = crossed[np.linalg.norm(crossed, axis=1) > 1e-8]
    starts = np.concatenate([axes1, axes2, crossed / np.linalg.norm(crossed, axis=1, keepdims=True)])
    starts = np.concatenate([starts, -starts, GRID])
    values = separation(first, second, starts)
    order = np.argsort(-values)
    chosen: list[int] = []
    for k in order:
        if all(starts[k] @ starts[j] < 0.97 for j in chosen):
            chosen.append(k)
        if len(chosen) == polish:
            break
    best, normal = values[order[0]], starts[order[0]]
    for k in chosen:
        u = np.linalg.svd(starts[k][None])[2][1:]
        at = lambda x, k=k, u=u: (starts[k] + x @ u) / np.linalg.norm(starts[k] + x @ u)  # noqa: E731
        x = np.zeros(2)
        for size in (0.03, 1e-3, 1e-5):
            simplex = x + size * np.array([[0, 0], [1, 0.1], [-0.2, 1]])
            found = minimize(
                lambda x, at=at: -separation(first, second, at(x)),
                x,
                method="Nelder-Mead",
                options={"initial_simplex": simplex, "xatol": 1e-12, "fatol": 1e-15, "maxiter": 300},
            )
            x = found.x
        if -found.fun > best:
            best, normal = -found.fun, at(found.x)
    return best, normal
