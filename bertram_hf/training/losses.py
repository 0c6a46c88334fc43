"""The mimicking objective: how far induced vectors are from the true ones."""

import torch
from torch import nn

from ..utils.models import unit_rows
from .recipe import LossSettings


class MimickingLoss:
    """A weighted sum of squared error, cosine and contrastive terms.

    Args:
        settings: The weights.
        vocabulary: (V, H), the encoder's input embeddings.

    Example:
        >>> loss = MimickingLoss(LossSettings(), torch.eye(2))
        >>> loss(torch.zeros(1, 2), torch.tensor([[1.0, 2.0]]))
        tensor(2.5000)
    """

    def __init__(self, settings: LossSettings, vocabulary: torch.Tensor) -> None:
        self.settings = settings
        self.mean = vocabulary.detach().float().mean(dim=0)
        self.vocabulary = unit_rows(vocabulary.detach().float() - self.mean) if settings.contrastive else None

    def __call__(self, word_embeddings: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Returns the loss of induced vectors (W, H) against true ones (W, H)."""
        weights = self.settings
        loss = word_embeddings.new_zeros(())
        if weights.mse:
            # The paper writes the squared norm; as in the released code it is the mean over words and dimensions.
            loss = loss + weights.mse * nn.functional.mse_loss(word_embeddings, targets)
        if not weights.cosine and not weights.contrastive:
            return loss
        induced, true = unit_rows(word_embeddings - self.mean), unit_rows(targets - self.mean)
        cosines = (induced * true).sum(dim=-1)  # (W,)
        loss = loss + weights.cosine * (1 - cosines).mean()
        if self.vocabulary is not None:
            scores = induced @ self.vocabulary.T / weights.temperature  # (W, V)
            contrast = scores.logsumexp(dim=-1) - cosines / weights.temperature
            loss = loss + weights.contrastive * contrast.mean()
        return loss
