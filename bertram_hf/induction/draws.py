"""Words whose contexts are encoded once, so that vectors from many random choices of them cost little."""

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ..modeling_bertram import BertramModel, BertramOutput
from ..processing_bertram import BertramProcessor
from ..utils.progress import progress_bar
from .batching import ContextWindows, encode_words
from .checks import find_failing_words
from .induce import name_look_alikes
from .word_vectors import WordVectors

logger = logging.getLogger(__name__)


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
        >>> draws.draw(2).words  # the same, ready to be injected
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
        with progress_bar(
            total=sum(map(len, pools.values())),
            desc="Encoding contexts",
            unit="context",
            show_progress=show_progress,
        ) as progress:
            windows = ContextWindows(model, processor, self.words, pools, self._form_embeddings, progress=progress)
            encoded = [embeddings for _, embeddings in windows]
        nothing = torch.empty(0, model.config.context_size, dtype=model.dtype, device=model.device)
        self._context_embeddings = torch.cat(encoded) if encoded else nothing
        self.num_contexts = np.array([len(windows.used[word]) for word in self.words], dtype=np.int64)
        self._firsts = np.cumsum(self.num_contexts) - self.num_contexts

    @torch.inference_mode()
    def induce(self, number: int) -> torch.Tensor:
        """Returns the vectors (W, H) from a new random choice of at most `number` contexts of each word.

        A model that reads the spelling only gives the same whatever the number; one that reads contexts only gives its
        bias to a word without any.
        """
        outputs: Any = self._finish(number)[0]
        return outputs.word_embeddings

    @torch.inference_mode()
    def draw(self, number: int) -> WordVectors:
        """Returns the vectors from a new random choice of at most `number` contexts of each word, ready to be injected.

        A word without contexts has no vector of a model that reads contexts only; it is listed in `failed`.
        """
        outputs: Any
        outputs, counts = self._finish(number)
        look_alikes = {}
        if outputs.look_alike_weights is not None:
            token_ids = self._look_alikes["look_alike_ids"]
            look_alikes = name_look_alikes(self.processor, self.words, token_ids, outputs.look_alike_weights)
        embeddings, fingerprint = outputs.word_embeddings.cpu(), self._embedding_fingerprint
        vectors = WordVectors(self.words, embeddings, fingerprint, look_alikes=look_alikes)
        if not self.model.config.has_form and not counts.all():
            vectors = vectors.select(word for word, count in zip(self.words, counts, strict=True) if count)
            vectors.failed = {word: "no contexts" for word in self.words if word not in vectors}
        return vectors

    @cached_property
    def _embedding_fingerprint(self) -> str | None:
        return self.model.embedding_fingerprint()

    def _finish(self, number: int) -> tuple[BertramOutput, np.ndarray]:
        """Returns what the model makes of a new choice, and how many contexts (W,) of each word it took."""
        if self._context_embeddings is None:
            assert self._form_embeddings is not None  # a model has one part at least
            return BertramOutput(word_embeddings=self._form_embeddings), self.num_contexts
        rows = [
            first + self._generator.permutation(available)[:number]
            for first, available in zip(self._firsts, self.num_contexts, strict=True)
        ]
        counts = np.array([len(chosen) for chosen in rows], dtype=np.int64)
        chosen = self._context_embeddings[np.concatenate(rows)] if rows else self._context_embeddings
        num_contexts = torch.from_numpy(counts).to(self.model.device)
        outputs: Any = self.model.finish(self._form_embeddings, chosen, num_contexts, **self._look_alikes)
        return outputs, counts
