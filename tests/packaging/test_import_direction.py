"""Who may import whom, read from the syntax trees, imports inside functions included.

structs, errors, lanes -> stages (never each other) -> pipeline, states, sensing -> envs -> training -> cli. Sensing
chains the stages of dynamics for queries as the pipeline does for the step, so it stands beside it.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAPPED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]

GROUND = {"rsim_jax.structs", "rsim_jax.errors", "rsim_jax.lanes"}
STAGES = {f"rsim_jax.{name}" for name in ("modeling", "dynamics", "collision", "contact", "render")}
ABOVE = {"rsim_jax.envs", "rsim_jax.training", "rsim_jax.configs", "rsim_jax.cli"}
LEARNING = {"gymnasium", "flax", "optax", "orbax", "tensorboardX", "matplotlib"}
# which of two neighbours may look at which module of the other, and why
EXCEPTIONS = {
    ("rsim_jax.modeling", "rsim_jax.collision.pair_table"),  # pair order and capacity are settled at load time
    ("rsim_jax.structs", "rsim_jax.modeling.derive"),  # Model.replace is a method; imported when called
    ("rsim_jax.__main__", "rsim_jax.cli.main"),  # `python -m rsim_jax` is the command
}
MAY_IMPORT_MUJOCO = {"rsim_jax.modeling", "rsim_jax.render", "rsim_jax.cli"}


def modules() -> Iterator[tuple[str, Path]]:
    """Import name and file of every module that is installed."""
    for package, folder in MAPPED.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join((package, *(p for p in parts if p != "__init__"))), path


def imported(path: Path, name: str) -> set[str]:
    """Absolute names that a file imports, `from a import b` counted as a.b as well as a."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import on line {node.lineno}"
            found.add(node.module)
            if node.module.split(".")[0] == "rsim_jax":
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def within(name: str, packages: set[str]) -> str | None:
    """The package of `packages` that holds the module, if any."""
    return next((p for p in packages if name == p or name.startswith(p + ".")), None)


MODULES = dict(modules())
IMPORTS = {name: imported(path, name) for name, path in MODULES.items()}


def is_exception(name: str, target: str) -> bool:
    return any(within(name, {a}) and (within(target, {b}) or target == b.rpartition(".")[0]) for a, b in EXCEPTIONS)


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_downwards(name):
    for target in sorted(IMPORTS[name]):
        if not within(target, {"rsim_jax"}) or is_exception(name, target):
            continue
        if within(name, GROUND):
            assert within(target, GROUND) or target == "rsim_jax", f"{name} imports {target}"
        elif stage := within(name, STAGES):
            assert within(target, GROUND | {stage}) or target == "rsim_jax", f"{name} imports {target}"
        elif within(name, {"rsim_jax.envs"}):
            assert not within(target, {"rsim_jax.training", "rsim_jax.cli"}), f"{name} imports {target}"
        elif within(name, {"rsim_jax.training"}):
            assert not within(target, {"rsim_jax.cli"}), f"{name} imports {target}"
        elif not within(name, ABOVE):
            assert not within(target, ABOVE), f"{name} imports {target}"


@pytest.mark.parametrize("name", [n for n in MODULES if not within(n, ABOVE)])
def test_the_simulator_knows_no_learning_library(name):
    assert not {t.split(".")[0] for t in IMPORTS[name]} & LEARNING


@pytest.mark.parametrize("name", [n for n in MODULES if within(n, {"rsim_jax.envs"})])
def test_environments_know_no_trainer(name):
    assert not {t.split(".")[0] for t in IMPORTS[name]} & (LEARNING - {"gymnasium"})


@pytest.mark.parametrize("name", [n for n in MODULES if not within(n, MAY_IMPORT_MUJOCO)])
def test_mujoco_stays_in_modeling_and_render(name):
    assert "mujoco" not in {t.split(".")[0] for t in IMPORTS[name]}


def test_the_walk_sees_imports_inside_functions(tmp_path):
    source = tmp_path / "sample.py"
    source.write_text("def f():\n    import flax.linen\n    from rsim_jax.contact import rows\n")
    assert imported(source, "sample") == {"flax.linen", "rsim_jax.contact", "rsim_jax.contact.rows"}
    assert within("rsim_jax.contact.rows", STAGES) and not within("rsim_jax.contacts", STAGES)
