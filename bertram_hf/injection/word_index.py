"""Finding the words of a dictionary in raw text."""

import unicodedata
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..processing_words import (
    WholeWord,
    WordError,
    check_word,
    fixed_beginning,
    fold_case,
    fold_marks,
    normalize_text,
    run_pattern,
)


class WordMatch(NamedTuple):
    """A word found in a text: the characters `start` to `end`, and the word's row."""

    start: int
    end: int
    row: int


@dataclass(frozen=True)
class _Form:
    """One spelling of a word: its text and beginning, where its first run of letters stands, and the word's row."""

    text: str
    beginning: str
    run_start: int
    row: int

    @cached_property
    def whole_word(self) -> WholeWord:
        """How to match it; compiled at first use, since most words of a large dictionary are never met."""
        return WholeWord(self.text)


class WordIndex:
    """Finds words at word boundaries; of several that fit, the leftmost and then the longest.

    A word is found by its first run of letters in a dictionary, or its first character where words have no spaces
    between them, so that more words do not cost more.

    Args:
        ignore_case: Whether "Kumquat" is "kumquat".

    Example:
        >>> index = WordIndex(ignore_case=True)
        >>> index.add("kumquat", 0)
        >>> index.find("A Kumquat, no kumquats")
        [WordMatch(start=2, end=9, row=0)]
    """

    def __init__(self, *, ignore_case: bool) -> None:
        self.ignore_case = ignore_case
        self.rows: dict[str, int] = {}
        self._by_run: dict[str, list[_Form]] = {}
        self._by_symbol: dict[str, list[_Form]] = {}  # words without letters, such as an emoji, by first character

    def key(self, word: str) -> str:
        """Returns one spelling for all words that the index cannot tell apart."""
        return self._fold(" ".join(fold_marks(normalize_text(word)).split()))

    def add(self, word: str, row: int) -> None:
        """Adds a word, or gives a known word another row."""
        self.remove(word)
        key = self.key(word)
        self.rows[key] = row
        for text in _spellings(key):
            table, lookup, run_start = self._place(text)
            forms = table.setdefault(lookup, [])
            forms.append(_Form(text, fixed_beginning(text), run_start, row))
            forms.sort(key=lambda form: -len(form.text))

    def remove(self, word: str) -> None:
        """Removes a word, if it is there."""
        key = self.key(word)
        if self.rows.pop(key, None) is None:
            return
        for text in _spellings(key):
            table, lookup, _ = self._place(text)
            table[lookup] = [form for form in table[lookup] if form.text != text]
            if not table[lookup]:
                del table[lookup]

    def find(self, text: str) -> list[WordMatch]:
        """Returns the words in `text`, which do not overlap, from left to right."""
        folded = self._fold(text)
        pattern = run_pattern(folded)
        if not self._by_symbol and self._by_run.keys().isdisjoint(pattern.findall(folded)):
            return []
        places = [(run.start(), self._by_run.get(run.group(), ())) for run in pattern.finditer(folded)]
        if self._by_symbol:
            places += [(i, self._by_symbol.get(character, ())) for i, character in enumerate(folded)]
            places.sort(key=lambda place: place[0])
        found: list[WordMatch] = []
        end = 0
        for position, forms in places:
            for form in forms:
                start = position - form.run_start
                if start < end or not folded.startswith(form.beginning, start):
                    continue
                match = form.whole_word.match_at(folded, start)
                if match:
                    end = match.end()
                    found.append(WordMatch(start, end, form.row))
                    break
        return found

    def _fold(self, text: str) -> str:
        return fold_case(text) if self.ignore_case else text

    def _place(self, text: str) -> tuple[dict[str, list[_Form]], str, int]:
        """Returns the table and key under which a spelling is kept, and where in it the key stands."""
        run = run_pattern(text).search(text)
        return (self._by_run, run.group(), run.start()) if run else (self._by_symbol, text[0], 0)


def find_unusable(words: Iterable[str], index: WordIndex, special_tokens: Container[str]) -> dict[str, str]:
    """Returns words that cannot be told from others or from special tokens in texts, and why.

    Example:
        >>> find_unusable(["kumquat", "Kumquat", "[MASK]"], WordIndex(ignore_case=True), ["[mask]"])
        {'Kumquat': "is the same word as 'kumquat' to the tokenizer", '[MASK]': 'is a special token of the tokenizer'}
    """
    reasons: dict[str, str] = {}
    known: dict[str, str] = {}
    for word in words:
        try:
            check_word(word, whitespace=False)
        except WordError as error:
            reasons[word] = f"cannot be found: {error}"
            continue
        key = index.key(word)
        if key in special_tokens:
            reasons[word] = "is a special token of the tokenizer"
        elif known.setdefault(key, word) != word:
            reasons[word] = f"is the same word as {known[key]!r} to the tokenizer"
    return reasons


def _spellings(key: str) -> set[str]:
    """Composed and decomposed accents: raw text may have either."""
    return {key, unicodedata.normalize("NFD", key)}
