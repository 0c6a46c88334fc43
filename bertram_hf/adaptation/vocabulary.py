"""Which words of a user's texts get vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from ..injection.word_index import WordIndex, find_unusable
from ..processing_context import is_uncased
from ..words.pieces import PieceReader

MIN_LENGTH = 3
MIN_LETTERS = 2  # of a word with digits, such as "gl73"


@dataclass(frozen=True)
class Vocabulary:
    """The words of some texts, by what is done with them.

    Attributes:
        rare: Words that the tokenizer breaks up, or that were asked for, with their counts; the most frequent first.
        known: Words that the tokenizer has a token for, with their counts.
        pieces: The pieces of each rare word, as people read them.
        left_out: Words that were asked for and cannot get a vector, and why.
        num_rare: How many rare words there are, those beyond the limit included.
    """

    rare: dict[str, int]
    known: dict[str, int]
    pieces: dict[str, tuple[str, ...]]
    left_out: dict[str, str]
    num_rare: int


def choose_words(
    counts: Mapping[str, int],
    tokenizer: PreTrainedTokenizerBase,
    *,
    asked: Sequence[str] = (),
    min_count: int = 2,
    max_words: int = 20_000,
) -> Vocabulary:
    """Divides the words of texts into those that the tokenizer knows and those that it breaks up.

    Args:
        counts: How often each word occurs, in the spelling that the tokenizer sees.
        tokenizer: The tokenizer.
        asked: Words and terms that a user wants, however rare or frequent they are.
        min_count: Other words must occur so often.
        max_words: At most so many words, those asked for first, then the most frequent.

    Example:
        >>> vocabulary = choose_words({"kumquat": 3, "fruit": 9, "quokka": 1}, tokenizer)
        >>> list(vocabulary.rare), vocabulary.num_rare
        (['kumquat'], 1)
    """
    reader = PieceReader(tokenizer)
    index = WordIndex(ignore_case=is_uncased(tokenizer))
    special_tokens = {index.key(token) for token in tokenizer.all_special_tokens}
    left_out = find_unusable(asked, index, special_tokens)
    wanted = [word for word in dict.fromkeys(asked) if word not in left_out]
    taken = {index.key(word) for word in wanted}
    candidates = [
        word
        for word, count in counts.items()
        if count >= min_count
        and len(word) >= MIN_LENGTH
        and sum(map(str.isalpha, word)) >= MIN_LETTERS
        and index.key(word) not in taken
    ]
    unusable = find_unusable(candidates, index, special_tokens)
    candidates = sorted((word for word in candidates if word not in unusable), key=lambda word: (-counts[word], word))
    cut = dict(zip(candidates, reader.split(candidates), strict=True))
    known = {word: counts[word] for word, pieces in cut.items() if not reader.breaks_up(pieces, 2)}
    rare = [word for word in candidates if word not in known]
    chosen = [*wanted, *rare][: max(max_words, len(wanted))]
    cut |= dict(zip(wanted, reader.split(wanted), strict=True))
    return Vocabulary(
        {word: counts.get(word, 0) for word in chosen},
        known,
        {word: tuple(map(reader.read, cut[word])) for word in chosen},
        left_out,
        len(wanted) + len(rare),
    )
