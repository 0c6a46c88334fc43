"""How much of a word's vector comes from known words that it may be a misspelling of."""

import torch
from torch import nn

from .look_alikes import NUM_KINDS

UNLIKELY = -10.0  # log-odds before training: nothing is taken for a misspelling
HALF_EVIDENCE = 3.0  # so many contexts count half as much as very many


class LookAlikeMixture(nn.Module):
    """Probability that a word is a misspelling of each of its look-alikes, as a log-linear model.

    The log-odds of look-alike i, against a word that is no misspelling, are b[kind of i] - c·s + (g + g'·s)·cos(v, e_i)
    for the induced vector v and the look-alike's embedding e_i, both minus the vocabulary's mean, and s = n / (n + 3)
    for n contexts: contexts speak for a look-alike if they fit it, and against it if they do not.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kind_log_odds = nn.Parameter(torch.full((NUM_KINDS,), UNLIKELY))
        self.context_log_odds = nn.Parameter(torch.zeros(1))
        self.agreement = nn.Parameter(torch.zeros(2))

    def forward(self, agreements: torch.Tensor, kinds: torch.Tensor, num_contexts: torch.Tensor) -> torch.Tensor:
        """Maps cosines and kinds (W, K) and numbers of contexts (W,) to logits (W, 1 + K), "no misspelling" first."""
        evidence = (num_contexts / (num_contexts + HALF_EVIDENCE))[:, None].to(agreements.dtype)
        log_odds = self.kind_log_odds[kinds] - self.context_log_odds * evidence
        log_odds = log_odds + (self.agreement[0] + self.agreement[1] * evidence) * agreements
        log_odds = log_odds.masked_fill(kinds == 0, float("-inf"))
        return torch.cat([torch.zeros_like(evidence), log_odds], dim=1)


def compare_with(word_embeddings: torch.Tensor, look_alikes: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """Returns the cosines (W, K) of words' vectors (W, H) and their look-alikes' (W, K, H), all minus the mean (H,)."""
    return nn.functional.cosine_similarity((word_embeddings - mean)[:, None], look_alikes - mean, dim=-1)
