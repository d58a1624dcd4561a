"""Test weather: double precision available, compiled programs kept on disk, no mixed checkouts."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

import rsim_jax

jax.config.update("jax_enable_x64", True)
rsim_jax.configure(cache=os.environ.get("RSIM_TEST_CACHE") or True)

ROOT = Path(__file__).resolve().parents[1]
MAPPINGS = 20_000  # of memory; Linux ends a process at 65,530, and a program of one model holds about 1,300


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test one checkout while importing another."""
    import rsim_jax.envs

    for module, folder in ((rsim_jax, "rsim_jax"), (rsim_jax.envs, "envs")):
        found = Path(module.__file__).resolve().parent
        installed = "site-packages" in found.parts
        if not installed and found != ROOT / folder:
            pytest.exit(f"{module.__name__} comes from {found}, not from this checkout; run: pip install -e .", 3)


@pytest.fixture(scope="module", autouse=True)
def few_programs() -> Iterator[None]:
    """Forget compiled programs before the kernel refuses another mapping, which is a segmentation fault in XLA."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_text().splitlines()) > MAPPINGS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="session")
def gymnasium_assets() -> Path:
    """Folder of the MJCF files that the gymnasium wheel ships."""
    import gymnasium

    return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


@pytest.fixture(scope="session")
def models() -> Path:
    """Folder of the test models."""
    return Path(__file__).parent / "models"
