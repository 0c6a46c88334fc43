"""How much each context of a word counts (Attentive Mimicking), and sums over the contexts of a word."""

import torch
from torch import nn

EPSILON = 1e-12


class AttentiveWeights(nn.Module):
    """Attentive Mimicking: a context counts by how well it agrees with the other contexts of its word."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.projection = nn.Linear(size, size)

    def forward(self, context_embeddings: torch.Tensor, word_indices: torch.Tensor, num_words: int) -> torch.Tensor:
        """Returns the weights (C,) of contexts (C, hidden) that belong to the words `word_indices` (C,).

        The released weights are sum_j s_ij / (sum_ij s_ij + 1e-12) with s_ij = l_i · l_j / sqrt(d). The sum over j is
        taken before the product, so that the cost is linear in the number of contexts. There is no softmax.
        """
        projected = self.projection(context_embeddings).float()
        totals = sum_by_word(projected, word_indices, num_words)  # (W, hidden)
        scores = (projected * totals[word_indices]).sum(dim=-1) / projected.shape[-1] ** 0.5
        denominators = sum_by_word(scores, word_indices, num_words) + EPSILON
        return (scores / denominators[word_indices]).to(context_embeddings.dtype)


def index_words(num_contexts: torch.Tensor, total: int) -> torch.Tensor:
    """Returns for each of `total` contexts the index (C,) of its word."""
    words = torch.arange(len(num_contexts), device=num_contexts.device)
    return words.repeat_interleave(num_contexts, output_size=total)


def sum_by_word(values: torch.Tensor, word_indices: torch.Tensor, num_words: int) -> torch.Tensor:
    """Sums rows (C, ...) that belong to the same word into (W, ...).

    In double precision where the device has it: the sum runs row by row, and a word may have 100,000 contexts.
    """
    accumulated = values.float() if values.device.type == "mps" else values.double()
    zeros = accumulated.new_zeros(num_words, *values.shape[1:])
    return zeros.index_add(0, word_indices, accumulated).to(values.dtype)
