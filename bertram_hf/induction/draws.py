"""Words whose contexts are encoded once, so that vectors from many random choices of them cost little."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..utils.progress import progress_bar
from .batching import ContextWindows, encode_words
from .checks import find_failing_words
from .induce import name_look_alikes
from .reliability import assess_vectors
from .word_vectors import WordVectors

logger = logging.getLogger(__name__)
WORDS_PER_BLOCK = 64
Readings = tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]  # what `BertramModel.combine` takes


class ContextDraws:
    """Draws contexts of words at random and induces vectors from them.

    Args:
        model: The model, in eval mode.
        processor: Its processor.
        contexts: For each word its contexts. Words none of whose contexts can be used count as words without; how many
            is logged.
        max_contexts: How many contexts of each word, drawn at random, are encoded; draws are made from these.
        seed: Seed of all choices.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Attributes:
        words: W words, in the order of `contexts`.
        num_contexts: (W,), how many contexts of each were encoded.

    Example:
        >>> draws = ContextDraws(model, processor, contexts, max_contexts=32)
        >>> draws.induce(2).shape  # from two contexts of each word
        torch.Size([2, 768])
        >>> draws.induce_words(2).words  # the same, ready to be injected
        ['kumquat', 'quokka']
    """

    @torch.inference_mode()
    def __init__(
        self,
        model: BertramModel,
        processor: BertramProcessor,
        contexts: Mapping[str, Sequence[str]],
        *,
        max_contexts: int,
        seed: int = 0,
        show_progress: bool = True,
    ) -> None:
        self.model, self.processor = model, processor
        self._generator = np.random.default_rng(seed)
        pools = {
            word: [texts[i] for i in self._generator.permutation(len(texts))[:max_contexts]]
            for word, texts in contexts.items()
        }
        failed = find_failing_words(model, processor, pools)
        if failed:  # a few words must not stop an evaluation
            pools |= {word: [] for word in failed}
            logger.warning("%d of %d words have no context that can be used.", len(failed), len(contexts))
        self.words = list(contexts)
        self._form_embeddings = encode_words(model, processor, self.words) if model.config.has_form else None
        self._look_alikes = {
            name: tensor.to(model.device) for name, tensor in processor.find_look_alikes(self.words).items()
        }
        self.num_contexts = np.zeros(len(self.words), dtype=np.int64)
        self._context_embeddings: Any = None
        if not model.config.has_context:
            return
        total = sum(map(len, pools.values()))
        # Filled block by block: to join all blocks at the end would take their memory twice.
        size = (total, model.config.readings_size)
        self._context_embeddings = torch.empty(size, dtype=model.dtype, device=model.device)
        done = 0
        with progress_bar(
            total=total, desc="Encoding contexts", unit="context", show_progress=show_progress
        ) as progress:
            windows = ContextWindows(model, processor, self.words, pools, self._form_embeddings, progress=progress)
            for _, embeddings in windows:
                self._context_embeddings[done : done + len(embeddings)] = embeddings
                done += len(embeddings)
        self._context_embeddings = self._context_embeddings[:done]
        self.num_contexts = np.array([len(windows.used[word]) for word in self.words], dtype=np.int64)
        self._firsts = np.cumsum(self.num_contexts) - self.num_contexts

    @torch.inference_mode()
    def induce(self, number: int) -> torch.Tensor:
        """Returns the vectors (W, H) from a new random choice of at most `number` contexts of each word.

        A model that reads the spelling only gives the same whatever the number; one that reads contexts only gives its
        bias to a word without any.
        """
        if self._context_embeddings is None:
            assert self._form_embeddings is not None  # a model has one part at least
            return self._form_embeddings
        return torch.cat([outputs.word_embeddings for _, _, outputs in self._finish(number)])

    @torch.inference_mode()
    def induce_words(self, number: int) -> WordVectors:
        """Returns the vectors from a new random choice of at most `number` contexts of each word, ready to be injected.

        A word without contexts has no vector of a model that reads contexts only; it is listed in `failed`.
        """
        if self._context_embeddings is None:
            return WordVectors(self.words, self.induce(number).cpu(), self._embedding_fingerprint)
        embeddings: list[torch.Tensor] = []
        found: dict[str, Any] = {}  # by the names of `DETAILS`
        for block, readings, outputs in self._finish(number):
            words = self.words[block]
            embeddings.append(outputs.word_embeddings)
            details = assess_vectors(self.model, words, *readings, outputs.word_embeddings)
            if outputs.look_alike_weights is not None:
                token_ids = self._look_alikes["look_alike_ids"][block]
                details["look_alikes"] = name_look_alikes(self.processor, words, token_ids, outputs.look_alike_weights)
            for name, values in details.items():
                found.setdefault(name, {}).update(values)
        vectors = WordVectors(self.words, torch.cat(embeddings).cpu(), self._embedding_fingerprint, **found)
        counts = np.minimum(self.num_contexts, number)
        if not self.model.config.has_form and not counts.all():
            kept = [word for word, count in zip(self.words, counts, strict=True) if count]
            vectors = vectors.select(kept)
            vectors.failed = {word: "no contexts" for word in self.words if word not in vectors}
        return vectors

    @cached_property
    def _embedding_fingerprint(self) -> str | None:
        return self.model.embedding_fingerprint()

    def _finish(self, number: int) -> Iterator[tuple[slice, Readings, Any]]:
        """Yields the outputs of a block of words at a time, and what they come from: copies of many contexts at once
        would take much memory."""
        rows = self._draw_rows(number)
        for start in range(0, max(1, len(self.words)), WORDS_PER_BLOCK):
            block = slice(start, start + WORDS_PER_BLOCK)
            readings = self._read(rows[block], block)
            look_alikes = {name: tensor[block] for name, tensor in self._look_alikes.items()}
            yield block, readings, self.model.finish(*readings, **look_alikes)

    @torch.inference_mode()
    def draw(self, number: int) -> Readings:
        """Returns what `BertramModel.combine` takes, for a new random choice of at most `number` contexts."""
        return self._read(self._draw_rows(number), slice(None))

    def _draw_rows(self, number: int) -> list[np.ndarray]:
        return [
            first + self._generator.permutation(available)[:number]
            for first, available in zip(self._firsts, self.num_contexts, strict=True)
        ]

    def _read(self, rows: Sequence[np.ndarray], words: slice) -> Readings:
        counts = torch.tensor([len(chosen) for chosen in rows], device=self.model.device)
        chosen = self._context_embeddings[np.concatenate(rows)] if rows else self._context_embeddings
        return None if self._form_embeddings is None else self._form_embeddings[words], chosen, counts
