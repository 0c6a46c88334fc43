"""What is asked of every tokenizer: text as tokens and nothing else, the tokens at its ends, whether case is read."""

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


def end_ids(tokenizer: PreTrainedTokenizerBase) -> tuple[int, int]:
    """Returns the special tokens that stand before and after a text: CLS and SEP, or BOS and EOS.

    Raises:
        ValueError: If the tokenizer lacks one.
    """
    first = tokenizer.bos_token_id if tokenizer.cls_token_id is None else tokenizer.cls_token_id
    last = tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id
    if first is None or last is None:
        raise ValueError(f"{type(tokenizer).__name__} has no CLS and SEP (or BOS and EOS) token; give it both.")
    return first, last


def is_uncased(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the tokenizer lower-cases its input."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return bool(getattr(tokenizer, "do_lower_case", False))
    return backend.normalizer is not None and backend.normalizer.normalize_str("A").strip() == "a"
