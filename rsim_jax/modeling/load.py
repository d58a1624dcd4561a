"""`load`: a model from an MJCF or URDF file or text."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import mujoco

from rsim_jax.errors import ModelError
from rsim_jax.modeling.compile import compile_model
from rsim_jax.modeling.options import Options
from rsim_jax.modeling.refuse import Refusals
from rsim_jax.structs import Model

TEXT_NAME = "XML text"


def load(
    source: str | os.PathLike[str],
    *,
    floating_base: bool | None = None,
    package_dirs: Iterable[str | os.PathLike[str]] = (),
    ignore: Iterable[str] = (),
    options: Options | None = None,
    dtype: Any = jnp.float32,
) -> Model:
    """Load a model.

    Args:
        source: path of an MJCF (.xml) or URDF (.urdf) file, or the XML text itself.
        floating_base: True puts root bodies without joints on a free joint, False welds roots that have one, None
            takes MJCF as written and welds the root of a URDF.
        package_dirs: folders in which `package://` addresses of a URDF are looked up first.
        ignore: kinds of unsupported elements to drop knowingly, for example ("tendon",).
        options: solver and integrator options.
        dtype: of all leaves: jnp.float32, or jnp.float64 with JAX's x64 mode.

    Raises:
        ModelError: names the file, the element, its value and the remedy; one line for every fault of the file.
    """
    name = source_name(source)
    refusals = Refusals(name, ignore)
    if options is not None and not isinstance(options, Options):
        raise ModelError(f"{name}: options={options!r}: give an rsim_jax.Options")
    spec = read_spec(source, floating_base=floating_base, package_dirs=package_dirs, refusals=refusals)
    return compile_model(compile_spec(spec, name), refusals, options, dtype)


def source_name(source: str | os.PathLike[str]) -> str:
    """How messages call the source."""
    return TEXT_NAME if is_text(source) else Path(source).name


def is_text(source: str | os.PathLike[str]) -> bool:
    """Whether a source is XML itself rather than a path."""
    return isinstance(source, str) and source.lstrip().startswith("<")


def compile_spec(spec: mujoco.MjSpec, name: str) -> mujoco.MjModel:
    """Compile with MuJoCo; its complaint becomes a ModelError."""
    try:
        return spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(f"{name}: {one_line(error)}") from error


def one_line(error: Exception) -> str:
    return "; ".join(line.strip() for line in str(error).splitlines() if line.strip())


def read_spec(
    source: str | os.PathLike[str],
    *,
    floating_base: bool | None,
    package_dirs: Iterable[str | os.PathLike[str]],
    refusals: Refusals,
) -> mujoco.MjSpec:
    """The uncompiled MuJoCo model of a source, with its base welded or freed as asked."""
    name = source_name(source)
    if not is_text(source) and not Path(source).is_file():
        raise ModelError(f"{source}: no such file; give the path of an .xml or .urdf file, or the XML text")
    try:
        spec = mujoco.MjSpec.from_string(source) if is_text(source) else mujoco.MjSpec.from_file(str(source))
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(f"{name}: {one_line(error)}") from error
    return spec
