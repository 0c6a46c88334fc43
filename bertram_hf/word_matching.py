"""Finding a word in a context, and cutting a context that is too long around it."""

import unicodedata
from typing import Any

import regex


class WordError(ValueError, IndexError):
    """No vector can be given for a word.

    It is both a ValueError and an IndexError because the released code answers the same mistakes with the one or the
    other; code written for it keeps working.
    """


def word_pattern(word: str, *, ignore_case: bool) -> regex.Pattern:
    """Compiles a pattern that matches `word` as a whole word.

    A boundary is asked for only where the word begins or ends with a letter, digit or underscore, so that "C++" and
    ".NET" can be words. White space inside a term matches any white space.

    Example:
        >>> word_pattern("kumquat", ignore_case=True).split("Kumquat, please; no kumquats.")
        ['', ', please; no kumquats.']
    """
    body = r"\s+".join(regex.escape(part) for part in normalize_text(word).split())
    # `regex` rather than `re`: its \w holds combining marks, without which Hindi or decomposed text splits in words.
    before = r"(?<!\w)" if regex.match(r"\w", body) else ""
    after = r"(?!\w)" if regex.search(r"\w$", body) else ""
    return regex.compile(before + body + after, regex.IGNORECASE if ignore_case else 0)


def normalize_text(text: str) -> str:
    """Composes accents (NFC), so that both spellings of "café" are one word."""
    return unicodedata.normalize("NFC", text)


def check_word(word: object, *, whitespace: bool) -> None:
    """Raises unless `word` can be looked for.

    Args:
        word: What the caller gave as a word.
        whitespace: Whether the released matching is used, which finds single white-space tokens only.

    Raises:
        TypeError: If it is not a string.
        WordError: If it is empty, holds an unpaired surrogate or, for white-space matching, holds white space.
    """
    if not isinstance(word, str):
        raise TypeError(f"A word must be a string; got {type(word).__name__}: {word!r}.")
    if not word.strip():
        raise WordError(f"A word must have at least one visible character; got {word!r}.")
    if has_surrogate(word):
        raise WordError(f"The word {word!a} holds an unpaired surrogate. Decode its text with the right encoding.")
    if whitespace and word.split() != [word]:
        raise WordError(
            f'The word {word!r} holds white space, so white-space matching never finds it. Use match="word".'
        )


def check_contexts(word: str, contexts: Any) -> None:
    """Raises a TypeError unless `contexts` is a sequence of strings."""
    if isinstance(contexts, str) or not hasattr(contexts, "__len__") or not hasattr(contexts, "__getitem__"):
        raise TypeError(
            f"The contexts of {word!r} must be a list of strings; got {type(contexts).__name__}. "
            "Put a single context in a list: [context]."
        )
    for index, context in enumerate(contexts):
        if not isinstance(context, str):
            raise TypeError(f"Context {index} of {word!r} must be a string; got {type(context).__name__}: {context!r}.")


def has_surrogate(text: str) -> bool:
    """Whether `text` holds a code point that no encoding can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def replace_surrogates(text: str) -> str:
    """Puts U+FFFD in the place of unpaired surrogates, which no tokenizer takes."""
    return regex.sub(r"[\ud800-\udfff]", "\ufffd", text) if has_surrogate(text) else text


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
