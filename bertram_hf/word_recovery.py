"""Recovery of known words: how well a model that has never seen a word's embedding finds it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from .induction import SECONDS_BEFORE_PROGRESS, encode_tokens, encode_words
from .mimicking_loss import unit_rows
from .modeling_bertram import BertramModel
from .processing_bertram import BertramProcessor
from .word_vectors import WordVectors

MAX_SCORES = 1 << 26  # how many cosines are held at a time
POOL_FACTOR = 2  # contexts that are encoded for each word, as a multiple of the most that are used at once


@dataclass(frozen=True)
class RecoveryScore:
    """How well words are recovered from so many contexts.

    Attributes:
        contexts: Contexts of each word; a word that has fewer gives all it has.
        mrr: Mean of 1 / rank of the true embedding among the whole vocabulary, by cosine of vectors minus the
            vocabulary's mean.
        median_rank: Median of that rank; 1 is best.
        cosine: Mean of that cosine between induced and true embedding.
        norm_ratio: Median of the induced vectors' norms, divided by the median of the true ones'. Vectors that are much
            shorter or longer than the vocabulary's are not understood when they are injected.
    """

    contexts: int
    mrr: float
    median_rank: float
    cosine: float
    norm_ratio: float

    def to_dict(self) -> dict[str, float]:
        """Returns the fields, rounded for reading."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


@torch.inference_mode()
def evaluate_recovery(
    model: BertramModel,
    processor: BertramProcessor,
    contexts: Mapping[str, Sequence[str]],
    targets: WordVectors,
    *,
    vocabulary: torch.Tensor,
    num_contexts: Sequence[int] = (0, 1, 2, 4, 8, 16, 32),
    num_draws: int = 1,
    seed: int = 0,
    show_progress: bool = True,
) -> list[RecoveryScore]:
    """Induces vectors for words whose true embeddings are known, and ranks these.

    The words must not have been training targets, nor words of their families; `bertram train` sees to it.

    Args:
        model: The model, in eval mode.
        processor: Its processor.
        contexts: For each word its contexts.
        targets: The true embeddings, of at least these words.
        vocabulary: (V, H), the encoder's input embeddings.
        num_contexts: Numbers of contexts to try; 0 is left out for a model that reads contexts only.
        num_draws: How many random choices of contexts are made for each number of them; the scores are averaged.
        seed: Seed of these choices.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Returns:
        One score for each number of contexts.

    Example:
        >>> scores = evaluate_recovery(model, processor, contexts, targets, vocabulary=table)  # doctest: +SKIP
        >>> scores[1].mrr  # doctest: +SKIP
        0.0512
    """
    generator = np.random.default_rng(seed)
    num_pooled = POOL_FACTOR * max(num_contexts)
    pools = [[texts[i] for i in generator.permutation(len(texts))[:num_pooled]] for texts in contexts.values()]
    encoded = processor.encode(list(contexts), pools)
    words = [entry.word for entry in encoded]
    true = torch.stack([targets[word] for word in words]).float()
    form_embeddings = encode_words(model, processor, words) if model.config.has_form else None
    available = np.array([len(entry.used) for entry in encoded])
    firsts = np.cumsum(available) - available
    embeddings: Any = None
    if model.config.has_context:
        per_context = None if form_embeddings is None else form_embeddings[np.repeat(np.arange(len(words)), available)]
        total = int(available.sum())
        with tqdm(
            total=total, desc="Scoring", unit="context", delay=SECONDS_BEFORE_PROGRESS, disable=not show_progress
        ) as progress:
            embeddings = encode_tokens(
                model,
                processor,
                [ids for entry in encoded for ids in entry.input_ids],
                [position for entry in encoded for position in entry.mask_positions],
                per_context,
                progress=progress,
            )

    def induce(number: int) -> torch.Tensor:
        """Returns the vectors (W, H) from a random choice of contexts, each of which has been encoded once."""
        if embeddings is None:
            return form_embeddings
        rows = [first + generator.permutation(n)[:number] for first, n in zip(firsts, available, strict=True)]
        counts = torch.tensor([len(chosen) for chosen in rows], device=model.device)
        return model.combine(form_embeddings, embeddings[np.concatenate(rows)], counts)[0]

    scores = []
    for number in num_contexts if model.config.has_context else [0]:
        if number == 0 and not model.config.has_form:
            continue
        draws = [
            score_recovery(induce(number), true, vocabulary, contexts=number) for _ in range(num_draws if number else 1)
        ]
        fields = {name: float(np.mean([getattr(score, name) for score in draws])) for name in _AVERAGED}
        scores.append(RecoveryScore(contexts=number, **fields))
    return scores


_AVERAGED = ("mrr", "median_rank", "cosine", "norm_ratio")


def score_recovery(
    induced: torch.Tensor, true: torch.Tensor, vocabulary: torch.Tensor, *, contexts: int
) -> RecoveryScore:
    """Scores induced vectors (W, H) against the true ones (W, H) within a vocabulary (V, H)."""
    induced, true, vocabulary = (vectors.detach().float().cpu() for vectors in (induced, true, vocabulary))
    ranks, cosines = rank_targets(induced, true, vocabulary)
    norms: Any = [vectors.norm(dim=1).median() for vectors in (induced, true)]
    return RecoveryScore(
        contexts=contexts,
        mrr=(1 / ranks.double()).mean().item(),
        median_rank=ranks.double().quantile(0.5).item(),
        cosine=cosines.double().mean().item(),
        norm_ratio=(norms[0] / norms[1]).item(),
    )


def rank_targets(
    induced: torch.Tensor, true: torch.Tensor, vocabulary: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the rank (W,) of each true vector among the vocabulary, by centred cosine to the induced one, and that
    cosine (W,). A rank is one more than the number of embeddings that are nearer."""
    mean = vocabulary.mean(dim=0)
    induced, true, vocabulary = (unit_rows(vectors - mean) for vectors in (induced, true, vocabulary))
    cosines = (induced * true).sum(dim=1)
    ranks = []
    for rows in torch.arange(len(induced)).split(max(1, MAX_SCORES // len(vocabulary))):
        # The target's own row must not count as nearer because of rounding.
        nearer = induced[rows] @ vocabulary.T > cosines[rows, None] + 1e-6
        ranks.append(1 + nearer.sum(dim=1))
    return torch.cat(ranks) if ranks else torch.empty(0, dtype=torch.long), cosines
