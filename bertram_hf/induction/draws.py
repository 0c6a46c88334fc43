"""Words whose contexts are encoded once, so that vectors from many random choices of them cost little."""

import logging
from collections.abc import Mapping, Sequence
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
        with progress_bar(
            total=sum(map(len, pools.values())),
            desc="Encoding contexts",
            unit="context",
            show_progress=show_progress,
        ) as progress:
            windows = ContextWindows(model, processor, self.words, pools, self._form_embeddings, progress=progress)
            encoded = [embeddings for _, embeddings in windows]
        nothing = torch.empty(0, model.config.readings_size, dtype=model.dtype, device=model.device)
        self._context_embeddings = torch.cat(encoded) if encoded else nothing
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
        outputs: Any = self.model.finish(*self.draw(number), **self._look_alikes)
        return outputs.word_embeddings

    @torch.inference_mode()
    def induce_words(self, number: int) -> WordVectors:
        """Returns the vectors from a new random choice of at most `number` contexts of each word, ready to be injected.

        A word without contexts has no vector of a model that reads contexts only; it is listed in `failed`.
        """
        if self._context_embeddings is None:
            return WordVectors(self.words, self.induce(number).cpu(), self._embedding_fingerprint)
        form, chosen, counts = self.draw(number)
        outputs: Any = self.model.finish(form, chosen, counts, **self._look_alikes)
        assessed = assess_vectors(self.model, self.words, form, chosen, counts, outputs.word_embeddings)
        vectors = WordVectors(self.words, outputs.word_embeddings.cpu(), self._embedding_fingerprint, **assessed)
        if outputs.look_alike_weights is not None:
            token_ids = self._look_alikes["look_alike_ids"]
            vectors.look_alikes = name_look_alikes(self.processor, self.words, token_ids, outputs.look_alike_weights)
        if not self.model.config.has_form and not counts.all():
            kept = [word for word, count in zip(self.words, counts.tolist(), strict=True) if count]
            vectors = vectors.select(kept)
            vectors.failed = {word: "no contexts" for word in self.words if word not in vectors}
        return vectors

    @cached_property
    def _embedding_fingerprint(self) -> str | None:
        return self.model.embedding_fingerprint()

    @torch.inference_mode()
    def draw(self, number: int) -> tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]:
        """Returns what `BertramModel.combine` takes, for a new random choice of at most `number` contexts."""
        rows = [
            first + self._generator.permutation(available)[:number]
            for first, available in zip(self._firsts, self.num_contexts, strict=True)
        ]
        counts = torch.tensor([len(chosen) for chosen in rows], device=self.model.device)
        chosen = self._context_embeddings[np.concatenate(rows)] if rows else self._context_embeddings
        return self._form_embeddings, chosen, counts
