"""Where model files come from: the MuJoCo assets that the gymnasium wheel ships, or the user's own path."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def model_file(name: str) -> Path:
    """The file of that name, as Gymnasium resolves `xml_file`.

    Args:
        name: one of Gymnasium's MuJoCo assets ("ant.xml"), or a path that starts with ".", "/" or "~".

    Raises:
        FileNotFoundError: when there is no such file; the message says where it was looked for.
    """
    path = Path(name).expanduser() if name.startswith((".", "/", "~")) else gymnasium_assets() / name
    if not path.is_file():
        hint = "" if path.is_absolute() and name.startswith("/") else '; a path of your own starts with ".", "/" or "~"'
        raise FileNotFoundError(f"no model file {path}{hint}")
    return path


def gymnasium_assets() -> Path:
    """Folder of the MuJoCo model files inside the installed gymnasium, found without importing its MuJoCo tasks."""
    spec = importlib.util.find_spec("gymnasium")
    return Path(spec.submodule_search_locations[0]) / "envs" / "mujoco" / "assets"
