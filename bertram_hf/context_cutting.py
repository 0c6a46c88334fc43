"""Contexts cut at their word: pieces of text, to be tokenised, and token ids in turn."""

import re
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from .plain_tokens import tokenize_plain
from .word_matching import WordError, WordPattern, normalize_text, replace_surrogates

Parts = list[str | int]


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
