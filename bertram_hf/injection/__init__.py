"""Vectors into a model and its tokenizer."""

from .augmentation import SlashAugmentation
from .baking import bake
from .injector import BertramEmbeddingInjector, inject_saved
from .labels import align_word_labels, find_answer_tokens, ignore_injected_labels
from .policy import InjectionPolicy

__all__ = [
    "BertramEmbeddingInjector",
    "InjectionPolicy",
    "SlashAugmentation",
    "align_word_labels",
    "bake",
    "find_answer_tokens",
    "ignore_injected_labels",
    "inject_saved",
]
