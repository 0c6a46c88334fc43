"""Embeddings of texts by a user's own model, with vectors injected or without."""

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from ..evaluation.embedding import encode_texts
from ..induction.word_vectors import WordVectors
from ..utils.models import run_in, unit_rows
from ..utils.names import Mode


class Embedder(Protocol):
    """What embeds texts; [`SentenceEmbedder`] is another one."""

    def embed(self, texts: Sequence[str], vectors: WordVectors | None = None, mode: Mode = "auto") -> torch.Tensor:
        """Returns the embeddings (N, H) of texts, of which the products are similarities."""
        ...


class SentenceTransformerEmbedder:
    """Embeds texts by a sentence-transformers model: with its own pooling, prompts, longest input and similarity.

    The embedding of a text in which nothing is injected is kept, so that it is computed once, whatever the vectors are;
    that of another text as long as the vectors and the mode stay the same.

    Args:
        model: The model; it stays as it is.
        dtype: Precision in which it is run; by default its own.
        show_progress: Whether to show progress bars.

    Example:
        >>> from sentence_transformers import SentenceTransformer
        >>> embedder = SentenceTransformerEmbedder(SentenceTransformer("bert-base-uncased"))
        >>> embedder.embed(["A kumquat."], vectors, "slash").shape
        torch.Size([1, 768])
    """

    def __init__(self, model: Any, *, dtype: torch.dtype | None = None, show_progress: bool = True) -> None:
        self.model, self.dtype, self.show_progress = model, dtype, show_progress
        self._plain: dict[str, torch.Tensor] = {}
        self._injected: dict[str, torch.Tensor] = {}
        self._last: tuple[WordVectors | None, Mode] = (None, "auto")  # whose embeddings `_injected` has

    def embed(self, texts: Sequence[str], vectors: WordVectors | None = None, mode: Mode = "auto") -> torch.Tensor:
        """Returns the embeddings (N, H) of texts, on the CPU; of unit length unless the model compares dot products.

        Args:
            texts: N texts.
            vectors: Vectors that are injected; by default texts are read as they are.
            mode: How they are injected.
        """
        from ..injection.sentence_transformers import inject_sentence_transformer

        different = list(dict.fromkeys(texts))
        if self._last[0] is not vectors or self._last[1] != mode:
            self._injected, self._last = {}, (vectors, mode)
        if vectors is not None and len(vectors):
            model = inject_sentence_transformer(self.model, vectors, mode)
            new = [text for text in different if text not in self._injected]
            touched = self._find_touched(model, new)
            self._injected |= dict(zip(touched, self._encode(model, touched), strict=True))
        new = [text for text in different if text not in self._injected and text not in self._plain]
        self._plain |= dict(zip(new, self._encode(self.model, new), strict=True))
        if not texts:
            return torch.empty(0, self.model.get_embedding_dimension())
        return torch.stack([self._injected[text] if text in self._injected else self._plain[text] for text in texts])

    def _find_touched(self, model: Any, texts: Sequence[str]) -> list[str]:
        """Returns the texts in which an injected model reads a vector."""
        injector = model[0].injector
        rows = encode_texts(injector.tokenizer, texts, self.model.max_seq_length)
        return [text for text, row in zip(texts, rows, strict=True) if max(row, default=0) >= injector.table.first_id]

    def _encode(self, model: Any, texts: Sequence[str]) -> torch.Tensor:
        """Returns the embeddings (N, H) of texts by a model."""
        if not texts:
            return torch.empty(0, self.model.get_embedding_dimension())
        with run_in(self.dtype, self.model.device):
            found = model.encode(list(texts), convert_to_tensor=True, show_progress_bar=self.show_progress)
        found = found.float().cpu()
        return found if self.model.similarity_fn_name == "dot" else unit_rows(found)
