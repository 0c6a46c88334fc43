"""Finding the words of `split_words` in long text, many times faster than one by one."""

import re
from functools import cache

from ..processing_words import (
    SPACED,
    UNSPACED,
    has_unspaced,
    marks_class,
    spaced_marks_class,
    spaced_run,
    unspaced_character,
)
from .splitting import split_words

MAX_WORD_LENGTH = 100


def _tokens_of(run: str) -> str:
    """Returns the pattern of `split_words`, without groups, for words that are such runs."""
    suffix = rf"(?:(?:-{run}){{0,3}}-(?=\d){run})?(?:(?<=[nN])['’][tT](?!{SPACED}))?"
    return rf"{run}(?:(?=[-'’]){suffix})?"


PLAIN_TOKEN = re.compile(_tokens_of(r"\w+"))


UNMARKED_TOKEN = re.compile(rf"{_tokens_of(f'{SPACED}+')}|[{UNSPACED}]")


BEYOND_COMMON = re.compile("[\U00010000-\U0010ffff]")


def counting_pattern(text: str) -> re.Pattern[str]:
    """Returns a pattern whose matches hold all that `split_words` looks at, so it can go through them later."""
    return _marked_token() if has_mark(text) else _unmarked_token(text)


def sampling_pattern(text: str) -> re.Pattern[str]:
    """As for counting; but where a combining mark leads, the processor sees no word, so neither must the sampler."""
    return _marked_token_or_orphan() if has_mark(text) else _unmarked_token(text)


def is_counted(word: str) -> bool:
    """Whether counting sees a word as such: as one word of `split_words`, with a letter and not too long."""
    is_one = (word.isascii() and word.isalpha()) or (list(split_words(word)) == [word] and any(map(str.isalpha, word)))
    return is_one and len(word) <= MAX_WORD_LENGTH


def has_mark(text: str) -> bool:
    """Whether a text holds a combining mark, which makes a slower pattern necessary."""
    if text.isascii():
        return False
    return _common_mark().search(text) is not None or (
        BEYOND_COMMON.search(text) is not None and _mark().search(text) is not None
    )


def _unmarked_token(text: str) -> re.Pattern[str]:
    return UNMARKED_TOKEN if has_unspaced(text) else PLAIN_TOKEN


@cache
def _mark() -> re.Pattern[str]:
    return re.compile(marks_class())


@cache
def _common_mark() -> re.Pattern[str]:
    """As `_mark`, up to U+FFFF: a class with characters beyond is a hundred times slower."""
    return re.compile("".join(c for c in _mark().pattern if c <= "\uffff"))


@cache
def _marked_token() -> re.Pattern[str]:
    return re.compile(f"{_tokens_of(spaced_run())}|{unspaced_character()}")


@cache
def _marked_token_or_orphan() -> re.Pattern[str]:
    return re.compile(f"{_marked_token().pattern}|{spaced_marks_class()}+{spaced_run()}")
