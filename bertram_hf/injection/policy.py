"""Which induced vectors are to be injected, so that injection is off where it would hurt."""

from collections.abc import Mapping
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from ..induction.word_vectors import WordVectors
from ..processing_context import is_uncased
from ..utils.names import Mode
from ..words.pieces import PieceReader
from ..words.splitting import count_noun, normalize_counts, normalize_spelling
from .word_index import WordIndex, find_unusable

# In mode auto a vector that is less reliable is not injected.
MIN_RELIABILITY = 0.2


def divide_by_mode(vectors: WordVectors, mode: Mode) -> tuple[set[str], set[str]]:
    """Returns the words that keep their pieces beside their vectors, and those that are left as they are.

    Args:
        vectors: The vectors.
        mode: See [`BertramEmbeddingInjector`].

    Example:
        >>> vectors = WordVectors(["zarvo", "kumquat"], torch.eye(2), misleading={"zarvo": True})
        >>> divide_by_mode(vectors, "auto")
        ({'kumquat'}, set())
    """
    left = vectors.unreliable(MIN_RELIABILITY) if mode == "auto" else set()
    replaced = set(vectors.words) if mode == "replace" else vectors.replacing() if mode == "auto" else set()
    return set(vectors.words) - replaced - left, left


@dataclass(frozen=True)
class InjectionPolicy:
    """Which induced vectors to use, so that words the model knows well are left as they are.

    Attributes:
        max_count: Words that occur more often keep their pieces.
        min_pieces: So do words with fewer pieces, unless one is the unknown token.
        min_contexts: So do words whose vector was induced from fewer contexts. Misspellings need none
            (`WordVectors.misspellings`).
        min_reliability: So do words whose vector is less reliable (`WordVectors.reliability`), if that is known.
            Misspellings are not asked.

    Example:
        >>> policy = InjectionPolicy(max_count=100, min_pieces=2)
        >>> vectors = WordVectors(["kumquat", "quokka"], torch.ones(2, 768))
        >>> selected, reasons = policy.select(vectors, tokenizer, {"kumquat": 40, "quokka": 5000})
        >>> selected.words, reasons
        (['kumquat'], {'quokka': 'occurs 5000 times, more than 100'})
    """

    max_count: int | None = None
    min_pieces: int | None = None
    min_contexts: int = 0
    min_reliability: float = 0.0

    def select(
        self, vectors: WordVectors, tokenizer: PreTrainedTokenizerBase, counts: Mapping[str, int] | None = None
    ) -> tuple[WordVectors, dict[str, str]]:
        """Splits words into those to inject and the others, which include those that cannot be injected.

        Args:
            vectors: The induced vectors.
            tokenizer: The tokenizer of the model that is to get them.
            counts: How often words occur in a corpus, 0 if not listed; needed by `max_count`.

        Returns:
            The vectors to inject, and for each other word why it is not among them.

        Raises:
            ValueError: If `max_count` is set and there are no counts.
        """
        if self.max_count is not None and counts is None:
            raise ValueError(f"max_count={self.max_count} needs to know how often words occur: pass counts.")
        lower_case = is_uncased(tokenizer)
        corpus_counts = normalize_counts(counts or {}, lower_case)
        reader = PieceReader(tokenizer)
        index = WordIndex(ignore_case=lower_case)
        reasons = find_unusable(vectors.words, index, {index.key(token) for token in tokenizer.all_special_tokens})
        misspellings, unreliable = vectors.misspellings(), vectors.unreliable(self.min_reliability)
        normalized = [normalize_spelling(word, lower_case) for word in vectors.words]
        for word, key, pieces in zip(vectors.words, normalized, reader.split(normalized), strict=True):
            if word in reasons:
                continue
            count, num_contexts = corpus_counts.get(key, 0), len(vectors.used_contexts.get(word, []))
            if self.max_count is not None and count > self.max_count:
                reasons[word] = f"occurs {count} times, more than {self.max_count}"
            elif self.min_pieces is not None and not reader.breaks_up(pieces, self.min_pieces):
                reasons[word] = f"{count_noun(len(pieces), 'piece')}, fewer than {self.min_pieces}"
            elif num_contexts < self.min_contexts and word not in misspellings:
                reasons[word] = f"{count_noun(num_contexts, 'context')}, fewer than {self.min_contexts}"
            elif word in unreliable:
                reasons[word] = f"reliability {vectors.reliability[word]:.2f}, below {self.min_reliability}"
        return vectors.select(word for word in vectors.words if word not in reasons), reasons
