"""What a word is in text, in every script, and where it stands."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from typing import Any

# The inside of a character class: Thai, Lao, Burmese, Khmer, Hiragana and Han. Katakana words are runs, as Latin ones.
# Nothing beyond U+FFFF, which would make the class a hundred times slower.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0ebd\u0ec0-\u0ece\u0ed0-\u0edf"
    "\u1000-\u1049\u1050-\u109d\u1780-\u17d3\u17d7\u17dc-\u17e9"
    "\u3005-\u3007\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
SPACED = rf"[^\W{UNSPACED}]"  # letters, digits and underscores of all other scripts
_UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")
_PLAIN_RUN = re.compile(r"\w+")
_RUN = re.compile(rf"{SPACED}+|[{UNSPACED}]")
# Marks that look the same: hyphens, one at which no line may break; the apostrophe of typesetters.
SAME_MARKS = {"-": "\u2010\u2011", "'": "\u2019"}
DOTTED_I = "i\u0307"  # the lower case of "İ": two characters, which NFC leaves two
VARIABLE = re.compile(r"[\s'-]")


def run_pattern(text: str) -> re.Pattern[str]:
    """Returns a pattern of the runs in a text, without regard to combining marks.

    Example:
        >>> text = "A kumquat, 金桔"
        >>> run_pattern(text).findall(text)
        ['A', 'kumquat', '金', '桔']
    """
    return _RUN if has_unspaced(text) else _PLAIN_RUN


def has_unspaced(text: str) -> bool:
    """Whether a text holds a character of a script that puts no spaces between words."""
    return not text.isascii() and _UNSPACED_CHARACTER.search(text) is not None


def is_mark(character: str) -> bool:
    """Whether `character` is a combining mark; the empty string is none."""
    return character != "" and unicodedata.category(character).startswith("M")


def is_word_character(character: str) -> bool:
    """Whether `character` is part of words: a letter, digit, underscore or combining mark."""
    return character.isalnum() or character == "_" or is_mark(character)


@cache
def marks_class() -> str:
    """Returns the character class of combining marks, which \\w does not hold."""
    return f"[{''.join(_list_marks())}]"


@cache
def spaced_marks_class() -> str:
    """Returns the class of those that stand in scripts with spaces, too."""
    return f"[{''.join(mark for mark in _list_marks() if not has_unspaced(mark))}]"


@cache
def spaced_run() -> str:
    """Returns the pattern of a run with its marks, without which Hindi words would fall apart.

    Marks have a class of their own: one class of both would be many times slower.
    """
    return f"{SPACED}+(?:{spaced_marks_class()}+{SPACED}*)*"


@cache
def any_run() -> str:
    """Returns the pattern of a run with its marks, for text that has spaces between all words."""
    return rf"\w+(?:{marks_class()}+\w*)*"


@cache
def unspaced_character() -> str:
    """Returns the pattern of a character of a script without spaces, with its marks."""
    return f"[{UNSPACED}]{marks_class()}*"


def _list_marks() -> list[str]:
    ideographic_variations = range(0xE0100, 0xE01F0)
    return [character for character in map(chr, chain(range(0x20000), ideographic_variations)) if is_mark(character)]


class WordError(ValueError, IndexError):
    """No vector can be given for a word.

    It is both a ValueError and an IndexError because the released code answers the same mistakes with the one or the
    other; code written for it keeps working.

    Example:
        >>> try:
        ...     induce_vectors(model, processor, {" ": []})
        ... except WordError as error:
        ...     print("no vector")
        no vector
    """


class WordBoundaries:
    """Tells whether a spelling that stands in a text is a whole word there.

    A boundary is asked for only where the spelling begins or ends with a letter, digit, mark or underscore, so that
    "C++" and ".NET" can be words. Characters of scripts that put no spaces between words, such as Chinese, need none,
    nor does what stands beside them.

    Args:
        spelling: The word or term.
    """

    def __init__(self, spelling: str) -> None:
        first, last = spelling[0], spelling[-1]
        self.starts_inside = is_word_character(first) and not has_unspaced(first)
        self.ends_inside, self.ends_unspaced = is_word_character(last), has_unspaced(last)

    def hold(self, text: str, start: int, end: int) -> bool:
        """Whether the spelling is a whole word between `start` and `end`."""
        return self._holds_after(text, end) and (not self.starts_inside or _holds_before(text, start))

    def _holds_after(self, text: str, end: int) -> bool:
        if not self.ends_inside or end == len(text):
            return True
        following = text[end]
        # A mark of a script without spaces belongs to the character of that script before it, or to none.
        if is_mark(following):
            return not self.ends_unspaced and has_unspaced(following)
        return self.ends_unspaced or not _is_spaced(following)


def _holds_before(text: str, start: int) -> bool:
    """Whether no letter, nor a combining mark with its letter, joins a word that begins at `start` to a longer one."""
    base = start
    while base > 0 and is_mark(text[base - 1]) and not has_unspaced(text[base - 1]):
        base -= 1
    if base < start:  # Hindi would fall apart
        return base > 0 and has_unspaced(text[base - 1])
    return base == 0 or not _is_spaced(text[base - 1])


def _is_spaced(character: str) -> bool:
    """Whether a character is `SPACED`."""
    return (character.isalnum() or character == "_") and not has_unspaced(character)


class WordPattern:
    """Finds one word in composed (NFC) text, and cuts the text at it; see [`WordBoundaries`].

    White space inside the word matches any white space, a hyphen or apostrophe also those of Unicode that look the
    same.

    Args:
        word: The word or term.
        ignore_case: Whether "Kumquat" is "kumquat".

    Example:
        >>> WordPattern("kumquat", ignore_case=True).split("Kumquat, please; no kumquats.")
        ['', ', please; no kumquats.']
        >>> [match.span() for match in WordPattern("C++", ignore_case=False).find_all("C++, C+++ and XC++")]
        [(0, 3), (5, 8)]
    """

    def __init__(self, word: str, *, ignore_case: bool) -> None:
        parts = fold_marks(normalize_text(word)).split()
        self.boundaries = WordBoundaries(" ".join(parts))
        body = r"\s+".join(map(re.escape, parts))
        for plain, marks in SAME_MARKS.items():
            body = body.replace(re.escape(plain), f"[{plain}{marks}]")
        if ignore_case:
            body = body.replace(DOTTED_I, "İ").replace("İ", f"(?:{DOTTED_I}|İ)")
        # Boundaries in the pattern would make it twenty times slower to compile.
        self.pattern = re.compile(body, re.IGNORECASE if ignore_case else 0)

    def find_all(self, text: str) -> Iterator[re.Match[str]]:
        """Yields the occurrences, which do not overlap, from left to right."""
        position = 0
        while match := self.pattern.search(text, position):
            is_whole = self.boundaries.hold(text, *match.span())
            if is_whole:
                yield match
            position = match.end() if is_whole else match.start() + 1

    def split(self, text: str) -> list[str]:
        """Returns the text between the occurrences; one piece if there is none."""
        segments: list[str] = []
        end = 0
        for match in self.find_all(text):
            segments.append(text[end : match.start()])
            end = match.end()
        return [*segments, text[end:]]


def normalize_text(text: str) -> str:
    """Composes accents (NFC), so that both spellings of "café" are one word."""
    return unicodedata.normalize("NFC", text)


def compose_text(text: str) -> tuple[str, list[int]]:
    """Composes accents and returns where in `text` each character begins, and where the text ends.

    Example:
        >>> compose_text("ne\u0301e")
        ('née', [0, 1, 3, 4])
    """
    # A character with the marks behind it, or the letters of a Korean syllable.
    starts = [i for i, c in enumerate(text) if i == 0 or not (is_mark(c) or "\u1160" <= c <= "\u11ff")]
    pieces: list[str] = []
    origins: list[int] = []
    for start, end in pairwise([*starts, len(text)]):
        piece = normalize_text(text[start:end])
        pieces.append(piece)
        origins += [start, *(max(start, end - rest) for rest in range(len(piece) - 1, 0, -1))]
    return "".join(pieces), [*origins, len(text)]


def fold_case(text: str) -> str:
    """Lower-cases each character by itself, without moving any: "İ", which would become two, stays as it is.

    Example:
        >>> fold_case("İS"), fold_case("ΟΔΟΣ"), fold_case("οδος")
        ('İs', 'οδοσ', 'οδοσ')
    """
    lowered = "İ".join(map(str.lower, text.split("İ"))) if "İ" in text else text.lower()
    return lowered.replace("ς", "σ")  # which `lower` puts at the end of a word, as `text` may have it anyway


def folded_spellings(word: str) -> set[str]:
    """Returns how a word may stand in composed text after `fold_case`: with "İ" or with its lower case."""
    folded = fold_case(word)
    return {folded.replace("İ", DOTTED_I), folded.replace(DOTTED_I, "İ")}


def fold_marks(text: str) -> str:
    """Writes hyphens as "-" and apostrophes as "'"."""
    if not text.isascii():
        for plain, marks in SAME_MARKS.items():
            for mark in marks:
                text = text.replace(mark, plain)
    return text


def fixed_beginning(spelling: str) -> str:
    """Returns the part of a spelling with which every occurrence begins, to look for it before anything slower.

    Example:
        >>> fixed_beginning("co-trimoxazole")
        'co'
    """
    return VARIABLE.split(fold_marks(spelling), maxsplit=1)[0]


def check_word(word: object, *, whitespace: bool) -> None:
    """Raises unless `word` can be looked for.

    Args:
        word: What the caller gave as a word.
        whitespace: Whether the released matching is used, which finds single white-space tokens only.

    Raises:
        TypeError: If it is not a string.
        WordError: If it is empty, holds an unpaired surrogate or, for white-space matching, holds white space.
    """
    if not isinstance(word, str):
        raise TypeError(f"A word must be a string; got {type(word).__name__}: {word!r}.")
    if not word.strip():
        raise WordError(f"A word must have at least one visible character; got {word!r}.")
    if has_surrogate(word):
        raise WordError(f"The word {word!a} holds an unpaired surrogate. Decode its text with the right encoding.")
    if whitespace and word.split() != [word]:
        raise WordError(
            f'The word {word!r} holds white space, so white-space matching never finds it. Use match="word".'
        )


def check_contexts(word: str, contexts: Any) -> None:
    """Raises a TypeError unless `contexts` is a sequence of strings."""
    if isinstance(contexts, str) or not hasattr(contexts, "__len__") or not hasattr(contexts, "__getitem__"):
        raise TypeError(
            f"The contexts of {word!r} must be a list of strings; got {type(contexts).__name__}. "
            "Put a single context in a list: [context]."
        )
    for index, context in enumerate(contexts):
        if not isinstance(context, str):
            raise TypeError(f"Context {index} of {word!r} must be a string; got {type(context).__name__}: {context!r}.")


def has_surrogate(text: str) -> bool:
    """Whether `text` holds a code point that no encoding can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def replace_surrogates(text: str) -> str:
    """Puts U+FFFD in the place of unpaired surrogates, which no tokenizer takes."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text) if has_surrogate(text) else text
