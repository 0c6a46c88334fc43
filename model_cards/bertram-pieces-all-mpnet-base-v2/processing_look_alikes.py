"""Known words that a word may be a misspelling of."""

import json
import os
from collections.abc import Container, Sequence

import numpy as np

from .configuration_bertram import NUM_LENGTHS, TWO_ERRORS, read_json_file

LOOK_ALIKES_NAME = "look_alikes.json"
MAX_ERRORS = 2
MAX_LOOK_ALIKES = 8  # of a word; the nearest ones, and of those the most frequent
# Shorter words have look-alikes everywhere, and two errors leave little of a word below six letters.
SHORTEST_WORD = 3
SHORTEST_WITH_TWO_ERRORS = 6
LONGEST_WORD = 12  # longer words are as sure as these
# A letter too much (one that stands twice, or another), too few (one of two that are the same, or another) or wrong (a
# vowel for a vowel, or another), or two in the wrong order; each at the first letter, inside or at the last one.
DOUBLED, EXTRA, HALVED, MISSING, VOWEL, WRONG, SWAPPED = range(7)
VOWELS = frozenset("aeiouy")
WORDS_PER_BLOCK = 64


class LookAlikes:
    """Finds the known words that are one or two typing errors away from a word.

    An error is a letter too much, too few or wrong, or two neighbours in the wrong order. What is found has a kind,
    which stands for the type of the error and the length of the word. A long word in which two letters of a known one
    have changed places is hardly anything but a misspelling; a short word with another first letter is a word.

    Args:
        words: Known words, each of one token.
        token_ids: Their tokens. A smaller id stands for a more frequent word, as in most vocabularies.

    Example:
        >>> find = LookAlikes(["definitely", "define", "finite"], [1, 2, 3])
        >>> token_ids, kinds = find(["definately", "kumquat"])
        >>> token_ids[:, 0]
        array([1, 0])
    """

    def __init__(self, words: Sequence[str], token_ids: Sequence[int]) -> None:
        if len(words) != len(token_ids):
            raise ValueError(f"Expected a token for each of {len(words)} words; got {len(token_ids)} tokens.")
        order = sorted(range(len(words)), key=lambda i: token_ids[i])
        self.words = [words[i] for i in order]
        self.token_ids = np.array([token_ids[i] for i in order], dtype=np.int64)
        self._known = frozenset(self.words)

    @classmethod
    def from_file(cls, path: str | os.PathLike) -> "LookAlikes":
        """Reads what `save` wrote.

        Raises:
            ValueError: If the file holds something else.
        """
        content = read_json_file(path, required=("words", "token_ids"))
        words, token_ids = content["words"], content["token_ids"]
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"{path} must have a list of strings as words; save or download the checkpoint again.")
        if not isinstance(token_ids, list) or not all(type(i) is int and 0 <= i < 2**31 for i in token_ids):
            raise ValueError(f"{path} must have a list of tokens as token_ids; save or download the checkpoint again.")
        try:
            return cls(words, token_ids)
        except ValueError as error:
            raise ValueError(f"{path} cannot be used: {error}") from error

    def save(self, path: str | os.PathLike) -> None:
        """Writes the words and their tokens as one JSON file."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"words": self.words, "token_ids": self.token_ids.tolist()}, file)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._known

    def without(self, words: Container[str]) -> "LookAlikes":
        """Returns the known words but those given."""
        kept = [i for i, word in enumerate(self.words) if word not in words]
        return LookAlikes([self.words[i] for i in kept], self.token_ids[kept].tolist())

    def name(self, token_id: int) -> str:
        """Returns the known word of a token."""
        return self.words[int(np.searchsorted(self.token_ids, token_id))]

    def __call__(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the tokens (W, K) of words' look-alikes, nearest first, and their kinds (W, K), padded with 0.

        A known word is no look-alike of itself.

        Raises:
            ImportError: If rapidfuzz is not installed.
        """
        token_ids = np.zeros((len(words), MAX_LOOK_ALIKES), dtype=np.int64)
        kinds = np.zeros_like(token_ids)
        for start in range(0, len(words), WORDS_PER_BLOCK):
            block = words[start : start + WORDS_PER_BLOCK]
            errors = count_errors(block, self.words)
            for row, word in enumerate(block):
                near = np.flatnonzero((errors[row] > 0) & (errors[row] <= _max_errors(word)))
                near = near[np.argsort(errors[row, near], kind="stable")][:MAX_LOOK_ALIKES]
                token_ids[start + row, : len(near)] = self.token_ids[near]
                length = min(len(word), LONGEST_WORD) - SHORTEST_WORD
                for column, index in enumerate(near):
                    error = TWO_ERRORS if errors[row, index] > 1 else error_type(word, self.words[index])
                    kinds[start + row, column] = 1 + error * NUM_LENGTHS + length
        return token_ids, kinds


def count_errors(words: Sequence[str], known: Sequence[str]) -> np.ndarray:
    """Returns the number of errors between words (W) and known words (K) as an array (W, K); `MAX_ERRORS + 1` for more.

    Raises:
        ImportError: If rapidfuzz is not installed.
    """
    try:  # only here, so that code on the Hub loads without it; Transformers does not look for imports in a `try`
        from rapidfuzz.distance import OSA
        from rapidfuzz.process import cdist
    except ImportError as error:
        raise ImportError(
            "Finding misspellings needs rapidfuzz, which is missing. Run: pip install rapidfuzz. To induce vectors "
            "without it, set processor.look_alikes = None and model.config.look_alikes = False."
        ) from error
    return cdist(words, known, scorer=OSA.distance, score_cutoff=MAX_ERRORS, dtype=np.uint8)


def error_type(word: str, known: str) -> int:
    """Returns the type, 0 to 20, of the one error that makes `word` of a known word.

    Example:
        >>> [divmod(error_type(word, "lemon"), 3) for word in ("llemon", "lmon", "leman", "lemno")]
        [(0, 1), (3, 1), (4, 1), (6, 2)]
    """
    shorter = min(len(word), len(known))
    place = next((i for i in range(shorter) if word[i] != known[i]), shorter)  # where they begin to differ
    end = len(known) - 1
    if len(word) > len(known):
        kind, end = (DOUBLED if word[place] == word[place - 1 : place] else EXTRA), len(known)
    elif len(word) < len(known):
        kind = HALVED if known[place] == known[place - 1 : place] else MISSING
    elif word[place + 1 : place + 2] == known[place] and known[place + 1 : place + 2] == word[place]:
        kind, end = SWAPPED, len(known) - 2
    else:
        kind = VOWEL if {word[place], known[place]} <= VOWELS else WRONG
    return 3 * kind + (0 if place == 0 else 2 if place >= end else 1)


def _max_errors(word: str) -> int:
    if len(word) < SHORTEST_WORD:
        return 0
    return MAX_ERRORS if len(word) >= SHORTEST_WITH_TWO_ERRORS else 1
