"""The `rsim` command: finds the module of a subcommand and runs it; each is imported only when it is asked for."""

from __future__ import annotations

import importlib
import os
import sys
import traceback

from rsim_jax.cli.arguments import FAILED, INTERRUPTED, USAGE, CommandError

SIMULATING = {
    "train": "learn a task with PPO, or go on with an interrupted run",
    "eval": "score a trained policy here or in Gymnasium's own task",
    "play": "show a trained policy, or write a video of it",
    "bench": "measure speed and accuracy beside other simulators",
}
LOOKING = {
    "list": "tasks and presets",
    "inspect": "what is in a model file",
}
PLANNED = {
    "view": "interactive viewer (not available yet)",
    "export": "policy as ONNX (not available yet)",
}
COMMANDS = SIMULATING | LOOKING | PLANNED


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: arguments after `rsim`; None takes the process's own.

    Returns:
        0 only when the work was done; 1 failed, 2 wrong usage, 130 interrupted.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in argv
    argv = [argument for argument in argv if argument != "--debug"]
    if not argv or argv[0] in ("-h", "--help"):
        print(_overview())
        return 0 if argv else USAGE
    command, rest = argv[0], argv[1:]
    if command not in COMMANDS:
        return _complain("", f"no command {command!r}; there are: {', '.join(COMMANDS)}", USAGE)
    try:
        return _run(command, rest)
    except KeyboardInterrupt:
        return _complain(command, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        # the reader of our output went away (`rsim list | head`); keep Python from complaining at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _complain(command, _sentence(error), FAILED)


def _run(command: str, rest: list[str]) -> int:
    if command in PLANNED:
        if "-h" in rest or "--help" in rest:
            print(f"usage: rsim {command}\n\n{PLANNED[command]}")
            return 0
        raise CommandError(f"{PLANNED[command]}; `rsim play RUN --video out.mp4` shows a policy")
    if command in SIMULATING and "-h" not in rest and "--help" not in rest:
        import rsim_jax

        rsim_jax.configure()
    return importlib.import_module(f"rsim_jax.cli.{command}").main(rest)


def _overview() -> str:
    lines = [f"  {name:<9}{meaning}" for name, meaning in COMMANDS.items()]
    head = "usage: rsim COMMAND [arguments]\n\nBatched rigid-body simulation for reinforcement learning.\n\ncommands:"
    return "\n".join([head, *lines, "", "rsim COMMAND --help explains one; --debug shows where an error came from"])


def _sentence(error: Exception) -> str:
    """What a user can put right as its own message; anything else by its type, because it is our fault."""
    from rsim_jax.errors import ModelError

    if isinstance(error, CommandError | ModelError | ValueError | OSError):
        return str(error)
    return f"unexpected {type(error).__name__}: {' '.join(str(error).split())} (--debug shows where)"


def _complain(command: str, message: str, status: int) -> int:
    print(f"rsim {command}: {message}" if command else f"rsim: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
