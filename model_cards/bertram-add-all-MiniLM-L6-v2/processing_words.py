"""What a word is in text, in every script, and where it stands."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain
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
TO_PLAIN_MARK = {ord(mark): plain for plain, marks in SAME_MARKS.items() for mark in marks}
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
    """


class WholeWord:
    """Matches one spelling as a whole word.

    A boundary is asked for only where the spelling begins or ends with a letter, digit, mark or underscore, so that
    "C++" and ".NET" can be words. Characters of scripts that put no spaces between words, such as Chinese, need none,
    nor does what stands beside them. White space inside the spelling matches any white space, a hyphen or apostrophe
    also those of Unicode that look the same.

    Args:
        spelling: The word or term, taken as it is: accents are neither composed nor decomposed.
        ignore_case: Whether "Kumquat" is "kumquat".

    Example:
        >>> [match.span() for match in WholeWord("C++").find_all("C++, C+++ and XC++")]
        [(0, 3), (5, 8)]
        >>> [match.span() for match in WholeWord("金桔").find_all("我喜欢金桔的味道")]
        [(3, 5)]
    """

    def __init__(self, spelling: str, *, ignore_case: bool = False) -> None:
        parts = fold_marks(spelling).split()
        first, last = parts[0][0], parts[-1][-1]
        self.starts_inside, self.ends_inside = is_word_character(first), is_word_character(last)
        self.starts_unspaced, self.ends_unspaced = has_unspaced(first), has_unspaced(last)
        body = r"\s+".join(map(re.escape, parts))
        for plain, marks in SAME_MARKS.items():
            body = body.replace(re.escape(plain), f"[{plain}{marks}]")
        before = f"(?<!{SPACED})" if self.starts_inside and not self.starts_unspaced else ""
        after = f"(?!{SPACED})" if self.ends_inside and not self.ends_unspaced else ""
        self.pattern = re.compile(before + body + after, re.IGNORECASE if ignore_case else 0)

    def find_all(self, text: str) -> Iterator[re.Match[str]]:
        """Yields the occurrences, which do not overlap, from left to right."""
        return (match for match in self.pattern.finditer(text) if not self._touches_mark(text, match))

    def match_at(self, text: str, position: int) -> re.Match[str] | None:
        """Returns the occurrence that begins at `position`, if there is one."""
        match = self.pattern.match(text, position)
        return None if match is None or self._touches_mark(text, match) else match

    def _touches_mark(self, text: str, match: re.Match[str]) -> bool:
        """Whether a combining mark, which is no \\w, joins the match to a longer word; Hindi would fall apart."""
        following = text[match.end() : match.end() + 1]
        # A mark of a script without spaces belongs to the character of that script before it, or to none.
        if self.ends_inside and is_mark(following) and (self.ends_unspaced or not has_unspaced(following)):
            return True
        if not self.starts_inside or self.starts_unspaced:
            return False
        start = match.start()
        while is_mark(text[max(0, start - 1) : start]) and not has_unspaced(text[start - 1]):
            start -= 1
        return start < match.start() and not has_unspaced(text[max(0, start - 1) : start])


class WordPattern(WholeWord):
    """Cuts composed (NFC) text at a word.

    Args:
        word: The word or term.
        ignore_case: Whether "Kumquat" is "kumquat".

    Example:
        >>> WordPattern("kumquat", ignore_case=True).split("Kumquat, please; no kumquats.")
        ['', ', please; no kumquats.']
    """

    def __init__(self, word: str, *, ignore_case: bool) -> None:
        super().__init__(normalize_text(word), ignore_case=ignore_case)

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


def fold_case(text: str) -> str:
    """Lower-cases without moving any character: those that would become two stay as they are.

    Example:
        >>> fold_case("İS")
        'İs'
    """
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def fold_marks(text: str) -> str:
    """Writes hyphens as "-" and apostrophes as "'"."""
    return text.translate(TO_PLAIN_MARK)


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
