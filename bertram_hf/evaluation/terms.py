"""Similarity of terms as people rate it, by sentence embeddings: UMNSRS (Pakhomov et al., 2010) and the like."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from ..induction.word_vectors import WordVectors
from ..utils.names import Mode
from ..words.splitting import normalize_spelling
from .embedding import SentenceEmbedder
from .similarity import read_rated_lines
from .statistics import bootstrap_interval


@dataclass(frozen=True)
class RatedTerms:
    """Two terms, and how similar people find them."""

    first: str
    second: str
    rating: float


@dataclass(frozen=True)
class TermScore:
    """How well sentence embeddings of terms agree with people, with vectors of rare words from so many contexts.

    Attributes:
        contexts: Contexts of each rare word; a word that has fewer gives all it has.
        spearman: Rank correlation between ratings and cosines, the mean over the draws of contexts.
        spearman_low: Lower end of its 95% confidence interval, by bootstrap over the pairs.
        spearman_high: Upper end.
        gain: By how much it is above that of the encoder without injection.
        gain_low: Lower end of its 95% confidence interval, by paired bootstrap over the pairs.
        gain_high: Upper end.
        num_pairs: Over how many pairs.
    """

    contexts: int
    spearman: float
    spearman_low: float
    spearman_high: float
    gain: float
    gain_low: float
    gain_high: float
    num_pairs: int

    def to_dict(self) -> dict[str, float]:
        """Returns the fields, rounded for reading."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def read_rated_terms(path: str | os.PathLike[str]) -> list[RatedTerms]:
    """Reads pairs of terms, one on each line: two terms and a rating, with tabs between.

    A term may have several words; it is read as it is written, capitals included.

    Args:
        path: The file.

    Raises:
        ValueError: If a line is of another form, with its number.

    Example:
        >>> read_rated_terms("pairs.txt")[0]
        RatedTerms(first='fruit', second='kumquat', rating=7.0)
    """
    return [
        RatedTerms(normalize_spelling(first, False), normalize_spelling(second, False), rating)
        for first, second, rating in read_rated_lines(path, "two terms and a rating")
    ]


class TermSimilarity:
    """Pairs of terms whose similarity people have rated.

    Args:
        embedder: Embeds the terms.
        pairs: P pairs.

    Raises:
        ValueError: If all ratings are equal, so that nothing can agree with them.

    Example:
        >>> from bertram_hf.evaluation import SentenceEmbedder, read_rated_terms
        >>> similarity = TermSimilarity(SentenceEmbedder(encoder, tokenizer), read_rated_terms("pairs.txt"))
        >>> similarity.compare(vectors, "slash").shape
        (4,)
        >>> from bertram_hf.induction import ContextDraws
        >>> draws = ContextDraws(model, processor, contexts, max_contexts=32)
        >>> scores = similarity.evaluate(draws.induce_words, mode="slash", num_contexts=[1, 2])
        >>> [score.contexts for score in scores], -1 <= scores[0].spearman <= 1
        ([1, 2], True)
    """

    def __init__(self, embedder: SentenceEmbedder, pairs: Sequence[RatedTerms]) -> None:
        self.embedder, self.pairs = embedder, list(pairs)
        self._ratings = np.array([pair.rating for pair in pairs])
        if len(set(self._ratings.tolist())) < 2:
            raise ValueError(
                f"Expected pairs with different ratings; {len(self.pairs)} pairs have "
                f"{len(set(self._ratings.tolist()))}. Give pairs that people find more and less similar."
            )

    def compare(self, vectors: WordVectors | None = None, mode: Mode = "auto") -> np.ndarray:
        """Returns the cosines (P,) between the embeddings of the two terms of each pair.

        Args:
            vectors: Vectors that are injected; a word without one is read as it is. By default none has one.
            mode: How they are injected.
        """
        sides = [pair.first for pair in self.pairs], [pair.second for pair in self.pairs]
        embedded = self.embedder.embed([*sides[0], *sides[1]], vectors, mode).double()
        return (embedded[: len(self.pairs)] * embedded[len(self.pairs) :]).sum(dim=1).numpy()

    @cached_property
    def plain(self) -> np.ndarray:
        """(P,), what `compare` gives without injection."""
        return self.compare()

    def score(self, drawn: np.ndarray, *, contexts: int) -> TermScore:
        """Scores cosines.

        Args:
            drawn: (draws, P), what `compare` gave.
            contexts: From how many contexts the vectors were.
        """
        plain = self.plain[None]

        def agreement(items: np.ndarray) -> float:
            return mean_spearman(self._ratings[items], drawn[:, items])

        def gain(items: np.ndarray) -> float:
            return agreement(items) - mean_spearman(self._ratings[items], plain[:, items])

        everything = np.arange(len(self.pairs))
        return TermScore(
            contexts,
            agreement(everything),
            *bootstrap_interval(len(self.pairs), agreement),
            gain(everything),
            *bootstrap_interval(len(self.pairs), gain),
            num_pairs=len(self.pairs),
        )

    def evaluate(
        self,
        draw: Callable[[int], WordVectors],
        *,
        mode: Mode = "auto",
        num_contexts: Sequence[int] = (1, 4, 16),
        num_draws: int = 1,
    ) -> list[TermScore]:
        """Scores vectors from random choices of contexts.

        Args:
            draw: Returns vectors from a random choice of so many contexts of each word, such as
                `ContextDraws.induce_words`.
            mode: How they are injected.
            num_contexts: Numbers of contexts to try.
            num_draws: How many random choices of contexts are averaged.

        Returns:
            One score for each number of contexts.
        """
        return [
            self.score(
                np.stack([self.compare(draw(number), mode) for _ in range(num_draws if number else 1)]), contexts=number
            )
            for number in num_contexts
        ]


def mean_spearman(ratings: np.ndarray, drawn: np.ndarray) -> float:
    """Returns the mean of the rank correlations of ratings (P,) with each row of cosines (draws, P); ties share their
    mean rank. It is NaN if all ratings or all cosines are equal, as in a resample they may be.

    Example:
        >>> mean_spearman(np.array([1, 2, 3]), np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]]))
        0.0
    """
    from scipy.stats import rankdata

    first, second = rankdata(ratings), rankdata(drawn, axis=1)
    first, second = first - first.mean(), second - second.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return float(np.mean(second @ first / (np.linalg.norm(first) * np.linalg.norm(second, axis=1))))
