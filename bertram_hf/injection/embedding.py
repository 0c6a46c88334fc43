"""Input embeddings with a second table, for vectors of words that are no tokens."""

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from .labels import ignore_injected_labels


class InjectedEmbedding(nn.Embedding):
    """A model's input embeddings with a second table: ids from `first_id` on are its rows.

    It keeps the first table's parameter, so that names in the state dict, tied weights and saving are as before. The
    second table is no buffer, so that it is neither saved with the model nor sent round by DDP, unless it is trained.

    Args:
        model: The model. It gets this as its input embeddings, and a hook for its labels.
        first_id: The id of row 0.
        trainable: Whether the rows are trained.
    """

    def __init__(self, model: PreTrainedModel, first_id: int, *, trainable: bool) -> None:
        embedding = model.get_input_embeddings()
        nn.Module.__init__(self)
        self.num_embeddings, self.embedding_dim = embedding.num_embeddings, embedding.embedding_dim
        self.padding_idx, self.max_norm, self.norm_type = embedding.padding_idx, None, 2.0
        self.scale_grad_by_freq, self.sparse = False, False
        self.weight = embedding.weight
        self.original = [embedding]  # in a list, so that it is no submodule
        self.was_trained = embedding.weight.requires_grad
        self.first_id = first_id
        self.trainable = trainable
        self.vectors: Any = embedding.weight.new_empty(0, embedding.embedding_dim)
        self.is_beside = torch.empty(0, dtype=torch.bool, device=embedding.weight.device)
        model.set_input_embeddings(self)
        self.label_hook = model.register_forward_pre_hook(_ignore_labels, with_kwargs=True)

    def append(self, vectors: torch.Tensor, is_beside: torch.Tensor) -> None:
        """Adds rows (rows, H) to the second table, on the device and in the dtype of the first.

        Args:
            vectors: The rows.
            is_beside: (rows,), whether each stands beside the pieces of its word, not in place of them.
        """
        if len(vectors) == 0:
            return
        self.is_beside = torch.cat([self.is_beside, is_beside.to(self.is_beside.device)])
        joined = torch.cat([self.vectors.detach(), vectors.detach().to(self.weight)])
        self.vectors = nn.Parameter(joined) if self.trainable else joined

    def uninstall(self, model: PreTrainedModel) -> None:
        """Gives `model`, whose input embeddings this is, its original embeddings back."""
        original = self.original[0]
        original.weight = self.weight  # conversions may have put another parameter here
        original.weight.requires_grad_(self.was_trained)
        model.set_input_embeddings(original)
        self.label_hook.remove()

    def _apply(self, fn: Any, recurse: bool = True) -> "InjectedEmbedding":
        super()._apply(fn, recurse)
        if not self.trainable:
            self.vectors = fn(self.vectors)
        self.is_beside = fn(self.is_beside)
        return self

    def find_slashes(self, input_ids: torch.Tensor, slash_id: int) -> torch.Tensor:
        """Returns where slashes stand that were added to words, as booleans (..., T)."""
        rows = input_ids - self.first_id
        is_added = rows >= 0
        if len(self.is_beside):
            is_added = is_added & self.is_beside[rows.clamp(min=0)]
        is_slash = torch.zeros_like(is_added)
        is_slash[..., :-1] = is_added[..., 1:] & (input_ids[..., :-1] == slash_id)
        return is_slash

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Maps ids (..., T) to embeddings (..., T, H)."""
        if len(self.vectors) == 0:
            return super().forward(input_ids)
        rows = input_ids - self.first_id
        is_injected = rows >= 0
        embeddings = super().forward(input_ids.masked_fill(is_injected, 0))
        injected = nn.functional.embedding(rows.clamp(min=0), self.vectors)
        return torch.where(is_injected[..., None], injected, embeddings)


def _ignore_labels(
    model: PreTrainedModel, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Changes what a model is called with: labels for tokens that are injected words cannot be predicted."""
    labels, input_ids = kwargs.get("labels"), args[0] if args else kwargs.get("input_ids")
    if labels is not None and input_ids is not None and labels.shape == input_ids.shape:
        # Not `kwargs | ...`: PyTorch 2.7 cannot compile that.
        kwargs = {**kwargs, "labels": ignore_injected_labels(labels, model.get_input_embeddings().first_id)}
    return args, kwargs
