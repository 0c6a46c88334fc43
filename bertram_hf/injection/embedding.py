"""Input embeddings with a second table, for vectors of words that are no tokens."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from .labels import ignore_injected_labels


class InjectedEmbedding(nn.Embedding):
    """A model's input embeddings with a second table: ids from `first_id` on are its rows.

    It keeps the first table's parameter, so that names in the state dict, tied weights and saving are as before. The
    second table is no buffer, so that it is neither saved with the model nor sent round by DDP, unless it is trained.

    Vectors of a smaller type than the model's, such as float16, stay as small, and the first ones are not copied: read
    from a file, they stay mapped into memory, and processes share them. Rows that are released are given out again.

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
        self.num_rows = 0  # that were given out; what follows them in `vectors` is room for more
        self.is_borrowed = False  # whether `vectors` are somebody else's, and not to be written to
        self.free: list[int] = []
        self.resting: list[int] = []
        model.set_input_embeddings(self)
        self.label_hook = model.register_forward_pre_hook(_ignore_labels, with_kwargs=True)

    @torch.inference_mode(False)
    @torch.no_grad()
    def add(self, vectors: torch.Tensor, is_beside: torch.Tensor) -> list[int]:
        """Adds vectors (rows, H) to the second table, on the device of the first, and returns their rows.

        Args:
            vectors: The vectors.
            is_beside: (rows,), whether each stands beside the pieces of its word, not in place of them.
        """
        if len(vectors) == 0:
            return []
        keeps_dtype = not self.trainable and vectors.element_size() < self.weight.element_size()
        vectors = vectors.detach().to(self.weight.device, vectors.dtype if keeps_dtype else self.weight.dtype)
        rows = self.free[: len(vectors)]
        del self.free[: len(vectors)]
        rows += range(self.num_rows, self.num_rows + len(vectors) - len(rows))
        if self.num_rows == 0 and not self.trainable:
            self.vectors, self.is_beside, self.is_borrowed = vectors, is_beside.to(vectors.device), True
        else:
            self._make_room(max(self.num_rows, rows[-1] + 1), vectors.dtype)
            self.vectors[rows] = vectors.to(self.vectors.dtype)
            self.is_beside[rows] = is_beside.to(self.is_beside.device)
        self.num_rows = max(self.num_rows, rows[-1] + 1)
        return rows

    def _make_room(self, num_rows: int, dtype: torch.dtype) -> None:
        """Sees to it that so many rows can be written, and be of `dtype` without loss."""
        dtype = torch.promote_types(self.vectors.dtype, dtype) if self.num_rows else dtype
        if num_rows <= len(self.vectors) and dtype == self.vectors.dtype and not self.is_borrowed:
            return
        # With room for more, so that many small packs do not copy a large one each time.
        size = num_rows if self.trainable else max(num_rows + num_rows // 8, len(self.vectors))
        vectors = self.vectors.new_zeros(size, self.embedding_dim, dtype=dtype)
        is_beside = self.is_beside.new_zeros(size)
        vectors[: self.num_rows] = self.vectors[: self.num_rows]
        is_beside[: self.num_rows] = self.is_beside[: self.num_rows]
        # A new table is put in place whole: other threads may be reading.
        self.vectors, self.is_beside = nn.Parameter(vectors) if self.trainable else vectors, is_beside
        self.is_borrowed = False

    def release(self, rows: Iterable[int]) -> None:
        """Takes rows back. They keep their vectors until others are given to them."""
        self.resting += rows

    def end_rest(self) -> None:
        """Lets rows that were released be given out again."""
        self.free += self.resting
        self.resting = []

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
        injected = nn.functional.embedding(rows.clamp(min=0), self.vectors).to(embeddings.dtype)
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
