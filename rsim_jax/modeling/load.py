"""`load`: a model from an MJCF or URDF file or text."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import mujoco

from rsim_jax.errors import ModelError
from rsim_jax.modeling.compile import compile_model
from rsim_jax.modeling.floating import set_floating
from rsim_jax.modeling.options import Options
from rsim_jax.modeling.refuse import Refusals
from rsim_jax.modeling.urdf import prepare_urdf
from rsim_jax.structs import POSITION_WIDTHS, VELOCITY_WIDTHS, Model

TEXT_NAME = "XML text"
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ROBOT = re.compile(r"<robot\b")


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
    spec, limits = read_spec(source, floating_base=floating_base, package_dirs=package_dirs, refusals=refusals)
    return compile_model(compile_spec(spec, name), refusals, options, dtype, velocity_limits=limits)


def source_name(source: str | os.PathLike[str]) -> str:
    """How messages call the source."""
    if not isinstance(source, str | os.PathLike):
        raise ModelError(f"source {source!r}: give the path of an .xml or .urdf file, or the XML text")
    return TEXT_NAME if is_text(source) else Path(source).name


def is_text(source: str | os.PathLike[str]) -> bool:
    """Whether a source is XML itself rather than a path."""
    return isinstance(source, str) and source.lstrip().startswith("<")


def compile_spec(spec: mujoco.MjSpec, name: str) -> mujoco.MjModel:
    """Compile with MuJoCo; its complaint becomes a ModelError."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*deprecated", category=UserWarning)  # nothing a user can act on
            return spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(f"{name}: {one_line(error)}") from error


def one_line(error: Exception) -> str:
    """MuJoCo's message of several lines as one."""
    return "; ".join(line.strip() for line in str(error).removeprefix("Error: ").splitlines() if line.strip())


def read_spec(
    source: str | os.PathLike[str],
    *,
    floating_base: bool | None,
    package_dirs: Iterable[str | os.PathLike[str]],
    refusals: Refusals,
) -> tuple[mujoco.MjSpec, dict[str, float]]:
    """The uncompiled MuJoCo model of a source, its base welded or freed as asked; velocity limits by joint."""
    name = refusals.source
    if floating_base not in (None, True, False):
        raise ModelError(f"{name}: floating_base={floating_base!r}: give None, True or False")
    text, folder = _read(source)
    urdf = None
    if _ROBOT.search(_COMMENT.sub("", text)):
        dirs = (package_dirs,) if isinstance(package_dirs, str | os.PathLike) else package_dirs
        urdf = prepare_urdf(text, folder, floating_base=bool(floating_base), package_dirs=dirs, refusals=refusals)
        source = text = urdf.text
    try:
        spec = mujoco.MjSpec.from_string(text) if is_text(source) else mujoco.MjSpec.from_file(str(source))
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(f"{name}: {one_line(error)}") from error
    if floating_base is not None:
        set_floating(spec, floating_base, name)
    _check_keyframes(spec, name)
    if urdf is None:
        return spec, {}
    for mimic in urdf.mimics:
        equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, name1=mimic.joint, name2=mimic.lead)
        equality.data[:2] = mimic.offset, mimic.multiplier
    return spec, urdf.velocity_limits


def _check_keyframes(spec: mujoco.MjSpec, name: str) -> None:
    """Refuse keyframes of the wrong length, which MuJoCo pads with zeros."""
    joints = [int(j.type) for j in spec.joints]
    expected = {
        "qpos": sum(POSITION_WIDTHS[j] for j in joints),
        "qvel": sum(VELOCITY_WIDTHS[j] for j in joints),
        "ctrl": len(spec.actuators),
    }
    for key in spec.keys:
        for field, count in expected.items():
            given = len(getattr(key, field))
            if given not in (0, count):
                raise ModelError(f'{name}: key "{key.name}": {field} has {given} numbers; this model needs {count}')


def _read(source: str | os.PathLike[str]) -> tuple[str, Path]:
    """Text of a source and the folder that its relative paths start from."""
    if is_text(source):
        return str(source), Path.cwd()
    path = Path(source)
    try:
        return path.read_text(encoding="utf-8", errors="replace"), path.resolve().parent
    except FileNotFoundError:
        raise ModelError(f"{source}: no such file; give the path of an .xml or .urdf file, or the XML text") from None
    except OSError as error:
        raise ModelError(f"{source}: cannot be read as an XML file: {error}") from error
