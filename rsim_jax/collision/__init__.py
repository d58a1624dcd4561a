"""Closest points of the candidate pairs, and the choice of the contacts that a step will solve."""

from __future__ import annotations

from rsim_jax.collision.many_bodies import select_listed
from rsim_jax.collision.narrow_phase import detect, detect_penalty
from rsim_jax.collision.selection import select

__all__ = ["detect", "detect_penalty", "select", "select_listed"]
