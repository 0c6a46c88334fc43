"""Vectors into a model and its tokenizer.

Names are imported when they are first used: the Auto classes need `auto` alone.
"""

from typing import TYPE_CHECKING

from ..utils.imports import import_lazily

if TYPE_CHECKING:
    from .augmentation import SlashAugmentation
    from .auto import InjectedTokenizer
    from .baking import bake
    from .configuration import InjectedConfig
    from .injector import BertramEmbeddingInjector, inject_saved
    from .labels import align_word_labels, find_answer_tokens, ignore_injected_labels
    from .policy import InjectionPolicy
    from .sentence_transformers import bake_sentence_transformer, inject_sentence_transformer
    from .unknown_words import UnknownWords

__getattr__ = import_lazily(
    __name__,
    {
        "augmentation": ("SlashAugmentation",),
        "auto": ("InjectedTokenizer",),
        "baking": ("bake",),
        "configuration": ("InjectedConfig",),
        "injector": ("BertramEmbeddingInjector", "inject_saved"),
        "labels": ("align_word_labels", "find_answer_tokens", "ignore_injected_labels"),
        "policy": ("InjectionPolicy",),
        "sentence_transformers": ("bake_sentence_transformer", "inject_sentence_transformer"),
        "unknown_words": ("UnknownWords",),
    },
)

__all__ = [
    "BertramEmbeddingInjector",
    "InjectedConfig",
    "InjectedTokenizer",
    "InjectionPolicy",
    "SlashAugmentation",
    "UnknownWords",
    "align_word_labels",
    "bake",
    "bake_sentence_transformer",
    "find_answer_tokens",
    "ignore_injected_labels",
    "inject_saved",
    "inject_sentence_transformer",
]
