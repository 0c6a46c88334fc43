"""Sentence embeddings through a frozen encoder, with the vectors of rare words injected or without."""

from collections.abc import Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..induction.batching import CPU_TOKENS_PER_BATCH, GPU_TOKENS_PER_BATCH, length_sorted_batches
from ..induction.word_vectors import WordVectors
from ..injection.injector import BertramEmbeddingInjector
from ..utils.models import in_eval_mode, longest_input, mean_over_tokens, run_in, unit_rows
from ..utils.names import Mode
from ..utils.progress import progress_bar

TIE = 1e-6  # a text must be so much nearer to stand before another: equal texts differ by rounding
MAX_SCORES = 1 << 24  # how many similarities are held at a time
TEXTS_PER_BLOCK = 512  # are tokenized at a time: offsets and masks take far more memory than the ids that are kept


def reciprocal_ranks(queries: torch.Tensor, texts: torch.Tensor, own: torch.Tensor) -> np.ndarray:
    """Returns 1 / rank (Q,) of the best own text of each query: one more than the number of texts that are nearer.

    Args:
        queries: (Q, H).
        texts: (D, H).
        own: (Q, K), the rows of each query's own texts.

    Example:
        >>> reciprocal_ranks(torch.eye(2), torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[0], [1]]))
        array([0.5, 0.5])
    """
    ranks = []
    for rows in torch.arange(len(queries)).split(max(1, MAX_SCORES // len(texts))):
        scores = queries[rows] @ texts.T  # (rows, D)
        best = scores.gather(1, own[rows]).max(dim=1, keepdim=True).values
        ranks.append(1 + (scores > best + TIE).sum(dim=1))
    return (1 / torch.cat(ranks).double()).numpy()


def encode_texts(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], max_length: int | None = None
) -> list[list[int]]:
    """Returns the tokens of each text, special ones included.

    Example:
        >>> [len(ids) for ids in encode_texts(tokenizer, ["a fruit", "a small fruit"], max_length=4)]
        [4, 4]
    """
    cut = {"truncation": True, "max_length": max_length} if max_length else {}
    blocks = (list(texts[start : start + TEXTS_PER_BLOCK]) for start in range(0, len(texts), TEXTS_PER_BLOCK))
    return [ids for block in blocks for ids in tokenizer(block, verbose=False, **cut)["input_ids"]]


class SentenceEmbedder:
    """Embeds texts as most sentence encoders do: the mean of the last layer over the tokens, scaled to length one.

    Slashes that injection adds are left out of the mean; see `BertramEmbeddingInjector.pooling_mask`. The embedding of
    a text in which nothing is injected is kept, so that it is computed once, whatever the vectors are.

    Args:
        encoder: The encoder. It is changed only while texts are embedded.
        tokenizer: Its tokenizer.
        max_length: A text is cut after so many tokens; by default only where the encoder ends.
        max_tokens_per_batch: Limit of padded tokens; by default what suits the device.
        dtype: Precision in which the encoder is run; by default its own.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Example:
        >>> embedder = SentenceEmbedder(encoder, tokenizer)
        >>> plain, injected = embedder.embed(["A kumquat."]), embedder.embed(["A kumquat."], vectors, "slash")
        >>> injected.shape, torch.equal(plain, injected)
        (torch.Size([1, 768]), False)
        >>> torch.equal(embedder.embed(["A fruit."]), embedder.embed(["A fruit."], vectors, "slash"))
        True
    """

    def __init__(
        self,
        encoder: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_length: int | None = None,
        max_tokens_per_batch: int | None = None,
        dtype: torch.dtype | None = None,
        show_progress: bool = True,
    ) -> None:
        if max_tokens_per_batch is None:
            max_tokens_per_batch = CPU_TOKENS_PER_BATCH if encoder.device.type == "cpu" else GPU_TOKENS_PER_BATCH
        self.encoder, self.tokenizer, self.dtype = encoder, tokenizer, dtype
        self.max_length = min(filter(None, (max_length, longest_input(encoder))), default=None)
        self.max_tokens_per_batch, self.show_progress = max_tokens_per_batch, show_progress
        self._plain: dict[str, torch.Tensor] = {}  # the embeddings (H,) of texts without an injected word

    def embed(self, texts: Sequence[str], vectors: WordVectors | None = None, mode: Mode = "auto") -> torch.Tensor:
        """Returns the embeddings (N, H) of texts, on the CPU. Long texts are cut.

        Args:
            texts: N texts.
            vectors: Vectors of words that are injected; by default the encoder reads the texts as they are.
            mode: How they are injected; see [`BertramEmbeddingInjector`].

        Raises:
            ValueError: If vectors cannot be injected, or an embedding is not finite.
        """
        different = list(dict.fromkeys(texts))
        if not different:
            return torch.empty(0, self.encoder.config.hidden_size)
        injected: dict[str, torch.Tensor] = {}
        if vectors is not None and len(vectors):
            injector = BertramEmbeddingInjector(self.encoder, self.tokenizer, vectors, mode)
            try:
                input_ids = self._encode(injector.tokenizer, different)
                first_id = injector.table.first_id
                injected = self._run(
                    {text: ids for text, ids in input_ids.items() if max(ids, default=0) >= first_id}, injector
                )
            finally:
                injector.remove()
        new = [text for text in different if text not in injected and text not in self._plain]
        self._plain |= self._run(self._encode(self.tokenizer, new))
        return torch.stack([injected[text] if text in injected else self._plain[text] for text in texts])

    def _encode(self, tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> dict[str, list[int]]:
        """Returns the tokens of each text."""
        return dict(zip(texts, encode_texts(tokenizer, texts, self.max_length), strict=True))

    @torch.inference_mode()
    def _run(
        self, input_ids: dict[str, list[int]], injector: BertramEmbeddingInjector | None = None
    ) -> dict[str, torch.Tensor]:
        """Returns the embedding (H,) of each text, computed in batches sorted by length."""
        texts, rows = list(input_ids), list(input_ids.values())
        embeddings: dict[str, torch.Tensor] = {}
        progress = progress_bar(
            total=len(texts), desc="Embedding texts", unit="text", show_progress=self.show_progress and len(texts) > 0
        )
        with progress, in_eval_mode(self.encoder), run_in(self.dtype, self.encoder.device):
            for batch in length_sorted_batches([len(ids) for ids in rows], self.max_tokens_per_batch):
                # To the right: BERT counts positions from the left edge, padding included.
                padded = self.tokenizer.pad(
                    {"input_ids": [rows[index] for index in batch]}, padding_side="right", return_tensors="pt"
                ).to(self.encoder.device)
                mask = padded["attention_mask"]
                states = self.encoder(input_ids=padded["input_ids"], attention_mask=mask).last_hidden_state
                pooled = mask if injector is None else injector.pooling_mask(padded["input_ids"], mask)
                found = unit_rows(mean_over_tokens(states.float(), pooled)).cpu()
                if not found.isfinite().all():
                    raise ValueError("The encoder gives NaN or infinity, which cannot be compared. Check its weights.")
                embeddings |= {texts[index]: embedding for index, embedding in zip(batch, found, strict=True)}
                progress.update(len(batch))
        return embeddings
