"""Polyhedra and terrain for tests, as XML for both simulators, and a slow signed distance of polyhedra."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull

CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)


def pebble(count: int = 30, seed: int = 0) -> np.ndarray:
    """Corners (count, 3) of a rounded body, about 0.2 m."""
    v = np.random.default_rng(seed).normal(size=(count, 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True) * [0.12, 0.08, 0.1]


def asset(**meshes: np.ndarray) -> str:
    """<asset> with meshes of these vertices (n, 3)."""
    rows = (f'<mesh name="{name}" vertex="{" ".join(map(repr, v.ravel().tolist()))}"/>' for name, v in meshes.items())
    return f"<asset>{''.join(rows)}</asset>"


def least_overlap(a: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray]:
    """Signed distance of overlapping polyhedra with corners (n, 3), and the direction from a to b that parts them.

    The differences of corners bound all differences: minus the distance of 0 from their hull's nearest plane. Positive
    results mean that the polyhedra are apart, and are no distances.
    """
    planes = ConvexHull((b[:, None] - a[None]).reshape(-1, 3)).equations
    nearest = planes[:, 3].argmax()
    return float(planes[nearest, 3]), -planes[nearest, :3]
