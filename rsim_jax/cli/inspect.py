"""`rsim inspect MODEL`: what a file became, and what of it is not used."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from rsim_jax.cli.arguments import Parser, model_path, run
from rsim_jax.cli.list import SHAPES
from rsim_jax.cli.table import table
from rsim_jax.collision import pair_table

if TYPE_CHECKING:
    import mujoco

    from rsim_jax.structs import Model

JOINTS = ("free", "ball", "slide", "hinge")  # by joint type


def main(argv: list[str]) -> int:
    """Prints the parts of a model."""

    def work() -> None:
        parser = Parser("inspect", "Show what a model file becomes: counts, parts, contacts, options, memory.")
        parser.add_argument("model", help="path of an .xml or .urdf file, or a Gymnasium asset such as ant")
        parser.add_argument("--ignore", default="", help="kinds of unsupported elements to drop, between commas")
        args = parser.parse_args(argv)
        _show(model_path(args.model), tuple(kind.strip() for kind in args.ignore.split(",") if kind.strip()))

    return run("inspect", work)


def _show(path: Any, ignore: tuple[str, ...]) -> None:
    import rsim_jax as rsim
    from rsim_jax.modeling import compiled

    model = rsim.load(path, ignore=ignore)
    sections = (_counts(model), _bodies(model), _joints(model), _actuators(model), _contacts(model), _options(model))
    print("\n\n".join((*sections, _unused(compiled(model)), _memory(model))))


def _counts(model: Model) -> str:
    mass = float(np.sum(np.asarray(model.body_mass)))
    counts = f"nq {model.nq}, nv {model.nv}, nu {model.nu}, bodies {model.nbody}, joints {model.njnt}"
    return f"{model.topology.source}\n{counts}, geoms {model.ngeom}, mass {mass:.6g} kg"


def _bodies(model: Model) -> str:
    t, mass = model.topology, np.asarray(model.body_mass)[:, 0]
    shapes = [Counter(SHAPES[t.geom_type[g]] for g in range(t.ngeom) if t.geom_body[g] == b) for b in range(t.nbody)]
    rows = []
    for b, name in enumerate(t.body_names):
        parent = t.body_names[t.body_parent[b]] if b else None
        geoms = ", ".join(f"{n} {shape}" if n > 1 else shape for shape, n in shapes[b].items())
        rows.append((b, name or "(unnamed)", parent, float(mass[b]), geoms))
    return "bodies\n" + table(("", "name", "parent", "mass kg", "geoms"), rows)


def _joints(model: Model) -> str:
    t, low_high = model.topology, np.asarray(model.joint_range)[:, :, 0]
    if t.njnt == 0:
        return "no joints"
    rows = []
    for j, name in enumerate(t.joint_names):
        limits = f"{low_high[0, j]:.4g} ... {low_high[1, j]:.4g}" if t.joint_limited[j] else None
        dof = t.joint_dadr[j]
        damping, armature = (float(np.asarray(leaf)[dof, 0]) for leaf in (model.joint_damping, model.joint_armature))
        body = t.body_names[t.joint_body[j]] or "(unnamed)"
        rows.append((j, name or "(unnamed)", JOINTS[t.joint_type[j]], body, limits, damping, armature))
    return "joints\n" + table(("", "name", "type", "body", "range", "damping", "armature"), rows)


def _actuators(model: Model) -> str:
    t = model.topology
    if t.nu == 0:
        return "no actuators"
    joint_of = {t.joint_dadr[j]: t.joint_names[j] for j in range(t.njnt)}
    control, gain, gear = (np.asarray(x) for x in (model.actuator_ctrl_range, model.actuator_gain, model.actuator_gear))
    rows = [
        (
            i,
            name or "(unnamed)",
            joint_of[t.actuator_dof[i]],
            float(gain[i, 0]),
            float(gear[i, 0]),
            _range(control[:, i, 0]),
        )
        for i, name in enumerate(t.actuator_names)
    ]
    return "actuators\n" + table(("", "name", "joint", "gain", "gear", "control range"), rows)


def _range(bounds: np.ndarray) -> str | None:
    return f"{bounds[0]:.4g} ... {bounds[1]:.4g}" if np.isfinite(bounds).all() else None


def _contacts(model: Model) -> str:
    t = model.topology
    count = Counter(pair_table.FAMILIES[i].name for i in pair_table.pair_families(t))
    rows = [
        (f.name, count[f.name], count[f.name] * f.count(t.manifold_points))
        for f in pair_table.FAMILIES
        if count[f.name]
    ]
    rows.append(("all", t.npair, len(pair_table.candidates(t))))
    if t.npenalty:
        rows.append(("compliant", t.npenalty, t.penalty_candidates))
    text = "contacts\n" + table(("family", "pairs", "candidates"), rows)
    rest = f"{len(t.limited_joints)} joint limits, {len(t.friction_dofs)} joint frictions, {t.nwire} wires"
    rest += f"; eliminated before them: {t.nloop} equations of {t.npin} pins, {t.nequality} joint equalities, rods"
    return f"{text}\nkept per world: {t.max_contacts} (Options.max_contacts); further rows: {rest}"


def _options(model: Model) -> str:
    t = model.topology
    gravity = " ".join(f"{x:g}" for x in np.asarray(model.gravity)[:, 0])
    static = {
        name: getattr(t, name)
        for name in ("sweeps", "slip_rule", "warm_start", "speculative", "integrator", "manifold_points")
    }
    names = ("tolerance", "erp", "slop", "max_correction", "limit_restitution")
    numbers = {name: f"{float(getattr(model, name)):g}" for name in names}
    values = {"timestep": f"{float(model.dt):g} s", "gravity": f"{gravity} m/s^2", **static, **numbers}
    return "options\n" + "\n".join(f"  {name} = {value}" for name, value in values.items())


def _unused(compiled: mujoco.MjModel) -> str:
    """Settings of the file that belong to MuJoCo's own solver."""
    import mujoco

    option = compiled.opt
    words = {
        "integrator": mujoco.mjtIntegrator(option.integrator).name.removeprefix("mjINT_").lower(),
        "solver": mujoco.mjtSolver(option.solver).name.removeprefix("mjSOL_").lower(),
        "cone": mujoco.mjtCone(option.cone).name.removeprefix("mjCONE_").lower(),
        "iterations": option.iterations,
        "tolerance": f"{option.tolerance:g}",
        "impratio": f"{option.impratio:g}",
    }
    for name in ("solref", "solimp"):
        tables = [getattr(compiled, f"{kind}_{name}") for kind in ("geom", "pair")]
        tables += [getattr(compiled, f"jnt_{name}"), getattr(compiled, f"dof_{name}")]
        distinct = sorted({tuple(float(x) for x in row) for rows in tables for row in rows})
        words[name] = "; ".join(" ".join(f"{x:g}" for x in row) for row in distinct) or "none"
    return "read and not used\n" + "\n".join(f"  {name} = {value}" for name, value in words.items())


def _memory(model: Model) -> str:
    """State bytes by shape alone: what 2 worlds need more than 1."""
    import jax

    import rsim_jax as rsim

    def size(worlds: int) -> int:
        leaves = jax.tree.leaves(jax.eval_shape(lambda: rsim.make_state(model, worlds)))
        return sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in leaves)

    shared = sum(leaf.nbytes for leaf in jax.tree.leaves(model))
    return f"memory: {size(2) - size(1):,} bytes of state per world, {shared:,} bytes of model shared by all"
