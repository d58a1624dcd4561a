"""Plain text tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns as wide as their longest entry; numbers are right-aligned, None is a dash."""
    cells = [[_text(value) for value in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *cells]) for i in range(len(header))]
    numeric = [all(isinstance(row[i], (int, float, type(None))) for row in rows) for i in range(len(header))]
    lines = [list(header), ["-" * w for w in widths], *cells]
    align = [str.rjust if right else str.ljust for right in numeric]
    return "\n".join("  ".join(align[i](line[i], widths[i]) for i in range(len(header))).rstrip() for line in lines)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else _large(value)


def _large(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, float) and abs(value) < 1e15 else str(value)
