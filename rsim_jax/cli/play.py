"""`rsim play RUN`: a video of a trained policy in several worlds at once."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rsim_jax.cli.arguments import CommandError, Parser, model_path, positive, run

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_FPS = 30.0  # frames per second of the video; faster control is shown with every n-th frame
CHUNK = 50  # control steps per call of the compiled program
STEPS = 1000  # of tasks without a time limit


def main(argv: list[str]) -> int:
    """Plays a policy, writes the video, prints the returns and where it is."""
    return run("play", lambda: _play(_parse(argv)))


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = Parser("play", "Run a trained policy deterministically and write a video, one tile per world.")
    add = parser.add_argument
    add("run", type=Path, help="run folder, for example runs/hopper-0-20250101-120000")
    add("--video", type=Path, metavar="FILE", help="the .mp4 file to write; play.mp4 in the run folder when not given")
    add("--worlds", type=positive, default=4, help="worlds to show, each one episode")
    add("--steps", type=positive, help="most control steps; the task's time limit when not given")
    add("--model", help="another model file with the same actuators and observations, to try the policy on")
    add("--width", type=positive, default=320, help="pixels of each world's picture")
    add("--height", type=positive, default=240, help="pixels of each world's picture")
    add("--camera", help="a camera of the model; the one named track, or the whole model, when not given")
    add("--seed", type=int, default=0, help="of the start states")
    return parser.parse_args(argv)


def _play(args: argparse.Namespace) -> None:
    from rsim_jax.render import Renderer, VideoWriter, backend, tile

    backend.choose()  # no OpenGL: say so before minutes of work
    path = args.video or args.run / "play.mp4"
    try:
        task, policy = _load(args)
        with Renderer(_drawn(task), args.width, args.height, args.camera) as camera:
            dt = task.task.dt
            stride = int(np.ceil(1 / (MOST_FPS * dt) - 1e-9))
            episodes = _Episodes(policy, task, args.worlds, args.seed, args.steps)
            with VideoWriter(path, fps=1 / (stride * dt)) as movie:
                for k, pose in enumerate(episodes.poses()):
                    if k % stride == 0:
                        movie.add(tile(camera.frames(*pose)))
    except ValueError as error:
        raise CommandError(str(error)) from error
    print(episodes.summary())
    print(f"video: {path}")


def _load(args: argparse.Namespace) -> tuple[Any, Any]:
    """The batched task and the policy, the former on another model file if one is asked for.

    Raises:
        CommandError: when the policy does not fit that model.
    """
    from rsim_jax.training import policy, tasks

    config, task, trained = policy.load_run(args.run)
    if args.model is None:
        return task, trained
    path = str(model_path(args.model).resolve())
    changed = tasks.make_task(dataclasses.replace(config, task_params={**config.task_params, "xml_file": path}))
    before, after = ((t.task.observation_size, t.task.action_size) for t in (task, changed))
    if before != after:
        sizes = "{} observations and {} actions"
        raise CommandError(f"the policy has {sizes.format(*before)}, but {path} gives {sizes.format(*after)}")
    return changed, trained


def _drawn(task: Any) -> Any:
    from rsim_jax.modeling import compiled

    return compiled(task.task.model)


class _Episodes:
    """One episode in each world, in chunks; finished worlds stand still until all are done."""

    def __init__(self, policy: Any, task: Any, worlds: int, seed: int, steps: int | None) -> None:
        import jax

        self._policy, self._task = policy, task
        self._most = steps or task.max_episode_steps or STEPS
        self._state = jax.jit(type(task).reset, static_argnums=2)(task, jax.random.key(seed), worlds)
        self._totals = np.zeros(worlds), np.zeros(worlds, int)

    def poses(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """q (nq, N) and the kinematic bodies' poses at the start and after each control step."""
        import jax

        advance, done = jax.jit(_advance), 0
        yield tuple(np.asarray(x) for x in _pose(self._state))
        while done < self._most and not np.all(self._state.done):
            self._state, chunk = advance(self._policy, self._task, self._state)
            poses, totals, finished = jax.device_get(chunk)
            for k in range(min(CHUNK, self._most - done)):
                self._totals = tuple(part[k] for part in totals)
                yield tuple(part[k] for part in poses)
                if finished[k].all():
                    return
            done += CHUNK

    def summary(self) -> str:
        """Returns and lengths up to the last pose that was asked for."""
        returns, lengths = self._totals
        each = ", ".join(f"{r:.1f} in {n} steps" for r, n in zip(returns, lengths, strict=True))
        return f"mean return {returns.mean():.1f} ({each})"


def _pose(state: Any) -> tuple[Any, Any, Any]:
    physics = state.task.physics
    return physics.q, physics.kinematic_position, physics.kinematic_quaternion


def _advance(policy: Any, task: Any, state: Any) -> tuple[Any, Any]:
    """CHUNK control steps: the state, and after each step the poses, returns with lengths, and who is done."""
    import jax

    def step(state: Any, _: None) -> tuple[Any, Any]:
        state = task.finish_live(state, task.advance(state, policy.act(state.obs)))
        return state, (_pose(state), (state.episode_return, state.episode_length), state.done)

    return jax.lax.scan(step, state, None, length=CHUNK)
