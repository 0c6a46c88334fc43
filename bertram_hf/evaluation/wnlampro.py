"""WNLaMPro entries, their file format and their patterns (Schick and Schütze 2020, "Rare Words: A Major Problem").

An entry asks a masked language model for words that stand in a relation to a keyword. A line of the published file has
columns that tabs separate: id, `dev` or `test`, keyword, relation, targets; a word is written `word (pos,zipf,count)`.
"""

import logging
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from ..utils.files import read_utf8

logger = logging.getLogger(__name__)
Relation: TypeAlias = Literal["antonym", "hypernym", "cohyponym", "corruption"]
Split: TypeAlias = Literal["dev", "test"]
Band: TypeAlias = Literal["rare", "medium", "frequent"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
SPLITS: tuple[Split, ...] = get_args(Split)
BANDS: tuple[Band, ...] = get_args(Band)
MEDIUM_COUNT = 10  # words that occur so often are no longer rare
FREQUENT_COUNT = 100
WORD, ARTICLE, MASK = "<W>", "<A>", "[MASK]"
PATTERNS: dict[Relation, tuple[str, ...]] = {
    "antonym": (
        "<W> is the opposite of [MASK]",
        "<W> is not [MASK]",
        "someone who is <W> is not [MASK]",
        "something that is <W> is not [MASK]",
        '" <W> " is the opposite of " [MASK] "',
    ),
    "hypernym": (
        "<W> is a [MASK]",
        "<W> is an [MASK]",
        "<A> <W> is a [MASK]",
        "<A> <W> is an [MASK]",
        '" <W> " refers to a [MASK]',
        '" <W> " refers to an [MASK]',
        "<W> is a kind of [MASK]",
        "<A> <W> is a kind of [MASK]",
    ),
    "cohyponym": ("<W> and [MASK]", '" <W> " and " [MASK] "'),
    "corruption": ('" <W> " is a misspelling of " [MASK] " .', '" <W> " . did you mean " [MASK] " ?'),
}
ANNOTATED_WORD = re.compile(r"(?P<word>\S(?:.*\S)?) \((?P<pos>[a-z]+),(?P<zipf>[^,()]+),(?P<count>[0-9]+)\)")
SPACE = re.compile(r"[\t\r\n]")


@dataclass(frozen=True)
class AnnotatedWord:
    """A word with its part of speech, its Zipf frequency, and how often it occurs in the corpus."""

    word: str
    pos: str
    zipf: float
    count: int

    def __str__(self) -> str:
        return f"{self.word} ({self.pos},{self.zipf:.2f},{self.count})"


@dataclass(frozen=True)
class WnlamproEntry:
    """A keyword, and the words that a model should predict for it.

    Attributes:
        id: Unique in its file.
        split: `"dev"` or `"test"`.
        keyword: The word that is to be understood.
        relation: What the targets are to the keyword; for `"corruption"` the keyword is a misspelling of the target.
        targets: The words that count as right.
    """

    id: str
    split: Split
    keyword: AnnotatedWord
    relation: Relation
    targets: tuple[AnnotatedWord, ...]

    @property
    def band(self) -> Band:
        """How frequent the keyword is."""
        return frequency_band(self.keyword.count)


def frequency_band(count: int) -> Band:
    """Returns the band of a word that occurs so often.

    Example:
        >>> [frequency_band(count) for count in (9, 10, 99, 100)]
        ['rare', 'medium', 'medium', 'frequent']
    """
    if count < MEDIUM_COUNT:
        return "rare"
    return "medium" if count < FREQUENT_COUNT else "frequent"


def fill_patterns(word: str, relation: Relation, *, mask_token: str = MASK) -> list[str]:
    """Returns a relation's patterns with the word and a model's mask token in them.

    Example:
        >>> fill_patterns("apple", "hypernym")[2], fill_patterns("hour", "hypernym")[2]
        ('an apple is a [MASK]', 'a hour is a [MASK]')
    """
    # By the first letter, a small one, as released: "a hour", "a Apple".
    article = "an" if word[:1] in tuple("aeiou") else "a"
    # The word comes last, so that a word that looks like a placeholder stays as it is.
    return [
        pattern.replace(MASK, mask_token).replace(ARTICLE, article).replace(WORD, word)
        for pattern in PATTERNS[relation]
    ]


def read_wnlampro(
    path: str | os.PathLike[str], split: Split | None = None, *, keep_frequent_corruptions: bool = False
) -> list[WnlamproEntry]:
    """Reads a file in the published format.

    Args:
        path: The file, in UTF-8.
        split: Only entries of this split; all by default.
        keep_frequent_corruptions: Whether misspellings that occur 10 times or more are kept. The released evaluation
            leaves them out: so frequent a misspelling is mostly a word.

    Returns:
        The entries in the order of the file. How many were left out is logged.

    Raises:
        ValueError: If a line is malformed, or an id stands twice, with the number of the line.

    Example:
        >>> read_wnlampro("WNLaMPro.txt", "test")[0].keyword.word
        'kumquat'
    """
    if split is not None and split not in SPLITS:
        raise ValueError(f"split must be dev or test, or None for both; got {split!r}.")
    entries: dict[str, WnlamproEntry] = {}
    for number, line in enumerate(read_utf8(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = parse_entry(line)
            if entry.id in entries:
                raise ValueError(f"Each id may stand once; {entry.id!r} stands more often. Rename one.")
        except ValueError as error:
            raise ValueError(f"Line {number} of {path}: {error}") from error
        entries[entry.id] = entry
    chosen = [entry for entry in entries.values() if split in (None, entry.split)]
    if keep_frequent_corruptions:
        return chosen
    kept = drop_frequent_corruptions(chosen)
    if len(kept) < len(chosen):
        logger.info(f"{len(chosen) - len(kept)} misspellings that occur {MEDIUM_COUNT} times or more are left out.")
    return kept


def drop_frequent_corruptions(entries: Iterable[WnlamproEntry]) -> list[WnlamproEntry]:
    """Returns the entries without misspellings that are not rare."""
    return [entry for entry in entries if entry.relation != "corruption" or entry.band == "rare"]


def parse_entry(line: str) -> WnlamproEntry:
    """Reads one line of the file.

    Raises:
        ValueError: If it is malformed.

    Example:
        >>> parse_entry("e1\\ttest\\tlime (n,3.81,57)\\thypernym\\tfruit (n,4.84,9310)").targets[0].word
        'fruit'
    """
    columns = line.split("\t")
    if len(columns) < 5:
        raise ValueError(
            f"Expected at least 5 columns (id, split, keyword, relation, targets); got {len(columns)}. "
            "Separate them with tabs."
        )
    entry_id, split, keyword, relation, *targets = columns
    if not entry_id.strip():
        raise ValueError("Expected an id in the first column; it is empty.")
    if split not in SPLITS:
        raise ValueError(f"Expected dev or test in the second column; got {split!r}.")
    if relation not in RELATIONS:
        raise ValueError(f"Expected one of {', '.join(RELATIONS)} in the fourth column; got {relation!r}.")
    words = tuple(_parse_word(target) for target in targets)
    return WnlamproEntry(entry_id, cast(Split, split), _parse_word(keyword), cast(Relation, relation), words)


def _parse_word(text: str) -> AnnotatedWord:
    match = ANNOTATED_WORD.fullmatch(text)
    try:
        if match is None or not math.isfinite(zipf := float(match["zipf"])):
            raise ValueError
    except ValueError:
        raise ValueError(f'Expected a word as "lime (n,3.81,57)": word (pos,zipf,count); got {text!r}.') from None
    return AnnotatedWord(match["word"], match["pos"], zipf, int(match["count"]))


def write_wnlampro(entries: Iterable[WnlamproEntry], path: str | os.PathLike[str]) -> None:
    """Writes entries in the published format, Zipf frequencies with two digits.

    Raises:
        ValueError: If an entry could not be read again, such as one without targets.

    Example:
        >>> write_wnlampro(read_wnlampro("WNLaMPro.txt"), "my-probe.txt")
    """
    lines = []
    for entry in entries:
        columns = [entry.id, entry.split, str(entry.keyword), entry.relation, *map(str, entry.targets)]
        unclean = next((column for column in columns if SPACE.search(column)), None)
        if unclean is not None:
            raise ValueError(f"Expected columns without tabs and line breaks; got {unclean!r} in entry {entry.id!r}.")
        lines.append("\t".join(columns))
        try:
            parse_entry(lines[-1])
        except ValueError as error:
            raise ValueError(f"Entry {entry.id!r} cannot be written: {error}") from error
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
