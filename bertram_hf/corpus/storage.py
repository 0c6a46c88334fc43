"""The files that the steps of a corpus write and read. Each appears under its name only when it is whole."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from ..utils.files import read_json
from .settings import COLUMN, CorpusSettings

COUNT_SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64())])
# The texts of a file are a dictionary that all its batches share.
SAMPLE_SCHEMA = pa.schema([("id", pa.int32()), ("key", pa.uint64()), ("text", pa.dictionary(pa.int32(), pa.string()))])
ROW_SCHEMA = pa.schema([("id", pa.int32()), ("key", pa.uint64()), ("file", pa.int32()), ("index", pa.int32())])
CONTEXTS_SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64()), ("contexts", pa.list_(pa.string()))])
MIN_ROWS_REDUCED = 1 << 16
# Words share many of their sentences, so a dictionary may be as large as it gets.
PARQUET = {"compression": "zstd", "dictionary_pagesize_limit": 1 << 30}


class RunWriter:
    """Writes batches, one for each part of the words in turn, to an Arrow file."""

    def __init__(self, path: Path, schema: pa.Schema, compression: str | None = "lz4") -> None:
        self.path, self.schema, self.compression = path, schema, compression

    def __enter__(self) -> "RunWriter":
        self._file = pa.OSFile(f"{self.path}.tmp", "wb")
        self._writer = pa.ipc.new_file(
            self._file, self.schema, options=pa.ipc.IpcWriteOptions(compression=self.compression)
        )
        return self

    def write(self, columns: list[pa.Array]) -> None:
        self._writer.write_batch(pa.record_batch(columns, schema=self.schema))

    def __exit__(self, error_type: Any, *rest: Any) -> None:
        if error_type is None:
            self._writer.close()
            self._file.close()
            os.replace(f"{self.path}.tmp", self.path)


class SampleWriter:
    """Writes sampled sentences, each time to a new Arrow file of a batch for each part of the words.

    A text that many words share stands there once. Nothing is compressed, so that whoever maps a file into memory reads
    only the texts that it takes.
    """

    def __init__(self, folder: Path, rank: int) -> None:
        self.folder, self.rank, self.num_files = folder, rank, 0

    def write(self, batches: Iterable[list[pa.Array]]) -> None:
        path = self.folder / f"{self.rank:05d}-{self.num_files:05d}.arrow"
        with RunWriter(path, SAMPLE_SCHEMA, compression=None) as file:
            for columns in batches:
                file.write(columns)
        self.num_files += 1


class SampleFiles:
    """The files of all `SampleWriter`s. Each is mapped into memory only as long as it is read."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("*.arrow"))

    def read_part(self, part: int) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one part, with the place of the text instead of the text."""
        for number, path in enumerate(self.paths):
            ids, keys, texts = _read_batch(path, part).columns
            files = pa.array(np.full(len(ids), number, np.int32))
            yield pa.record_batch([ids, keys, files, texts.indices], schema=ROW_SCHEMA)

    def read_texts(self, rows: pa.Table) -> pa.StringArray:
        """Returns the texts of rows."""
        files, indices = rows["file"].to_numpy(), rows["index"].to_numpy()
        order = np.argsort(files, kind="stable")
        bounds = np.searchsorted(files[order], np.arange(len(self.paths) + 1))
        texts = [pa.array([], pa.large_string())]
        for path, (start, end) in zip(self.paths, pairwise(bounds), strict=True):
            if start < end:
                dictionary = _read_batch(path, 0)["text"].dictionary
                texts.append(dictionary.take(pa.array(indices[order[start:end]])).cast(pa.large_string()))
        return pa.concat_arrays(texts).take(pa.array(np.argsort(order))).cast(pa.string())


def _read_batch(path: Path, number: int) -> pa.RecordBatch:
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.get_batch(number)


def read_runs(folder: Path, part: int, num_parts: int) -> Iterator[pa.RecordBatch]:
    """Yields the batches of one part, from all files of a folder that `RunWriter`s wrote."""
    for path in sorted(folder.glob("*.arrow")):
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
            for index in range(part, reader.num_record_batches, num_parts):
                yield reader.get_batch(index)


def merge_batches(
    batches: Iterable[pa.RecordBatch], *, schema: pa.Schema, reduce: Callable[[pa.Table], pa.Table]
) -> pa.Table:
    """Reduces batches to one table.

    It is reduced whenever it has doubled, so memory is bounded by the result and the sorting takes little time.
    """
    merged, waiting, num_waiting = schema.empty_table(), [], 0
    for batch in batches:
        waiting.append(batch)
        num_waiting += len(batch)
        if num_waiting >= max(MIN_ROWS_REDUCED, len(merged)):
            merged = reduce(pa.Table.from_batches([*merged.to_batches(), *waiting], schema))
            waiting, num_waiting = [], 0
    return reduce(pa.Table.from_batches([*merged.to_batches(), *waiting], schema))


def parts_of(words: Collection[str], num_parts: int) -> np.ndarray:
    """Returns the part, of those in which words are processed and written, that each word belongs to."""
    hashes = np.fromiter(map(xxhash.xxh3_64_intdigest, map(str.encode, words)), np.uint64, len(words))
    return (hashes % np.uint64(num_parts)).astype(np.min_scalar_type(num_parts))  # small numbers sort fast


def words_to_sample(settings: CorpusSettings) -> list[str]:
    """Returns the words to sample sentences for, sorted: those that were given, the frequent ones, or both."""
    totals: Counter[str] = Counter()
    for path in settings.folder("count").glob("*.reader.json"):
        totals.update(read_json(path))
    if 0 < totals["num_rows"] == totals["num_rows_without_text"]:
        columns = sorted(name.removeprefix(COLUMN) for name in totals if name.startswith(COLUMN))
        raise ValueError(
            f"None of {totals['num_rows']:,} rows has text in the column {settings.text_column!r}; there are the "
            f"columns {', '.join(map(repr, columns))}. Set text_column (--text-column)."
        )
    for path in settings.folder("count").glob("*[0-9].json"):
        totals.update(read_json(path))
    if not any(totals[name] for name in ("num_occurrences", "num_numbers", "num_long_words")):
        raise ValueError("Expected text with words; there is none in the inputs. Check that they are the right files.")
    given = settings.given_words()
    if settings.min_count is None:
        return given or []
    counted = pq.read_table(settings.folder("result/counts"), schema=COUNT_SCHEMA)
    frequent = counted.filter(pc.field("count") >= settings.min_count)
    if not len(frequent) and given is None:
        most = pc.max(counted["count"]).as_py()
        raise ValueError(
            f"No word occurs min_count={settings.min_count} times; the most frequent one occurs {most or 0} times. "
            "Lower min_count, or give more text."
        )
    if settings.max_words is not None:
        frequent = frequent.sort_by([("count", "descending"), ("word", "ascending")]).slice(0, settings.max_words)
    return sorted({*frequent["word"].to_pylist(), *(given or [])})


def write_parquet(table: pa.Table, path: Path) -> None:
    """Writes a Parquet file. A table without rows has no row group either: `datasets` cannot read an empty one."""
    temporary = f"{path}.tmp"  # one name: what a kill leaves of it is overwritten, and not part of the result
    with pq.ParquetWriter(temporary, table.schema, **PARQUET) as writer:
        if len(table):
            writer.write_table(table, row_group_size=4096)
    os.replace(temporary, path)
