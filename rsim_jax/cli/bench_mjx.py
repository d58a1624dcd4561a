"""Drives MuJoCo XLA in another interpreter, where mujoco-mjx is installed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from rsim_jax.cli.arguments import CommandError
from rsim_jax.cli.bench_cases import Case

PRESETS = ("euler", "tuned")


def find_python(given: str | None) -> str:
    """The interpreter to run MJX in: the one given, or ours if it has mujoco-mjx.

    Raises:
        CommandError: when mujoco-mjx is not installed there.
    """
    if given is None:
        if importlib.util.find_spec("mujoco.mjx") is None:
            hint = "install it in an environment of its own and name that one's interpreter with --peer-python"
            raise CommandError(f"mjx is not installed here: {hint}")
        return sys.executable
    probe = [given, "-c", "import importlib.util as u; print(u.find_spec('mujoco.mjx') is not None)"]
    try:
        found = subprocess.run(probe, capture_output=True, text=True, timeout=60, cwd=tempfile.gettempdir())
    except OSError as error:
        raise CommandError(f"--peer-python {given} does not run: {error.strerror}") from error
    if found.stdout.strip() != "True":
        raise CommandError(f"mjx is not installed in {given}: pip install mujoco-mjx there")
    return given


def _environment() -> dict[str, str]:
    """The peer's own flags are its own affair; but on two cores XLA's thread pool can wait for itself for ever.

    Four threads a core let it finish; they only ever work on as many cores as there are.
    """
    kept = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "PYTHONPATH")}
    return {"NPROC": str(4 * (os.cpu_count() or 1)), **kept}


class MjxRunner:
    """One MJX batch in its own process; it computes only during its turns."""

    grain = 1

    def __init__(self, case: Case, worlds: int, preset: str, python: str) -> None:
        self.label, self._finite = f"mjx {preset}", True
        self._folder = tempfile.TemporaryDirectory()
        work = Path(self._folder.name) / "work.npz"
        q, qd = case.start(worlds)
        controls = case.controls(worlds).transpose(0, 2, 1)
        np.savez(work, q=q.T, qd=qd.T, controls=controls, frame_skip=case.frame_skip)
        program = Path(__file__).with_name("mjx_peer.py").read_text()
        # given as text: run by path, its folder would put our modules named inspect and list before Python's own
        self._process = subprocess.Popen(
            [python, "-c", program, str(case.path.resolve()), str(work), preset],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self._folder.name,
            env=_environment(),
        )
        self.first_call = float(self._answer()[0])

    def advance(self, periods: int) -> None:
        """Runs that many control periods in every world."""
        with contextlib.suppress(BrokenPipeError):  # the answer tells
            self._process.stdin.write(f"{periods}\n")
            self._process.stdin.flush()
        self._finite = self._answer()[1] == "True"

    def finite(self) -> bool:
        return self._finite

    def _answer(self) -> list[str]:
        lines = (line.split() for line in self._process.stdout)  # ends when the process does
        words = next((line[1:] for line in lines if line[:1] == ["peer:"]), ["error", "its", "process", "ended"])
        if words[0] == "error":
            self.close()
            raise CommandError(f"{self.label} failed: {' '.join(words[1:])}")
        return words

    def close(self) -> None:
        """Ends the process."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()
