"""The datatrove steps that read a corpus: files, or a `datasets` dataset."""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from io import BytesIO, StringIO
from typing import Any, cast

import fsspec
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from datasets import Dataset, IterableDataset
from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep

from ..processing_words import has_surrogate, normalize_text, replace_surrogates
from ..utils.files import write_json
from .inputs import FileSlice, Source
from .sentences import BLOCK_SIZE, HEAD_SIZE, Unit, detect_unit, find_break, read_blocks
from .settings import COLUMN, CorpusSettings

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
ROWS_AT_ONCE = 256
TABLE_BLOCK_SIZE = 1 << 25  # bytes of CSV or TSV in memory; no row may be longer


class _PlainTabs(csv.excel_tab):
    """TSV in which quotes are text."""

    quoting = csv.QUOTE_NONE


class FileReader(PipelineStep):
    """Yields the texts of files: text in blocks of whole paragraphs or lines, the other formats row by row.

    A row of more than 1 MB is cut into such blocks too.
    """

    type = "READER"
    name = "Corpus files"

    def __init__(self, slices: list[FileSlice], settings: CorpusSettings, phase: str) -> None:
        super().__init__()
        self.slices, self.settings, self.phase = slices, settings, phase

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        report: Counter[str] = Counter()
        for file_slice in self.slices[rank::world_size]:
            readers = {"text": self._read_text, "jsonl": self._read_jsonl, "parquet": self._read_parquet}
            read = readers.get(file_slice.format, self._read_table)
            try:
                yield from read(file_slice, report)
            except EOFError as error:
                raise ValueError(f"{file_slice.path} ends too early: {error} Is the download complete?") from error
            except pa.ArrowInvalid as error:
                kind = "Parquet" if file_slice.format == "parquet" else file_slice.format.upper()
                raise ValueError(f"{file_slice.path} cannot be read as {kind}: {error}") from error
        write_json(self.settings.folder(self.phase) / f"{rank:05d}.reader.json", report)

    def _read_text(self, file_slice: FileSlice, report: Counter[str]) -> Iterator[Document]:
        report["num_documents"] += file_slice.start == 0
        head = _read_head(file_slice.path)
        unit = _choose_unit(head.decode("utf-8", "replace").replace("\r\n", "\n"), self.settings)
        with fsspec.open(file_slice.path, "rb", compression="infer") as stream:
            for block, is_cut in read_blocks(stream, unit, _seek(stream, file_slice, unit)):
                report["num_long_lines"] += is_cut
                text = _decode(block.removeprefix(BYTE_ORDER_MARK), report)
                if text:
                    yield _document(text, unit)

    def _read_jsonl(self, file_slice: FileSlice, report: Counter[str]) -> Iterator[Document]:
        _read_head(file_slice.path)
        with fsspec.open(file_slice.path, "rb", compression="infer") as stream:
            size = _seek(stream, file_slice, "line")
            while size is None or size > 0:
                line = stream.readline()
                if not line:
                    return
                size = None if size is None else size - len(line)
                if not line.strip():
                    continue
                try:
                    row = json.loads(line.removeprefix(BYTE_ORDER_MARK))
                except (ValueError, RecursionError):  # no JSON, no UTF-8, or JSON too deep to be a row
                    row = None
                if isinstance(row, dict):
                    yield from _read_row(row, self.settings, report)
                else:
                    report["num_invalid_lines"] += 1

    def _read_parquet(self, file_slice: FileSlice, report: Counter[str]) -> Iterator[Document]:
        with fsspec.open(file_slice.path, "rb") as stream, pq.ParquetFile(stream) as table:
            names = table.schema_arrow.names
            columns = _choose_columns(file_slice.path, self.settings, names)
            for batch in table.iter_batches(batch_size=ROWS_AT_ONCE, columns=columns):
                for row in batch.to_pylist():
                    yield from _read_row(row, self.settings, report)

    def _read_table(self, file_slice: FileSlice, report: Counter[str]) -> Iterator[Document]:
        """Reads CSV, in which quotes may stand around values, or TSV, in which they are text."""
        is_csv = file_slice.format == "csv"

        def count(row: pacsv.InvalidRow) -> str:
            report["num_invalid_lines"] += 1
            return "skip"

        parsing = pacsv.ParseOptions(
            delimiter="," if is_csv else "\t",
            quote_char='"' if is_csv else False,
            newlines_in_values=is_csv,
            invalid_row_handler=count,
        )
        header = _read_head(file_slice.path).removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
        dialect = csv.excel if is_csv else _PlainTabs
        names = next(csv.reader(StringIO(header, newline=""), dialect), [])
        columns = _choose_columns(file_slice.path, self.settings, names)
        # Bytes, so that a value which is not UTF-8 costs its row only.
        converting = pacsv.ConvertOptions(include_columns=columns, column_types=dict.fromkeys(columns, pa.binary()))
        reading = pacsv.ReadOptions(use_threads=False, block_size=TABLE_BLOCK_SIZE)
        with (
            fsspec.open(file_slice.path, "rb", compression="infer") as stream,
            pacsv.open_csv(stream, reading, parsing, converting) as batches,
        ):
            for batch in batches:
                for values in zip(*batch.columns, strict=True):
                    row = {name: _decode_value(value.as_py()) for name, value in zip(columns, values, strict=True)}
                    yield from _read_row(row, self.settings, report)


class DatasetReader(PipelineStep):
    """Yields the texts of a `datasets` dataset."""

    type = "READER"
    name = "Corpus dataset"

    def __init__(self, dataset: Dataset | IterableDataset, settings: CorpusSettings, phase: str) -> None:
        super().__init__()
        self.dataset, self.settings, self.phase = dataset, settings, phase

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        report: Counter[str] = Counter()
        shard: Any = self.dataset
        names = shard.column_names or []
        if self.settings.text_column in names:
            shard = shard.select_columns(_choose_columns("the dataset", self.settings, names))  # no images are decoded
        if world_size > 1:
            shard = shard.shard(num_shards=world_size, index=rank)
        for row in shard:
            yield from _read_row(row, self.settings, report)
        write_json(self.settings.folder(self.phase) / f"{rank:05d}.reader.json", report)


def make_reader(source: Source, settings: CorpusSettings, phase: str) -> PipelineStep:
    """Returns the step that reads a source."""
    if isinstance(source, list):
        return FileReader(source, settings, phase)
    return DatasetReader(source, settings, phase)


def _read_row(row: dict[str, Any], settings: CorpusSettings, report: Counter[str]) -> Iterator[Document]:
    """Yields the text of a row, if it has any; a long one in blocks, as a file is read."""
    text = row.get(settings.text_column)
    report["num_documents"] += 1
    report["num_rows"] += 1
    if not isinstance(text, str) or not text:
        if not report["num_rows_without_text"]:
            report.update(f"{COLUMN}{name}" for name in row)  # to be told if no row has any
        report["num_rows_without_text"] += 1
        report["num_empty_documents" if text is None or text == "" else "num_invalid_lines"] += 1
        return
    report["num_invalid_lines"] += has_surrogate(text)
    text = replace_surrogates(text)
    unit = _choose_unit(text[:HEAD_SIZE].replace("\r\n", "\n"), settings)
    title = row.get(settings.title_column) if settings.title_column else None
    details = {"is_row": True} | ({"title": " ".join(_normalize(title).split())} if isinstance(title, str) else {})
    if 4 * len(text) <= BLOCK_SIZE:  # a character has at most 4 bytes
        yield _document(_normalize(text), unit, details)
        return
    for block, is_cut in read_blocks(BytesIO(text.encode()), unit):
        report["num_long_lines"] += is_cut
        yield _document(_normalize(block.decode()), unit, details)


def _choose_unit(head: str, settings: CorpusSettings) -> Unit:
    return detect_unit(head) if settings.unit == "auto" else cast(Unit, settings.unit)


def _document(text: str, unit: Unit, details: dict[str, Any] | None = None) -> Document:
    return Document(text=text, id="", metadata={"unit": unit, **(details or {})})


def _choose_columns(source: str, settings: CorpusSettings, names: list[str]) -> list[str]:
    """Returns the columns to read of those that there are. Raises a ValueError if one is missing."""
    for kind, column in (("text", settings.text_column), ("title", settings.title_column)):
        if column is not None and column not in names:
            raise ValueError(
                f"{source} has no column {column!r}, only {sorted(names)}. Set {kind}_column (--{kind}-column)."
            )
    return list(dict.fromkeys(filter(None, (settings.text_column, settings.title_column))))


def _read_head(path: str) -> bytes:
    """Returns the beginning of a file. Raises a ValueError if it is not UTF-8 text."""
    with fsspec.open(path, "rb", compression="infer") as stream:
        head = stream.read(HEAD_SIZE)
    if b"\0" in head or head.decode("utf-8", "replace").count("\ufffd") > max(4, len(head) / 10):
        raise ValueError(
            f"Expected UTF-8 text in {path}; it is binary or has another encoding. "
            "Leave it out, or convert it (iconv -f ENCODING -t UTF-8)."
        )
    return head


def _seek(stream: Any, file_slice: FileSlice, unit: Unit) -> int | None:
    """Goes to the beginning of a slice. Returns its size, or None for all that follows."""
    if file_slice.start == 0 and file_slice.end is None:
        return None
    end = None if file_slice.end is None else find_break(stream, file_slice.end, unit)
    start = find_break(stream, file_slice.start, unit)
    stream.seek(start)
    return None if end is None else end - start


def _decode_value(value: bytes) -> str | bytes:
    """Decodes UTF-8; what is not valid stays as it is, and so is no text."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _decode(block: bytes, report: Counter[str]) -> str:
    """Decodes UTF-8; lines that are not valid are counted and become blank, which parts what stood around them."""
    try:
        if b"\0" in block:
            raise UnicodeDecodeError("utf-8", block, 0, 1, "a zero byte")
        text = block.decode()
    except UnicodeDecodeError:
        lines = []
        for line in block.split(b"\n"):
            try:
                lines.append(line.decode() if b"\0" not in line else "\n")
            except UnicodeDecodeError:
                lines.append("\n")
            report["num_invalid_lines"] += lines[-1] == "\n"
        text = "\n".join(lines)
    return _normalize(text)


def _normalize(text: str) -> str:
    return normalize_text(text.replace("\r\n", "\n"))
