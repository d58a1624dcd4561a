"""From what a user wrote (YAML, command-line options) to a checked `TrainConfig`, and back to YAML."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from rsim_jax.envs.registry import short_name, task_id
from rsim_jax.training.config import ConfigError, TrainConfig, check_ranges, to_dict

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def load_config(source: str, options: list[str]) -> TrainConfig:
    """The config of a YAML file, or of a task's preset, with command-line options on top.

    Args:
        source: path of a .yaml file, or a task name (hopper, Hopper-v5).
        options: `--name value` or `--name=value`, names dotted (`--ppo.num_envs 512`, `--ppo.num-envs 512`).

    Raises:
        ConfigError: for an unknown name or a value of the wrong type or range.
        OSError: when the file cannot be read.
    """
    values = read_yaml(Path(source)) if _is_file(source) else read_preset(source)
    for name, text in parse_options(options):
        _assign(values, name, text)
    return from_dict(values)


def _is_file(source: str) -> bool:
    return source.endswith((".yaml", ".yml")) or "/" in source.removeprefix("rsim/")


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        ConfigError: when it is not YAML, or not a mapping.
    """
    try:
        values = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold settings, one `name: value` a line")
    return values


def read_preset(task: str) -> dict[str, Any]:
    """The shipped settings of a task; defaults where none are shipped.

    Raises:
        ConfigError: for an unknown task, listing the known ones.
    """
    name = short_name(task_id(task))
    preset = resources.files("rsim_jax.configs") / f"{name}.yaml"
    return yaml.safe_load(preset.read_text()) if preset.is_file() else {"task": name}


def parse_options(options: list[str]) -> list[tuple[str, str]]:
    """Pairs (dotted name, value text) of `--name value` and `--name=value`."""
    pairs, rest = [], list(options)
    while rest:
        option = rest.pop(0)
        if not option.startswith("--"):
            raise ConfigError(f"unexpected argument {option!r}; options are written --name value")
        name, given, value = option[2:].partition("=")
        if not given:
            if not rest or rest[0].startswith("--"):
                raise ConfigError(f"option --{name} needs a value")
            value = rest.pop(0)
        pairs.append((name.replace("-", "_"), value))
    return pairs


def _assign(values: dict[str, Any], name: str, text: str) -> None:
    """Write one option into the nested mapping; unknown names are left for `from_dict` to report."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    *groups, last = name.split(".")
    for group in groups:
        values = values.setdefault(group, {})
        if not isinstance(values, dict):
            raise ConfigError(f"unknown setting {name}: {group} has no parts")
    values[last] = value


def from_dict(values: dict[str, Any]) -> TrainConfig:
    """A checked config from a nested mapping.

    Raises:
        ConfigError: for an unknown name (listing the allowed ones), a wrong type or a wrong range.
    """
    if "task" not in values:
        raise ConfigError("the setting `task` is missing; for example `task: hopper`")
    return check_ranges(_record(TrainConfig, values, ""))


def _record(cls: type, values: Any, prefix: str) -> Any:
    if not isinstance(values, dict):
        raise ConfigError(f"{prefix.rstrip('.')} is {values!r}; it must hold settings, one `name: value` a line")
    hints = typing.get_type_hints(cls)
    for name in values:
        if name not in hints:
            raise ConfigError(_unknown(f"{prefix}{name}", str(name), list(hints)))
    return cls(**{name: _convert(hints[name], value, f"{prefix}{name}") for name, value in values.items()})


def _unknown(full_name: str, name: str, allowed: list[str]) -> str:
    close = difflib.get_close_matches(name, allowed, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return f"unknown setting {full_name}{hint}; there are: {', '.join(allowed)}"


def _convert(hint: Any, value: Any, name: str) -> Any:
    """`value` as the annotated type; a whole number passes for a float, `2e6` for an int, `64,64` for a tuple."""
    if dataclasses.is_dataclass(hint):
        return _record(hint, value, f"{name}.")
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _convert(args[0], value, name)
    if origin is typing.Literal:
        if value not in args:
            raise ConfigError(f"{name} is {value!r}; it must be one of {', '.join(map(str, args))}")
        return value
    if origin is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        parts = parts if isinstance(parts, list | tuple) else [parts]
        return tuple(_convert(args[0], part, name) for part in parts)
    if origin is dict:
        if not isinstance(value, dict):
            raise ConfigError(f"{name} is {value!r}; it must hold settings, one `name: value` a line")
        return dict(value)
    return _scalar(hint, value, name)


def _scalar(hint: type, value: Any, name: str) -> Any:
    if hint is str and isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    if hint in (int, float) and not isinstance(value, bool):
        number = _number(value)
        if number is not None and (hint is float or number == int(number)):
            return hint(number)
    if hint is bool and isinstance(value, bool):
        return value
    raise ConfigError(f"{name} is {value!r}; it must be {_WORDS[hint]}")


def _number(value: Any) -> int | float | None:
    """The finite number that `value` writes; YAML takes `3e-4` for text, so text is tried as well."""
    if isinstance(value, int):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < float("inf") else None


def dump(config: TrainConfig) -> str:
    """YAML text that `from_dict` reads back to an equal config."""
    return yaml.safe_dump(to_dict(config), sort_keys=False)


def help_text() -> str:
    """Every setting with its type, default and meaning."""
    import tyro

    return tyro.extras.get_parser(TrainConfig, default=TrainConfig(task=""), prog="rsim train").format_help()
