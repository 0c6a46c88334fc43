"""Recovery of known words from their misspellings, as people make them."""

from collections.abc import Callable, Mapping, Sequence

import torch

from ..modeling_bertram import BertramModel
from .recovery import RecoveryScore, score_draws


def evaluate_misspellings(
    model: BertramModel | None,
    words: Sequence[str],
    induce: Callable[[int], torch.Tensor],
    true: Mapping[str, torch.Tensor],
    *,
    vocabulary: torch.Tensor,
    num_contexts: Sequence[int],
    num_draws: int = 1,
) -> list[RecoveryScore]:
    """Induces vectors of misspellings and ranks the embeddings of the words that are meant.

    Args:
        model: The model; None for vectors that no contexts change.
        words: W misspellings.
        induce: Returns their vectors (W, H) from a new choice of so many contexts of each.
        true: For each misspelling the embedding (H,) of the word that is meant.
        vocabulary: (V, H), the encoder's input embeddings.
        num_contexts: Numbers of contexts to try.
        num_draws: How many random choices of contexts are averaged.

    Returns:
        One score for each number of contexts; one for 0 if contexts make no difference.

    Example:
        >>> table = torch.eye(3)
        >>> (score,) = evaluate_misspellings(
        ...     None, ["kumqat"], lambda _: table[:1], {"kumqat": table[0]}, vocabulary=table, num_contexts=[0]
        ... )
        >>> score.mrr
        1.0
    """
    targets = torch.stack([true[word] for word in words]).float()
    return score_draws(model, induce, targets, vocabulary, num_contexts=num_contexts, num_draws=num_draws)
