"""`rsim bench --stages`: its cut-off steps follow the pipeline, and their differences are what it prints."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import rsim_jax as rsim
from rsim_jax import pipeline
from rsim_jax.cli import bench_stages
from rsim_jax.cli.arguments import model_path


def test_every_cut_traces_and_the_last_is_the_whole_step():
    model = rsim.load(model_path("inverted_pendulum"))
    state, ctrl = rsim.make_state(model, 2), jnp.zeros((model.nu, 2), model.dtype)
    cuts = bench_stages.cuts(sweeps=3)
    assert list(cuts)[-3:-1] == ["rows", "3 sweeps"]
    assert cuts.pop(list(cuts)[-1]) is pipeline.advance_block
    for name, cut in cuts.items():
        leaves = jax.tree.leaves(jax.eval_shape(cut, model, state, ctrl))
        real = [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
        assert real and all(leaf.dtype == model.dtype for leaf in real), name


def test_a_stage_costs_the_difference_of_two_cuts(monkeypatch, capsys):
    case = bench_stages.Case
    model = rsim.load(model_path("inverted_pendulum"))
    names = list(bench_stages.cuts(model.topology.sweeps))
    clock = iter(float(k + 1) for k in range(len(names)))
    monkeypatch.setattr(bench_stages, "_seconds", lambda *args: next(clock) * 1e-6)
    monkeypatch.setattr(bench_stages.rsim, "step", lambda model, state, ctrl: state)
    size = bench_stages.blocks.block_size(model.topology)
    fake = case("pendulum", model_path("inverted_pendulum"), 2, 0, _Bare(), jnp.zeros((2, 1)), jnp.zeros((2, 1)))
    monkeypatch.setattr(case, "controls", lambda self, worlds: jnp.zeros((64, 1, worlds)))
    rows = bench_stages.time_stages(fake, model, 1.0)
    assert [row["stage"] for row in rows] == [*names, "whole step"]
    assert all(abs(row["ns"] - 1e3 / size) < 1e-9 for row in rows[:-1])
    assert abs(sum(row["share"] for row in rows[:-1]) - 1) < 1e-12 and "whole step" in capsys.readouterr().out


class _Bare:
    """Stands for MuJoCo's model, which stage times do not need."""
