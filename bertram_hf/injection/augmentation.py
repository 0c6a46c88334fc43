"""The paper's fine-tuning recipe, which prepares a model for injected vectors ("Baseline Training" in Section 4).

The model gets used to missing words and to words that stand twice, with a slash between. The third part of the recipe
is to freeze the embeddings: the injector does so, and for another model one line does,
`model.get_input_embeddings().weight.requires_grad_(False)`.
"""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils.data import get_worker_info
from transformers import PreTrainedTokenizerBase

SLASH = " / "


class SlashAugmentation:
    """Masks words of training texts and duplicates words, "w / w"; words are what white space separates.

    One draw decides for each word, so that "5% of all words" and "each word [...] with a probability of 10%" both hold
    as they stand in the paper: it is masked, or duplicated, or left alone. It is never masked and then duplicated. Each
    of the two repetitions is then masked on its own, so that both may be. Special tokens and white space stay.

    Texts are different in each call, hence in each epoch with `Dataset.set_transform`; two objects with one seed give
    the same in the same order of calls. In a worker of a data loader the seed is joined with the worker's, which
    follows the seed of PyTorch and is new in each epoch. `Dataset.map` fixes one version for all epochs.

    Args:
        tokenizer: The model's, for its mask token and special tokens.
        mask_probability: How likely a word is masked.
        slash_probability: How likely a word is duplicated.
        slash_mask_probability: How likely each repetition of a duplicated word is masked.
        columns: The columns of a batch that hold texts; two for text pairs.
        seed: The seed of the draws.

    Raises:
        ValueError: If the tokenizer has no mask token, or a probability is not one.

    Example:
        >>> augment = SlashAugmentation(tokenizer, mask_probability=0, slash_probability=1, slash_mask_probability=0)
        >>> augment("sour kumquats")
        'sour / sour kumquats / kumquats'
        >>> from datasets import Dataset
        >>> train = Dataset.from_dict({"text": ["sour kumquats"]})
        >>> train.set_transform(lambda batch: tokenizer(augment(batch)["text"]))
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        mask_probability: float = 0.05,
        slash_probability: float = 0.10,
        slash_mask_probability: float = 0.25,
        columns: Sequence[str] = ("text",),
        seed: int = 0,
    ) -> None:
        if tokenizer.mask_token is None:
            raise ValueError(f"{type(tokenizer).__name__} has no mask token; the recipe needs one. Set mask_token.")
        if not (mask_probability >= 0 and slash_probability >= 0 and mask_probability + slash_probability <= 1):
            raise ValueError(
                "mask_probability and slash_probability must be at least 0 and together at most 1; "
                f"got {mask_probability} and {slash_probability}."
            )
        if not 0 <= slash_mask_probability <= 1:
            raise ValueError(f"slash_mask_probability must be between 0 and 1; got {slash_mask_probability}.")
        if isinstance(columns, str):
            raise TypeError(f"columns must be a sequence of names; got the string {columns!r}. Pass [{columns!r}].")
        self.mask_token = tokenizer.mask_token
        self.special_tokens = list(tokenizer.all_special_tokens)
        self.mask_probability = mask_probability
        self.slash_probability = slash_probability
        self.slash_mask_probability = slash_mask_probability
        self.columns = tuple(columns)
        self.seed = seed
        self._random = random.Random(seed)
        self._worker_seed: int | None = None

    def __call__(self, inputs: Any) -> Any:
        """Returns a text, texts, or a row or batch (its columns other than `columns` untouched) as new objects.

        Raises:
            TypeError: If a text is not a string.
            KeyError: If a row or batch lacks one of the columns.
        """
        worker = get_worker_info()
        if worker is not None and worker.seed != self._worker_seed:
            # All workers are copies of this object, made anew in each epoch: without this they would draw the same.
            self._worker_seed = worker.seed
            self._random = random.Random(f"{self.seed} {worker.seed}")
        if not isinstance(inputs, Mapping):
            return self._augment(inputs)
        for column in self.columns:
            if column not in inputs:
                raise KeyError(
                    f"There is no column {column!r} among {', '.join(inputs)}. Set columns to those of text."
                )
        return {**inputs, **{column: self._augment(inputs[column]) for column in self.columns}}

    def _augment(self, texts: Any) -> Any:
        if isinstance(texts, str):
            return re.sub(r"\S+", lambda match: self._augment_word(match.group()), texts)
        if not isinstance(texts, Sequence):
            raise TypeError(f"Expected a text or a list of texts; got {type(texts).__name__} ({texts!r:.50}).")
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(
                    f"Expected texts; got {type(text).__name__} ({text!r:.50}) in row {row}. Drop such rows."
                )
        return [self._augment(text) for text in texts]

    def _augment_word(self, word: str) -> str:
        if word in self.special_tokens:
            return word
        draw = self._random.random()
        if draw < self.mask_probability:
            return self.mask_token
        if draw >= self.mask_probability + self.slash_probability:
            return word
        return SLASH.join(
            self.mask_token if self._random.random() < self.slash_mask_probability else word for _ in range(2)
        )
