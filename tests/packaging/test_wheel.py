"""The built wheel: complete, one name at the top, importable from an empty folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAPPED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Builds from a copy, so that the checkout gets no build folder."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for folder in MAPPED.values():
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
    try:
        new_enough = int(version("setuptools").split(".")[0]) >= 77
    except PackageNotFoundError:
        new_enough = False
    isolation = ["--no-build-isolation"] if new_enough else []
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", *isolation, "-w", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("*.whl")
    return path


def test_wheel_holds_every_module_and_data_file_and_nothing_else(wheel):
    expected = {"rsim_jax/py.typed"}
    for package, folder in MAPPED.items():
        for path in (ROOT / folder).rglob("*"):
            inside = path.relative_to(ROOT / folder)
            data = path.suffix == ".yaml" or (path.suffix == ".xml" and inside.parts[0] == "scenes")
            wanted = path.suffix == ".py" or (folder == "configs" and data)
            wanted = wanted or (folder == "envs" and inside.parts[0] == "assets")
            if path.is_file() and wanted and "__pycache__" not in inside.parts:
                expected.add("/".join((*package.split("."), *inside.parts)))
    files = set(zipfile.ZipFile(wheel).namelist())
    assert {f for f in files if ".dist-info/" not in f} == expected
    assert {f.split("/")[0] for f in files if ".dist-info/" not in f} == {"rsim_jax"}


def test_installed_copy_is_the_one_that_runs(wheel, tmp_path):
    site, empty = tmp_path / "site", tmp_path / "empty"
    zipfile.ZipFile(wheel).extractall(site)
    empty.mkdir()
    code = "import rsim_jax, rsim_jax.envs, rsim_jax.training, rsim_jax.configs as c; print(c.__file__)"
    environment = os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, "-c", code], cwd=empty, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(site)
    assert list(empty.iterdir()) == []
