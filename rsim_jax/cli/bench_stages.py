"""`rsim bench --stages`: what each stage of the step costs, from the times of its beginnings.

The step cut off after stage k, less the step cut off after stage k - 1, is the cost of stage k. Each cut-off step runs
on one block of worlds and one device, many times inside one compiled loop whose state changes a little every time, so
that neither the start of a program nor a hoisted computation shows.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import rsim_jax as rsim
from rsim_jax import pipeline
from rsim_jax.cli.bench_cases import Case
from rsim_jax.cli.table import table
from rsim_jax.collision import detect
from rsim_jax.contact.solve import solve_rows
from rsim_jax.dynamics import bias, inertia
from rsim_jax.dynamics.algebra import algebra
from rsim_jax.dynamics.free import free_motion
from rsim_jax.dynamics.kinematics import link_poses, motion_subspace
from rsim_jax.dynamics.structure import structure
from rsim_jax.lanes import blocks
from rsim_jax.lanes.tree import take
from rsim_jax.structs import Model, State

TURNS = 5
Cut = Callable[[Model, State, jax.Array], Any]


def _kinematics(model: Model, state: State, ctrl: jax.Array) -> Any:
    links, rotation, position = link_poses(model, state.q, state.kinematic_position, state.kinematic_quaternion)
    return links, rotation, position, motion_subspace(model, rotation, position)


def _mass_matrix(model: Model, state: State, ctrl: jax.Array) -> Any:
    links, rotation, position, subspace = _kinematics(model, state, ctrl)
    link_inertia = inertia.link_inertia(model, rotation, position, subspace.tree_origin)
    composite = inertia.composite(structure(model.topology), link_inertia)
    return links, subspace, link_inertia, algebra(structure(model.topology)).mass_rows(model, subspace, composite)


def _bias(model: Model, state: State, ctrl: jax.Array) -> Any:
    tree = structure(model.topology)
    links, subspace, link_inertia, rows = _mass_matrix(model, state, ctrl)
    motions = bias.joint_motions(tree, subspace, take(state.qd, tree.dof_order))
    velocity = bias.link_velocities(tree, motions)
    return links, rows, bias.bias_force(model, subspace, link_inertia, motions, velocity, model.gravity)


def _free(model: Model, state: State, ctrl: jax.Array) -> Any:
    return free_motion(model, state, ctrl, partial(pipeline.outside_force, model, None))


def _collision(model: Model, state: State, ctrl: jax.Array) -> Any:
    motion, loop = pipeline.close_loops(model, state, _free(model, state, ctrl))
    return motion, loop, detect(model, motion.body.links)


def _selection(model: Model, state: State, ctrl: jax.Array) -> Any:
    motion, loop = pipeline.close_loops(model, state, _free(model, state, ctrl))
    return motion, loop, pipeline.find_contacts(model, state, motion)


def _rows(model: Model, state: State, ctrl: jax.Array) -> Any:
    motion, loop, (contacts, carried) = _selection(model, state, ctrl)
    return motion, loop, contacts, pipeline.build_rows(model, state, motion, contacts, carried, loop)


def _sweeps(model: Model, state: State, ctrl: jax.Array, sweeps: int) -> Any:
    motion, loop, contacts, (system, built, start) = _rows(model, state, ctrl)
    return motion, loop, contacts, built, solve_rows(system, start, sweeps, model.topology.slip_rule)


def cuts(sweeps: int) -> dict[str, Cut]:
    """The step cut off after each stage, by the name of its last one; each returns all that later stages read."""
    return {
        "kinematics": _kinematics,
        "inertias, mass matrix": _mass_matrix,
        "bias": _bias,
        "forces, factor, free velocity": _free,
        "narrow phase": _collision,
        "selection": _selection,
        "rows": _rows,
        f"{sweeps} sweeps": partial(_sweeps, sweeps=sweeps),
        "residual, reports, integration": pipeline.advance_block,
    }


def time_stages(case: Case, model: Model, seconds: float) -> list[dict[str, Any]]:
    """Times every cut on one block of worlds, prints a table and returns its rows."""
    size = blocks.block_size(model.topology)
    q, qd = (jnp.asarray(x, model.dtype) for x in case.start(size))
    ctrl = jnp.asarray(case.controls(size)[0], model.dtype)
    state = rsim.make_state(model, size).replace(q=q, qd=qd)
    for _ in range(2 * case.frame_skip):  # so that there are impulses to start from
        state = rsim.step(model, state, ctrl)
    timings = {
        name: _seconds(cut, model, state, ctrl, seconds) / size for name, cut in cuts(model.topology.sweeps).items()
    }
    rows, before = [], 0.0
    total = timings[list(timings)[-1]]
    for name, taken in timings.items():
        rows.append({"stage": name, "ns": 1e9 * (taken - before), "share": (taken - before) / total})
        before = taken
    rows.append({"stage": "whole step", "ns": 1e9 * total, "share": 1.0})
    print(f"\n{case.name}, {size} worlds in one block on one device; ns per world and step")
    print(table(("stage", "ns", "share"), [(r["stage"], r["ns"], f"{100 * r['share']:.1f} %") for r in rows]))
    return rows


def _seconds(cut: Cut, model: Model, state: State, ctrl: jax.Array, seconds: float) -> float:
    """Median time of one pass through the cut-off step."""

    @jax.jit
    def loop(model: Model, state: State, ctrl: jax.Array, passes: jax.Array) -> Any:
        blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(cut, model, state, ctrl))

        def body(i: jax.Array, _: Any) -> Any:
            shift = 1 + 1e-6 * i.astype(ctrl.dtype)
            return cut(model, state.replace(q=state.q * shift, qd=state.qd * shift), ctrl * shift)

        return lax.fori_loop(0, passes, body, blank)

    def run(passes: int) -> float:
        begin = time.perf_counter()
        jax.block_until_ready(loop(model, state, ctrl, jnp.int32(passes)))
        return time.perf_counter() - begin

    run(1)
    passes = max(1, round(100 * seconds / (TURNS * run(100))))
    return statistics.median(run(passes) for _ in range(TURNS)) / passes
