"""Definition retrieval: a bare rare word must find its own definition among many, by sentence embeddings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import torch

from ..induction.word_vectors import WordVectors
from ..utils.names import Mode
from .embedding import SentenceEmbedder, reciprocal_ranks
from .statistics import bootstrap_interval


@dataclass(frozen=True)
class DefinitionScore:
    """How well rare words find their definitions, with vectors from so many contexts.

    Attributes:
        contexts: Contexts of each word; a word that has fewer gives all it has.
        mrr: Mean of 1 / rank of a word's best own definition, the mean over the draws of contexts.
        mrr_low: Lower end of its 95% confidence interval, by bootstrap over the words.
        mrr_high: Upper end.
        gain: By how much it is above that of the encoder without injection, on the same words.
        gain_low: Lower end of its 95% confidence interval, by paired bootstrap over the words.
        gain_high: Upper end.
        num_words: Over how many words.
    """

    contexts: int
    mrr: float
    mrr_low: float
    mrr_high: float
    gain: float
    gain_low: float
    gain_high: float
    num_words: int

    def to_dict(self) -> dict[str, float]:
        """Returns the fields, rounded for reading."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


class DefinitionRetrieval:
    """Words as queries for definitions. Both are embedded by the same model: a definition that holds one of the words
    is read with its vector, too.

    Args:
        embedder: Embeds words and definitions.
        definitions: For each of W words its own definitions. One text may be a definition of several words.
        others: Definitions of other words, among which the own ones must be found.

    Attributes:
        words: The words.
        texts: D different definitions, own ones first.

    Raises:
        ValueError: If there are no words, or a word has no definition.

    Example:
        >>> from bertram_hf.evaluation import SentenceEmbedder
        >>> own = {"kumquat": ["a small, sour fruit"], "quokka": ["a small animal"]}
        >>> retrieval = DefinitionRetrieval(SentenceEmbedder(encoder, tokenizer), own, others=["a house", "a tree"])
        >>> retrieval.rank(vectors, "slash").shape, len(retrieval.texts)
        ((2,), 4)
        >>> from bertram_hf.induction import ContextDraws
        >>> draws = ContextDraws(model, processor, contexts, max_contexts=32)
        >>> scores = retrieval.evaluate(draws.induce_words, mode="slash", num_contexts=[1, 2])
        >>> [score.contexts for score in scores], 0 < scores[0].mrr <= 1
        ([1, 2], True)
    """

    def __init__(
        self, embedder: SentenceEmbedder, definitions: Mapping[str, Sequence[str]], others: Sequence[str] = ()
    ) -> None:
        without = [word for word, texts in definitions.items() if not texts]
        if not definitions or without:
            got = f"{without[0]!r} has none" if without else "got no words"
            raise ValueError(f"Expected words with at least one definition each; {got}. Leave such words out.")
        self.embedder, self.words = embedder, list(definitions)
        self.texts = list(dict.fromkeys([*(text for texts in definitions.values() for text in texts), *others]))
        rows = {text: row for row, text in enumerate(self.texts)}
        most = max(map(len, definitions.values()))
        # (W, K): the rows of a word's own definitions; a word that has fewer than K repeats its first.
        self._own = torch.tensor(
            [
                [rows[text] for text in texts] + [rows[texts[0]]] * (most - len(texts))
                for texts in map(list, definitions.values())
            ]
        )

    def rank(self, vectors: WordVectors | None = None, mode: Mode = "auto") -> np.ndarray:
        """Returns 1 / rank (W,) of each word's best own definition.

        A rank is one more than the number of definitions that are nearer to the word.

        Args:
            vectors: Vectors that are injected; a word without one is read as it is. By default none has one.
            mode: How they are injected.
        """
        embedded = self.embedder.embed([*self.words, *self.texts], vectors, mode)
        queries, definitions = embedded[: len(self.words)], embedded[len(self.words) :]
        return reciprocal_ranks(queries, definitions, self._own)

    @cached_property
    def plain(self) -> np.ndarray:
        """(W,), what `rank` gives without injection."""
        return self.rank()

    def score(self, drawn: np.ndarray, *, contexts: int, words: Sequence[str] | None = None) -> DefinitionScore:
        """Scores reciprocal ranks.

        Args:
            drawn: (draws, W), what `rank` gave.
            contexts: From how many contexts the vectors were.
            words: Some of the words, over which means are taken; by default all.
        """
        chosen = set(self.words if words is None else words)
        kept = np.array([word in chosen for word in self.words])
        ranks = drawn.mean(axis=0)[kept]  # a word is one item, however often it was drawn
        gains = ranks - self.plain[kept]
        return DefinitionScore(
            contexts,
            float(ranks.mean()),
            *bootstrap_interval(len(ranks), lambda items: ranks[items].mean()),
            float(gains.mean()),
            *bootstrap_interval(len(gains), lambda items: gains[items].mean()),
            num_words=len(ranks),
        )

    def evaluate(
        self,
        draw: Callable[[int], WordVectors],
        *,
        mode: Mode = "auto",
        num_contexts: Sequence[int] = (1, 4, 16),
        num_draws: int = 1,
    ) -> list[DefinitionScore]:
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
                np.stack([self.rank(draw(number), mode) for _ in range(num_draws if number else 1)]), contexts=number
            )
            for number in num_contexts
        ]
