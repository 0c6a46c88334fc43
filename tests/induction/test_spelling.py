import math

import pytest

from bertram_hf.induction.spelling import CONTEXT, NUM_LETTERS, SMOOTHING, LetterModel

WORDS = ["banana", "bandana", "cabana", "a"]


def count(text):
    return sum(f"^{word}$".startswith(text, start) for word in WORDS for start in range(len(word) + 2))


def probability(letter, behind):
    """Returns how probable a letter is before those behind it (the naive form)."""
    shorter = probability(letter, behind[:-1]) if behind else 1 / NUM_LETTERS
    return (count(letter + behind) + SMOOTHING * shorter) / (count(behind) + SMOOTHING)


@pytest.mark.parametrize("word", [*WORDS, "bnaana", "xyz"])
def test_letters_are_as_probable_as_they_are_frequent_before_those_behind_them(word):
    framed = f"^{word}$"
    naive = sum(math.log(probability(framed[i], framed[i + 1 :][:CONTEXT])) for i in range(len(framed) - 1))
    assert LetterModel(WORDS).score(word) == pytest.approx(naive)


def test_a_typing_error_makes_letters_less_probable():
    letters = LetterModel(WORDS)
    assert letters.score("banana") > letters.score("bananna") > letters.score("banqana")
