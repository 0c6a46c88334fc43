"""Options that several commands share, and how their values are read."""

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..utils.files import refuse_missing_folder


def add_changes_option(command: argparse.ArgumentParser) -> None:
    """Adds --set, for commands that take a recipe."""
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="change a field of the recipe; the value is YAML; may be given more than once",
    )


def read_changes(changes: list[str]) -> dict[str, Any]:
    """Reads "a.b=c" as {"a": {"b": "c"}}.

    Raises:
        ValueError: If a change has no value, its value is no YAML, or a field is given a value and fields of its own.

    Example:
        >>> read_changes(["seed=1", "form.trainer.num_train_epochs=2"])
        {'seed': 1, 'form': {'trainer': {'num_train_epochs': 2}}}
    """
    import yaml

    result: dict[str, Any] = {}
    for change in changes:
        path, sign, value = change.partition("=")
        if not sign:
            raise ValueError(f"--set takes FIELD=VALUE; got {change!r}.")
        *parents, last = path.split(".")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise ValueError(f"--set {change}: {parent!r} is given a value by another --set. Give one of them.")
        try:
            place[last] = yaml.safe_load(value)
        except (yaml.YAMLError, RecursionError) as error:
            raise ValueError(f"--set {change}: the value must be YAML; {' '.join(str(error).split())}.") from error
    return result


def read_options(text: str) -> dict[str, Any]:
    """Reads a JSON object, for argparse."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"expected a JSON object; got {text!r:.80}: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f'expected a JSON object such as {{"name": 1}}; got {text!r:.80}')
    return value


def check_device(name: str) -> str:
    """Returns the name of a device that is there.

    Raises:
        ValueError: If it is not, with those that are.
    """
    import torch

    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, ImportError) as error:  # a wrong name, no such build, no driver
        there = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
        there += ["mps"] if torch.backends.mps.is_available() else []
        raise ValueError(f"Expected a device that is here, {' or '.join(there)}; got {name!r} (--device).") from error
    return name


@contextmanager
def loading(*names: str | None) -> Iterator[None]:
    """Says what is missing if the block cannot load models of these names, from a folder or the Hub.

    Raises:
        OSError: If there is no folder of a name, nor anything on the Hub.
    """
    given = [name for name in names if name is not None]
    for name in given:
        refuse_missing_folder(name)
    try:
        yield
    except OSError as error:
        missing = [name for name in given if not os.path.isdir(name)]
        if not missing:
            raise
        raise OSError(
            f"There is no folder {' or '.join(missing)}, and the Hub did not help: {' '.join(str(error).split())}"
        ) from error
