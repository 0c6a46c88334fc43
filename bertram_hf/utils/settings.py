"""Settings as nested dataclasses, read from a YAML file with errors that name the field."""

import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import yaml

Settings = TypeVar("Settings")


def load_settings(
    kind: type[Settings], path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Reads settings from a YAML file.

    Args:
        kind: The dataclass.
        path: The file.
        overrides: Values that replace or add to those of the file.

    Raises:
        ValueError: If the file is no YAML or has a field that the settings do not have, with those that there are.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be a YAML file; it cannot be read: {error}") from error
    if not isinstance(content, Mapping):
        names = " and ".join(f"{entry.name}:" for entry in fields(kind)[:2])  # type: ignore[arg-type]
        raise ValueError(f"{path} must have fields such as {names}; got {content!r:.80}.")
    try:
        return build_settings(kind, _overlay(content, overrides or {}))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def build_settings(kind: type[Settings], given: Any, where: str = "", default: Settings | None = None) -> Settings:
    """Makes settings of a dictionary; what it does not have is taken from `default`, or from the class."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{where or f'a {kind.__name__.lower()}'} has fields of its own; got {given!r:.80}.")
    known = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, value in given.items():
        path = f"{where}.{name}" if where else str(name)
        if name not in known:
            raise ValueError(f"there is no field {path}. Fields: {', '.join(known)}.")
        before = getattr(default if default is not None else kind, name, None)  # a class has its simple defaults
        inner = _inner_kind(hints[name])
        if inner is not None and isinstance(value, list):
            value = [build_settings(inner, item, f"{path}[{index}]") for index, item in enumerate(value)]
        elif inner is not None and value is not None:
            value = build_settings(inner, value, path, before)
        elif isinstance(value, Mapping):
            value = {**(before or {}), **{key: _number(item) for key, item in value.items()}}
        values[name] = _number(value)
    for size, other in (("words_per_batch", "contexts_per_batch"), ("contexts_per_batch", "words_per_batch")):
        if values.get(size) is not None and other in known:
            values.setdefault(other, None)  # a batch has one size; the default's gives way
    try:
        return kind(**values) if default is None else replace(default, **values)  # type: ignore[type-var]
    except TypeError as error:
        if "missing" not in str(error):
            raise ValueError(str(error)) from error
        missing = str(error).partition(": ")[2].replace("'", "")
        raise ValueError(f"{where or f'a {kind.__name__.lower()}'} needs the fields {missing}.") from error


def _inner_kind(hint: Any) -> Any:
    """Returns the dataclass that a field holds, alone, in a list or optionally; None if it holds none."""
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    return next((kind for argument in get_args(hint) if (kind := _inner_kind(argument)) is not None), None)


def _overlay(content: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a nested dictionary with some values changed."""
    return {**content} | {
        name: _overlay(content[name], value)
        if isinstance(value, Mapping) and isinstance(content.get(name), Mapping)
        else value
        for name, value in changes.items()
    }


def _number(value: Any) -> Any:
    """Reads "5e-5", which YAML takes for text, as the number that is meant."""
    try:
        return float(value) if isinstance(value, str) and value[:1] in "0123456789.-+" else value
    except ValueError:
        return value
