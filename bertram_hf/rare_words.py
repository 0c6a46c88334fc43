"""Which words a tokenizer breaks up or a corpus rarely has, and which of them should get an induced vector."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from tqdm.auto import tqdm
from transformers import PreTrainedTokenizerBase

from .processing_bertram import is_uncased
from .word_matching import normalize_text, replace_surrogates
from .word_vectors import WordVectors

# WordPiece marks the pieces that continue a word; byte-level BPE and SentencePiece mark those that begin one.
PIECE_MARKERS = ("##", "Ġ", "▁")
CONTINUES_WORD = "·"
WORDS_PER_CALL = 10_000
NUM_ROWS_SHOWN = 20
SECONDS_BEFORE_PROGRESS = 3


class PieceReader:
    """Cuts words into a tokenizer's pieces and writes pieces so that people can read them.

    Example:
        >>> reader = PieceReader(tokenizer)  # doctest: +SKIP
        >>> [reader.read(piece_id) for piece_id in reader.split(["kumquat"])[0]]  # doctest: +SKIP
        ['ku', '·m', '·qua', '·t']
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        vocabulary = tokenizer.get_vocab()
        self.tokens = {token_id: token for token, token_id in vocabulary.items()}
        self.special_ids = set(tokenizer.all_special_ids)
        self.marker = max(PIECE_MARKERS, key=lambda marker: sum(token.startswith(marker) for token in vocabulary))

    def split(self, words: Sequence[str]) -> list[list[int]]:
        """Returns the ids of the pieces of each word, as it stands after a space; a piece that is only the space is
        left out."""
        pieces: list[list[int]] = []
        for start in range(0, len(words), WORDS_PER_CALL):
            pieces += self.tokenizer(
                [f" {word}" for word in words[start : start + WORDS_PER_CALL]],
                add_special_tokens=False,
                split_special_tokens=True,
                return_attention_mask=False,
                return_token_type_ids=False,
                verbose=False,
            )["input_ids"]
        return [[piece for piece in ids if self.tokens.get(piece) not in ("Ġ", "▁")] for ids in pieces]

    def read(self, token_id: int) -> str:
        """Returns a token as text: "·" stands before one that continues a word, "\\xc3" for a byte that is no text."""
        token = self.tokens.get(token_id, "")
        if token_id in self.special_ids:
            return token
        if self.marker == "##":
            return CONTINUES_WORD + token[2:] if token.startswith("##") and len(token) > 2 else token
        text = token.removeprefix(self.marker)
        prefix = CONTINUES_WORD if text == token else ""
        if self.marker == "Ġ" and all(character in _byte_of_character() for character in text):
            text = bytes(_byte_of_character()[character] for character in text).decode(errors="backslashreplace")
        return prefix + text

    def breaks_up(self, pieces: Sequence[int], min_pieces: int) -> bool:
        """Whether a word has `min_pieces` pieces, or one of them is the unknown token, which says even less."""
        return len(pieces) >= min_pieces or self.tokenizer.unk_token_id in pieces


@dataclass(frozen=True)
class RareWord:
    """A word, how often it occurs, its pieces as a person reads them, and in how many of the texts it stands."""

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

    Text that puts no spaces between words (Chinese, Thai) must be split into words before.

    The texts are read once; what is kept grows with the number of different words only.

    Args:
        texts: Strings, or rows that have them: a list, a generator, a `datasets.Dataset` or `IterableDataset`.
        tokenizer: The language model's tokenizer.
        counts: How often words occur in a larger corpus, used instead of how often they occur here; 0 if not listed.
        max_count: If given, rare words occur at most so often.
        min_pieces: Rare words have at least so many pieces, or hold the unknown token; 1 leaves it to `max_count`.
        min_length: Shorter words are left out.
        text_column: For rows: the column, or columns, that hold text.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Returns:
        The rare words.

    Raises:
        TypeError: If a text is not a string.
        ValueError: If there is no criterion, or a row lacks the column.

    Example:
        >>> rare = find_rare_words(["A kumquat is a fruit."], tokenizer, max_count=100)  # doctest: +SKIP
        >>> rare.words  # doctest: +SKIP
        ['kumquat']
    """
    if min_pieces < 1 or (min_pieces == 1 and max_count is None):
        raise ValueError(
            "Say what makes a word rare: at most max_count occurrences, min_pieces of 2 or more, or both; "
            f"got max_count={max_count} and min_pieces={min_pieces}."
        )
    lower_case = is_uncased(tokenizer)
    corpus_counts = None if counts is None else _normalize_counts(counts, lower_case)
    occurrences: Counter[str] = Counter()
    num_texts_with: Counter[str] = Counter()
    num_texts = num_numbers = 0
    for text in tqdm(
        _read_texts(texts, text_column),
        total=len(texts) if isinstance(texts, Sized) else None,
        desc="Counting words",
        unit="text",
        delay=SECONDS_BEFORE_PROGRESS,
        disable=not show_progress,
    ):
        tokens = list(split_words(text.lower() if lower_case else text))
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


@dataclass(frozen=True)
class InjectionPolicy:
    """Which induced vectors to use, so that words the model knows well are left as they are.

    Attributes:
        max_count: Words that occur more often keep their pieces.
        min_pieces: So do words with fewer pieces, unless one is the unknown token.
        min_contexts: So do words whose vector was induced from fewer contexts.

    Example:
        >>> policy = InjectionPolicy(max_count=100, min_pieces=2, min_contexts=1)
        >>> selected, reasons = policy.select(vectors, tokenizer, counts)  # doctest: +SKIP
        >>> reasons  # doctest: +SKIP
        {'house': 'occurs 5000 times, more than 100'}
    """

    max_count: int | None = None
    min_pieces: int | None = None
    min_contexts: int = 0

    def select(
        self, vectors: WordVectors, tokenizer: PreTrainedTokenizerBase, counts: Mapping[str, int] | None = None
    ) -> tuple[WordVectors, dict[str, str]]:
        """Splits words into those to inject and the others.

        Args:
            vectors: The induced vectors.
            tokenizer: The tokenizer of the model that is to get them.
            counts: How often words occur in a corpus, 0 if not listed; needed by `max_count`.

        Returns:
            The vectors to inject, and for each other word why it is not among them.

        Raises:
            ValueError: If `max_count` is set and there are no counts.
        """
        if self.max_count is not None and counts is None:
            raise ValueError(f"max_count={self.max_count} needs to know how often words occur: pass counts.")
        lower_case = is_uncased(tokenizer)
        corpus_counts = _normalize_counts(counts or {}, lower_case)
        reader = PieceReader(tokenizer)
        reasons: dict[str, str] = {}
        normalized = [_normalize_word(word, lower_case) for word in vectors.words]
        for word, key, pieces in zip(vectors.words, normalized, reader.split(normalized), strict=True):
            count, num_contexts = corpus_counts.get(key, 0), len(vectors.used_contexts.get(word, []))
            if self.max_count is not None and count > self.max_count:
                reasons[word] = f"occurs {count} times, more than {self.max_count}"
            elif self.min_pieces is not None and not reader.breaks_up(pieces, self.min_pieces):
                reasons[word] = f"{_count(len(pieces), 'piece')}, fewer than {self.min_pieces}"
            elif num_contexts < self.min_contexts:
                reasons[word] = f"{_count(num_contexts, 'context')}, fewer than {self.min_contexts}"
        return vectors.select(word for word in vectors.words if word not in reasons), reasons


def split_words(text: str) -> Iterator[str]:
    """Yields the words and numbers of a text; see `find_rare_words` for what a word is.

    Example:
        >>> list(split_words("The well-known kumquat's _taste_ didn't cure COVID-19."))
        ['The', 'well', 'known', 'kumquat', 's', 'taste', 'cure', 'COVID-19']
    """
    for found in _word_pattern().finditer(normalize_text(replace_surrogates(text))):
        word = found.group("word").strip("_")
        if word and not found.group("negation"):
            yield from [word] if word[0].isalpha() else filter(None, word.split("-"))


@cache
def _word_pattern() -> re.Pattern[str]:
    # \w does not hold combining marks, without which Hindi words would fall apart. They have a class of their own: one
    # class of both would be many times slower.
    marks = "".join(c for c in map(chr, range(0x20000)) if unicodedata.category(c).startswith("M"))
    run = rf"\w+(?:[{marks}]+\w*)*"
    # At most four hyphens, so that a long chain of them takes linear time.
    return re.compile(rf"(?P<word>{run}(?:(?:-{run}){{0,3}}-(?=\d){run})?)(?P<negation>(?<=[nN])['’][tT](?!\w))?")


@cache
def _byte_of_character() -> dict[str, int]:
    """Returns the table with which GPT-2's byte-level BPE writes bytes as visible characters, reversed."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + index): byte for index, byte in enumerate(hidden)}


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


def _normalize_word(word: str, lower_case: bool) -> str:
    word = " ".join(normalize_text(word).split())
    return word.lower() if lower_case else word


def _normalize_counts(counts: Mapping[str, int], lower_case: bool) -> Counter[str]:
    """Adds up the counts of spellings that are one word to the tokenizer."""
    if not isinstance(counts, Mapping):
        raise TypeError(f"counts must map words to numbers; got {type(counts).__name__}.")
    normalized: Counter[str] = Counter()
    for word, count in counts.items():
        normalized[_normalize_word(word, lower_case)] += count
    return normalized


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_columns(rows: Sequence[Sequence[str]], *, right_aligned: Iterable[int] = ()) -> str:
    """Writes rows as text in aligned columns.

    Example:
        >>> print(format_columns([("word", "count"), ("kumquat", "3")], right_aligned=[1]))
        word     count
        kumquat      3
    """
    widths = [max(map(_display_width, column)) for column in zip(*rows, strict=True)]
    right = set(right_aligned)
    lines = []
    for row in rows:
        spaces = [" " * (width - _display_width(cell)) for width, cell in zip(widths, row, strict=True)]
        cells = [s + cell if i in right else cell + s for i, (s, cell) in enumerate(zip(spaces, row, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _display_width(text: str) -> int:
    """Returns how many columns a terminal needs: two for an East Asian wide character, none for a mark."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
