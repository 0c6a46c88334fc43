"""Form part: from the ids of a word's n-grams or characters to a vector in the input embedding space."""

import torch
from torch import nn

from .configuration_bertram import BertramConfig
from .tokenization_form import NO_UNIT, PAD_ID, UNK_ID

CNN_WIDTHS = (1, 2, 3, 4, 5, 6, 7)
FILTERS_PER_WIDTH = 50
MAX_FILTERS = 200


class NgramEncoder(nn.Module):
    """Mean of the embeddings of a word's n-grams (v_form of Section 3.1), with n-gram dropout in training."""

    def __init__(self, vocab_size: int, embedding_size: int, dropout: float) -> None:
        super().__init__()
        self.embeddings = nn.EmbeddingBag(vocab_size, embedding_size, mode="sum")
        self.dropout = dropout

    def forward(self, form_ids: torch.Tensor) -> torch.Tensor:
        """Maps ids (W, N), padded with `NO_UNIT`, to vectors (W, H)."""
        form_ids, kept_mask = _split_padding(form_ids)
        if self.training and self.dropout > 0:
            kept_mask &= torch.rand(form_ids.shape, device=form_ids.device) >= self.dropout
        # A word with no n-gram left is a single UNK.
        is_empty = ~kept_mask.any(dim=1, keepdim=True)  # (W, 1)
        form_ids = form_ids.masked_fill(is_empty, UNK_ID)
        kept_mask = kept_mask | (is_empty & (torch.arange(form_ids.shape[1], device=form_ids.device) == 0))
        weights = kept_mask.to(self.embeddings.weight.dtype)
        weights = weights / weights.sum(dim=1, keepdim=True)
        return self.embeddings(form_ids, per_sample_weights=weights)


class CharacterLSTM(nn.Module):
    """Mimick (Pinter et al., 2017): the last states of a character BiLSTM, then a two-layer perceptron."""

    def __init__(self, vocab_size: int, character_size: int, hidden_size: int, embedding_size: int) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(vocab_size, character_size)
        self.lstm = nn.LSTM(character_size, hidden_size, batch_first=True, bidirectional=True)
        self.hidden = nn.Linear(2 * hidden_size, 2 * hidden_size)
        self.output = nn.Linear(2 * hidden_size, embedding_size)

    def forward(self, form_ids: torch.Tensor) -> torch.Tensor:
        """Maps ids (W, N), padded with `NO_UNIT`, to vectors (W, H)."""
        form_ids, is_letter = _split_padding(form_ids)
        lengths = is_letter.sum(dim=1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embeddings(form_ids), lengths, batch_first=True, enforce_sorted=False
        )
        _, (states, _) = self.lstm(packed)  # states: (2, W, hidden)
        return self.output(torch.tanh(self.hidden(torch.cat([states[0], states[1]], dim=-1))))


class CharacterCNN(nn.Module):
    """Character CNN after Kim et al. (2016): convolutions, maximum over positions, one highway layer, output map."""

    def __init__(self, vocab_size: int, character_size: int, embedding_size: int) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(vocab_size, character_size)
        filters = [min(MAX_FILTERS, FILTERS_PER_WIDTH * width) for width in CNN_WIDTHS]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(character_size, num_filters, width, padding=width - 1)
            for width, num_filters in zip(CNN_WIDTHS, filters, strict=True)
        )
        self.transform = nn.Linear(sum(filters), sum(filters))
        self.gate = nn.Linear(sum(filters), sum(filters))
        self.output = nn.Linear(sum(filters), embedding_size)

    def forward(self, form_ids: torch.Tensor) -> torch.Tensor:
        """Maps ids (W, N), padded with `NO_UNIT`, to vectors (W, H)."""
        form_ids, is_letter = _split_padding(form_ids)
        letters = (self.embeddings(form_ids) * is_letter[..., None]).transpose(1, 2)  # (W, character, N)
        lengths = is_letter.sum(dim=1)
        features = []
        for convolution, width in zip(self.convolutions, CNN_WIDTHS, strict=True):
            activations = convolution(letters)  # (W, filters, N + width - 1)
            # Positions beyond a word's own last window depend on the batch's padding and do not take part.
            is_inside = torch.arange(activations.shape[2], device=form_ids.device) < (lengths + width - 1)[:, None]
            features.append(activations.masked_fill(~is_inside[:, None], float("-inf")).amax(dim=2))
        pooled = torch.tanh(torch.cat(features, dim=1))
        gate = torch.sigmoid(self.gate(pooled))
        return self.output(gate * torch.relu(self.transform(pooled)) + (1 - gate) * pooled)


def _split_padding(form_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns ids (W, N) that all have an embedding, and which of them (W, N) are a word's own."""
    is_own = form_ids != NO_UNIT
    return form_ids.masked_fill(~is_own, PAD_ID), is_own


def build_form_encoder(config: BertramConfig) -> nn.Module:
    """Builds the form part that a configuration asks for, with new weights."""
    if config.form_encoder == "lstm":
        return CharacterLSTM(
            config.form_vocab_size, config.character_embedding_size, config.character_hidden_size, config.embedding_size
        )
    if config.form_encoder == "cnn":
        return CharacterCNN(config.form_vocab_size, config.character_embedding_size, config.embedding_size)
    return NgramEncoder(config.form_vocab_size, config.embedding_size, config.ngram_dropout)
