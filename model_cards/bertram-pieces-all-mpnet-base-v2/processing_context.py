"""Contexts cut at their word and tokenised."""

import re
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from .processing_words import WordError, WordPattern, normalize_text, replace_surrogates

Parts = list[str | int]
LONE_SPACES = ("Ġ", "▁")  # the space before a word, as a token of its own


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


def tokenize_words(tokenizer: PreTrainedTokenizerBase, words: Sequence[str]) -> list[list[int]]:
    """Returns the token ids of words as they stand after a space; a token that is only the space is left out."""
    spaces = set(tokenizer.convert_tokens_to_ids(list(LONE_SPACES))) - {tokenizer.unk_token_id}
    return [[i for i in ids if i not in spaces] for ids in tokenize_plain(tokenizer, [f" {word}" for word in words])]


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


def cut_at_word(word: str, contexts: Sequence[str], *, mask_id: int, ignore_case: bool) -> list[Parts | None]:
    """Puts the mask in the place of a word, wherever it stands as a whole word; None for a context without it."""
    pattern = WordPattern(word, ignore_case=ignore_case)
    located: list[Parts | None] = []
    for context in contexts:
        *segments, rest = pattern.split(normalize_text(replace_surrogates(context)))
        # The mask stands for " word", space included: so RoBERTa was trained, and BERT does not care.
        masked = [part for segment in segments for part in (segment.rstrip(), mask_id)]
        located.append([*masked, rest] if segments else None)
    return located


def cut_as_released(
    word: str, contexts: Sequence[str], tokenizer: PreTrainedTokenizerBase, *, max_tokens: int
) -> list[Parts | None]:
    """Puts the mask in the place of a word as the released code does: where a token between white space equals it.

    Special tokens in the text act as such, as in transformers 2.1.

    Raises:
        WordError: Where the released code fails: if a context without the word has more than `max_tokens` tokens, or
            if none has the word.
    """
    special_tokens = sorted(tokenizer.all_special_tokens, key=len, reverse=True)
    special_pattern = re.compile(f"({'|'.join(map(re.escape, special_tokens))})")
    located: list[Parts] = []
    for context in contexts:
        tokens = (tokenizer.mask_token if token == word else token for token in context.split())
        parts: Parts = []
        for index, part in enumerate(special_pattern.split(replace_surrogates(" ".join(tokens)))):
            if index % 2:
                parts.append(tokenizer.convert_tokens_to_ids(part))
            elif part.strip():
                # With a leading space, which byte-level tokenizers see and BERT's does not.
                parts.append(" " + part.strip())
        located.append(parts)
    lacking = [parts for parts in located if tokenizer.mask_token_id not in parts]
    if any(len(ids) > max_tokens for ids in tokenize_parts(lacking, tokenizer)):
        raise WordError(
            f"A context of {word!r} is longer than {max_tokens} tokens and does not hold the word between white space, "
            'on which the released code fails. Remove it, or use match="word".'
        )
    if located and len(lacking) == len(located):
        raise WordError(
            f"None of the {len(located)} contexts of {word!r} holds it as a token between white space, on which the "
            'released code fails. Give contexts with the word, or use match="word".'
        )
    return [parts if tokenizer.mask_token_id in parts else None for parts in located]


def tokenize_parts(contexts: Sequence[Parts], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Returns the token ids of contexts that were cut, by one call of the tokenizer."""
    texts = [part for parts in contexts for part in parts if isinstance(part, str)]
    tokens = iter(tokenize_plain(tokenizer, texts))
    return [
        [token_id for part in parts for token_id in (next(tokens) if isinstance(part, str) else (part,))]
        for parts in contexts
    ]


def truncation_span(num_tokens: int, mask_index: int, budget: int) -> tuple[int, int]:
    """Returns the slice of tokens that the released truncation keeps.

    The released loop, "while too long: drop the first token if the mask's index > (length - 1) / 2, else the last",
    first evens out the two sides and then drops from both in turn. This is its closed form.

    Args:
        num_tokens: Length of the context.
        mask_index: Index of the first mask.
        budget: Largest length that is allowed.

    Returns:
        Start and end of the part that is kept.
    """
    surplus = num_tokens - budget
    if surplus <= 0:
        return 0, num_tokens
    if 2 * mask_index > num_tokens - 1:
        one_sided = min(surplus, 2 * mask_index - num_tokens + 1)
        rest = surplus - one_sided
        left, right = one_sided + rest // 2, (rest + 1) // 2
    else:
        one_sided = min(surplus, num_tokens - 2 * mask_index)
        rest = surplus - one_sided
        left, right = (rest + 1) // 2, one_sided + rest // 2
    return left, num_tokens - right
