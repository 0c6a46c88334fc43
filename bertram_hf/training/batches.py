"""Batches of words with contexts, each a pure function of seed, epoch and index."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from ..processing_bertram import BertramProcessor, pad_rows
from ..tokenization_form import NO_UNIT
from .contexts import EncodedContexts

# A word of the corpus appears once in an epoch for every so many occurrences (released code).
OCCURRENCES_PER_REPETITION = 100


def cut_batch(total: int, smallest: int, largest: int, random: Random) -> list[int]:
    """Cuts a batch of `total` contexts at random into words of `smallest` to `largest` contexts, as the released code.

    Example:
        >>> cut_batch(48, 4, 32, Random(0))
        [31, 10, 7]
    """
    if total < smallest:
        return [total]
    sizes: list[int] = []
    while total > 0:
        size = random.randint(smallest, min(largest, total))
        while 0 < total - size < smallest:  # what is left must be enough for a word
            size = random.randint(smallest, min(largest, total))
        sizes.append(size)
        total -= size
    return sizes


def draw_sizes(number: int, smallest: int, largest: int, generator: np.random.Generator) -> np.ndarray:
    """Draws numbers of contexts whose logarithm is uniform, so that one or two contexts are as usual as 16 to 32.

    Example:
        >>> draw_sizes(8, 1, 32, np.random.default_rng(0))
        array([ 9,  2,  1,  1, 17, 24,  8, 12])
    """
    if largest == 0:
        return np.zeros(number, dtype=np.int64)
    low, high = np.log(max(1, smallest)), np.log(largest + 1)
    return np.exp(generator.uniform(low, high, number)).astype(np.int64)


def count_repetitions(occurrences: np.ndarray, max_repetitions: int) -> np.ndarray:
    """Returns how often words that occur so often in the corpus appear in an epoch."""
    return np.clip(occurrences // OCCURRENCES_PER_REPETITION, 1, max_repetitions)


class WordBatches(Dataset):
    """Batches for [`BertramModel`] as a dataset whose items are whole batches.

    A word may appear several times in an epoch, each time with other contexts as long as it has them. Which words and
    contexts form batch `i` of epoch `e` depends on nothing but the seed, `e` and `i`, so that an interrupted training
    goes on exactly where it was, in any number of processes.

    Args:
        prepare_inputs: Makes the model's inputs from word rows (W,), context rows (C,) and numbers of contexts (W,).
        offsets: (W + 1,), word `i` owns the contexts `offsets[i]` to `offsets[i + 1]`.
        repetitions: (W,), how often each word appears in an epoch.
        words_per_batch: Words in a batch, with numbers of contexts from `draw_sizes`; or
        contexts_per_batch: contexts in a batch, cut into words by `cut_batch`, as in the paper.
        min_contexts: Least contexts of a word; 0 with `max_contexts` 0 for the form alone.
        max_contexts: Most contexts of a word. A word that has fewer gives all it has.
        bare_share: Share of the words that come without a context.
        seed: Seed of all draws.
    """

    def __init__(
        self,
        prepare_inputs: Callable[[np.ndarray, np.ndarray, np.ndarray], dict[str, torch.Tensor]],
        offsets: np.ndarray,
        repetitions: np.ndarray,
        *,
        words_per_batch: int | None = None,
        contexts_per_batch: int | None = None,
        min_contexts: int = 4,
        max_contexts: int = 32,
        bare_share: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.prepare_inputs = prepare_inputs
        self.offsets = offsets
        self.repetitions = repetitions
        self.seed = seed
        num_instances = int(repetitions.sum())
        if (words_per_batch is None) == (contexts_per_batch is None):
            raise ValueError("Give either words_per_batch or contexts_per_batch.")
        # The sizes do not change from epoch to epoch, so that all epochs have the same number of batches.
        if contexts_per_batch is not None:
            random = Random(seed)
            sizes: list[int] = []
            self.starts = [0]
            while len(sizes) < num_instances:
                sizes += cut_batch(contexts_per_batch, min_contexts, max_contexts, random)
                self.starts.append(min(len(sizes), num_instances))
            self.sizes = np.asarray(sizes[:num_instances])
        else:
            self.sizes = draw_sizes(num_instances, min_contexts, max_contexts, np.random.default_rng(seed))
            self.starts = [*range(0, num_instances, words_per_batch or 1), num_instances]
        if bare_share:
            self.sizes[np.random.default_rng([seed, num_instances]).random(num_instances) < bare_share] = 0
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Draws the order of words in an epoch, and which of its contexts each word starts with."""
        generator = np.random.default_rng([self.seed, epoch])
        instances = np.repeat(np.arange(len(self.repetitions)), self.repetitions)
        self.order = generator.permutation(instances)
        # Each repetition of a word starts in its shuffled contexts where the one before it ended.
        self.firsts = np.empty(len(self.order), dtype=np.int64)
        by_word = np.argsort(self.order, kind="stable")
        ends = np.cumsum(self.sizes[by_word])
        begins = ends - self.sizes[by_word]
        word_begins = np.repeat(begins[np.cumsum([0, *self.repetitions[:-1]])], self.repetitions)
        self.firsts[by_word] = begins - word_begins
        num_contexts = np.diff(self.offsets)
        owners = np.repeat(np.arange(len(num_contexts)), num_contexts)
        self.shuffled = np.lexsort((generator.random(len(owners)), owners))  # each word's contexts in random order

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        instances = slice(self.starts[index], self.starts[index + 1])
        words, sizes, firsts = self.order[instances], self.sizes[instances], self.firsts[instances]
        available = self.offsets[words + 1] - self.offsets[words]
        num_contexts = np.minimum(sizes, available)
        owners = np.repeat(np.arange(len(words)), num_contexts)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(num_contexts) - num_contexts, num_contexts)
        chosen = (firsts[owners] + within) % available[owners]  # nothing is divided by 0: these words own no context
        return self.prepare_inputs(words, self.shuffled[self.offsets[words[owners]] + chosen], num_contexts)


def read_features(features: np.ndarray, rows: np.ndarray) -> torch.Tensor:
    """Returns rows (C,) of features (all contexts, hidden) as (C, hidden), read in the order of the file."""
    order = np.argsort(rows)
    read = torch.empty(len(rows), features.shape[1])
    read[order] = torch.from_numpy(features[rows[order]]).float()
    return read


class WordCollator:
    """Makes a model's inputs from rows of words and contexts.

    Args:
        processor: The model's processor.
        contexts: The tokenised contexts.
        targets: (W, H), the words' target embeddings, in the order of `contexts.words`.
        features: (C, hidden) from `cache_features`; without them the model gets token ids and runs its encoder.
        form_embeddings: (W, H), form vectors that the model gets in place of n-grams.
    """

    def __init__(
        self,
        processor: BertramProcessor,
        contexts: EncodedContexts,
        targets: torch.Tensor,
        features: np.ndarray | None = None,
        form_embeddings: torch.Tensor | None = None,
    ) -> None:
        self.processor = processor
        self.contexts = contexts
        self.targets = targets
        self.features = features
        self.form_embeddings = form_embeddings
        self.form_ids = [processor.encode_form(word) for word in contexts.words]

    def __call__(self, words: np.ndarray, rows: np.ndarray, num_contexts: np.ndarray) -> dict[str, torch.Tensor]:
        inputs: dict[str, Any] = {"labels": self.targets[words]}
        if self.form_embeddings is not None:
            inputs["form_embeddings"] = self.form_embeddings[words]
        elif self.processor.form is not None:
            inputs["form_ids"] = pad_rows([self.form_ids[word] for word in words], NO_UNIT)
        if len(rows) == 0:
            return inputs
        inputs["num_contexts"] = torch.from_numpy(num_contexts)
        if self.features is not None:
            return inputs | {"context_embeddings": read_features(self.features, rows)}
        positions = self.contexts.mask_positions[rows].tolist()
        return inputs | self.processor.pad_contexts([self.contexts.input_ids(row) for row in rows], positions)

    def as_induced(self) -> "WordCollator":
        """Returns a collator that writes words as induction does."""
        return self

    def respell(self, spellings: Mapping[int, str], *, keep_features: bool) -> "WordCollator":
        """Returns a collator for which some words, by row, are spelled otherwise.

        Args:
            spellings: The new spellings.
            keep_features: Whether cached features are still right, as what they were made from reads no spelling.
        """
        changed = WordCollator(self.processor, self.contexts, self.targets, self.features if keep_features else None)
        for row, spelling in spellings.items():
            changed.form_ids[row] = self.processor.encode_form(spelling)
        return changed
