"""How far an induced vector can be trusted, judged without knowing the true one."""

from collections.abc import Sequence
from typing import Any

import torch

from ..modeling_bertram import BertramModel
from ..modeling_context import index_words
from ..utils.models import unit_rows

NUM_SIGNS = 5


@torch.no_grad()
def read_signs(
    model: BertramModel,
    form_embeddings: torch.Tensor | None,
    context_embeddings: torch.Tensor,
    num_contexts: torch.Tensor,
    word_embeddings: torch.Tensor,
) -> torch.Tensor:
    """Returns what tells good vectors from poor ones.

    Args:
        model: The model.
        form_embeddings: (W, H), or None, as in `BertramModel.combine`.
        context_embeddings: (C, hidden).
        num_contexts: (W,).
        word_embeddings: (W, H), what was induced from all contexts.

    Returns:
        (W, 5): one; the logarithm of one plus the number of contexts; whether there are several; if so, the cosine
        between the vectors from every other context and from those in between; and the cosine between the vector and
        that of the word without contexts. Cosines are of vectors minus the vocabulary's mean.
    """
    word_indices = index_words(num_contexts, len(context_embeddings))
    firsts = num_contexts.cumsum(dim=0) - num_contexts
    place = torch.arange(len(context_embeddings), device=num_contexts.device) - firsts[word_indices]
    mean = model.get_input_embeddings().weight.detach().float().mean(dim=0)
    halves = []
    for parity in (0, 1):
        chosen = (place % 2 == parity).nonzero()[:, 0]
        counts = (num_contexts + 1 - parity) // 2
        vectors, _ = model.combine(form_embeddings, context_embeddings[chosen], counts)
        halves.append(unit_rows(vectors.float() - mean))
    several = (num_contexts > 1).float()
    spelled = torch.zeros_like(several)
    if form_embeddings is not None:
        alone = model.rescale(form_embeddings).float()
        spelled = (unit_rows(alone - mean) * unit_rows(word_embeddings.float() - mean)).sum(dim=1)
    agreement = torch.where(several > 0, (halves[0] * halves[1]).sum(dim=1), 0.0)
    return torch.stack(
        [torch.ones_like(several), torch.log2(1.0 + num_contexts.float()), several, agreement, spelled], dim=1
    )


@torch.no_grad()
def assess_vectors(model: BertramModel, words: Sequence[str], *readings: Any) -> dict[str, dict[str, float]]:
    """Returns what is known of the quality of vectors, as `WordVectors` names it.

    Args:
        model: The model.
        words: W words.
        readings: As `read_signs`.

    Returns:
        `reliability`: for each word the cosine, between 0 and 1, that its vector is expected to have with the true one,
        if the model's configuration has what `fit_reliability` found; `agreement`: for each word the cosine between
        its vector and what its pieces say alone, in mode pieces; `misleading`: True for words where that is low.
    """
    coefficients, reads_pieces = model.config.reliability, model.config.reads_pieces
    if coefficients is None and not reads_pieces:
        return {}
    signs = read_signs(model, *readings).cpu()
    found = {"agreement": signs[:, -1]} if reads_pieces else {}
    if coefficients is not None:
        found["reliability"] = (signs @ torch.tensor(coefficients)).clamp(0.0, 1.0)
    assessed: dict[str, dict[str, Any]] = {
        name: {word: round(value, 4) for word, value in zip(words, values.tolist(), strict=True)}
        for name, values in found.items()
    }
    lowest = model.config.misleading_agreement
    if reads_pieces and lowest is not None:
        assessed["misleading"] = {word: True for word, value in assessed["agreement"].items() if value < lowest}
    return assessed
