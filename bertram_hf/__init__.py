"""BERTRAM for Hugging Face Transformers: input embeddings for words that a model does not know.

Names are imported when they are first used, and the Auto classes learn of BERTRAM when Transformers loads them, so that
`import bertram_hf` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .utils.imports import when_imported
from .version import __version__

if TYPE_CHECKING:
    from .configuration_bertram import PRESETS, BertramConfig
    from .induction import WordReport, WordVectors, induce_vectors, report_word
    from .injection import (
        BertramEmbeddingInjector,
        InjectionPolicy,
        SlashAugmentation,
        align_word_labels,
        bake,
        find_answer_tokens,
        ignore_injected_labels,
    )
    from .modeling_bertram import BertramModel, BertramOutput
    from .modeling_slim import embedding_fingerprint
    from .processing_bertram import BertramProcessor, EncodedWord
    from .processing_words import WordError
    from .tokenization_form import FormTokenizer
    from .words import RareWord, RareWords, find_rare_words

_MODULES = {
    "configuration_bertram": ("PRESETS", "BertramConfig"),
    "induction": ("WordReport", "WordVectors", "induce_vectors", "report_word"),
    "injection": (
        "BertramEmbeddingInjector",
        "InjectionPolicy",
        "SlashAugmentation",
        "align_word_labels",
        "bake",
        "find_answer_tokens",
        "ignore_injected_labels",
    ),
    "modeling_bertram": ("BertramModel", "BertramOutput"),
    "modeling_slim": ("embedding_fingerprint",),
    "processing_bertram": ("BertramProcessor", "EncodedWord"),
    "processing_words": ("WordError",),
    "tokenization_form": ("FormTokenizer",),
    "words": ("RareWord", "RareWords", "find_rare_words"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "PRESETS",
    "BertramConfig",
    "BertramEmbeddingInjector",
    "BertramModel",
    "BertramOutput",
    "BertramProcessor",
    "EncodedWord",
    "FormTokenizer",
    "InjectionPolicy",
    "RareWord",
    "RareWords",
    "SlashAugmentation",
    "WordError",
    "WordReport",
    "WordVectors",
    "__version__",
    "align_word_labels",
    "bake",
    "embedding_fingerprint",
    "find_answer_tokens",
    "find_rare_words",
    "ignore_injected_labels",
    "induce_vectors",
    "report_word",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register_config(auto: Any) -> None:
    from .configuration_bertram import BertramConfig

    auto.AutoConfig.register(BertramConfig.model_type, BertramConfig, exist_ok=True)


def _register_model(auto: Any) -> None:
    from .configuration_bertram import BertramConfig
    from .modeling_bertram import BertramModel

    auto.AutoModel.register(BertramConfig, BertramModel, exist_ok=True)


def _register_processor(auto: Any) -> None:
    from .configuration_bertram import BertramConfig
    from .processing_bertram import BertramProcessor

    auto.AutoProcessor.register(BertramConfig, BertramProcessor, exist_ok=True)


when_imported("transformers.models.auto.configuration_auto", _register_config)
when_imported("transformers.models.auto.modeling_auto", _register_model)
when_imported("transformers.models.auto.processing_auto", _register_processor)
