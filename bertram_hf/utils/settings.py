"""Settings as nested dataclasses, read from a YAML file with errors that name the field."""

import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

Settings = TypeVar("Settings")
EXPECTED = {
    int: "an integer",
    float: "a number",
    str: "text, which YAML needs in quotes if it looks like a number",
    bool: "true or false",
    list: "a list, such as [a, b]",
    dict: "fields with values",
    Mapping: "fields with values",
}


def load_settings(
    kind: type[Settings], path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Reads settings from a YAML file.

    Args:
        kind: The dataclass.
        path: The file.
        overrides: Values that replace or add to those of the file.

    Raises:
        ValueError: If the file is no YAML, or a field is missing, is not known or has a value of another type.
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
    """Makes settings of nested dictionaries, as YAML and JSON have them.

    Args:
        kind: The dataclass.
        given: Its fields.
        where: The path of the field that holds these settings, for errors.
        default: Where fields that are not given come from; by default from the class.

    Raises:
        ValueError: If a field is missing, is not known or has a value of another type; the message names its path.
    """
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
        values[name] = _read(hints[name], value, path, before)
    for size, other in (("words_per_batch", "contexts_per_batch"), ("contexts_per_batch", "words_per_batch")):
        if values.get(size) is not None and other in known:
            values.setdefault(other, None)  # a batch has one size; the default's gives way
    try:
        return kind(**values) if default is None else replace(default, **values)  # type: ignore[type-var]
    except TypeError as error:
        if "missing" not in str(error):
            raise
        missing = str(error).partition(": ")[2].replace("'", "")
        raise ValueError(f"{where or f'a {kind.__name__.lower()}'} needs the fields {missing}.") from error


def _read(hint: Any, value: Any, where: str, default: Any = None) -> Any:
    """Returns a value of the type that a field declares: a plain type, a dataclass, a Literal, or a list, mapping or
    optional of these. Integers stay integers where a float is declared, as results are named by what recipes hold."""
    outer, inner = get_origin(hint), get_args(hint)
    if outer in (Union, UnionType):
        (kind,) = (choice for choice in inner if choice is not NoneType)
        return None if value is None else _read(kind, value, where, default)
    if is_dataclass(hint):
        return build_settings(hint, value, where, default)  # type: ignore[arg-type]
    if outer is list and isinstance(value, list | tuple):
        return [_read(inner[0], item, f"{where}[{index}]") for index, item in enumerate(value)]
    if outer in (dict, Mapping) and isinstance(value, Mapping):
        return {**(default or {}), **{key: _read(inner[1], item, f"{where}.{key}") for key, item in value.items()}}
    if hint in (int, float, Any):
        value = _number(value)
        if hint is int and isinstance(value, float) and value.is_integer():
            value = int(value)
    plain = {float: int | float, Any: object}.get(hint, hint if outer is None else ())
    is_number = isinstance(value, bool) and hint in (int, float)
    if (outer is Literal and value in inner) or (isinstance(value, plain) and not is_number):
        return value
    expected = EXPECTED.get(outer or hint) or f"one of {', '.join(map(repr, inner))}"
    raise ValueError(f"{where}: expected {expected}; got {value!r:.80}.")


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
