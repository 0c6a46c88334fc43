"""Rows of results: a JSON file for each system and seed while they are made, then a JSONL file for each task."""

import gzip
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..utils import hashing
from ..utils.environment import installed_versions
from ..utils.files import read_json, write_json, write_whole

RowKey = tuple[str, int]  # system and seed


class ResultRows:
    """The rows of one task, one for each system and seed.

    Args:
        folder: Where each new row is kept in a file of its own, so that it can be made alone.
        published: The JSONL file to share, compressed if its name ends in `.gz`; rows in it are not made again.
        command: The command that makes all of them; each row records the options that make it alone, too.

    Example:
        >>> rows = ResultRows(Path("work/similarity"), Path("results/similarity.jsonl"))
        >>> rows.make("plain", 0, {"draws": 4}, lambda: {"scores": [0.5]})["scores"]
        [0.5]
    """

    def __init__(self, folder: Path, published: Path, *, command: str | None = None) -> None:
        self.folder, self.published, self.command = folder, published, command
        self._up_to_date: dict[RowKey, dict[str, Any]] = {}

    @cached_property
    def _shared(self) -> dict[RowKey, dict[str, Any]]:
        """The rows that were published before this run."""
        return {(row["system"], row["seed"]): row for row in read_jsonl(self.published)}

    def find(self, system: str, seed: int, depends_on: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns a row that is there and depends on the same, else None.

        Args:
            system: The system's name.
            seed: The seed.
            depends_on: All that the result depends on, as JSON can hold it. What is None or empty counts as not there,
                so that a recipe's new optional fields leave old rows up to date. Files that it names must be those that
                the row was made from; files that are not here do not matter.
        """
        path, wanted = self._path(system, seed), fingerprint(depends_on)
        for row in (read_json(path) if path.is_file() else None, self._shared.get((system, seed))):
            if row is None or row.get("fingerprint") != wanted:
                continue
            made_from = row.get("files", {})
            here = hashing.describe_files(list(made_from))
            if all(made_from[name] == digest for name, digest in here.items()):
                self._up_to_date[system, seed] = row
                return row
        return None

    def publish(self) -> None:
        """Writes the rows that were found or made to the JSONL file, beside those of other systems and seeds there."""
        # Read again: another process may have published its rows meanwhile.
        rows = {(row["system"], row["seed"]): row for row in read_jsonl(self.published)} | self._up_to_date
        write_jsonl(self.published, [rows[key] for key in sorted(rows)])

    def make(
        self,
        system: str,
        seed: int,
        depends_on: Mapping[str, Any],
        compute: Callable[[], Mapping[str, Any]],
        *,
        options: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Returns a row as JSON holds it; computes it only if `find` finds none.

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
            "files": hashing.describe_files(depends_on),
            **compute(),
        }
        path = self._path(system, seed)
        write_json(path, row)
        self._up_to_date[system, seed] = read_json(path)
        return self._up_to_date[system, seed]

    def _path(self, system: str, seed: int) -> Path:
        return self.folder / f"{file_name(system)}-seed-{seed}.json"


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Reads a JSON object from each line of a file, compressed if its name ends in `.gz`; none if there is no file.

    Raises:
        ValueError: If a line holds no JSON object.
    """
    if not path.is_file():
        return []
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = []
    for number, line in enumerate(content.decode("utf-8").splitlines(), start=1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{path}, line {number}: expected JSON; {error}. Delete the file and run again."
            ) from error
    return rows


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a JSON object on each line of a file, compressed if its name ends in `.gz`; whole or not at all."""
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    with write_whole(path) as (unfinished,):
        unfinished.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def add_options(command: str | None, options: Sequence[str]) -> str | None:
    """Returns a command with more options, quoted for a shell; None if the command is not known.

    Example:
        >>> add_options("bertram reproduce recipe.yaml", ["--only", "SST-2 100"])
        "bertram reproduce recipe.yaml --only 'SST-2 100'"
    """
    return command if command is None or not options else f"{command} {shlex.join(options)}"


def fingerprint(depends_on: Mapping[str, Any]) -> str:
    """Returns a name for what a row depends on."""
    return hashing.fingerprint(drop_empty(depends_on), sort_keys=True, default=str)


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
