"""What a run writes for people: metrics.jsonl, TensorBoard events and a learning curve."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

METRICS, PICTURE = "metrics.jsonl", "learning_curve.png"

Row = dict[str, Any]


class RunLog:
    """Appends rows to a run folder; after a resume it goes on behind the checkpoint's update.

    Attributes:
        rows: every row so far, oldest first.
    """

    def __init__(self, run: Path, tensorboard: bool, start: int = 0) -> None:
        """Open the run's files; rows after update `start` are of a future that the checkpoint has not seen."""
        self.run = run
        self.rows = [row for row in read_rows(run / METRICS) if row["update"] <= start]
        _replace(run / METRICS, "".join(_line(row) for row in self.rows))
        self._file = open(run / METRICS, "a")  # noqa: SIM115 (closed by close)
        self._events = None
        if tensorboard:
            from tensorboardX import SummaryWriter

            self._events = SummaryWriter(str(run / "tensorboard"), purge_step=start + 1 if start else None)

    def write(self, row: Row) -> None:
        """Add one row; numbers that are not finite become null (and are left out of the events)."""
        row = {name: _finite(value) for name, value in row.items()}
        self.rows.append(row)
        self._file.write(_line(row))
        self._file.flush()
        if self._events is not None:
            for name, value in row.items():
                if value is not None and name not in ("update", "env_steps"):
                    self._events.add_scalar(name if "/" in name else f"train/{name}", value, row["env_steps"])

    def draw(self) -> None:
        """The learning curve as a picture."""
        draw_curve(self.rows, self.run / PICTURE, self.run.name)

    def close(self) -> None:
        self._file.close()
        if self._events is not None:
            self._events.close()


def read_rows(path: Path) -> list[Row]:
    """Rows of a metrics file; a last line that was cut short by a crash is dropped."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")
    return [json.loads(line) for line in lines[:-1]]


def draw_curve(rows: list[Row], path: Path, title: str) -> None:
    """Mean return of finished training episodes and of evaluations over environment steps."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot(title=title, xlabel="environment steps", ylabel="mean return")
    for name, label, style in (("episode_return", "training", "-"), ("eval/return", "evaluation", "o")):
        points = [(row["env_steps"], row[name]) for row in rows if row.get(name) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), style, label=label)
    if axes.lines:
        axes.legend()
    axes.grid(alpha=0.3)
    partial = path.with_suffix(".partial.png")
    FigureCanvasAgg(figure).print_png(partial)
    os.replace(partial, path)


def _replace(path: Path, text: str) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    os.replace(partial, path)


def _line(row: Row) -> str:
    return json.dumps(row, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
