"""Contexts and words through the network, in batches sorted by length."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import torch
from tqdm.auto import tqdm

from ..modeling_bertram import BertramModel
from ..processing_bertram import WORD_NOT_FOUND, BertramProcessor, pad_rows
from ..processing_context import Parts
from ..tokenization_form import NO_UNIT

# How many contexts are tokenised and sorted by length at a time: their readings, 50 kB each, are in memory together.
CONTEXTS_PER_WINDOW = 1024
# Padded tokens per batch if the caller does not say: small batches stay in a processor's cache, a GPU wants large ones.
CPU_TOKENS_PER_BATCH = 1024
GPU_TOKENS_PER_BATCH = 32768
# An n-gram or character costs far less than a token that runs through the encoder.
FORM_UNITS_PER_TOKEN = 16


class ContextWindows:
    """The contexts of words, each found, tokenised and encoded once, a window of them at a time.

    Args:
        model: The model, in eval mode.
        processor: Its processor.
        words: W words.
        contexts: For each word its contexts, read as they are needed.
        form_embeddings: (W, H), the words' form vectors; None if the model has no form part.
        max_tokens: Limit of padded tokens in a batch.
        progress: A bar to move.

    Attributes:
        used: For each word the indices of the contexts that hold it; complete when all windows have been read.
        dropped: For each word why other contexts, by index, were not used.
    """

    def __init__(
        self,
        model: BertramModel,
        processor: BertramProcessor,
        words: Sequence[str],
        contexts: Mapping[str, Sequence[str]],
        form_embeddings: torch.Tensor | None,
        *,
        max_tokens: int | None = None,
        progress: tqdm | None = None,
    ) -> None:
        self.model, self.processor, self.words, self.contexts = model, processor, words, contexts
        self.form_embeddings, self.max_tokens, self.progress = form_embeddings, max_tokens, progress
        self.used: dict[str, list[int]] = {word: [] for word in words}
        self.dropped: dict[str, dict[int, str]] = {}
        self._pieces = [processor.encode_pieces(word) for word in words]

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yields, for each window, the rows (C,) of the contexts' words and what is said of them (C, hidden)."""
        located = self._locate()
        while window := list(islice(located, CONTEXTS_PER_WINDOW)):
            rows = torch.tensor([row for row, _ in window])
            form = None if self.form_embeddings is None else self.form_embeddings[rows.to(self.model.device)]
            pieces = [self._pieces[row] for row, _ in window]
            tokens = self.processor.encode_located([parts for _, parts in window], pieces)
            yield (
                rows,
                encode_tokens(
                    self.model,
                    self.processor,
                    *tokens,
                    form,
                    num_pieces=list(map(len, pieces)),
                    max_tokens=self.max_tokens,
                    progress=self.progress,
                ),
            )

    def _locate(self) -> Iterator[tuple[int, Parts]]:
        """Yields each context that holds its word, with the word's row, and notes which did."""
        for row, word in enumerate(self.words):
            for index, parts in enumerate(self.processor.locate(word, self.contexts[word])):
                if parts is None:
                    self.dropped.setdefault(word, {})[index] = WORD_NOT_FOUND
                else:
                    self.used[word].append(index)
                    yield row, parts


def encode_tokens(
    model: BertramModel,
    processor: BertramProcessor,
    input_ids: Sequence[list[int]],
    mask_positions: Sequence[int],
    form_embeddings: torch.Tensor | None,
    *,
    num_pieces: Sequence[int] | None = None,
    max_tokens: int | None = None,
    progress: tqdm | None = None,
) -> torch.Tensor:
    """Encodes tokenised contexts in batches sorted by length.

    Args:
        model: The model.
        processor: Its processor.
        input_ids: Token ids of C contexts, special tokens and prefix included.
        mask_positions: Where the word stands in each.
        form_embeddings: (C, H), the form vector of each context's word; None if the model has no form part.
        num_pieces: For each context the number of its word's pieces, if the model reads them.
        max_tokens: Limit of padded tokens in a batch.
        progress: A bar to move.

    Returns:
        (C, hidden) in the order given, on the model's device.
    """
    if max_tokens is None:
        max_tokens = CPU_TOKENS_PER_BATCH if model.device.type == "cpu" else GPU_TOKENS_PER_BATCH
    encoded = torch.empty(len(input_ids), model.config.readings_size, dtype=model.dtype, device=model.device)
    for batch in length_sorted_batches([len(ids) for ids in input_ids], max_tokens):
        padded = processor.pad_contexts(
            [input_ids[i] for i in batch],
            [mask_positions[i] for i in batch],
            None if num_pieces is None else [num_pieces[i] for i in batch],
        )
        rows = torch.tensor(batch, device=model.device)
        form = None if form_embeddings is None else form_embeddings[rows]
        inputs = {name: tensor.to(model.device) for name, tensor in padded.items()}
        encoded[rows] = model.encode_contexts(**inputs, form_embeddings=form)
        if progress is not None:
            progress.update(len(batch))
    return encoded


def encode_words(
    model: BertramModel, processor: BertramProcessor, words: Sequence[str], max_tokens: int = CPU_TOKENS_PER_BATCH
) -> torch.Tensor:
    """Returns the form vectors (W, H) of words."""
    form_ids = [processor.encode_form(word) for word in words]
    encoded = torch.empty(len(words), model.config.embedding_size, dtype=model.dtype, device=model.device)
    for batch in length_sorted_batches([len(ids) for ids in form_ids], FORM_UNITS_PER_TOKEN * max_tokens):
        padded = pad_rows([form_ids[i] for i in batch], NO_UNIT).to(model.device)
        encoded[torch.tensor(batch, device=model.device)] = model.encode_forms(padded)
    return encoded


def length_sorted_batches(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Yields batches of indices, longest first, of at most `max_tokens` after padding; a longer item stands alone."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and lengths[batch[0]] * (len(batch) + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
