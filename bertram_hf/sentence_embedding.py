"""Old path of [`InjectedTransformer`], which modules.json of saved sentence-transformers models names."""

from .injection.sentence_transformers import InjectedTransformer, inject_sentence_transformer

__all__ = ["InjectedTransformer", "inject_sentence_transformer"]
