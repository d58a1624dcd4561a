"""`rsim train`: learn a task, or go on with an interrupted run."""

from __future__ import annotations

from rsim_jax.cli.arguments import CommandError, run

USAGE_TEXT = """usage: rsim train TASK_OR_CONFIG [--setting value ...]
       rsim train --resume RUN

TASK_OR_CONFIG is a task (hopper, Hopper-v5), which takes its shipped preset, or a .yaml file of settings.
Settings on the command line win: rsim train hopper --ppo.num_envs 512 --seed 1 --task_params.frame_skip 2
"""


def main(argv: list[str]) -> int:
    """Exit status of `rsim train` with these arguments."""
    return run("train", lambda: _work(argv))


def _work(argv: list[str]) -> None:
    if "-h" in argv or "--help" in argv:
        return _help()
    if not argv:
        raise CommandError("which task? for example: rsim train inverted_pendulum; see rsim train --help")
    from rsim_jax.training import settings
    from rsim_jax.training.train import TrainingError, resume, train

    try:
        if argv[0] == "--resume":
            if len(argv) != 2:
                raise CommandError("--resume takes one run folder and no settings: they are those of the run")
            result = resume(argv[1])
        else:
            result = train(settings.load_config(argv[0], argv[1:]))
    except (ValueError, TrainingError) as error:
        raise CommandError(str(error)) from error
    print(f"play it with: rsim play {result.run}")


def _help() -> None:
    from rsim_jax.training.settings import help_text

    settings = help_text().split("\n\n", 2)[-1]
    print(f"{USAGE_TEXT}\n{settings}")
