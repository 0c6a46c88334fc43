"""Finding the words of a dictionary in raw text."""

import re
import unicodedata
from collections.abc import Container, Iterable
from itertools import pairwise
from typing import NamedTuple

from ..processing_words import (
    DOTTED_I,
    WordBoundaries,
    WordError,
    check_word,
    compose_text,
    fold_case,
    fold_marks,
    normalize_text,
    run_pattern,
)

_SPACE = re.compile(r"\s+")


class WordMatch(NamedTuple):
    """A word found in a text: the characters `start` to `end`, and the word's row."""

    start: int
    end: int
    row: int


class _Form(NamedTuple):
    """How to find a word: its parts between white space, and where its first run of letters stands."""

    key: str
    parts: list[str]
    run_start: int
    boundaries: WordBoundaries

    def find_end(self, text: str, start: int) -> int | None:
        """Returns where the word ends if it begins at `start`. Plain comparisons: to compile thousands of patterns for
        terms with a common first word would take seconds."""
        if not text.startswith(self.parts[0], start):
            return None
        end = start + len(self.parts[0])
        for part in self.parts[1:]:
            space = _SPACE.match(text, end)
            if space is None or not text.startswith(part, space.end()):
                return None
            end = space.end() + len(part)
        return end if self.boundaries.hold(text, start, end) else None


# Words by their second run of letters, or None.
_Forms = dict[str | None, list[_Form]]


class WordIndex:
    """Finds words at word boundaries; of several that fit, the leftmost and then the longest.

    A word is found by its first two runs of letters in dictionaries, or its first two characters where words have no
    spaces between them, so that more words do not cost more. A word that is one run, as most are, stands in `rows`
    alone: a million of them take little memory, and forked processes share it. Texts may be searched while another
    thread adds and removes words.

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
        self._hidden: dict[str, list[int]] = {}  # earlier rows of words that were added again
        self._by_run: dict[str, _Forms] = {}
        self._by_symbol: dict[str, _Forms] = {}  # words without letters, such as an emoji, by first character

    def key(self, word: str) -> str:
        """Returns one spelling for all words that the index cannot tell apart."""
        key = " ".join(word.split())
        if key.isascii():  # as most are
            return key.lower() if self.ignore_case else key
        key = self._fold(normalize_text(key))
        return key.replace(DOTTED_I, "İ") if self.ignore_case else key

    def add(self, word: str, row: int) -> None:
        """Adds a word, or gives a known word another row until that is removed."""
        key = self.key(word)
        if key in self.rows:
            self._hidden.setdefault(key, []).append(self.rows[key])
        elif not run_pattern(key).fullmatch(key):
            table, first, second, run_start = self._place(key)
            by_second = table.setdefault(first, {})
            forms = [*by_second.get(second, ()), _Form(key, key.split(), run_start, WordBoundaries(key))]
            by_second[second] = sorted(forms, key=lambda form: -len(form.key))
        self.rows[key] = row

    def remove(self, word: str, row: int) -> None:
        """Takes a row of a word away; without another row the word is removed."""
        key = self.key(word)
        hidden = self._hidden.get(key)
        if hidden is None:
            del self.rows[key]
            if not run_pattern(key).fullmatch(key):
                self._remove_form(key)
            return
        if self.rows[key] == row:
            self.rows[key] = hidden.pop()
        else:
            hidden.remove(row)
        if not hidden:
            del self._hidden[key]

    def _remove_form(self, key: str) -> None:
        table, first, second, _ = self._place(key)
        table[first][second] = [form for form in table[first][second] if form.key != key]
        if not table[first][second]:
            del table[first][second]
        if not table[first]:
            del table[first]

    def find(self, text: str) -> list[WordMatch]:
        """Returns the words in `text`, which do not overlap, from left to right."""
        if text.isascii() or not self._is_decomposed(text):
            return self._find_composed(text)
        composed, origins = compose_text(text)
        if self.ignore_case:
            # One character for two, of which the second is a mark and begins no word.
            for start in [match.start() for match in re.finditer(DOTTED_I, composed)][::-1]:
                del origins[start + 1]
            composed = composed.replace(DOTTED_I, "İ")
        return [WordMatch(origins[start], origins[end], row) for start, end, row in self._find_composed(composed)]

    def _is_decomposed(self, text: str) -> bool:
        return not unicodedata.is_normalized("NFC", text) or (self.ignore_case and DOTTED_I in text)

    def _find_composed(self, text: str) -> list[WordMatch]:
        folded = self._fold(text)
        pattern = run_pattern(folded)
        runs = pattern.findall(folded)
        if not self._by_symbol and self.rows.keys().isdisjoint(runs) and self._by_run.keys().isdisjoint(runs):
            return []
        places = [
            (run.start(), self._forms_at(run.group(), second and second.group()))
            for run, second in pairwise([*pattern.finditer(folded), None])
            if run
        ]
        if self._by_symbol:
            symbols = ((i, self._by_symbol.get(character)) for i, character in enumerate(folded))
            places += [(i, forms[None]) for i, forms in symbols if forms]
            places.sort(key=lambda place: place[0])
        found: list[WordMatch] = []
        done = 0
        for position, forms_here in places:
            for form in forms_here:
                start = position - form.run_start
                end = form.find_end(folded, start) if start >= done else None
                row = self.rows.get(form.key)
                if end is not None and row is not None:
                    found.append(WordMatch(start, end, row))
                    done = end
                    break
        return found

    def _forms_at(self, run: str, second: str | None) -> list[_Form]:
        """Returns the words that a run of letters may begin, if another follows, the longest first."""
        forms = self._by_run.get(run, {})
        alone = [_Form(run, [run], 0, WordBoundaries(run))] if run in self.rows else []
        return [*(forms.get(second, ()) if second else ()), *forms.get(None, ()), *alone]

    def _fold(self, text: str) -> str:
        return fold_marks(fold_case(text) if self.ignore_case else text)

    def _place(self, key: str) -> tuple[dict[str, _Forms], str, str | None, int]:
        """Returns the table of a word, its two keys there, and where in the word the first stands."""
        runs = run_pattern(key).finditer(key)
        first, second = next(runs, None), next(runs, None)
        if first is None:
            return self._by_symbol, key[0], None, 0
        return self._by_run, first.group(), second and second.group(), first.start()


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
