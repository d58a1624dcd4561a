"""The tree on disk and the packaging table agree, and files keep the size and shape that the project asks for."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
MAPPED = SETUPTOOLS["package-dir"]
LONGEST = 600
SOURCES = sorted(p for folder in (*MAPPED.values(), "tests") for p in (ROOT / folder).rglob("*.py"))


def test_every_folder_with_code_is_listed_as_a_package_and_every_package_exists():
    on_disk = set()
    for package, folder in MAPPED.items():
        for path in (ROOT / folder).rglob("*.py"):
            on_disk.add(".".join((package, *path.parent.relative_to(ROOT / folder).parts)))
    assert on_disk == set(SETUPTOOLS["packages"])


def test_every_package_has_an_init_file():
    for package in SETUPTOOLS["packages"]:
        mapped = max((m for m in MAPPED if package == m or package.startswith(m + ".")), key=len)
        below = package[len(mapped) :].strip(".").split(".") if package != mapped else []
        assert ROOT.joinpath(MAPPED[mapped], *below, "__init__.py").is_file(), package


def test_folders_are_at_most_two_levels_deep_and_have_no_vague_names():
    for path in SOURCES:
        parts = path.relative_to(ROOT).parts
        assert len(parts) <= 4, path
        assert not {p.removesuffix(".py") for p in parts} & {"utils", "common", "base", "_src", "types", "math"}, path


@pytest.mark.parametrize("folder", ["envs", "training"])
def test_a_mapped_folder_refuses_to_be_imported_under_its_bare_name(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    with pytest.raises(ImportError, match=f"import rsim_jax.{folder}"):
        __import__(folder)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_each_file_is_short_and_says_what_it_is(path):
    text = path.read_text()
    assert text.count("\n") <= LONGEST
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "no module docstring"
    code = [n for n in tree.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
    if len(code) > 0 and path.name != "__init__.py":
        assert isinstance(code[0], ast.ImportFrom) and code[0].module == "__future__"
