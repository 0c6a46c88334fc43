"""The words of a text that have substitutes, and the text with substitutes in their place."""

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..words.scanning import counting_pattern
from .substitutions import Substitute, Substitutions


class ReplaceableWord(NamedTuple):
    """A word that has substitutes: in which text of a row (0 or 1), at which character, and those substitutes."""

    part: int
    start: int
    text: str
    substitutes: tuple[Substitute, ...]

    @property
    def end(self) -> int:
        """The character after its last one."""
        return self.start + len(self.text)


def find_replaceable(
    texts: Sequence[str], substitutions: Substitutions, *, misspelling_share: float = 0.1, seed: int = 0
) -> list[ReplaceableWord]:
    """Finds the words of a row, one text or a pair, that have substitutes.

    A word is a run of letters that neither a digit, a mark, an underscore nor "n't" goes on with. It is looked up in
    lower case. To each word, misspellings are given with the probability `misspelling_share`, so that they do not
    dominate; other substitutes always. Seed, texts and position decide, so that the same row has the same words
    wherever it stands in a data set.

    Args:
        texts: The text, or the two texts.
        substitutions: The substitutes.
        misspelling_share: How likely a word is given its misspellings; the paper has 10 %.
        seed: Another seed gives misspellings to other words.

    Returns:
        The words, in the order in which they stand.

    Example:
        >>> find_replaceable(["My Laundry didn't dry."], Substitutions([("laundry", "washables", "wordnet")]))
        [ReplaceableWord(part=0, start=3, text='Laundry', substitutes=(Substitute(text='washables', kind='wordnet'),))]
    """
    draw = random.Random("\0".join([str(seed), "misspellings", *texts]))
    found: list[ReplaceableWord] = []
    for part, text in enumerate(texts):
        for match in counting_pattern(text).finditer(text):
            allows_misspellings = draw.random() < misspelling_share  # for every word, so that the others do not matter
            word = match.group()
            if word.isalpha() and word in substitutions:
                substitutes = tuple(s for s in substitutions[word] if allows_misspellings or s.kind != "misspelling")
                if substitutes:
                    found.append(ReplaceableWord(part, match.start(), word, substitutes))
    return found


def choose_substitute(word: ReplaceableWord, texts: Sequence[str], *, seed: int = 0) -> Substitute:
    """Draws a substitute for a word of a row, with the word's capitals. Seed, texts and position decide."""
    key = "\0".join([str(seed), "substitutes", str(word.part), str(word.start), *texts])
    substitute = random.Random(key).choice(word.substitutes)
    return substitute._replace(text=match_case(substitute.text, word.text))


def match_case(substitute: str, word: str) -> str:
    """Writes a substitute with a capital, or all in capitals, if the word is.

    Example:
        >>> match_case("washables", "Laundry"), match_case("washables", "LAUNDRY"), match_case("washables", "laundry")
        ('Washables', 'WASHABLES', 'washables')
    """
    if len(word) > 1 and word.isupper():
        return substitute.upper()
    return substitute[0].upper() + substitute[1:] if word[0].isupper() else substitute


def replace_words(texts: Sequence[str], replacements: Iterable[tuple[ReplaceableWord, str]]) -> list[str]:
    """Returns the texts with words replaced; all other characters stay.

    Example:
        >>> replace_words(["A b, c"], [(ReplaceableWord(0, 2, "b", ()), "kumquat")])
        ['A kumquat, c']
    """
    result = list(texts)
    for word, text in sorted(replacements, key=lambda pair: pair[0].start, reverse=True):
        result[word.part] = result[word.part][: word.start] + text + result[word.part][word.end :]
    return result
