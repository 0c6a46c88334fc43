"""Recovery of known words: how well a model that has never seen a word's embedding finds it."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from typing import Any

import torch

from ..induction.draws import ContextDraws
from ..induction.word_vectors import WordVectors
from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..utils.models import unit_rows
from ..words.families import word_family
from ..words.unknown import UnknownSplitter
from .statistics import bootstrap_interval

MAX_SCORES = 1 << 26  # how many cosines are held at a time
POOL_FACTOR = 2  # contexts that are encoded for each word, as a multiple of the most that are used at once


@dataclass(frozen=True)
class RecoveryScore:
    """How well words are recovered from so many contexts.

    Attributes:
        contexts: Contexts of each word; a word that has fewer gives all it has.
        mrr: Mean of 1 / rank of the true embedding among the whole vocabulary, by cosine of vectors minus the
            vocabulary's mean.
        mrr_low: Lower end of its 95% confidence interval, by bootstrap over the words.
        mrr_high: Upper end.
        median_rank: Median of that rank; 1 is best.
        cosine: Mean of that cosine between induced and true embedding.
        norm_ratio: Median of the induced vectors' norms, divided by the median of the true ones'. Vectors that are much
            shorter or longer than the vocabulary's are not understood when they are injected.

    Example:
        >>> score = RecoveryScore(4, 0.21, mrr_low=0.18, mrr_high=0.24, median_rank=19.0, cosine=0.4, norm_ratio=0.97)
        >>> score.mrr_low < score.mrr < score.mrr_high
        True
    """

    contexts: int
    mrr: float
    mrr_low: float
    mrr_high: float
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
        >>> table = model.get_input_embeddings().weight.detach()
        >>> contexts = {"fruit": ["A kumquat is a fruit."], "tree": ["A quokka sits under the tree."]}
        >>> targets = WordVectors(list(contexts), table[tokenizer.convert_tokens_to_ids(list(contexts))])
        >>> scores = evaluate_recovery(model, processor, contexts, targets, vocabulary=table, num_contexts=(0, 1))
        >>> [score.contexts for score in scores], 0 < scores[1].mrr <= 1
        ([0, 1], True)
    """
    if processor.look_alikes is not None:  # a word must not be found by another of its family
        families = {word_family(word) for word in contexts}
        others = processor.look_alikes.without({w for w in processor.look_alikes.words if word_family(w) in families})
        processor = copy(processor)
        processor.look_alikes = others
    if model.config.reads_pieces:
        processor = hide_words(processor, list(contexts))
    draws = ContextDraws(
        model,
        processor,
        contexts,
        max_contexts=POOL_FACTOR * max(num_contexts),
        seed=seed,
        show_progress=show_progress,
    )
    true = torch.stack([targets[word] for word in draws.words]).float()
    return score_draws(model, draws.induce, true, vocabulary, num_contexts=num_contexts, num_draws=num_draws)


def hide_words(processor: BertramProcessor, words: Sequence[str]) -> BertramProcessor:
    """Returns a processor that writes the pieces of words as if the tokenizer had no token of their families.

    Raises:
        ValueError: If a word cannot be written without them.
    """
    splitter = UnknownSplitter(processor.tokenizer)
    cuts = {word: splitter.split(word, hard=True) for word in words if len(processor.encode_pieces(word)) == 1}
    failed = [word for word, cut in cuts.items() if cut is None]
    if failed:
        raise ValueError(
            f"{len(failed)} words cannot be written without their own token and those of their families, such as "
            f"{failed[0]!r}. Leave them out of the evaluation."
        )
    return processor.with_pieces({word: cut for word, cut in cuts.items() if cut is not None})


def score_draws(
    model: BertramModel | None,
    induce: Callable[[int], torch.Tensor],
    true: torch.Tensor,
    vocabulary: torch.Tensor,
    *,
    num_contexts: Sequence[int],
    num_draws: int,
) -> list[RecoveryScore]:
    """Scores vectors from random choices of contexts, for each number of them.

    Args:
        model: The model, or None for vectors that no contexts change.
        induce: Returns vectors (W, H) from a new choice of so many contexts of each word.
        true: (W, H).
        vocabulary: (V, H).
        num_contexts: Numbers of contexts; one score, for 0, if they make no difference, and none for 0 if the model
            reads contexts only.
        num_draws: How many choices are averaged.
    """
    numbers = list(num_contexts) if model is not None and model.config.has_context else [0]
    if model is not None and not model.config.has_form:
        numbers = [number for number in numbers if number]
    scores = []
    for number in numbers:
        vectors = [induce(number) for _ in range(num_draws if number else 1)]
        scores.append(score_recovery(torch.stack(vectors), true, vocabulary, contexts=number))
    return scores


def score_recovery(
    induced: torch.Tensor, true: torch.Tensor, vocabulary: torch.Tensor, *, contexts: int
) -> RecoveryScore:
    """Scores induced vectors (W, H), or (D, W, H) of D draws, against true ones (W, H) among a vocabulary (V, H)."""
    induced, true, vocabulary = (vectors.detach().float().cpu() for vectors in (induced, true, vocabulary))
    drawn = induced if induced.ndim == 3 else induced[None]
    num_draws, num_words, _ = drawn.shape
    ranks, cosines = rank_targets(drawn.flatten(0, 1), true.repeat(num_draws, 1), vocabulary)  # (D * W,) each
    ranks = ranks.double().view(num_draws, num_words)
    reciprocal_ranks = (1 / ranks).mean(dim=0).numpy()  # (W,): a word is one item, however often it was drawn
    low, high = bootstrap_interval(num_words, lambda words: reciprocal_ranks[words].mean())
    norm: Any = true.norm(dim=1).median()
    return RecoveryScore(
        contexts=contexts,
        mrr=float(reciprocal_ranks.mean()),
        mrr_low=low,
        mrr_high=high,
        median_rank=ranks.quantile(0.5, dim=1).mean().item(),
        cosine=cosines.double().mean().item(),
        norm_ratio=(drawn.norm(dim=2).median(dim=1).values / norm).mean().item(),
    )


def rank_targets(
    induced: torch.Tensor, true: torch.Tensor, vocabulary: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the rank (W,) of each true vector among the vocabulary, by centred cosine to the induced one, and that
    cosine (W,). A rank is one more than the number of embeddings that are nearer."""
    if not induced.isfinite().all():
        raise ValueError("The induced vectors hold NaN or infinity, which cannot be ranked. Check the model's weights.")
    mean = vocabulary.mean(dim=0)
    induced, true, vocabulary = (unit_rows(vectors - mean) for vectors in (induced, true, vocabulary))
    cosines = (induced * true).sum(dim=1)
    ranks = []
    for rows in torch.arange(len(induced)).split(max(1, MAX_SCORES // len(vocabulary))):
        # The target's own row must not count as nearer because of rounding.
        nearer = induced[rows] @ vocabulary.T > cosines[rows, None] + 1e-6
        ranks.append(1 + nearer.sum(dim=1))
    return torch.cat(ranks) if ranks else torch.empty(0, dtype=torch.long), cosines
