"""How much of a word's vector comes from known words that it may be a misspelling of."""

import torch
from torch import nn

from .configuration_bertram import NUM_ERROR_TYPES, NUM_LENGTHS, TWO_ERRORS

UNLIKELY = -10.0  # log-odds before training: nothing is taken for a misspelling
HALF_EVIDENCE = 3.0  # so many contexts count half as much as very many


class LookAlikeMixture(nn.Module):
    """Probability that a word is a misspelling of each of its look-alikes, as a log-linear model.

    The log-odds of look-alike i, against a word that is no misspelling, are

        a[type of error] + b[one error or two, length of the word] - f·log(token of i) - c·s + (g + g'·s)·cos(v, e_i)

    for the induced vector v and the look-alike's embedding e_i, both minus the vocabulary's mean, and s = n / (n + 3)
    for n contexts. Frequent words, which have small token ids, are misspelt more often. Contexts speak for a look-alike
    if they fit it, and against it if they do not.
    """

    def __init__(self) -> None:
        super().__init__()
        self.error_log_odds = nn.Parameter(torch.full((NUM_ERROR_TYPES,), UNLIKELY))
        self.length_log_odds = nn.Parameter(torch.zeros(2, NUM_LENGTHS))
        self.rarity_log_odds = nn.Parameter(torch.zeros(1))
        self.context_log_odds = nn.Parameter(torch.zeros(1))
        self.agreement = nn.Parameter(torch.zeros(2))

    def forward(
        self, agreements: torch.Tensor, token_ids: torch.Tensor, kinds: torch.Tensor, num_contexts: torch.Tensor
    ) -> torch.Tensor:
        """Maps look-alikes to logits (W, 1 + K), of which the first is that of no misspelling.

        Args:
            agreements: (W, K), cosines.
            token_ids: (W, K).
            kinds: (W, K); 0 is padding.
            num_contexts: (W,).
        """
        evidence = (num_contexts / (num_contexts + HALF_EVIDENCE))[:, None].to(agreements.dtype)
        errors = torch.div(kinds - 1, NUM_LENGTHS, rounding_mode="floor").clamp(min=0)
        lengths = self.length_log_odds[(errors == TWO_ERRORS).long(), (kinds - 1) % NUM_LENGTHS]
        log_odds = self.error_log_odds[errors] + lengths
        log_odds = log_odds - self.rarity_log_odds * torch.log1p(token_ids).to(agreements.dtype)
        log_odds = log_odds - self.context_log_odds * evidence
        log_odds = log_odds + (self.agreement[0] + self.agreement[1] * evidence) * agreements
        log_odds = log_odds.masked_fill(kinds == 0, float("-inf"))
        return torch.cat([torch.zeros_like(evidence), log_odds], dim=1)


def compare_with(word_embeddings: torch.Tensor, look_alikes: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """Returns the cosines (W, K) of words' vectors (W, H) and their look-alikes' (W, K, H), all minus the mean (H,)."""
    return nn.functional.cosine_similarity((word_embeddings - mean)[:, None], look_alikes - mean, dim=-1)
