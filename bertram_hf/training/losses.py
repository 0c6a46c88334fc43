"""What training minimises: how far induced vectors are from the true ones, and from what their words mean."""

import torch
from torch import nn
from transformers import PreTrainedModel

from ..utils.models import mean_over_tokens, unit_rows
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


class EncoderLoss:
    """What vectors do in the original encoder, seen by [`Probes`].

    A vector must let the encoder find the word's definition among those of the batch (cross-entropy of their cosines),
    and restore a text to what it is with the word itself (one minus the cosine). Texts are embedded as the mean of the
    last layer over their tokens.

    Args:
        encoder: The original encoder, which the vectors are for; it is not changed.
        mask_id: The token that stands for a vector.
        meaning: Weight of definitions.
        restoring: Weight of texts.
        temperature: Cosines with definitions are divided by it.
        dtype: Half precision in which the encoder is run; None for its own.
    """

    def __init__(
        self,
        encoder: PreTrainedModel,
        mask_id: int,
        *,
        meaning: float,
        restoring: float,
        temperature: float = 0.05,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.encoder, self.mask_id, self.temperature, self.dtype = encoder, mask_id, temperature, dtype
        self.meaning, self.restoring = meaning, restoring

    def __call__(
        self,
        vectors: torch.Tensor,
        probe_ids: torch.Tensor,
        probe_mask: torch.Tensor,
        probe_pooled: torch.Tensor,
        answer_ids: torch.Tensor,
        answer_mask: torch.Tensor,
        is_definition: torch.Tensor,
    ) -> torch.Tensor:
        """Returns the loss of probes of words with these vectors (M, H); see `Probes.draw` for the rest."""
        table = self.encoder.get_input_embeddings()
        definitions, texts = (is_kind.nonzero()[:, 0] for is_kind in (is_definition, ~is_definition))
        with torch.no_grad():
            answers = self._embed(table(answer_ids), answer_mask, answer_mask)
        is_vector = (probe_ids == self.mask_id)[..., None]
        inputs = torch.where(is_vector, vectors[:, None].to(table.weight.dtype), table(probe_ids))
        probes = self._embed(inputs, probe_mask, probe_pooled)
        loss = vectors.new_zeros(())
        if len(definitions):
            scores = probes[definitions] @ answers[definitions].T / self.temperature
            found = nn.functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device))
            loss = loss + self.meaning * found
        if len(texts):
            cosines = (probes * answers).sum(dim=1)[texts]
            loss = loss + self.restoring * (1 - cosines).mean()
        return loss

    def _embed(self, inputs_embeds: torch.Tensor, mask: torch.Tensor, pooled: torch.Tensor) -> torch.Tensor:
        """Returns unit vectors (M, H)."""
        with torch.autocast(inputs_embeds.device.type, self.dtype or torch.bfloat16, enabled=self.dtype is not None):
            states = self.encoder(inputs_embeds=inputs_embeds, attention_mask=mask).last_hidden_state
        return unit_rows(mean_over_tokens(states.float(), pooled))
