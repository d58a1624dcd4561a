"""What all commands share: strict arguments, and one readable line for what a user can put right."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from rsim_jax.errors import ModelError
from rsim_jax.render import RenderError

USAGE, FAILED, INTERRUPTED = 2, 1, 130  # exit statuses


class CommandError(Exception):
    """A command cannot be carried out as asked; the message says what to change."""


class _UsageError(CommandError):
    """An option or argument that does not exist or has no such value."""


class Parser(argparse.ArgumentParser):
    """Strict: no abbreviated options, one line per mistake; `formatter_class` shows the defaults."""

    def __init__(self, command: str, description: str) -> None:
        formatter = argparse.ArgumentDefaultsHelpFormatter
        super().__init__(f"rsim {command}", description=description, formatter_class=formatter, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message}; see {self.prog} --help")


def run(command: str, work: Callable[[], None]) -> int:
    """Carries out `work` and returns the exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    try:
        work()
    except _UsageError as error:
        return _complain(command, error, USAGE)
    except (CommandError, ModelError, RenderError, OSError) as error:
        return _complain(command, error, FAILED)
    except KeyboardInterrupt:
        return _complain(command, "interrupted", INTERRUPTED)
    return 0


def _complain(command: str, message: Any, status: int) -> int:
    print(f"rsim {command}: {message}", file=sys.stderr)
    return status


def positive(text: str) -> int:
    """An argparse type: a whole number of at least 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 1")
    return value


def positive_list(text: str) -> tuple[int, ...]:
    """An argparse type: positive whole numbers between commas."""
    return tuple(positive(part.strip()) for part in text.split(","))


def seconds(text: str) -> float:
    """An argparse type: a finite number above 0."""
    return _above_zero(text, "seconds")


def speed(text: str) -> float:
    """An argparse type: a finite number above 0."""
    return _above_zero(text, "m/s")


def _above_zero(text: str, unit: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of {unit} above 0")
    return value


def model_path(name: str) -> Path:
    """The file of a model given as a path, or by the name of a scene of ours or one of Gymnasium's assets ("ant").

    Raises:
        CommandError: when there is no such file; lists the known names.
    """
    path = Path(name).expanduser()
    if path.suffix.lower() in (".xml", ".urdf") and path.is_file():
        return path
    from rsim_jax import configs
    from rsim_jax.envs.files import gymnasium_assets

    folders = [Path(configs.__file__).parent / "scenes", gymnasium_assets()]
    for folder in folders:
        known = folder / f"{name.removesuffix('.xml')}.xml"
        if known.is_file() and known.parent == folder:
            return known
    names = ", ".join(p.stem for folder in folders for p in sorted(folder.glob("*.xml")))
    raise CommandError(f"no model {name!r}: give the path of an .xml or .urdf file, or one of {names}")
