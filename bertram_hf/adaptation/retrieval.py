"""Does it help? Queries from a user's own texts must find the rest of their text, with vectors injected and without."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..corpus.sentences import split_sentences
from ..evaluation.embedding import TIE, reciprocal_ranks
from ..evaluation.statistics import bootstrap_interval
from ..induction.piece_vectors import mean_piece_vectors
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


class Trials:
    """Queries that hold one of some words. They search their documents as they are, and without the sentences that
    repeat such a word, by which it could be found by its letters alone.

    Args:
        retrieval: Queries and documents.
        words: The words.
        ignore_case: Whether the tokenizer ignores case.

    Attributes:
        words: For each of Q queries those of the words that it holds.
    """

    def __init__(self, retrieval: Retrieval, words: Sequence[str], *, ignore_case: bool) -> None:
        self.retrieval = retrieval
        found = retrieval.find_words(words, ignore_case=ignore_case)
        self._rows = np.array([row for row, own in enumerate(found) if own], dtype=np.int64)
        self.words = [found[row] for row in self._rows]
        shorter = retrieval.leave_out(found, ignore_case=ignore_case)
        self._shorter: Mapping[int, str] = {row: text for row, text in shorter.items() if text is not None}
        self._has_rest = np.array([shorter.get(row, "") is not None for row in self._rows], dtype=bool)
        self._plain: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def plain(self) -> np.ndarray:
        """(2, Q), what `rank` gives without vectors."""
        if self._plain is None:
            self._plain = self.rank()
        return self._plain

    def rank(self, vectors: WordVectors | None = None, mode: Mode = "auto") -> np.ndarray:
        """Returns reciprocal ranks (2, Q) of documents as they are, and without sentences: not a number if too little
        of a document is left.

        Args:
            vectors: Vectors that are injected; by default none.
            mode: How they are injected.
        """
        ranks = self.retrieval.rank_shorter(self._shorter, vectors, mode)[:, self._rows]
        ranks[1, ~self._has_rest] = np.nan
        return ranks

    def compare(self, name: str, ranks: np.ndarray, items: np.ndarray | None = None) -> tuple[Gain, Gain | None]:
        """Returns the gains over the plain model, of documents as they are and without sentences.

        Args:
            name: What is compared.
            ranks: (2, Q), what `rank` gave.
            items: Some of the queries, by number; by default all.
        """
        items = np.arange(len(self)) if items is None else items
        rest = items[self._has_rest[items]]
        return (
            Gain.between(name, self.plain[0, items], ranks[0, items]),
            Gain.between(name, self.plain[1, rest], ranks[1, rest]) if len(rest) else None,
        )


def try_simpler_vectors(
    trials: Trials, words: Sequence[str], encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> list[tuple[Gain, Gain | None]]:
    """Returns the gains of what can be had without induction: the mean of the pieces, in place of the word and beside
    it, and new tokens as Transformers makes them (`add_tokens`, `resize_token_embeddings`), which begin as the mean of
    the vocabulary.

    Args:
        trials: The queries.
        words: The words that get vectors.
        encoder: The encoder whose input embeddings are read.
        tokenizer: Its tokenizer.
    """
    pieces = mean_piece_vectors(encoder, tokenizer, words)
    mean = encoder.get_input_embeddings().weight.detach().float().mean(dim=0).cpu()
    new = WordVectors(list(words), mean.expand(len(words), -1).clone(), pieces.embedding_fingerprint)
    simpler: list[tuple[str, WordVectors, Mode]] = [
        ("mean of the pieces in place of the word", pieces, "replace"),
        ("mean of the pieces beside the word", pieces, "slash"),
        ("new tokens, untrained", new, "replace"),
    ]
    return [trials.compare(name, trials.rank(vectors, mode)) for name, vectors, mode in simpler]
