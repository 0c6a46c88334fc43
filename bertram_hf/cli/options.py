"""Options that several commands share."""

import argparse
from typing import Any

import yaml


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

    Example:
        >>> read_changes(["seed=1", "form.trainer.num_train_epochs=2"])
        {'seed': 1, 'form': {'trainer': {'num_train_epochs': 2}}}
    """
    result: dict[str, Any] = {}
    for change in changes:
        path, sign, value = change.partition("=")
        if not sign:
            raise ValueError(f"--set takes FIELD=VALUE; got {change!r}.")
        *parents, last = path.split(".")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = yaml.safe_load(value)
    return result
