"""Timing several simulators in turns, so that whatever else the machine does hits all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

_CALIBRATION = 0.3  # s that a trial must last before its speed is believed


class Runner(Protocol):
    """One simulator with N worlds of a case."""

    label: str
    grain: int  # `advance` takes multiples of this

    def advance(self, periods: int) -> None:
        """Runs that many control periods in every world and returns when they are done."""

    def finite(self) -> bool:
        """Whether the state of every world still is."""


@dataclass
class Timing:
    """Physics steps per second of one runner, one entry per turn."""

    label: str
    rates: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    @property
    def spread(self) -> float:
        """(fastest - slowest) / median."""
        return (max(self.rates) - min(self.rates)) / self.median


def alternate(runners: Sequence[Runner], worlds: int, frame_skip: int, seconds: float, turns: int) -> list[Timing]:
    """Each runner gets `turns` turns of about `seconds`, one after another, in an order that reverses every time."""
    periods = [calibrate(runner, seconds) for runner in runners]
    timings = [Timing(runner.label) for runner in runners]
    order = list(range(len(runners)))
    for _ in range(turns):
        for i in order:
            timings[i].rates.append(worlds * frame_skip * periods[i] / duration(runners[i], periods[i]))
        order.reverse()
    return timings


def calibrate(runner: Runner, seconds: float) -> int:
    """Control periods that take about `seconds`; the trials also warm the runner up."""
    calls = 1
    runner.advance(runner.grain)
    taken = duration(runner, runner.grain)
    while taken < min(_CALIBRATION, seconds):
        calls = max(2 * calls, int(calls * min(16.0, _CALIBRATION / max(taken, 1e-9))))
        taken = duration(runner, calls * runner.grain)
    return runner.grain * max(1, round(calls * seconds / taken))


def duration(runner: Runner, periods: int) -> float:
    """Wall seconds of that many control periods."""
    begin = time.perf_counter()
    runner.advance(periods)
    return time.perf_counter() - begin


def ratios(ours: Timing, theirs: Timing) -> dict[str, float]:
    """Median, lowest and highest ratio of neighbouring turns."""
    values = [a / b for a, b in zip(ours.rates, theirs.rates, strict=True)]
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def residual_summary(residual: np.ndarray, limit: float) -> dict[str, float]:
    """Share of world-steps within the limit, median, 99th percentile and worst, m/s; NaN counts as beyond it."""
    finite = np.where(np.isnan(residual), np.inf, residual).ravel()
    p50, p99, p999 = np.quantile(finite, (0.5, 0.99, 0.999), method="higher")
    share = float(np.mean(finite <= limit))
    return {"share": share, "p50": float(p50), "p99": float(p99), "p99.9": float(p999), "worst": float(finite.max())}
