"""Row problems in plain arrays: what a solver sees, without bodies."""

from __future__ import annotations

import numpy as np


def whitened(block):
    """Y (3, 3) with Y' Y = block, rows first: the contact of a body of unit mass in coordinates of its own."""
    return np.linalg.cholesky(block).astype(float)


def slip_derivatives(G, c, mu, lam):
    """(dlam/dc, dlam/dmu, dlam/dG) of a slipping contact by the implicit function theorem.

    v_n = b stays, and lam_t = -mu lam_n v_t/|v_t|: with t = v_t/|v_t| and v = G lam + c,
    dlam_t + mu t dlam_n + (mu lam_n/|v_t|) (I - t t') dv_t = -lam_n t dmu.
    """
    v = G @ lam + c
    speed = np.linalg.norm(v[:2])
    t = v[:2] / speed
    turn = mu * lam[2] / speed * (np.eye(2) - np.outer(t, t))
    matrix = np.zeros((3, 3))
    matrix[:2] = turn @ G[:2]
    matrix[:2, :2] += np.eye(2)
    matrix[:2, 2] += mu * t
    matrix[2] = G[2]
    by_c = np.zeros((3, 3))
    by_c[:2, :2] = turn
    by_c[2, 2] = 1
    inverse = np.linalg.inv(matrix)
    by_mu = inverse @ np.array([*(-lam[2] * t), 0])
    by_c = -inverse @ by_c
    by_G = np.einsum("ai,j->aij", by_c, lam)  # dv = dG lam acts as dc does
    return by_c, by_mu, by_G
