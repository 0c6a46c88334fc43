"""Which words a tokenizer breaks up or a corpus rarely has."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..processing_context import is_uncased
from ..utils.progress import progress_bar
from ..utils.tables import format_columns
from .pieces import PieceReader
from .splitting import normalize_counts, split_words

NUM_ROWS_SHOWN = 20


@dataclass(frozen=True)
class RareWord:
    """A word, how often it occurs, its pieces as a person reads them, and in how many of the texts it stands.

    Example:
        >>> RareWord("kumquat", 3, ("ku", "·m", "·qua", "·t"), 2).count
        3
    """

    word: str
    count: int
    pieces: tuple[str, ...]
    num_texts: int


@dataclass(frozen=True, repr=False)
class RareWords(Sequence[RareWord]):
    """Rare words by falling count, then by alphabet. Print it for a table.

    Attributes:
        entries: The rare words.
        num_texts: How many texts were read.
        num_different_words: How many different words, rare or not, they have.
        num_numbers: How many tokens without a letter were skipped.

    Example:
        >>> rare = find_rare_words(["A kumquat is a fruit."], tokenizer, max_count=100)
        >>> rare.entries[0].pieces, rare.num_texts
        (('ku', '·m', '·qua', '·t'), 1)
    """

    entries: tuple[RareWord, ...]
    num_texts: int
    num_different_words: int
    num_numbers: int

    @property
    def words(self) -> list[str]:
        """The words alone."""
        return [entry.word for entry in self.entries]

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: Any) -> Any:
        return self.entries[index]

    def to_list(self) -> list[dict[str, Any]]:
        """Returns one dictionary for each word, ready for JSON or `datasets.Dataset.from_list`."""
        return [asdict(entry) | {"pieces": list(entry.pieces)} for entry in self.entries]

    def to_dict(self) -> dict[str, Any]:
        """Returns the words, as `to_list` does, with the counts of what was read."""
        numbers = {name: getattr(self, name) for name in ("num_texts", "num_different_words", "num_numbers")}
        return numbers | {"words": self.to_list()}

    @property
    def _title(self) -> str:
        return f"{len(self):,} rare words of {self.num_different_words:,} different words in {self.num_texts:,} texts"

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        shown = self.entries[:NUM_ROWS_SHOWN]
        return [(row.word, f"{row.count:,}", f"{row.num_texts:,}", " ".join(row.pieces)) for row in shown]

    @property
    def _footer(self) -> str:
        return f"... and {len(self) - NUM_ROWS_SHOWN:,} more" if len(self) > NUM_ROWS_SHOWN else ""

    def __repr__(self) -> str:
        return f"RareWords({len(self)} words: {', '.join(self.words[:5])}{', ...' if len(self) > 5 else ''})"

    def __str__(self) -> str:
        table = format_columns([("word", "count", "texts", "pieces"), *self._rows], right_aligned=(1, 2))
        return "\n".join(line for line in (self._title, table, self._footer) if line)

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table("word")
        table.add_column("count", justify="right")
        table.add_column("texts", justify="right")
        table.add_column("pieces")
        for row in self._rows:
            table.add_row(*map(Text, row))  # as Text, since a piece such as [UNK] would be markup
        return Group(*(part for part in (self._title, table, self._footer) if part))


def find_rare_words(
    texts: Iterable[Any],
    tokenizer: PreTrainedTokenizerBase,
    *,
    counts: Mapping[str, int] | None = None,
    max_count: int | None = None,
    min_pieces: int = 2,
    min_length: int = 3,
    text_column: str | Sequence[str] = "text",
    words_are_split: bool = False,
    show_progress: bool = True,
) -> RareWords:
    """Finds the words that a tokenizer breaks into pieces, that are rare in a corpus, or both.

    A word is a run of letters, digits, marks and underscores:

    - A hyphen joins only what ends in a number ("covid-19", "sars-cov-2"). "well-known" is two words: tokenizers cut at
      every hyphen, so all compounds of known words would look rare.
    - An apostrophe ends a word: "kumquat's" is "kumquat". "didn't" and its like are skipped.
    - Underscores around a word are markup: "_kumquat_" is "kumquat".
    - Tokens without a letter are skipped and counted.
    - If the tokenizer ignores case, words are lower-cased; else "Kumquat" and "kumquat" are two words.
    - Where words have no spaces between them (Chinese, Japanese, Thai), each character is a word, unless the text has
      been split into words with spaces before (`words_are_split`).

    The texts are read once; what is kept grows with the number of different words only.

    Args:
        texts: Strings, or rows that have them: a list, a generator, a `datasets.Dataset` or `IterableDataset`.
        tokenizer: The language model's tokenizer.
        counts: How often words occur in a larger corpus, used instead of how often they occur here; 0 if not listed.
        max_count: If given, rare words occur at most so often.
        min_pieces: Rare words have at least so many pieces, or hold the unknown token; 1 leaves it to `max_count`.
        min_length: Shorter words are left out.
        text_column: For rows: the column, or columns, that hold text.
        words_are_split: Whether there are spaces between all words, also of Chinese, Japanese, Thai and the like.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Returns:
        The rare words.

    Raises:
        TypeError: If a text is not a string.
        ValueError: If there is no criterion, or a row lacks the column.

    Example:
        >>> rare = find_rare_words(["A kumquat is a fruit."], tokenizer, max_count=100)
        >>> rare.words
        ['kumquat']
    """
    if min_pieces < 1 or (min_pieces == 1 and max_count is None):
        raise ValueError(
            "Say what makes a word rare: at most max_count occurrences, min_pieces of 2 or more, or both; "
            f"got max_count={max_count} and min_pieces={min_pieces}."
        )
    lower_case = is_uncased(tokenizer)
    corpus_counts = None if counts is None else normalize_counts(counts, lower_case)
    occurrences: Counter[str] = Counter()
    num_texts_with: Counter[str] = Counter()
    num_texts = num_numbers = 0
    for text in progress_bar(
        _read_texts(texts, text_column),
        total=len(texts) if isinstance(texts, Sized) else None,
        desc="Counting words",
        unit="text",
        show_progress=show_progress,
    ):
        tokens = list(split_words(text.lower() if lower_case else text, words_are_split=words_are_split))
        words = [word for word in tokens if any(map(str.isalpha, word))]
        num_texts += 1
        num_numbers += len(tokens) - len(words)
        occurrences.update(words)
        num_texts_with.update(set(words))
    reference = occurrences if corpus_counts is None else corpus_counts
    candidates = [
        word
        for word in occurrences
        if len(word) >= min_length and (max_count is None or reference.get(word, 0) <= max_count)
    ]
    reader = PieceReader(tokenizer)
    entries = [
        RareWord(word, reference.get(word, 0), tuple(map(reader.read, pieces)), num_texts_with[word])
        for word, pieces in zip(candidates, reader.split(candidates), strict=True)
        if reader.breaks_up(pieces, min_pieces)
    ]
    entries.sort(key=lambda entry: (-entry.count, entry.word))
    return RareWords(tuple(entries), num_texts, len(occurrences), num_numbers)


def _read_texts(texts: Iterable[Any], text_column: str | Sequence[str]) -> Iterator[str]:
    """Yields strings from strings or rows; the columns of a row become one text."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"Expected an iterable of texts; got one {type(texts).__name__}. Put a text in a list: [text].")
    if isinstance(texts, Mapping):
        raise TypeError(
            f"Expected an iterable of texts; got a {type(texts).__name__} with {list(texts)[:5]}. Choose one of them."
        )
    columns = [text_column] if isinstance(text_column, str) else list(text_column)
    available = getattr(texts, "column_names", None)
    if available is not None and hasattr(texts, "select_columns") and set(columns) <= set(available):
        texts = texts.select_columns(columns)  # so that no images are decoded
    for index, row in enumerate(texts):
        if isinstance(row, Mapping):
            missing = [column for column in columns if column not in row]
            if missing:
                raise ValueError(f"Row {index} has no column {missing[0]!r}, only {sorted(row)}. Set text_column.")
            values = [row[column] for column in columns]
        else:
            values = [row]
        for value in values:
            if not isinstance(value, str):
                raise TypeError(f"Text {index} must be a string; got {type(value).__name__}: {value!r:.80}.")
        yield "\n".join(values)
