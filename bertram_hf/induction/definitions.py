"""Definitions as contexts: texts about a word that need not hold it."""

from collections.abc import Mapping, Sequence


def add_definitions(
    contexts: Mapping[str, Sequence[str]], definitions: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Returns the contexts of words with their definitions behind them, each written as "word : definition".

    Args:
        contexts: For each word the texts that contain it.
        definitions: For each word texts about it; a word may stand here alone.

    Example:
        >>> add_definitions({"kumquat": ["A kumquat, please."]}, {"kumquat": ["a small sour citrus fruit"]})
        {'kumquat': ['A kumquat, please.', 'kumquat : a small sour citrus fruit']}
    """
    for word, texts in definitions.items():
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"Expected a list of definitions for {word!r}; got {texts!r:.80}.")
    return {
        word: [*contexts.get(word, ()), *(f"{word} : {text}" for text in definitions.get(word, ()))]
        for word in {**contexts, **definitions}
    }
