"""Words of a text, and one spelling for each."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from ..processing_words import (
    SPACED,
    WordPattern,
    any_run,
    normalize_text,
    replace_surrogates,
    spaced_run,
    unspaced_character,
)


def split_words(text: str, *, words_are_split: bool = False) -> Iterator[str]:
    """Yields the words and numbers of a text; see `find_rare_words` for what a word is.

    Args:
        text: The text.
        words_are_split: Whether there are spaces between all words, in every script.

    Example:
        >>> list(split_words("The well-known kumquat's _taste_ didn't cure COVID-19."))
        ['The', 'well', 'known', 'kumquat', 's', 'taste', 'cure', 'COVID-19']
    """
    for found in _word_pattern(words_are_split).finditer(normalize_text(replace_surrogates(text))):
        word = found.group("word").strip("_")
        if word and not found.group("negation"):
            yield from [word] if word[0].isalpha() else filter(None, word.split("-"))


@cache
def _word_pattern(words_are_split: bool) -> re.Pattern[str]:
    run = any_run() if words_are_split else spaced_run()
    # At most four hyphens, so that a long chain of them takes linear time.
    word = rf"(?P<word>{run}(?:(?:-{run}){{0,3}}-(?=\d){run})?|{unspaced_character()})"
    return re.compile(rf"{word}(?P<negation>(?<=[nN])['’][tT](?!{SPACED}))?")


def normalize_spelling(word: str, lower_case: bool) -> str:
    """Returns one spelling for all that are one word to the tokenizer."""
    word = " ".join(normalize_text(word).split())
    return word.lower() if lower_case else word


def normalize_counts(counts: Mapping[str, int], lower_case: bool) -> Counter[str]:
    """Adds up the counts of spellings that are one word to the tokenizer."""
    if not isinstance(counts, Mapping):
        raise TypeError(f"counts must map words to numbers; got {type(counts).__name__}.")
    normalized: Counter[str] = Counter()
    for word, count in counts.items():
        normalized[normalize_spelling(word, lower_case)] += count
    return normalized


def replace_word(text: str, word: str, other: str) -> str:
    """Returns a text with another word in place of a word, however that is capitalised.

    Example:
        >>> replace_word("A kumquat, please.", "kumquat", "kumqat")
        'A kumqat, please.'
    """
    return other.join(WordPattern(word, ignore_case=True).split(normalize_text(text)))


def count_noun(number: int, noun: str) -> str:
    """Writes "1 piece" or "2 pieces"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
