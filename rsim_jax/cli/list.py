"""`rsim list`: the tasks, presets and pairs of shapes there are."""

from __future__ import annotations

from importlib.resources import files
from itertools import combinations_with_replacement

from rsim_jax.cli.arguments import Parser, run
from rsim_jax.cli.table import table
from rsim_jax.collision import pair_table

SHAPES = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")  # by geom type


def main(argv: list[str]) -> int:
    """Prints what can be trained and simulated."""

    def work() -> None:
        parser = Parser("list", "Show the tasks, training presets and pairs of shapes that can touch.")
        parser.parse_args(argv)
        print("\n\n".join((_tasks(), _presets(), _pairs())))

    return run("list", work)


def _tasks() -> str:
    """Ids of the namespace that Gymnasium's registry holds, with the sizes that the tasks themselves report."""
    import gymnasium

    import rsim_jax.envs  # registers them

    specs = sorted((s for s in gymnasium.registry.values() if s.namespace == "rsim"), key=lambda s: s.id)
    rows = []
    for spec in specs:
        task = rsim_jax.envs.make(spec.id)
        rows.append((spec.id, task.observation_size, task.action_size, spec.max_episode_steps, task.frame_skip))
    return "tasks\n" + table(("id", "observation", "action", "time limit", "physics steps per action"), rows)


def _presets() -> str:
    presets = sorted(p.name for p in files("rsim_jax.configs").iterdir() if p.name.endswith(".yaml"))
    return "presets for rsim train\n" + "\n".join(f"  {name.removesuffix('.yaml')}" for name in presets)


def _pairs() -> str:
    points = {f.name: f.points or "4 (up to 8)" for f in pair_table.FAMILIES}
    both = combinations_with_replacement(range(len(SHAPES)), 2)
    found = ((SHAPES[a], SHAPES[b], pair_table.family(a, b)) for a, b in both)
    rows = [(a, b, points[name]) for a, b, name in found if name is not None]
    return "pairs of shapes that can touch\n" + table(("shape", "with", "contacts"), rows)
