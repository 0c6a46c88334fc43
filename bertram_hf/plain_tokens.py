"""Text as tokens and nothing else."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase


def tokenize_plain(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    """Returns the token ids of texts. No special token is added, and a literal "[MASK]" in a text is text."""
    if not texts:  # a tokenizer does not take an empty list
        return []
    return tokenizer(
        list(texts),
        add_special_tokens=False,
        split_special_tokens=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # too long a text is cut later
    )["input_ids"]
