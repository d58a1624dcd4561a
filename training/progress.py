"""Live progress of a run: speed, time left, return and reward terms."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

LINE_SECONDS = 10.0  # between lines where the output is not a terminal
SMOOTHING = 0.1  # weight of the newest update in the speed that tells the time left


class Progress:
    """A table that is redrawn on a terminal; a line every few seconds elsewhere."""

    def __init__(self, title: str, num_updates: int, show: bool) -> None:
        self.console = Console()
        self.title, self.num_updates, self.show = title, num_updates, show
        self._live = Live(console=self.console, auto_refresh=False) if show and self.console.is_terminal else None
        self._last_line = time.monotonic()
        self._return: float | None = None
        self._speed: float | None = None

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """One line that stays."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def update(self, row: dict[str, Any]) -> None:
        """Show the newest row of metrics."""
        if row["episode_return"] is not None:
            self._return = row["episode_return"]
        speed = row["steps_per_second"]
        self._speed = speed if self._speed is None else self._speed + SMOOTHING * (speed - self._speed)
        if self._live is not None:
            self._live.update(self._table(row), refresh=True)
        elif self.show and time.monotonic() - self._last_line > LINE_SECONDS:
            self._last_line = time.monotonic()
            self.say(self._text(row))

    def _seconds_left(self, row: dict[str, Any]) -> float:
        steps_left = row["env_steps"] * (self.num_updates / row["update"] - 1)
        return steps_left / self._speed

    def _headline(self, row: dict[str, Any]) -> list[tuple[str, str]]:
        shown = "-" if self._return is None else f"{self._return:.1f}"
        return [
            ("update", f"{row['update']} of {self.num_updates}"),
            ("steps", f"{row['env_steps']:,}"),
            ("steps/s", f"{row['steps_per_second']:,.0f}"),
            ("left", _clock(self._seconds_left(row))),
            ("return", shown),
        ]

    def _text(self, row: dict[str, Any]) -> str:
        return ", ".join(f"{name} {value}" for name, value in self._headline(row))

    def _table(self, row: dict[str, Any]) -> Group:
        table = Table(title=self.title, show_header=False, box=None, title_justify="left")
        for name, value in self._headline(row):
            table.add_row(name, value)
        for name in ("episode_length", "policy_loss", "value_loss", "kl", "entropy", "not_finite"):
            if row.get(name) is not None:
                table.add_row(name.replace("_", " "), f"{row[name]:.4g}")
        for name, value in row.items():
            if name.startswith("terms/"):
                table.add_row(f"[dim]{name.removeprefix('terms/')}[/dim]", f"{value:.4g}" if value is not None else "-")
        return Group(table, ProgressBar(total=self.num_updates, completed=row["update"], width=50))


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
