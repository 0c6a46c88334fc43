"""Results of an evaluation, one JSON file for each system and seed, so that each can be made alone."""

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..utils.environment import installed_versions
from ..utils.files import write_json
from ..utils.hashing import describe_files


class ResultRows:
    """The rows of one table, kept in a folder.

    Args:
        folder: The folder; made when the first row is.
        command: The command that makes the table; each row records the options that make it alone, too.

    Example:
        >>> rows = ResultRows(Path("results/similarity"), command="bertram reproduce recipe.yaml --only similarity")
        >>> rows.make("plain", 0, {"draws": 4}, lambda: {"scores": [0.5]})["scores"]  # doctest: +SKIP
        [0.5]
    """

    def __init__(self, folder: Path, *, command: str | None = None) -> None:
        self.folder, self.command = folder, command

    def find(self, system: str, seed: int, depends_on: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns a row that is there and depends on the same, else None.

        Args:
            system: The system's name.
            seed: The seed.
            depends_on: All that the result depends on, as JSON can hold it. What is None or empty counts as not there,
                so that a recipe's new optional fields leave old rows up to date. Files that it names must be those that
                the row was made from; files that are not here do not matter.
        """
        path = self._path(system, seed)
        row = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if row.get("fingerprint") != fingerprint(depends_on):
            return None
        made_from = row.get("files", {})
        here = describe_files(list(made_from))
        return row if all(made_from[name] == digest for name, digest in here.items()) else None

    def make(
        self,
        system: str,
        seed: int,
        depends_on: Mapping[str, Any],
        compute: Callable[[], Mapping[str, Any]],
        *,
        options: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Returns a row as its file holds it; computes it only if `find` finds none.

        Args:
            system: The system's name.
            seed: The seed.
            depends_on: All that the result depends on; see `find`.
            compute: Computes the row's fields.
            options: What the command needs besides to make this row alone; by default system and seed.
        """
        found = self.find(system, seed, depends_on)
        if found is not None:
            return found
        options = ["--system", system, "--seed", str(seed)] if options is None else options
        row = {
            "system": system,
            "seed": seed,
            "command": add_options(self.command, options),
            "versions": installed_versions(),
            "fingerprint": fingerprint(depends_on),
            "files": describe_files(depends_on),
            **compute(),
        }
        path = self._path(system, seed)
        write_json(path, row)
        return json.loads(path.read_text(encoding="utf-8"))

    def _path(self, system: str, seed: int) -> Path:
        return self.folder / f"{file_name(system)}-seed-{seed}.json"


def add_options(command: str | None, options: Sequence[str]) -> str | None:
    """Returns a command with more options, quoted for a shell; None if the command is not known.

    Example:
        >>> add_options("bertram reproduce recipe.yaml", ["--only", "SST-2 100"])
        "bertram reproduce recipe.yaml --only 'SST-2 100'"
    """
    return command if command is None or not options else f"{command} {shlex.join(options)}"


def fingerprint(depends_on: Mapping[str, Any]) -> str:
    """Returns a name for what a row depends on."""
    text = json.dumps(drop_empty(depends_on), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


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


def file_name(name: str) -> str:
    """Returns a name that every file system takes.

    Example:
        >>> file_name("AG's News")
        'ag-s-news'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "unnamed"
