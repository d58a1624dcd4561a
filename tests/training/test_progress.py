"""What a person sees while a run learns, on a terminal and in a log file."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rsim_jax.training import progress

ROW = {
    "update": 5,
    "env_steps": 5000,
    "seconds": 10.0,
    "steps_per_second": 500.0,
    "episode_return": 12.25,
    "episode_length": None,
    "kl": 0.01,
    "not_finite": 0,
    "terms/forward": 1.5,
    "terms/control": -0.25,
}


@pytest.fixture
def screen(monkeypatch):
    text = io.StringIO()

    def use(terminal):
        monkeypatch.setattr(progress, "Console", lambda: Console(file=text, force_terminal=terminal, width=100))
        return text

    return use


def test_terminal_shows_speed_time_left_return_and_terms(screen):
    text = screen(True)
    with progress.Progress("hopper", num_updates=65, show=True) as shown:
        shown.update(ROW)
    seen = text.getvalue()
    # 60 updates of 1,000 steps are left at 500 steps/s
    for expected in ("hopper", "5 of 65", "5,000", "500", "2:00", "12.2", "forward", "1.5", "control", "-0.25"):
        assert expected in seen


def test_log_file_gets_a_line_now_and_then(screen, monkeypatch):
    text = screen(False)
    clock = iter([0.0, 5.0, 11.0, 11.0, 12.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.Progress("hopper", num_updates=65, show=True) as shown:
        shown.update(ROW)  # after 5 s: too early for a line
        shown.update({**ROW, "episode_return": None, "update": 6, "env_steps": 6000})
        shown.update(ROW)
        shown.say("done")
    lines = text.getvalue().splitlines()
    assert lines == ["update 6 of 65, steps 6,000, steps/s 500, left 1:58, return 12.2", "done"]


def test_quiet(screen):
    text = screen(False)
    with progress.Progress("hopper", num_updates=65, show=False) as shown:
        for _ in range(3):
            shown.update(ROW)
    assert text.getvalue() == ""


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3661, "1:01:01")])
def test_clock(seconds, text):
    assert progress._clock(seconds) == text
