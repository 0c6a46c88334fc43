"""What words are made of, in every script: runs of letters, or single characters where words have no spaces between."""

import re
import unicodedata
from functools import cache
from itertools import chain

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
