"""The spelling of a word as ids: character n-grams as in the released code, or single characters."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from .configuration_bertram import read_json_file

UNK, PAD, START, END = "UNK", "PAD", "<S>", "</S>"
UNK_ID, PAD_ID = 0, 1
NO_UNIT = -1  # pads rows of ids; not with PAD_ID, which the n-gram "PAD" of a word has too
# Padding symbols after a word in the released code's other branch: up to 50 letters, but so many at least.
PADDED_LENGTH, MIN_PADDING = 50, 10
FORM_VOCAB_NAME = "form_vocab.json"


def word_ngrams(word: str, min_length: int = 3, max_length: int = 5) -> list[str]:
    """Returns the n-grams of a word, by start position and then by length, as the released code orders them.

    The start symbol stands at both ends and counts as one letter; if there is one length only, an end symbol and
    padding symbols stand after the word. A word that yields no n-gram has the single one UNK.

    Example:
        >>> word_ngrams("ab")
        ['<S>ab', '<S>ab<S>', 'ab<S>']
    """
    letters = [START, *word, START]
    if min_length == max_length:
        letters = [START, *word, END] + [PAD] * max(MIN_PADDING, PADDED_LENGTH - len(word))
    ngrams = [
        "".join(letters[start : start + length])
        for start in range(len(letters))
        for length in range(min_length, max_length + 1)
        if start + length <= len(letters)
    ]
    return ngrams or [UNK]


class FormTokenizer:
    """Maps words to ids of their n-grams or characters.

    Args:
        vocab: The units in order of their ids; ids 0 and 1 are UNK and PAD.
        unit: `"ngram"` or `"character"`.
        min_length: Shortest n-gram.
        max_length: Longest n-gram.

    Example:
        >>> form = FormTokenizer.from_words(["kumquat", "kumquats", "quat", "aquatic"])
        >>> form(["kumquat"])[0][:3]
        [0, 0, 0]
    """

    def __init__(
        self,
        vocab: Sequence[str],
        *,
        unit: Literal["ngram", "character"] = "ngram",
        min_length: int = 3,
        max_length: int = 5,
    ) -> None:
        if list(vocab[:2]) != [UNK, PAD]:
            raise ValueError(f"A form vocabulary starts with {UNK}, {PAD}; this one starts with {list(vocab[:2])}.")
        if unit not in ("ngram", "character"):
            raise ValueError(f"unit must be ngram or character; got {unit!r}.")
        if not 1 <= min_length <= max_length:
            raise ValueError(f"Expected 1 <= min_length <= max_length; got {min_length} and {max_length}.")
        self.vocab = list(vocab)
        self.unit = unit
        self.min_length = min_length
        self.max_length = max_length
        self.ids = {unit: index for index, unit in enumerate(self.vocab)}

    @classmethod
    def from_words(
        cls,
        words: Iterable[str],
        *,
        unit: Literal["ngram", "character"] = "ngram",
        min_length: int = 3,
        max_length: int = 5,
        min_count: int = 4,
    ) -> "FormTokenizer":
        """Builds the vocabulary of all units that occur at least `min_count` times in the word types `words`.

        Order: falling count; ties in order of first occurrence, for n-grams of length one alphabetically. That is the
        released code's order of ids.
        """
        counts: Counter[str] = Counter()
        for word in words:
            counts.update(_units(word, unit, min_length, max_length))
        # Both sorts are stable, so that ties keep their order.
        ranked = sorted(counts.items()) if max_length == 1 else list(counts.items())
        ranked.sort(key=lambda item: -item[1])
        vocab = [UNK, PAD, *(unit for unit, count in ranked if count >= min_count and unit not in (UNK, PAD))]
        return cls(vocab, unit=unit, min_length=min_length, max_length=max_length)

    @classmethod
    def from_file(cls, path: str | os.PathLike) -> "FormTokenizer":
        """Reads what `save` wrote.

        Raises:
            ValueError: If the file holds something else.
        """
        state = read_json_file(path, required=("unit", "min_length", "max_length", "vocab"))
        vocab, lengths = state["vocab"], (state["min_length"], state["max_length"])
        if not isinstance(vocab, list) or not all(isinstance(unit, str) for unit in vocab):
            raise ValueError(f"{path} must have a list of strings as vocab; save or download the checkpoint again.")
        if any(type(length) is not int for length in lengths):
            raise ValueError(f"{path} must have whole numbers as min_length and max_length; got {lengths}.")
        try:
            return cls(vocab, unit=state["unit"], min_length=lengths[0], max_length=lengths[1])
        except ValueError as error:
            raise ValueError(f"{path} cannot be used: {error}") from error

    def save(self, path: str | os.PathLike) -> None:
        """Writes settings and vocabulary as one JSON file."""
        state = {
            "unit": self.unit,
            "min_length": self.min_length,
            "max_length": self.max_length,
            "vocab": self.vocab,
        }
        with open(path, "w", encoding="utf-8") as file:
            # ASCII escapes, so that n-grams with odd characters survive any editor.
            json.dump(state, file, indent=0)

    def __len__(self) -> int:
        return len(self.vocab)

    def __call__(self, words: Iterable[str]) -> list[list[int]]:
        """Returns the ids of each word's units; unknown ones are UNK, and an empty word is a single UNK."""
        return [
            [self.ids.get(unit, UNK_ID) for unit in _units(word, self.unit, self.min_length, self.max_length)]
            or [UNK_ID]
            for word in words
        ]


def _units(word: str, unit: str, min_length: int, max_length: int) -> list[str]:
    return list(word) if unit == "character" else word_ngrams(word, min_length, max_length)
