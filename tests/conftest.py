"""Test weather: double precision available, compiled programs kept on disk, no mixed checkouts."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import pytest

import rsim_jax

jax.config.update("jax_enable_x64", True)
rsim_jax.configure(cache=os.environ.get("RSIM_TEST_CACHE") or True)

ROOT = Path(__file__).resolve().parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test one checkout while importing another."""
    import rsim_jax.envs

    for module, folder in ((rsim_jax, "rsim_jax"), (rsim_jax.envs, "envs")):
        found = Path(module.__file__).resolve().parent
        installed = "site-packages" in found.parts
        if not installed and found != ROOT / folder:
            pytest.exit(f"{module.__name__} comes from {found}, not from this checkout; run: pip install -e .", 3)


@pytest.fixture(scope="session")
def gymnasium_assets() -> Path:
    """Folder of the MJCF files that the gymnasium wheel ships."""
    import gymnasium

    return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


@pytest.fixture(scope="session")
def models() -> Path:
    """Folder of the test models."""
    return Path(__file__).parent / "models"
