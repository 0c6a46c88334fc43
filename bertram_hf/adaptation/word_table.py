"""What a report says of each word."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from ..induction.neighbours import NearestTokens
from ..induction.word_vectors import WordVectors
from ..words.pieces import PieceReader
from .vocabulary import Vocabulary

NUM_NEIGHBOURS = 5
NUM_SENTENCES = 3
SENTENCE_LENGTH = 300  # characters
NO_VECTOR = "no vector"


def describe_words(
    vocabulary: Vocabulary,
    vectors: WordVectors,
    contexts: Mapping[str, Sequence[str]],
    *,
    injected: WordVectors,
    reasons: Mapping[str, str],
    leaders: Mapping[str, str],
    definitions: Mapping[str, Sequence[str]],
    embeddings: torch.Tensor,
    tokenizer: PreTrainedTokenizerBase,
) -> list[dict[str, Any]]:
    """Returns a row for each rare word, ready for JSON.

    Args:
        vocabulary: The words.
        vectors: The vectors of those that have one.
        contexts: For each word what its vector was induced from.
        injected: The vectors that are injected.
        reasons: For words that are not, why.
        leaders: For words that share another's vector, that other.
        definitions: For words and terms, texts about them.
        embeddings: (V, H), the model's input embeddings.
        tokenizer: Its tokenizer.
    """
    reader = PieceReader(tokenizer)
    nearest = NearestTokens(embeddings, reader)
    words = list(vocabulary.rare)
    ids = reader.split(words)
    table = embeddings.detach().float().cpu()
    means = torch.stack([table[pieces].mean(dim=0) if pieces else table.mean(dim=0) for pieces in ids])
    before = nearest.find(means, NUM_NEIGHBOURS, ids)
    after = dict(zip(vectors.words, nearest.find(vectors.embeddings, NUM_NEIGHBOURS), strict=True))
    misspellings = vectors.misspellings()
    rows = []
    for word, old in zip(words, before, strict=True):
        leader = leaders.get(word, word)
        used = vectors.used_contexts.get(word, [])
        is_injected = word in injected
        reason = None if is_injected else reasons.get(word) or vectors.failed.get(leader) or NO_VECTOR
        rows.append(
            {
                "word": word,
                "count": vocabulary.rare[word],
                "pieces": list(vocabulary.pieces[word]),
                "num_contexts": len(used),
                "reliability": vectors.reliability.get(word),
                "injected": is_injected,
                "reason": reason,
                "before": [neighbour.token for neighbour in old],
                "after": [neighbour.token for neighbour in after.get(word, [])],
                "sentences": _best_sentences(word, leader, vectors, contexts),
                "definitions": list(definitions.get(leader, ())),
                "same_as": leader if leader != word else None,
                "meant": next(iter(vectors.look_alikes[word])) if word in misspellings else None,
            }
        )
    return rows


def _best_sentences(
    word: str, leader: str, vectors: WordVectors, contexts: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """Returns the sentences that counted most, with their weights."""
    used, weights = vectors.used_contexts.get(word, []), vectors.context_weights.get(word)
    texts = contexts.get(leader, ())
    if weights is None:
        return []
    pairs = [(weight, texts[index]) for index, weight in zip(used, weights.tolist(), strict=True) if index < len(texts)]
    pairs.sort(key=lambda pair: -pair[0])
    return [{"text": _cut(text), "weight": round(weight, 3)} for weight, text in pairs[:NUM_SENTENCES]]


def _cut(text: str) -> str:
    return text if len(text) <= SENTENCE_LENGTH else text[: SENTENCE_LENGTH - 1].rstrip() + "…"
