"""Text for masked language modelling, cut into blocks of tokens, with a part held out."""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from ..processing_context import tokenize_plain
from ..processing_words import replace_surrogates

MIN_TOKENS = 4  # in fewer there is no context to predict a token from
MAX_HELDOUT_SHARE = 0.1
ROWS_AT_ONCE = 1000


@dataclass(frozen=True)
class MaskedLMText:
    """Blocks of tokens for training and for scoring, with `input_ids`, `special_tokens_mask` and `length`.

    Attributes:
        train: The blocks to train on.
        heldout: Those of the texts that are held out.
        token_counts: (V,), how often each token occurs in the training text; special tokens do not count.
        numbers: How many texts, blocks and tokens there are, and how much was left out.
        fingerprint: Changes with the text.
    """

    train: Dataset
    heldout: Dataset
    token_counts: torch.Tensor
    numbers: dict[str, int]
    fingerprint: str


def prepare_text(
    texts: Dataset | Iterable[str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int,
    num_heldout: int,
    text_column: str = "text",
    never_masked: Collection[int] = (),
    seed: int = 0,
) -> MaskedLMText:
    """Holds out some texts and cuts all into blocks; a block never crosses texts.

    Special tokens that stand in a text, such as "[MASK]", are text. Blocks of fewer than 4 tokens are left out.

    Args:
        texts: A dataset with a column of texts, or texts.
        tokenizer: The encoder's.
        max_length: Tokens of a block, special tokens included.
        num_heldout: How many texts to hold out; at most a tenth of all.
        text_column: The column of a dataset.
        never_masked: Tokens that are marked as special ones are.
        seed: Which texts are held out.

    Raises:
        TypeError: If a text is not a string.
        ValueError: If there is no such column, or too little text.
    """
    num_special = tokenizer.num_special_tokens_to_add()
    if max_length < num_special + MIN_TOKENS:
        raise ValueError(f"max_length must be at least {num_special + MIN_TOKENS}; got {max_length}.")
    dataset = _as_dataset(texts, text_column)
    num_heldout = min(num_heldout, int(len(dataset) * MAX_HELDOUT_SHARE))
    if num_heldout < 1:
        raise ValueError(
            f"Expected at least {int(1 / MAX_HELDOUT_SHARE)} texts, of which one is held out; got {len(dataset)}. Give "
            "a text for each line or paragraph."
        )
    parts = dataset.train_test_split(test_size=num_heldout, seed=seed)
    blocks = {
        name: part.map(
            _cut_texts,
            batched=True,
            remove_columns=part.column_names,
            fn_kwargs={
                "tokenizer": tokenizer,
                "column": text_column,
                "size": max_length - num_special,
                "never_masked": frozenset(never_masked),
            },
            desc="Tokenising",
        )
        for name, part in parts.items()
    }
    min_length = MIN_TOKENS + num_special
    train, heldout = (
        blocks[name].filter(lambda lengths: [n >= min_length for n in lengths], input_columns="length", batched=True)
        for name in ("train", "test")
    )
    if not (len(train) and len(heldout)):
        raise ValueError(
            f"Expected texts of {MIN_TOKENS} tokens and more, both for training and to hold out; {len(train)} and "
            f"{len(heldout)} are so long. Give more text."
        )
    token_counts, fingerprint = _count_tokens([train, heldout], tokenizer)
    numbers = {
        "num_texts": len(dataset),
        "num_heldout_texts": num_heldout,
        "num_blocks": len(train),
        "num_tokens": int(token_counts.sum()),
        "num_heldout_blocks": len(heldout),
        "num_short_blocks_left_out": sum(map(len, blocks.values())) - len(train) - len(heldout),
    }
    return MaskedLMText(train, heldout, token_counts, numbers, fingerprint)


def _count_tokens(parts: list[Dataset], tokenizer: PreTrainedTokenizerBase) -> tuple[torch.Tensor, str]:
    """Returns how often each token occurs in the first part, and a hash of all parts."""
    counts = torch.zeros(max(tokenizer.get_vocab().values()) + 1, dtype=torch.long)
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        for rows in part.with_format("arrow").iter(ROWS_AT_ONCE):
            ids = rows["input_ids"].combine_chunks().flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            digest.update(ids.tobytes())
            if part is parts[0]:
                counts += torch.bincount(torch.from_numpy(ids), minlength=len(counts))
    counts[tokenizer.all_special_ids] = 0
    return counts, digest.hexdigest()


def _as_dataset(texts: Dataset | Iterable[str], column: str) -> Dataset:
    if isinstance(texts, Dataset):
        if column not in texts.column_names:
            raise ValueError(f"Expected a column {column!r}; the dataset has {texts.column_names}. Set text_column.")
        return texts.select_columns([column])
    if isinstance(texts, str):
        raise TypeError("Expected texts; got one string. Put it in a list, a text for each line or paragraph.")
    texts = list(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"Expected texts; got {type(text).__name__} ({text!r:.50}) in row {row}. Drop such rows.")
    return Dataset.from_dict({column: [replace_surrogates(text) for text in texts]})


def _cut_texts(
    batch: dict[str, list[Any]],
    *,
    tokenizer: PreTrainedTokenizerBase,
    column: str,
    size: int,
    never_masked: frozenset[int],
) -> dict[str, list[Any]]:
    encoded = tokenize_plain(tokenizer, [replace_surrogates(text or "") for text in batch[column]])
    cut = [ids[start : start + size] for ids in encoded for start in range(0, len(ids), size)]
    before, after = _special_ids(tokenizer)
    return {
        "input_ids": [[*before, *ids, *after] for ids in cut],
        "special_tokens_mask": [
            [1] * len(before) + [int(token_id in never_masked) for token_id in ids] + [1] * len(after) for ids in cut
        ],
        "length": [len(before) + len(ids) + len(after) for ids in cut],
    }


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """Returns the ids that stand before and after a text."""
    ids = tokenizer("a", return_special_tokens_mask=True)
    is_special = ids["special_tokens_mask"]
    first = is_special.index(0)
    last = len(is_special) - is_special[::-1].index(0)
    return ids["input_ids"][:first], ids["input_ids"][last:]
