"""The files of a corpus, cut into slices that tasks can read apart from each other."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, TypeAlias, cast

import fsspec
from datasets import Dataset, IterableDataset

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
FileFormat = Literal["text", "jsonl", "csv", "tsv", "parquet"]
PIECE_SIZE = 1 << 22
MAX_TASKS = 64
ROWS_PER_TASK = 10_000
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".zip")
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
TABLE_ENDINGS = (".csv", ".tsv")
# Text with something else between it, which would become part of the sentences.
OTHER_FORMATS = (".xml", ".html", ".htm", ".tex", ".rtf", ".pdf", ".docx", ".epub")
NUM_ROWS_HASHED = 100


@dataclass(frozen=True)
class FileSlice:
    """A file, or the bytes of it from `start` up to `end` (each moved to the next line or paragraph)."""

    path: str
    format: FileFormat
    start: int = 0
    end: int | None = None


Source: TypeAlias = list[FileSlice] | Dataset | IterableDataset


def list_slices(inputs: Paths) -> list[FileSlice]:
    """Lists the files of paths, folders and patterns, the long ones in slices of 4 MB, each file once."""
    sizes: dict[str, int] = {}
    for item in [inputs] if isinstance(inputs, str | os.PathLike) else inputs:
        system, path = fsspec.core.url_to_fs(os.fspath(item))
        if system.isdir(path):
            found = [name for name in system.find(path) if not os.path.basename(name).startswith(".")]
        else:
            found = system.glob(path) if any(c in path for c in "*?[") and not system.exists(path) else [path]
        if not found or not system.exists(found[0]):
            raise FileNotFoundError(f"Expected a file, a folder with files or a pattern; {item} matches nothing.")
        sizes |= {system.unstrip_protocol(name): system.size(name) or 0 for name in found if system.isfile(name)}
    if not sizes:
        raise ValueError("Expected at least one file; got none. Give files, folders or patterns.")
    return [file_slice for path, size in sorted(sizes.items()) for file_slice in _cut_file(path, size)]


def _cut_file(path: str, size: int) -> list[FileSlice]:
    """Returns the slices of a file; tables and compressed files are not cut."""
    name = path.lower()
    bare = name.rsplit(".", 1)[0] if name.endswith(COMPRESSIONS) else name
    ending = os.path.splitext(bare)[1]
    if ending in OTHER_FORMATS:
        raise ValueError(
            f"Expected text, JSONL, CSV, TSV or Parquet; {path} is a {ending} file. Convert it; or rename it to "
            ".txt, to read it as plain text with all that is in it."
        )
    kind = "jsonl" if ending in JSON_ENDINGS else "parquet" if name.endswith(".parquet") else "text"
    if ending in TABLE_ENDINGS:
        kind = ending.removeprefix(".")
    path, file_format = path.removeprefix("file://"), cast(FileFormat, kind)
    if bare != name or kind in ("parquet", "csv", "tsv") or size <= PIECE_SIZE:
        return [FileSlice(path, file_format)]
    starts = [*range(0, size - PIECE_SIZE // 2, PIECE_SIZE)]
    return [FileSlice(path, file_format, start, end) for start, end in zip(starts, [*starts[1:], None], strict=True)]


def count_tasks(source: Source) -> int:
    """Returns into how many tasks to cut the reading: a number that does not depend on the workers."""
    if isinstance(source, Dataset):
        num_tasks = math.ceil(len(source) / ROWS_PER_TASK)
    elif isinstance(source, IterableDataset):
        num_tasks = source.num_shards
    else:
        sizes = {
            file_slice.path: os.path.getsize(file_slice.path)
            for file_slice in source
            if os.path.exists(file_slice.path)
        }
        num_remote = sum(file_slice.path not in sizes for file_slice in source)
        num_tasks = min(len(source), num_remote + math.ceil(sum(sizes.values()) / PIECE_SIZE))
    return max(1, min(MAX_TASKS, num_tasks))


def identify(source: Source, text_column: str) -> list[Any]:
    """Returns what tells inputs from others: names, sizes and times of files; what is known of a dataset."""
    if isinstance(source, Dataset):
        return [source._fingerprint, len(source)]
    if isinstance(source, IterableDataset):
        # It has no fingerprint, so its origin, its first rows and what was done to it must do.
        rows = [str(row.get(text_column)) for row in source.take(NUM_ROWS_HASHED)]
        origin = [source.info.dataset_name, source.info.config_name, str(source.info.version), str(source.split)]
        digest = blake2b("\0".join(rows).encode("utf-8", "replace")).hexdigest()
        return [*origin, source.num_shards, digest, *_list_steps(source._ex_iterable)]
    identity = []
    for path in sorted({file_slice.path for file_slice in source}):
        system, name = fsspec.core.url_to_fs(path)
        info = system.info(name)
        identity.append([path, info.get("size"), str(info.get("mtime") or info.get("ETag") or "")])
    return identity


def _list_steps(examples: Any) -> list[Any]:
    """Returns the steps of a streamed dataset that have numbers or names, such as take(1000)."""
    options = {
        name: value
        for name, value in vars(examples).items()
        if isinstance(value, bool | int | float | str) and not name.startswith("_")
    }
    inner = [getattr(examples, "ex_iterable", None), *getattr(examples, "ex_iterables", [])]
    steps = [step for part in inner if part is not None for step in _list_steps(part)]
    return [*steps, [type(examples).__name__, options]] if options else steps
