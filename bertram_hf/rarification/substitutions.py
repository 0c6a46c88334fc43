"""The substitution dictionary S of dataset rarification: which rare words may stand for a word (Section 5)."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from ..processing_words import WordError, check_word, normalize_text
from ..utils.files import read_utf8

Kind = Literal["wordnet", "misspelling", "given"]
KINDS: tuple[Kind, ...] = get_args(Kind)
HEADER = ("word", "substitute", "kind")


class Substitute(NamedTuple):
    """A rare word that may stand for another, and whether it is a synonym, a misspelling or the user's own."""

    text: str
    kind: Kind


class Substitutions(Mapping[str, tuple[Substitute, ...]]):
    """Maps words to their substitutes.

    Words are looked up in lower case. They consist of letters, because only such words are found in texts; a substitute
    may be anything that fits in one line. A pair that comes twice counts once, with the kind it had first.

    Args:
        entries: Word, substitute and kind.

    Raises:
        ValueError: If an entry cannot be used; the message names it by its number.

    Example:
        >>> substitutions = Substitutions([("laundry", "washables", "wordnet")])
        >>> substitutions["Laundry"]
        (Substitute(text='washables', kind='wordnet'),)
    """

    def __init__(self, entries: Iterable[tuple[str, str, Kind]] = ()) -> None:
        found: dict[str, dict[str, Substitute]] = {}
        for number, entry in enumerate(entries, start=1):
            try:
                check_entry(*entry)
            except (TypeError, ValueError) as error:
                raise ValueError(f"Entry {number}: {error}") from error
            word, substitute, kind = entry
            substitute = normalize_text(substitute)  # two ways to write a letter are one
            found.setdefault(word.lower(), {}).setdefault(substitute, Substitute(substitute, kind))
        self._substitutes = {word: tuple(substitutes.values()) for word, substitutes in found.items()}

    def __getitem__(self, word: str) -> tuple[Substitute, ...]:
        return self._substitutes[word.lower()]

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and word.lower() in self._substitutes

    def __iter__(self) -> Iterator[str]:
        return iter(self._substitutes)

    def __len__(self) -> int:
        return len(self._substitutes)

    def __or__(self, other: "Substitutions") -> "Substitutions":
        """Returns the substitutes of both; the kinds of this one come first."""
        if not isinstance(other, Substitutions):
            return NotImplemented
        return Substitutions([*self.entries(), *other.entries()])

    def __repr__(self) -> str:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.count_kinds().items()))
        return f"Substitutions({len(self)} words{': ' if kinds else ''}{kinds})"

    def entries(self) -> Iterator[tuple[str, str, Kind]]:
        """Yields word, substitute and kind."""
        for word, substitutes in self._substitutes.items():
            for substitute in substitutes:
                yield word, substitute.text, substitute.kind

    def count_kinds(self) -> dict[str, int]:
        """Returns how many substitutes there are of each kind."""
        return dict(Counter(kind for _, _, kind in self.entries()))

    def keep_rare(self, counts: Mapping[str, int], *, max_count: int = 100) -> "Substitutions":
        """Returns the substitutes that a corpus has fewer than `max_count` times.

        Args:
            counts: How often words occur, in lower case; 0 if not listed.
            max_count: From this count on a word is not rare. The paper has 100, and 1000 for MNLI-1000.

        Example:
            >>> luck = Substitutions([("luck", "lucke", "misspelling"), ("luck", "like", "misspelling")])
            >>> [text for _, text, _ in luck.keep_rare({"like": 5000}).entries()]
            ['lucke']
        """
        return Substitutions(entry for entry in self.entries() if counts.get(entry[1].lower(), 0) < max_count)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, kind: Kind = "given") -> "Substitutions":
        """Reads a file with word, substitute and perhaps kind on each line, between tabs; a first line may name them.

        Args:
            path: The file, in UTF-8.
            kind: The kind where a line has none.

        Raises:
            ValueError: If a line cannot be used; the message names it by its number.
        """
        entries: list[tuple[str, str, Kind]] = []
        for number, line in enumerate(read_utf8(path).split("\n"), start=1):
            fields = line.removesuffix("\r").split("\t")
            if fields == [""] or (number == 1 and tuple(fields) in (HEADER, HEADER[:2])):
                continue
            if len(fields) not in (2, 3):
                raise ValueError(
                    f"{path}, line {number}: expected word, substitute and perhaps kind, separated by tabs; got "
                    f"{len(fields)} fields in {line!r:.80}."
                )
            entry: tuple = (*fields, kind) if len(fields) == 2 else tuple(fields)
            try:
                check_entry(*entry)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
            entries.append(entry)
        return cls(entries)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes a file that `read` reads."""
        rows = [HEADER, *self.entries()]
        Path(path).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8", newline="\n")


def check_entry(word: str, substitute: str, kind: str) -> None:
    """Raises a ValueError unless the substitute can stand for the word."""
    check_word(word, whitespace=False)
    check_word(substitute, whitespace=False)
    if not word.isalpha():
        raise WordError(f"expected a word of letters only; got {word!r}. Words with other characters are not replaced.")
    if substitute != substitute.strip() or len(substitute.splitlines()) > 1 or "\t" in substitute:
        raise WordError(f"expected a substitute in one line, without tabs or outer spaces; got {substitute!r}.")
    if substitute.lower() == word.lower():
        raise WordError(f"expected a substitute other than the word; got {word!r} twice. Drop it.")
    if kind not in KINDS:
        raise ValueError(f"expected a kind among {', '.join(KINDS)}; got {kind!r}.")
