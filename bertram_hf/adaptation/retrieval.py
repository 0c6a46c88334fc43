"""Does it help? Queries from a user's own texts must find the rest of their text, with vectors injected and without."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ..corpus.sentences import split_sentences
from ..evaluation.embedding import TIE, reciprocal_ranks
from ..evaluation.statistics import bootstrap_interval
from ..induction.word_vectors import WordVectors
from ..utils.names import Mode
from .documents import MIN_DOCUMENT_WORDS, SearchPair, index_words
from .embedders import Embedder


@dataclass(frozen=True)
class Gain:
    """By how much queries find their documents better.

    Attributes:
        name: What was compared, or of which queries.
        plain: Mean reciprocal rank without injection.
        injected: The same with it.
        gain: The difference.
        gain_low: Lower end of its 95% confidence interval, by paired bootstrap over the queries.
        gain_high: Upper end.
        num_queries: Over how many queries.
    """

    name: str
    plain: float
    injected: float
    gain: float
    gain_low: float
    gain_high: float
    num_queries: int

    @classmethod
    def between(cls, name: str, plain: np.ndarray, injected: np.ndarray) -> "Gain":
        """Compares the reciprocal ranks (Q,) of the same queries.

        Example:
            >>> gain = Gain.between("all words", np.array([0.5, 1.0]), np.array([1.0, 1.0]))
            >>> gain.gain, gain.num_queries
            (0.25, 2)
        """
        gains = injected - plain
        low, high = bootstrap_interval(len(gains), lambda items: gains[items].mean())
        return cls(name, float(plain.mean()), float(injected.mean()), float(gains.mean()), low, high, len(gains))

    def describe(self) -> str:
        """Returns the numbers for people."""
        return (
            f"mean reciprocal rank {self.plain:.3f} → {self.injected:.3f} ({self.gain:+.3f} "
            f"[{self.gain_low:+.3f}, {self.gain_high:+.3f}], {self.num_queries:,} queries)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, rounded for reading."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


class Retrieval:
    """Queries, each of which must find one document among all.

    Args:
        embedder: Embeds queries and documents.
        pairs: Q queries with their documents.

    Raises:
        ValueError: If there are less than two pairs.

    Example:
        >>> from bertram_hf.evaluation import SentenceEmbedder
        >>> pairs = [SearchPair("the kumquat", "a small, sour fruit"), SearchPair("the quokka", "a small animal")]
        >>> retrieval = Retrieval(SentenceEmbedder(encoder, tokenizer), pairs)
        >>> retrieval.rank(vectors, "slash").shape, retrieval.find_words(["kumquat"], ignore_case=True)
        ((2,), [['kumquat'], []])
    """

    def __init__(self, embedder: Embedder, pairs: Sequence[SearchPair]) -> None:
        if len(pairs) < 2:
            raise ValueError(f"Expected at least two documents to search among; got {len(pairs)}. Give more texts.")
        self.embedder, self.pairs = embedder, list(pairs)

    @cached_property
    def plain(self) -> np.ndarray:
        """(Q,), what `rank` gives without injection."""
        return self.rank()

    def rank(
        self, vectors: WordVectors | None = None, mode: Mode = "auto", *, queries: Sequence[str] | None = None
    ) -> np.ndarray:
        """Returns 1 / rank (Q,) of each query's document: one more than the number of documents that are nearer.

        Args:
            vectors: Vectors that are injected into queries and documents; by default none.
            mode: How they are injected.
            queries: Queries (Q,) in place of the pairs' own.
        """
        return self._rank({}, vectors, mode, queries)[0]

    def rank_shorter(
        self, shorter: Mapping[int, str], vectors: WordVectors | None = None, mode: Mode = "auto"
    ) -> np.ndarray:
        """Returns what `rank` gives, and the same for shorter documents (2, Q); each text is embedded once.

        Args:
            shorter: What some queries, by row, must find in place of their documents, among the others as they are.
            vectors: Vectors that are injected.
            mode: How they are injected.
        """
        return self._rank(shorter, vectors, mode, None)

    def _rank(
        self, shorter: Mapping[int, str], vectors: WordVectors | None, mode: Mode, queries: Sequence[str] | None
    ) -> np.ndarray:
        asked = [pair.query for pair in self.pairs] if queries is None else list(queries)
        texts = [*asked, *(pair.document for pair in self.pairs), *shorter.values()]
        searching, found, changed = self.embedder.embed(texts, vectors, mode).split([len(asked)] * 2 + [len(shorter)])
        ranks = np.stack([reciprocal_ranks(searching, found, torch.arange(len(asked))[:, None])] * 2)
        for row, document in zip(shorter, changed, strict=True):
            is_nearer = found @ searching[row] > searching[row] @ document + TIE
            is_nearer[row] = False  # the longer document does not take part
            ranks[1, row] = 1 / (1 + int(is_nearer.sum()))
        return ranks

    def find_words(self, words: Sequence[str], *, ignore_case: bool) -> list[list[str]]:
        """Returns, for each query, those of the words that stand in it."""
        index = index_words(words, ignore_case=ignore_case)
        return [list(dict.fromkeys(words[found.row] for found in index.find(pair.query))) for pair in self.pairs]

    def leave_out(self, words: Sequence[Sequence[str]], *, ignore_case: bool) -> dict[int, str | None]:
        """Returns documents without the sentences that hold a word of their query.

        Args:
            words: For each query words that stand in it.
            ignore_case: Whether the tokenizer ignores case.

        Returns:
            By row, where that changes the document; None if less than ten words are left.
        """
        shorter: dict[int, str | None] = {}
        for row, (own, pair) in enumerate(zip(words, self.pairs, strict=True)):
            index = index_words(own, ignore_case=ignore_case)
            if not own or not index.find(pair.document):
                continue
            kept = " ".join(text for text in split_sentences(pair.document) if not index.find(text))
            shorter[row] = kept if len(kept.split()) >= MIN_DOCUMENT_WORDS else None
        return shorter
