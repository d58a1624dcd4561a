"""`rsim bench --simbenchmark`: the scenes of SimBenchmark here, beside what it published for five engines.

One world per scene, double precision, no error reduction. The time is of one run with its measurements, compilation
left out; one program per scene and integrator serves every step length.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from rsim_jax import pipeline
from rsim_jax.cli import simbenchmark_published as published
from rsim_jax.cli.simbenchmark_scenes import SCENARIOS, Force, Measure, Scenario, Setup, standing
from rsim_jax.cli.table import table
from rsim_jax.errors import explain
from rsim_jax.structs import Model, State

STANDING_DT, STANDING_SIDES = 5e-3, (1, 2, 3)
GATED = "trapezoid"  # the integrator whose pile is run at full length


def simbenchmark(picture: Path | None = None) -> dict[str, Any]:
    """Runs every scene at 1 ms, prints errors, times and gates, and returns them; `picture` adds a sweep over steps."""
    with jax.enable_x64(True):
        rows = [row for scenario in SCENARIOS for row in _compare(scenario)]
        robots = [_standing(side) for side in STANDING_SIDES]
        print("\nANYmal standing, 5 ms: thousand robot-steps per second\n" + _standing_table(robots))
        record = {"scenarios": rows, "standing": robots}
        if picture is not None:
            record["sweep"] = [row for scenario in SCENARIOS for row in _sweep(scenario, rows)]
            draw(record["sweep"], picture)
            print(f"\ndrawn: {picture}")
    return record


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    measure: Measure, force: Force | None, model: Model, state: State, reference: jax.Array, steps: jax.Array
) -> tuple[State, jax.Array, jax.Array]:
    """(state after `steps`, sum of the measures before each step (M, N), worst residual in m/s)."""
    none = jnp.zeros((model.nu, state.q.shape[-1]), model.dtype)

    def body(_: jax.Array, carry: tuple[State, jax.Array, jax.Array]):
        state, total, worst = carry
        total = total + measure(model, state, reference)
        state = pipeline.advance_block(model, state, none, force)
        return state, total, jnp.maximum(worst, jnp.max(state.residual))

    nothing = jnp.zeros_like(measure(model, state, reference))
    return lax.fori_loop(0, steps, body, (state, nothing, jnp.zeros((), model.dtype)))


def run_setup(setup: Setup, seconds: float) -> dict[str, Any]:
    """Errors (by row of the measure), time, worst residual and health of a run of `seconds` after the skip."""
    dt, model = float(setup.model.dt), setup.model
    advance = partial(_advance, setup.measure, setup.force, model)
    look = jax.jit(setup.reference)
    state, reference = setup.state, look(model, setup.state)
    jax.block_until_ready(advance(state, reference, 0))  # compiles
    begin = time.perf_counter()
    if setup.skip:
        state, _, _ = advance(state, reference, round(setup.skip / dt))
        reference = look(model, state)
    steps = round(seconds / dt)
    state, total, worst = jax.block_until_ready(advance(state, reference, steps))
    spent = time.perf_counter() - begin
    return {
        "errors": [float(part[0]) / steps for part in total],  # of world 0; several worlds are equal
        "seconds": spent,
        "residual": float(worst),
        "status": explain(state.status[:1]),
    }


def run_scenario(scenario: Scenario, dt: float, integrator: str) -> dict[str, Any]:
    """One row of figures: error, seconds, worst residual, and whether the gate of 1 ms holds (None: no gate)."""
    found = run_setup(scenario.build(dt, integrator), scenario.seconds)
    error = found.pop("errors")[scenario.part]
    gate = scenario.gates.get(integrator) if dt == published.DT else None
    holds = None if gate is None else bool(error <= gate)
    names = {"scenario": scenario.name, "unit": scenario.unit, "integrator": integrator, "dt": dt}
    return {**names, "error": error, **found, "gate": gate, "holds": holds}


def _compare(scenario: Scenario) -> list[dict[str, Any]]:
    rows = [run_scenario(scenario, published.DT, integrator) for integrator in scenario.integrators]
    errors, seconds = published.ERRORS[scenario.name][published.DT], published.SECONDS[scenario.name]
    theirs = list(zip(published.ENGINES, errors, seconds, strict=True))
    lines = [[r["integrator"], _short(r["error"]), _short(r["seconds"]), _short(r["residual"]), _gate(r)] for r in rows]
    lines += [[name, _short(error), _short(spent), "", ""] for name, error, spent in theirs]
    head = [scenario.name, f"error, {scenario.unit}", "time, s", "residual, m/s", "gate"]
    print("\n" + table(head, lines), flush=True)
    for row in rows:
        if "healthy" not in row["status"]:
            print(f"{row['integrator']}: {row['status']}")
    return rows


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _gate(row: dict[str, Any]) -> str:
    if row["gate"] is None:
        return ""
    return f"{'holds' if row['holds'] else 'MISSED'}: <= {row['gate']:.3g}"


def _standing(side: int) -> dict[str, Any]:
    """Speed of side x side robots under their servo."""
    robots, steps = side * side, published.STANDING_STEPS
    found = run_setup(standing(STANDING_DT, "semi_implicit", robots), steps * STANDING_DT)
    (sunk,) = found.pop("errors")
    return {"robots": robots, "dt": STANDING_DT, "steps": steps, "mean_sunk_m": sunk, **found}


def _standing_table(robots: list[dict[str, Any]]) -> str:
    lines = []
    for row in robots:
        count = row["robots"]
        times = (row["seconds"], *published.STANDING[count])
        rates = [None if t is None else round(count * row["steps"] / t / 1e3, 1) for t in times]
        lines.append([count, *rates, f"{row['mean_sunk_m']:.3f} m"])
    return table(["robots", "rsim_jax", *published.ENGINES, "bases sank"], lines)


def _sweep(scenario: Scenario, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows at the other step lengths with the gated integrator, and those of 1 ms."""
    same = [r for r in known if r["scenario"] == scenario.name]
    return same + [run_scenario(scenario, dt, GATED) for dt in scenario.steps if dt != published.DT]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Error over time of every step length, one panel per scenario, ours and the published ones."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["scenario"] for row in rows))
    figure = Figure(figsize=(12, 7), layout="constrained")
    panels = figure.subplots(2, -(-len(names) // 2), squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        own = [row for row in rows if row["scenario"] == name]
        axes.set(title=name, xlabel="step, s", ylabel=f"error, {own[0]['unit']}", xscale="log", yscale="log")
        for integrator in dict.fromkeys(row["integrator"] for row in own):
            points = sorted((row["dt"], row["error"]) for row in own if row["integrator"] == integrator)
            axes.plot(*zip(*points, strict=True), "o-", label=f"rsim_jax {integrator}", linewidth=2)
        for engine, points in _published_points(name).items():
            axes.plot(*zip(*points, strict=True), ".--", label=engine, alpha=0.7)
        axes.grid(alpha=0.3)
    panels[0].legend(fontsize="small")
    partial_path = path.with_suffix(".partial.png")
    FigureCanvasAgg(figure).print_png(partial_path)
    os.replace(partial_path, path)


def _published_points(name: str) -> dict[str, list[tuple[float, float]]]:
    """(dt, error) by engine, for the steps of the sweep."""
    points: dict[str, list[tuple[float, float]]] = {}
    for dt, errors in sorted(published.ERRORS[name].items()):
        for engine, error in zip(published.ENGINES, errors, strict=True):
            if error is not None and 4e-4 <= dt <= 1e-2:
                points.setdefault(engine, []).append((dt, error))
    return points
