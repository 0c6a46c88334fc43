"""Term files: the glossaries and lists of short forms that users have beside their texts.

CSV, TSV, JSON lines and Parquet are read. A row that cannot be used is rejected with a reason; it never stops the
reading, and it is never dropped in silence. Everything takes linear time, so that no file can hang the program.
"""

import csv
import json
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..corpus.inputs import JSON_ENDINGS, TABLE_ENDINGS
from ..processing_words import has_surrogate, normalize_text, replace_surrogates
from ..utils.files import read_utf8
from ..words.splitting import count_noun, normalize_spelling

MAX_TERM_WORDS = 10
MAX_TERM_LENGTH = 100  # characters
MAX_DEFINITION_LENGTH = 1000  # characters
EXCERPT_LENGTH = 80
DELIMITERS = (",", ";", "\t")  # of CSV; Excel writes semicolons where the decimal mark is a comma
NUM_ROWS_SAMPLED = 100  # which tell the delimiter, and whether there are two columns
MAX_LINES_PER_ROW = 50  # of CSV; a quote that is open for longer was never closed
MAX_NAMES_SHOWN = 10
NUM_ROWS_AT_ONCE = 256  # of Parquet


class RejectedRow(NamedTuple):
    """A row that could not be used.

    Attributes:
        number: The line on which the row begins; in Parquet, the row. The first is 1.
        text: The row in one line, cut to 80 characters.
        reason: Why it was rejected.

    Example:
        >>> RejectedRow(7, "quokka,", "no definition").reason
        'no definition'
    """

    number: int
    text: str
    reason: str


@dataclass(frozen=True)
class Glossary:
    """What `read_glossary` found.

    Attributes:
        definitions: The definitions of each term, in the order of the file.
        rejected: The rows that could not be used.
        num_rows_used: How many rows could be used.

    Example:
        >>> Glossary({"kumquat": ["a small citrus fruit"]}, rejected=[], num_rows_used=1).definitions["kumquat"]
        ['a small citrus fruit']
    """

    definitions: dict[str, list[str]]
    rejected: list[RejectedRow]
    num_rows_used: int


@dataclass(frozen=True)
class Aliases:
    """What `read_aliases` found.

    Attributes:
        long_forms: The long form of each short form, in the order of the file.
        rejected: The rows that could not be used.
        num_rows_used: How many rows could be used.

    Example:
        >>> Aliases({"MI": "myocardial infarction"}, rejected=[], num_rows_used=1).long_forms["MI"]
        'myocardial infarction'
    """

    long_forms: dict[str, str]
    rejected: list[RejectedRow]
    num_rows_used: int


class _Columns(NamedTuple):
    """Names that two columns may have, the best first, and what to call them in messages."""

    term: str
    content: str
    term_names: tuple[str, ...]
    content_names: tuple[str, ...]

    def find(self, names: Iterable[str]) -> tuple[int | None, int | None]:
        """Returns where the two columns are, whatever the case of their names."""
        places: dict[str, int] = {}
        for index, name in enumerate(names):
            places.setdefault(" ".join(re.split(r"[\s_-]+", name.strip().casefold())), index)
        term = next((places[name] for name in self.term_names if name in places), None)
        contents = (places[name] for name in self.content_names if name in places)
        return term, next((index for index in contents if index != term), None)

    def missing(self, path: str | os.PathLike[str], found: Sequence[str]) -> ValueError:
        """Returns the error for a file in which the columns are not found."""
        shown = [repr(_excerpt(name)) for name in found[:MAX_NAMES_SHOWN]]
        rest = [f"and {len(found) - len(shown)} more"] if len(found) > len(shown) else []
        return ValueError(
            f"Expected a column for the {self.term} ({', '.join(self.term_names)}) and one for the {self.content} "
            f"({', '.join(self.content_names)}) in {path}; found {', '.join(shown + rest)}. Rename the columns; CSV "
            "and TSV of two columns need no names."
        )


TERM_NAMES = ("term", "word", "lemma", "headword", "entry", "phrase", "name", "concept")
SHORT_NAMES = ("short form", "short", "acronym", "abbreviation", "abbr", "initialism", "alias")
LONG_NAMES = ("long form", "long", "expansion", "full form", "full name", "full", "stands for")
TEXT_NAMES = ("definition", "definitions", "description", "meaning", "gloss", "explanation")
GLOSSARY_COLUMNS = _Columns("term", "definition", (*TERM_NAMES, *SHORT_NAMES), (*TEXT_NAMES, *LONG_NAMES))
# A term is the long form beside an acronym or alias ("alias,term"), and the short form beside an expansion.
ALIAS_COLUMNS = _Columns(
    "short form", "long form", (*SHORT_NAMES, *TERM_NAMES), (*LONG_NAMES, *TEXT_NAMES, *TERM_NAMES)
)


class _Row(NamedTuple):
    """A row of any format: its two values, or what is wrong with it."""

    number: int
    text: str
    term: object = None
    content: object = None
    fault: str = ""


class _Cells(NamedTuple):
    """The cells of a row of CSV or TSV."""

    number: int
    text: str
    cells: list[str]
    fault: str = ""


class _Unusable(Exception):
    """Why a row is rejected."""


def read_glossary(path: str | os.PathLike[str]) -> Glossary:
    r"""Reads a file of terms and definitions.

    The format is that of the ending: .csv, .tsv, .jsonl (also .ndjson and .json, an object on each line) or .parquet.
    A header names the columns, such as "term" and "definition"; CSV and TSV of two columns need none. In JSON and
    Parquet, a row may have a list of definitions.

    Rows of the same term are joined. White space in a row becomes single spaces, and a definition of more than 1,000
    characters is cut. A term must have a letter or digit, no control character, and at most 10 words and 100
    characters.

    Args:
        path: The file, in UTF-8 unless it is Parquet. CSV may be separated by commas, semicolons or tabs; Python's
            reader takes no value of more than 131,072 characters, so that such a row is rejected. In TSV, quotes are
            text.

    Raises:
        ValueError: If the file is empty, has other columns, is not UTF-8, or no row of it can be used.

    Example:
        >>> _ = Path("glossary.csv").write_text("Term,Definition\nkumquat,a small citrus fruit\nquokka,\n")
        >>> glossary = read_glossary("glossary.csv")
        >>> glossary.definitions
        {'kumquat': ['a small citrus fruit']}
        >>> glossary.rejected
        [RejectedRow(number=3, text='quokka,', reason='no definition')]
    """
    found: dict[str, dict[str, None]] = {}

    def accept(term: str, definitions: list[str]) -> None:
        found.setdefault(term, {}).update(dict.fromkeys(definitions))

    rejected, num_rows_used = _read_terms(path, GLOSSARY_COLUMNS, accept)
    return Glossary({term: list(definitions) for term, definitions in found.items()}, rejected, num_rows_used)


def read_aliases(path: str | os.PathLike[str]) -> Aliases:
    r"""Reads a file of short forms, such as acronyms, and what they stand for.

    The formats and limits are those of `read_glossary`; the columns have names such as "acronym" and "expansion". The
    first long form of a short form counts, and a different one is rejected.

    Args:
        path: The file.

    Raises:
        ValueError: If the file is empty, has other columns, is not UTF-8, or no row of it can be used.

    Example:
        >>> _ = Path("acronyms.tsv").write_text("MI\tmyocardial infarction\nMI\tmitral insufficiency\n")
        >>> aliases = read_aliases("acronyms.tsv")
        >>> aliases.long_forms
        {'MI': 'myocardial infarction'}
        >>> aliases.rejected[0].reason
        'stands for myocardial infarction already'
    """
    long_forms: dict[str, str] = {}

    def accept(short_form: str, texts: list[str]) -> None:
        if len(texts) > 1:
            raise _Unusable(f"{len(texts)} long forms")
        if texts[0] == short_form:
            raise _Unusable("stands for itself")
        if long_forms.setdefault(short_form, texts[0]) != texts[0]:
            raise _Unusable(f"stands for {_excerpt(long_forms[short_form])} already")

    rejected, num_rows_used = _read_terms(path, ALIAS_COLUMNS, accept)
    return Aliases(long_forms, rejected, num_rows_used)


def describe_rejected(rejected: Sequence[RejectedRow], path: str | os.PathLike[str], *, max_shown: int = 2) -> str:
    """Writes rejected rows as one sentence, without a full stop; no text if there are none.

    Args:
        rejected: The rows.
        path: The file that they are from.
        max_shown: How many of them to show.

    Example:
        >>> rejected = [RejectedRow(number, "quokka,", "no definition") for number in (7, 9, 12)]
        >>> describe_rejected(rejected, "docs/glossary.csv")
        '3 rows of glossary.csv could not be used: line 7: no definition; line 9: no definition; and 1 more'
    """
    if not rejected:
        return ""
    unit = "row" if _ending(path) == ".parquet" else "line"
    shown = [f"{unit} {row.number}: {row.reason}" for row in rejected[:max_shown]]
    if len(rejected) > len(shown):
        shown.append(f"and {len(rejected) - len(shown)} more")
    return f"{count_noun(len(rejected), 'row')} of {Path(path).name} could not be used: {'; '.join(shown)}"


def _read_terms(
    path: str | os.PathLike[str], columns: _Columns, accept: Callable[[str, list[str]], None]
) -> tuple[list[RejectedRow], int]:
    """Gives each row that can be used to `accept`; returns the rejected ones, and how many were used."""
    rejected: list[RejectedRow] = []
    num_rows_used = 0
    for row in _read_rows(path, columns):
        try:
            if row.fault:
                raise _Unusable(row.fault)
            accept(_check_term(row.term, columns.term), _check_texts(row.content, columns.content))
            num_rows_used += 1
        except _Unusable as error:
            rejected.append(RejectedRow(row.number, _excerpt(row.text), str(error)))
    if not num_rows_used:
        raise ValueError(
            f"Expected rows with a {columns.term} and a {columns.content} in {path}; "
            f"{describe_rejected(rejected, path) or 'it has no rows'}. Correct the file, or leave it out."
        )
    return rejected, num_rows_used


def _read_rows(path: str | os.PathLike[str], columns: _Columns) -> Iterator[_Row]:
    ending = _ending(path)
    if ending == ".parquet":
        return _read_parquet(path, columns)
    if ending in JSON_ENDINGS:
        return _read_json_lines(path, columns)
    if ending in TABLE_ENDINGS:
        return _read_table(path, columns)
    endings = ", ".join((*TABLE_ENDINGS, *JSON_ENDINGS, ".parquet"))
    raise ValueError(f"Expected a file with one of the endings {endings}; got {path}. Convert or rename it.")


def _read_parquet(path: str | os.PathLike[str], columns: _Columns) -> Iterator[_Row]:
    with open(path, "rb") as stream:
        try:
            table = pq.ParquetFile(stream)
            names = table.schema_arrow.names
            term, content = columns.find(names)
            if term is None or content is None:
                raise columns.missing(path, names)
            chosen = [names[term], names[content]]
            batches = table.iter_batches(batch_size=NUM_ROWS_AT_ONCE, columns=chosen)
            rows = chain.from_iterable(batch.select(chosen).to_pylist() for batch in batches)
            for number, row in enumerate(rows, start=1):
                values = [row[name] for name in chosen]
                yield _Row(number, ", ".join(map(str, values)), values[0], values[1])
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise ValueError(f"Expected Parquet in {path}; it cannot be read: {error}. Write it again.") from error


def _read_json_lines(path: str | os.PathLike[str], columns: _Columns) -> Iterator[_Row]:
    found: dict[str, None] = {}
    is_named = False
    for number, line in enumerate(read_utf8(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            yield _Row(number, line, fault="no JSON object in one line")
            continue
        names = list(row)
        term, content = columns.find(names)
        found.update(dict.fromkeys(names))
        is_named = is_named or (term is not None and content is not None)
        values = [None if index is None else row[names[index]] for index in (term, content)]
        yield _Row(number, line, values[0], values[1])
    if found and not is_named:
        raise columns.missing(path, list(found))


def _read_table(path: str | os.PathLike[str], columns: _Columns) -> Iterator[_Row]:
    """Reads CSV or TSV: the columns that the first row names, or both of two."""
    lines = read_utf8(path).split("\n")
    delimiter = _choose_delimiter(lines, columns) if _ending(path) == ".csv" else None
    sample = list(islice(_split_lines(lines, delimiter), NUM_ROWS_SAMPLED))
    names = sample[0].cells if sample else []
    width = len(names)
    term, content = columns.find(names)
    has_header = term is not None and content is not None
    if term is None or content is None:
        if 2 * sum(len(row.cells) == 2 for row in sample) < len(sample):
            raise columns.missing(path, names)
        term, content, width = 0, 1, 2
    for number, text, cells, fault in islice(_split_lines(lines, delimiter), int(has_header), None):
        if not fault and (len(cells) <= max(term, content) or any(cell.strip() for cell in cells[width:])):
            fault = f"{count_noun(len(cells), 'column')} instead of {width}"
        yield _Row(number, text, fault=fault) if fault else _Row(number, text, cells[term], cells[content])


def _choose_delimiter(lines: list[str], columns: _Columns) -> str:
    """Returns the delimiter with which the first row names the columns, or most rows have two.

    If that holds for several, as in "kumquat;a small, sour fruit", the one that comes first in the rows.
    """

    def fit(delimiter: str) -> tuple[bool, int, int]:
        sample = [row.cells for row in islice(_split_csv(lines, delimiter), NUM_ROWS_SAMPLED)]
        is_named = bool(sample) and None not in columns.find(sample[0])
        return is_named, sum(len(cells) == 2 for cells in sample), -sum(len(cells[0]) for cells in sample if cells)

    return max(DELIMITERS, key=fit)


def _split_lines(lines: list[str], delimiter: str | None) -> Iterator[_Cells]:
    """Yields the rows of CSV, or without a delimiter those of TSV."""
    if delimiter is not None:
        yield from _split_csv(lines, delimiter)
    else:
        for number, line in enumerate(lines, start=1):
            if line.strip() or "\t" in line:
                yield _Cells(number, line, line.split("\t"))


def _split_csv(lines: list[str], delimiter: str) -> Iterator[_Cells]:
    """Yields the rows of CSV; after a quote that is not closed, goes on with the next line."""
    start = 0
    while start < len(lines):
        feed = (f"{line}\n" for line in lines[start : start + MAX_LINES_PER_ROW])
        reader = csv.reader(feed, delimiter=delimiter, skipinitialspace=True, strict=True)
        num_lines, cells, fault = 1, [], ""
        try:
            cells = next(reader)
            num_lines = reader.line_num
        except csv.Error as error:
            fault = f"no CSV, {error}"
        if fault or len(cells) > 1 or any(cell.strip() for cell in cells):  # else it is a blank line
            yield _Cells(start + 1, "\n".join(lines[start : start + num_lines]), cells, fault)
        start += num_lines


def _check_term(value: object, noun: str) -> str:
    """Returns a term in its one spelling, or raises the reason why it cannot be used."""
    if value is None or (isinstance(value, str) and not value.strip()):
        raise _Unusable(f"no {noun}")
    if not isinstance(value, str):
        raise _Unusable(f"the {noun} is not text")
    term = value.strip()
    if len(term) > MAX_TERM_LENGTH:
        raise _Unusable(f"a {noun} of {len(term):,} characters (at most {MAX_TERM_LENGTH})")
    if len(term.split()) > MAX_TERM_WORDS:
        raise _Unusable(f"a {noun} of {len(term.split())} words (at most {MAX_TERM_WORDS})")
    if has_surrogate(term):
        raise _Unusable(f"an unpaired surrogate in the {noun}")
    if any(unicodedata.category(character) == "Cc" for character in term):
        raise _Unusable(f"a control character in the {noun}")
    if not any(map(str.isalnum, term)):
        raise _Unusable(f"a {noun} without a letter or digit")
    return normalize_spelling(term, lower_case=False)


def _check_texts(value: object, noun: str) -> list[str]:
    """Returns the texts in a value, cleaned and cut, or raises the reason why it cannot be used."""
    texts = [text for text in (value if isinstance(value, list) else [value]) if text is not None]
    cleaned: list[str] = []
    for text in texts:
        if not isinstance(text, str):
            raise _Unusable(f"the {noun} is not text")
        cleaned.append(_cut(" ".join(text.split())))
    if not any(cleaned):
        raise _Unusable(f"no {noun}")
    return [text for text in cleaned if text]


def _cut(text: str) -> str:
    """Cuts a text between words and composes its accents: after the cut, as that can take quadratic time."""
    if len(text) > MAX_DEFINITION_LENGTH:
        head = text[: MAX_DEFINITION_LENGTH + 1]
        text = head.rpartition(" ")[0] or head[:-1]
    return normalize_text(replace_surrogates(text))


def _excerpt(text: str) -> str:
    """Writes the beginning of a text in one line and without characters that could steer a terminal."""
    text = " ".join(text.split())[:EXCERPT_LENGTH]
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def _ending(path: str | os.PathLike[str]) -> str:
    return Path(path).suffix.lower()
