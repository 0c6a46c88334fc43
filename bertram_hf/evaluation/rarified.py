"""How well a classifier does on a rarified test set, with vectors for the rare words or without."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..induction.batching import length_sorted_batches
from ..induction.word_vectors import WordVectors
from ..injection.injector import BertramEmbeddingInjector
from ..injection.tokenizer import Mode
from ..utils.models import in_eval_mode

TOKENS_PER_BATCH = 4096
# The names of the paper's table for what a word was replaced by.
SUBSETS = {"All": None, "Msp": "misspelling", "WN": "wordnet"}


def evaluate_rarified(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rarified: Dataset,
    vectors: WordVectors | None = None,
    *,
    mode: Mode = "auto",
    max_length: int = 128,
) -> np.ndarray:
    """Classifies the rarified texts and returns, (N,), whether each answer is right.

    Args:
        model: The classifier that the data was rarified for. It is left as it was.
        tokenizer: Its tokenizer.
        rarified: The dataset of a `RarifiedTestSet`.
        vectors: Vectors of rare words; None for the model as it is. Words without one keep their pieces.
        mode: How vectors are injected; see [`BertramEmbeddingInjector`].
        max_length: Inputs are cut to so many tokens.

    Example:
        >>> rarified = Dataset.from_dict({"rarified_text": ["a sour kumquat", "a small quokka"], "label": [0, 1]})
        >>> evaluate_rarified(classifier, tokenizer, rarified, vectors).shape
        (2,)
    """
    texts = rarified_texts(rarified)
    labels = np.array(rarified["label"][:], dtype=np.int64)
    if vectors is None or not len(vectors):
        return predict_labels(model, tokenizer, *texts, max_length=max_length) == labels
    injector = BertramEmbeddingInjector(model, tokenizer, vectors, mode=mode)
    try:
        return predict_labels(injector, injector.tokenizer, *texts, max_length=max_length) == labels
    finally:
        injector.remove()


def rarified_texts(rarified: Dataset) -> list[list[str]]:
    """Returns the rarified texts and, for pairs, the second texts."""
    columns = [column for column in ("rarified_text", "rarified_pair") if column in rarified.column_names]
    return [rarified[column][:] for column in columns]


@torch.inference_mode()
def predict_labels(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    pairs: Sequence[str] | None = None,
    *,
    max_length: int = 128,
) -> np.ndarray:
    """Returns the most likely class (N,) of each text or pair of texts, in batches sorted by length."""
    if not len(texts):
        return np.empty(0, dtype=np.int64)
    encoded = tokenizer(
        list(texts),
        None if pairs is None else list(pairs),
        truncation=True,
        max_length=max_length,
        split_special_tokens=True,
    )
    predicted = np.empty(len(texts), dtype=np.int64)
    with in_eval_mode(model):
        for batch in length_sorted_batches([len(ids) for ids in encoded["input_ids"]], TOKENS_PER_BATCH):
            inputs = tokenizer.pad(
                {name: [values[i] for i in batch] for name, values in encoded.items()}, return_tensors="pt"
            )
            predicted[batch] = model(**inputs.to(model.device)).logits.argmax(dim=-1).cpu().numpy()
    return predicted


def subset_masks(rarified: Dataset) -> dict[str, np.ndarray]:
    """Returns the rows (N,) of each subset: all; with a misspelling (Msp); with a synonym (WN)."""
    kinds = [{word["kind"] for word in replaced} for replaced in rarified["replaced"][:]]
    return {
        name: np.array([kind is None or kind in found for found in kinds], dtype=bool) for name, kind in SUBSETS.items()
    }


def rare_words(rarified: Dataset, *, lower_case: bool) -> list[str]:
    """Returns the rare words of a rarified data set, each once, sorted."""
    words = {word["substitute"] for replaced in rarified["replaced"][:] for word in replaced}
    return sorted({word.lower() for word in words} if lower_case else words)


def count_rare_words(rarified: Dataset, counts: Mapping[str, int]) -> list[list[int]]:
    """Returns for each row how often each of its rare words occurs; 0 for one that `counts` does not list."""
    return [[counts.get(word["substitute"].lower(), 0) for word in replaced] for replaced in rarified["replaced"][:]]
