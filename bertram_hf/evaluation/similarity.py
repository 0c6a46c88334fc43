"""Similarity of rare words as people rate it: Contextual Rare Words (Khodak et al., 2018) and data of the same form."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

from ..induction.word_vectors import WordVectors
from ..utils.files import read_utf8
from ..utils.models import unit_rows
from ..words.splitting import normalize_spelling
from .statistics import bootstrap_interval


@dataclass(frozen=True)
class RatedPair:
    """A known word, a rare word, and how similar people find them."""

    word: str
    rare_word: str
    rating: float


@dataclass(frozen=True)
class SimilarityScore:
    """How well the vectors of rare words agree with people, from so many contexts.

    Attributes:
        contexts: Contexts of each rare word; a word that has fewer gives all it has.
        spearman: Rank correlation between ratings and centred cosines, the mean over the draws of contexts.
        spearman_low: Lower end of its 95% confidence interval, by bootstrap over the rare words with all their pairs.
        spearman_high: Upper end.
        num_pairs: Over how many pairs.
    """

    contexts: int
    spearman: float
    spearman_low: float
    spearman_high: float
    num_pairs: int

    def to_dict(self) -> dict[str, float]:
        """Returns the fields, rounded for reading."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def read_rated_pairs(path: str | os.PathLike[str], *, lower_case: bool = False) -> list[RatedPair]:
    """Reads pairs, one on each line: a known word, a rare word and a rating, with tabs between.

    Args:
        path: The file.
        lower_case: Whether words are read in lower case, as the vectors of an uncased encoder are named.

    Raises:
        ValueError: If a line is of another form, with its number.

    Example:
        >>> read_rated_pairs("pairs.txt")[0]
        RatedPair(word='fruit', rare_word='kumquat', rating=7.0)
    """
    return [
        RatedPair(normalize_spelling(word, lower_case), normalize_spelling(rare_word, lower_case), rating)
        for word, rare_word, rating in read_rated_lines(path, "a word, a rare word and a rating")
    ]


def read_rated_lines(path: str | os.PathLike[str], expected: str) -> list[tuple[str, str, float]]:
    """Reads two texts and a rating from each line of a file, with tabs between.

    Args:
        path: The file.
        expected: What a line holds, for errors.

    Raises:
        ValueError: If a line is of another form, with its number, or there are none.
    """
    pairs = []
    for number, line in enumerate(read_utf8(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            first, second, rating = line.split("\t")
            pair = first, second, float(rating)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}: expected {expected} with tabs between; got {line!r:.80}."
            ) from error
        if not (normalize_spelling(first, False) and normalize_spelling(second, False) and np.isfinite(pair[2])):
            raise ValueError(f"{path}, line {number}: a word is empty or the rating is no number: {line!r:.80}.")
        pairs.append(pair)
    if not pairs:
        raise ValueError(f"{path} holds no pairs. Expected {expected} on each line.")
    return pairs


def evaluate_similarity(
    pairs: Sequence[RatedPair],
    known: WordVectors,
    words: Sequence[str],
    induce: Callable[[int], torch.Tensor],
    *,
    vocabulary_mean: torch.Tensor,
    num_contexts: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128),
    num_draws: int = 1,
) -> list[SimilarityScore]:
    """Compares the cosines between known words and induced vectors of rare words with people's ratings.

    Args:
        pairs: The rated pairs.
        known: Vectors of the known words.
        words: The rare words.
        induce: Returns vectors (W, H) of the rare words from a random choice of so many contexts, such as
            `ContextDraws.induce`.
        vocabulary_mean: (H,), the mean of the encoder's input embeddings, which is subtracted from all vectors.
        num_contexts: Numbers of contexts to try.
        num_draws: How many random choices of contexts are averaged.

    Returns:
        One score for each number of contexts.

    Raises:
        KeyError: If a word of a pair has no vector.

    Example:
        >>> from bertram_hf.induction import ContextDraws, mean_piece_vectors
        >>> known = mean_piece_vectors(encoder, tokenizer, ["fruit", "animal", "tree", "house"])
        >>> mean = encoder.get_input_embeddings().weight.detach().mean(0)
        >>> draws = ContextDraws(model, processor, contexts, max_contexts=32)
        >>> pairs = read_rated_pairs("pairs.txt")
        >>> scores = evaluate_similarity(
        ...     pairs, known, draws.words, draws.induce, vocabulary_mean=mean, num_contexts=[1, 2]
        ... )
        >>> [score.contexts for score in scores], -1 <= scores[1].spearman <= 1
        ([1, 2], True)
    """
    rows = {word: row for row, word in enumerate(words)}
    missing = [pair.rare_word for pair in pairs if pair.rare_word not in rows]
    if missing:
        raise KeyError(f"{len(missing)} rare words have no vector, such as {missing[0]!r}. Leave their pairs out.")
    ratings = np.array([pair.rating for pair in pairs])
    rare_rows = torch.tensor([rows[pair.rare_word] for pair in pairs])
    mean = vocabulary_mean.detach().float().cpu()
    anchors = unit_rows(torch.stack([known[pair.word] for pair in pairs]).float() - mean)
    scores = []
    for number in num_contexts:
        cosines = []
        for _ in range(num_draws):
            vectors = unit_rows(induce(number).float().cpu() - mean)
            cosines.append((anchors * vectors[rare_rows]).sum(dim=1).numpy())
        drawn = np.stack(cosines)  # (draws, pairs)

        def score(items: np.ndarray, drawn: np.ndarray = drawn) -> float:
            return float(np.mean([spearman(ratings[items], row[items]) for row in drawn]))

        low, high = bootstrap_interval(len(pairs), score, groups=rare_rows.numpy())
        scores.append(SimilarityScore(number, score(np.arange(len(pairs))), low, high, len(pairs)))
    return scores


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the rank correlation of two arrays; ties share their mean rank."""
    from scipy.stats import spearmanr

    return float(spearmanr(first, second).statistic)
