"""`rsim bench`: speed beside other simulators with the solver's residual, stage times, and checks against physics."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
from contextlib import ExitStack, closing
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsim_jax.cli.arguments import CommandError, Parser, model_path, positive, positive_list, run, seconds, speed

if TYPE_CHECKING:
    from rsim_jax.cli.bench_cases import Case

PEERS = ("mujoco", "mjx")


def main(argv: list[str]) -> int:
    """Measures and prints; `--json` keeps the figures."""
    return run("bench", lambda: _bench(_parse(argv)))


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = Parser("bench", "Measure speed beside other simulators, the time of each stage, or accuracy.")
    add = parser.add_argument
    add("--model", default="ant", help="Gymnasium asset (ant ...), scene (balls64, boxes_and_balls, tower) or path")
    add("--worlds", type=positive_list, default=(4096,), help="numbers of worlds, between commas")
    add("--peers", type=_peers, default=("mujoco",), help="mujoco, mjx, both between commas, or none")
    add("--peer-python", metavar="PATH", help="interpreter of an environment with mujoco-mjx")
    add("--device", choices=("cpu", "gpu"), default="cpu", help="where our side runs")
    add("--sweeps", type=positive, help="solver passes per step; the shipped default when not given")
    add("--tolerance", type=speed, help="m/s below which a world stops sweeping; the shipped default when not given")
    add("--max-contacts", type=positive, help="contacts kept per world; derived from the model when not given")
    add("--seconds", type=seconds, default=2.0, help="length of a timed turn")
    add("--turns", type=positive, default=5, help="timed turns of each simulator")
    add("--look", type=positive, default=200, help="steps whose residuals and contacts are looked at")
    add("--seed", type=int, default=0, help="of start states and controls")
    add("--stages", action="store_true", help="time each stage of the step instead")
    add("--validation", action="store_true", help="run the accuracy scenes beside MuJoCo instead")
    add("--simbenchmark", action="store_true", help="run SimBenchmark's scenes beside its published figures instead")
    add("--picture", metavar="FILE", type=Path, help="with --simbenchmark: also sweep the step and draw to this .png")
    add("--json", metavar="FILE", type=Path, help="also write the figures to this file")
    args = parser.parse_args(argv)
    if args.stages + args.validation + args.simbenchmark > 1:
        parser.error("choose one of --stages, --validation and --simbenchmark")
    if args.picture is not None and not args.simbenchmark:
        parser.error("--picture goes with --simbenchmark")
    for option in ("json", "picture"):
        path = getattr(args, option)
        if path is not None and not path.resolve().parent.is_dir():
            parser.error(f"--{option} {path}: there is no such folder")
    return args


def _peers(text: str) -> tuple[str, ...]:
    names = () if text.strip() in ("", "none") else tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown peer {unknown[0]!r}; there are: {', '.join(PEERS)}")
    return names


def _bench(args: argparse.Namespace) -> None:
    model_path(args.model)  # a wrong name should not cost the start of a device
    record = {"setting": _start_device(args)}
    if args.validation:
        from rsim_jax.cli.bench_validation import validate

        record["validation"] = validate()
    elif args.simbenchmark:
        from rsim_jax.cli.simbenchmark import simbenchmark

        record["simbenchmark"] = simbenchmark(args.picture)
    elif args.stages:
        from rsim_jax.cli.bench_stages import time_stages

        record["stages"] = time_stages(_case(args), _model(args), args.seconds)
    else:
        record["speed"] = _speed(args)
    if args.json is not None:
        _write(args.json, record)


def _start_device(args: argparse.Namespace) -> dict[str, Any]:
    """Chooses the device before JAX starts and returns what the figures depend on."""
    import jax

    import rsim_jax as rsim

    if args.device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    rsim.configure()
    if args.device == "gpu" and jax.default_backend() != "gpu":
        raise CommandError(
            "no GPU that JAX can use: install rsim-jax[cuda12] or rsim-jax[cuda13] on a machine with one"
        )
    packages = ("jax", "jaxlib", "mujoco", "numpy", "rsim-jax")
    setting = {
        "devices": [str(d) for d in jax.local_devices()],
        "device_kind": jax.local_devices()[0].device_kind,
        "cores": os.cpu_count(),
        "processor": _processor(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }
    words = ", ".join(f"{name} {number}" for name, number in setting["versions"].items())
    devices = f"{len(setting['devices'])} x {setting['device_kind']}"
    print(f"{setting['processor']}, {setting['cores']} cores; {devices}; {words}")
    return setting


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _case(args: argparse.Namespace) -> Case:
    from rsim_jax.cli.bench_cases import prepare

    return prepare(model_path(args.model), args.seed, max(args.worlds))


def _model(args: argparse.Namespace) -> Any:
    import rsim_jax as rsim

    chosen = {"sweeps": args.sweeps, "max_contacts": args.max_contacts, "tolerance": args.tolerance}
    options = rsim.Options(**{name: value for name, value in chosen.items() if value is not None})
    return rsim.load(model_path(args.model), options=options)


def _speed(args: argparse.Namespace) -> list[dict[str, Any]]:
    from rsim_jax.cli import bench_mjx, bench_report

    python = bench_mjx.find_python(args.peer_python) if "mjx" in args.peers else None
    model, case = _model(args), _case(args)
    first = _first_step(model, min(args.worlds))
    entries = []
    for worlds in args.worlds:
        entry = _one_size(args, case, model, worlds, python)
        entries.append({**entry, "first_step_s": first})
        print("\n" + bench_report.describe(entries[-1]), flush=True)
    if len(entries) > 1:
        print("\n" + bench_report.curve(entries))
    return entries


def _first_step(model: Any, worlds: int) -> dict[str, float]:
    from rsim_jax.cli.bench_ours import first_step_seconds

    return first_step_seconds(model, worlds)


def _one_size(args: argparse.Namespace, case: Case, model: Any, worlds: int, python: str | None) -> dict[str, Any]:
    from rsim_jax.cli import bench_mjx, bench_ours, bench_speed
    from rsim_jax.cli.bench_mujoco import MujocoRunner

    with ExitStack() as stack:
        ours = bench_ours.OursRunner(case, model, worlds)
        runners: list[Any] = [ours]
        if "mujoco" in args.peers:
            runners.append(stack.enter_context(closing(MujocoRunner(case, worlds, os.cpu_count()))))
        if python is not None:
            for preset in bench_mjx.PRESETS:
                runners.append(stack.enter_context(closing(bench_mjx.MjxRunner(case, worlds, preset, python))))
        timings = bench_speed.alternate(runners, worlds, case.frame_skip, args.seconds, args.turns)
        theirs = {r.label: r.contacts() for r in runners if hasattr(r, "contacts")}
        finite = {r.label: r.finite() for r in runners}
    quality = ours.quality(args.look)
    bytes_of_program = ours.program_bytes()
    return {
        "model": case.name,
        "worlds": worlds,
        "dt": float(model.dt),
        "frame_skip": case.frame_skip,
        "sweeps": model.topology.sweeps,
        "max_contacts": model.topology.max_contacts,
        "threads": os.cpu_count(),
        "rates": {t.label: {"median": t.median, "spread": t.spread, "runs": t.rates} for t in timings},
        "ratios": {t.label: bench_speed.ratios(timings[0], t) for t in timings[1:]},
        "residual": bench_speed.residual_summary(quality["residual"], bench_ours.RESIDUAL_LIMIT),
        "world_steps": int(quality["residual"].size),
        "overflow_per_10000": 1e4 * float(quality["overflow"].mean()),
        "not_finite_per_10000": 1e4 * float(quality["not_finite"].mean()),
        "contacts": {"rsim_jax": quality["contacts"], **theirs},
        "finite": finite,
        "state_bytes_per_world": bench_ours.state_bytes(model),
        "program_bytes_per_world": None if bytes_of_program is None else bytes_of_program / worlds,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _write(path: Path, record: dict[str, Any]) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(record, indent=1) + "\n")
    partial.replace(path)
