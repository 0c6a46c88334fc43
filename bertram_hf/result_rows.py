"""Results of an evaluation, one JSON file for each system and seed, so that each can be made alone."""

import hashlib
import json
import platform
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("bertram-hf", "torch", "transformers")


class ResultRows:
    """The rows of one table, kept in a folder.

    Args:
        folder: The folder; made when the first row is.
        command: The command that makes the table, for the record.

    Example:
        >>> rows = ResultRows(Path("results/similarity"), command="bertram reproduce recipe.yaml")
        >>> rows.make("plain", 0, {"draws": 4}, lambda: {"scores": [0.5]})["scores"]  # doctest: +SKIP
        [0.5]
    """

    def __init__(self, folder: Path, *, command: str | None = None) -> None:
        self.folder, self.command = folder, command

    def make(
        self, system: str, seed: int, depends_on: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Returns a row; computes it only if there is none that depends on the same.

        Args:
            system: The system's name.
            seed: The seed.
            depends_on: All that the result depends on, as JSON can hold it. What is None or empty counts as not there,
                so that a recipe's new optional fields leave old rows up to date.
            compute: Computes the row's fields.
        """
        digest = hashlib.sha256(json.dumps(drop_empty(depends_on), sort_keys=True, default=str).encode()).hexdigest()[
            :32
        ]
        path = self.folder / f"{file_name(system)}-seed-{seed}.json"
        if path.is_file():
            row = json.loads(path.read_text(encoding="utf-8"))
            if row.get("fingerprint") == digest:
                return row
        row = {
            "system": system,
            "seed": seed,
            "command": self.command,
            "versions": {name: version(name) for name in PACKAGES} | {"python": platform.python_version()},
            "fingerprint": digest,
            **compute(),
        }
        write_json(path, row)
        return row


def drop_empty(content: Any) -> Any:
    """Returns nested dictionaries without the values that are None or empty.

    Example:
        >>> drop_empty({"a": 0, "b": None, "c": {"d": []}})
        {'a': 0}
    """
    if isinstance(content, list | tuple):
        return [drop_empty(value) for value in content]
    if not isinstance(content, Mapping):
        return content
    kept = {name: drop_empty(value) for name, value in content.items()}
    return {name: value for name, value in kept.items() if value not in (None, [], {}, "")}


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file at once: a kill leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)


def file_name(name: str) -> str:
    """Returns a name that every file system takes.

    Example:
        >>> file_name("AG's News")
        'ag-s-news'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "unnamed"
