"""Several pictures in one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def tile(frames: Sequence[np.ndarray], columns: int | None = None, border: int = 2) -> np.ndarray:
    """Lays pictures of one size out on a grid, row by row, on black.

    Args:
        frames: pictures (H, W, 3), uint8, at least one.
        columns: pictures per row; by default as square a grid as their number allows.
        border: black pixels between neighbours.

    Returns:
        One picture (rows H + (rows - 1) border, columns W + (columns - 1) border, 3), uint8.

    Raises:
        ValueError: when there are no pictures, their sizes differ, or columns or border cannot be.
    """
    if len(frames) == 0:
        raise ValueError("tile needs at least one picture")
    height, width, channels = np.shape(frames[0])
    if any(np.shape(f) != (height, width, channels) for f in frames):
        raise ValueError(f"tile needs pictures of one size, got {sorted({np.shape(f) for f in frames})}")
    columns = math.ceil(math.sqrt(len(frames))) if columns is None else columns
    if columns < 1 or border < 0:
        raise ValueError(f"tile needs columns >= 1 and border >= 0, got {columns} and {border}")
    columns = min(columns, len(frames))
    rows = math.ceil(len(frames) / columns)
    sheet = np.zeros((rows * (height + border) - border, columns * (width + border) - border, channels), np.uint8)
    for i, frame in enumerate(frames):
        y, x = (i // columns) * (height + border), (i % columns) * (width + border)
        sheet[y : y + height, x : x + width] = frame
    return sheet
