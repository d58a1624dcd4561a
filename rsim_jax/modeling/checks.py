"""Checks of numbers that users give to scenes and materials; every message names the thing and the value."""

from __future__ import annotations

from typing import Any

import numpy as np

from rsim_jax.errors import ModelError


def number(
    owner: str, name: str, value: Any, *, low: float = -np.inf, high: float = np.inf, above: bool = False
) -> float:
    """A finite number in [low, high], or (low, high] with `above`.

    Raises:
        ModelError: naming owner, argument and value.
    """
    array = _floats(owner, name, value)
    if array.shape != ():
        raise ModelError(f"{owner}: {name} = {_shown(value)}: give one number")
    x = float(array)
    if x < low or x > high or (above and x == low):
        raise ModelError(f"{owner}: {name} = {x:g}: give a number {_interval(low, high, above)}")
    return x


def vector(owner: str, name: str, value: Any, length: int, *, positive: bool = False) -> np.ndarray:
    """`length` finite numbers, all above zero with `positive`."""
    array = _floats(owner, name, value)
    if array.shape != (length,):
        raise ModelError(f"{owner}: {name} = {_shown(value)}: give {length} numbers")
    if positive and array.min() <= 0:
        raise ModelError(f"{owner}: {name} contains {array.min():g}: give positive numbers")
    return array


def grid(owner: str, name: str, value: Any) -> np.ndarray:
    """(rows, columns) finite numbers, at least two of each."""
    array = _floats(owner, name, value)
    if array.ndim != 2 or min(array.shape) < 2:
        raise ModelError(f"{owner}: {name} of shape {array.shape}: give (ny, nx) heights, at least two each way")
    return array


def points(owner: str, name: str, value: Any) -> np.ndarray:
    """(n, 3) finite numbers."""
    array = _floats(owner, name, value)
    if array.ndim != 2 or array.shape[1] != 3:
        raise ModelError(f"{owner}: {name} of shape {array.shape}: give (n, 3) coordinates")
    return array


def unit_quaternion(owner: str, name: str, value: Any) -> np.ndarray:
    """Four finite numbers (w, x, y, z), not all zero, scaled to length one."""
    array = vector(owner, name, value, 4)
    length = np.linalg.norm(array)
    if length == 0:
        raise ModelError(f"{owner}: {name} is zero: give a quaternion (w, x, y, z), for example (1, 0, 0, 0)")
    return array / length


def inertia(owner: str, value: Any) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments (3,) and their axes (3, 3), from moments about the body axes or a tensor, kg m^2.

    Raises:
        ModelError: when no body can have this inertia.
    """
    array = _floats(owner, "inertia", value)
    if array.shape == (3,):
        array = np.diag(array)
    if array.shape != (3, 3) or not np.allclose(array, array.T, rtol=1e-9, atol=0):
        raise ModelError(f"{owner}: inertia = {_shown(value)}: give three principal moments or a symmetric 3x3 matrix")
    moments, axes = np.linalg.eigh(array)
    a, b, c = moments  # ascending
    if a <= 0 or a + b < c * (1 - 1e-6):
        shown = f"principal moments {a:.4g}, {b:.4g}, {c:.4g}"
        raise ModelError(f"{owner}: inertia with {shown}: all must be positive and no two sum to less than the third")
    return moments, axes * np.linalg.det(axes)


def _floats(owner: str, name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{owner}: {name} = {_shown(value)}: give numbers") from None
    if not np.isfinite(array).all():
        shown = _shown(value) if array.size < 10 else f"... {array[~np.isfinite(array)][0]} ..."
        raise ModelError(f"{owner}: {name} = {shown}: give finite numbers")
    return array


def _shown(value: Any) -> str:
    """repr on one line."""
    return " ".join(repr(value).split())


def _interval(low: float, high: float, above: bool) -> str:
    if np.isinf(high):
        return f"above {low:g}" if above else f"of at least {low:g}"
    return f"above {low:g} and up to {high:g}" if above else f"from {low:g} to {high:g}"
