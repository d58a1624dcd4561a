"""The figures of the speed comparison in words and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rsim_jax.cli.table import table


def describe(entry: dict[str, Any]) -> str:
    """One model at one number of worlds: speeds, then what they were bought with."""
    head = (
        f"{entry['model']}, {entry['worlds']:,} worlds, dt {entry['dt']:g} s, {entry['sweeps']} sweeps, "
        f"up to {entry['max_contacts']} contacts, {entry['threads']} threads for mujoco"
    )
    rows = []
    for label, rate in entry["rates"].items():
        ratio = entry["ratios"].get(label)
        ratio = f"{ratio['median']:.3g} ({ratio['low']:.3g} ... {ratio['high']:.3g})" if ratio else None
        finite, contacts = entry["finite"].get(label), entry["contacts"].get(label)
        rows.append((label, rate["median"], f"{100 * rate['spread']:.0f} %", ratio, contacts, finite))
    columns = ("simulator", "steps/s", "spread", "rsim_jax / it", "contacts", "finite")
    return "\n".join((head, table(columns, rows), *_quality(entry), *_cost(entry)))


def _quality(entry: dict[str, Any]) -> tuple[str, ...]:
    r = entry["residual"]
    return (
        f"residual <= 1e-3 m/s in {100 * r['share']:.3f} % of {entry['world_steps']:,} world-steps; "
        f"p50 {r['p50']:.1e}, p99 {r['p99']:.1e}, p99.9 {r['p99.9']:.1e}, worst {r['worst']:.1e} m/s",
        f"contact overflow {entry['overflow_per_10000']:.3g}, not finite {entry['not_finite_per_10000']:.3g} "
        "per 10,000 world-steps",
    )


def _cost(entry: dict[str, Any]) -> tuple[str, ...]:
    first, program = entry["first_step_s"], entry["program_bytes_per_world"]
    program = "" if program is None else f", {program:,.0f} of arrays while stepping"
    return (
        f"first step after {first['cold']:.1f} s, {first['cached']:.1f} s from the compilation cache",
        f"bytes per world: {entry['state_bytes_per_world']:,} of state{program}; peak of the process so far "
        f"{entry['peak_rss_mb']:,.0f} MB",
    )


def curve(entries: Sequence[dict[str, Any]]) -> str:
    """Throughput over numbers of worlds."""
    labels = list(entries[0]["rates"])
    rows = []
    for e in entries:
        rates = [e["rates"][label]["median"] for label in labels]
        ratios = [e["ratios"][label]["median"] for label in labels[1:]]
        rows.append((e["worlds"], *rates, *ratios, e["program_bytes_per_world"]))
    peers = [f"/ {label}" for label in labels[1:]]
    return table(("worlds", *(f"{label} steps/s" for label in labels), *peers, "bytes per world"), rows)
