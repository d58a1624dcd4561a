"""Saving and loading a whole training state, safely against crashes and damage.

A checkpoint is a folder named by its update: the arrays as Orbax writes them, the run's settings, and a list of all
files with their SHA-256. It is written beside and renamed, so a folder with a plain number is complete; what was
damaged later is noticed before anything is read. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rsim_jax.training.config import ConfigError

ARRAYS, SETTINGS, FILES = "arrays", "config.yaml", "files.json"


def save(folder: Path, update: int, state: Any, settings: str, keep: int) -> Path:
    """Write `state` as the checkpoint of `update` and delete all but the newest `keep`.

    Args:
        folder: holds all checkpoints of a run.
        settings: YAML text of the run's config.

    Raises:
        OSError: when it cannot be written; older checkpoints are then still there.
    """
    import orbax.checkpoint as ocp

    folder.mkdir(parents=True, exist_ok=True)
    final, partial = folder / f"{update:08d}", (folder / f".{update:08d}.partial").resolve()
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    arrays = {name: np.asarray(leaf) for name, leaf in _named(_raw(state)) if leaf.size}  # Orbax refuses empty arrays
    with ocp.PyTreeCheckpointer() as writer:
        writer.save(partial / ARRAYS, arrays)
    (partial / SETTINGS).write_text(settings)
    (partial / FILES).write_text(json.dumps(_digests(partial), indent=1))
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)
    for old in checkpoints(folder)[:-keep]:
        shutil.rmtree(old)
    return final


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(path for path in folder.glob("*") if path.is_dir() and path.name.isdigit())


def latest(run: Path) -> Path:
    """The newest checkpoint of a run folder.

    Raises:
        ConfigError: when there is none.
    """
    if not run.is_dir():
        raise ConfigError(f"there is no run folder {run}")
    found = checkpoints(run / "checkpoints")
    if not found:
        raise ConfigError(f"{run} holds no checkpoint; was it interrupted before the first one?")
    return found[-1]


def load(path: Path, template: Any) -> Any:
    """The state saved at `path`, in the structure of `template` (arrays or their shapes).

    Raises:
        ConfigError: when the checkpoint is damaged or belongs to something else; the message says what to do.
    """
    import orbax.checkpoint as ocp

    path = path.resolve()  # Orbax finds nothing at a relative path
    _check_files(path)
    raw = jax.eval_shape(_raw, template)
    wanted = {name: leaf for name, leaf in _named(raw) if leaf.size}
    with ocp.PyTreeCheckpointer() as reader:
        as_numpy = ocp.RestoreArgs(restore_type=np.ndarray)
        stored = {name: meta for name, meta in reader.metadata(path / ARRAYS).item_metadata.tree.items()}
        misfits = sorted(wanted.keys() ^ stored.keys())
        if misfits:
            raise ConfigError(f"checkpoint {path} does not fit this task or version: {misfits[0]} is not in both")
        arrays = reader.restore(path / ARRAYS, restore_args=dict.fromkeys(stored, as_numpy))
    for name, leaf in wanted.items():
        if arrays[name].shape != leaf.shape or arrays[name].dtype != leaf.dtype:
            found = f"{arrays[name].dtype}{list(arrays[name].shape)}"
            expected = f"{leaf.dtype}{list(leaf.shape)}"
            raise ConfigError(f"checkpoint {path} does not fit this task: {name} is {found}, expected {expected}")
    leaves = [
        jnp.asarray(arrays[name]) if leaf.size else jnp.zeros(leaf.shape, leaf.dtype) for name, leaf in _named(raw)
    ]
    return jax.tree.map(_as_template, template, jax.tree.unflatten(jax.tree.structure(raw), leaves))


def _check_files(path: Path) -> None:
    remedy = "delete this checkpoint to go on from an older one, or train again"
    try:
        recorded = json.loads((path / FILES).read_text())
        found = _digests(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"checkpoint {path} is damaged ({FILES}: {error}); {remedy}") from None
    for name in sorted(recorded.keys() | found.keys()):
        if recorded.get(name) != found.get(name):
            what = "is missing" if name not in found else "has changed or was cut short"
            raise ConfigError(f"checkpoint {path} is damaged ({name} {what}); {remedy}")


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below `folder` except the list itself."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != FILES)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _raw(state: Any) -> Any:
    """Typed random keys as the numbers they hold."""
    return jax.tree.map(lambda x: jax.random.key_data(x) if _is_key(x) else x, state)


def _as_template(wanted: Any, leaf: Any) -> Any:
    return jax.random.wrap_key_data(leaf) if _is_key(wanted) else leaf


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _named(tree: Any) -> list[tuple[str, Any]]:
    """Leaves with their path, for example env.task.physics.q."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]
