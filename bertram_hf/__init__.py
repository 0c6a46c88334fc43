"""BERTRAM for Hugging Face Transformers: input embeddings for words that a model does not know.

Names are imported when they are first used, and the Auto classes learn of BERTRAM when Transformers loads them, so that
`import bertram_hf` costs next to nothing.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
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


def _register_config(configuration: Any) -> None:
    from transformers import AutoConfig

    AutoConfig.register(configuration.BertramConfig.model_type, configuration.BertramConfig, exist_ok=True)


def _register_model(modeling: Any) -> None:
    from transformers import AutoModel

    AutoModel.register(modeling.BertramModel.config_class, modeling.BertramModel, exist_ok=True)


def _register_processor(processing: Any) -> None:
    from transformers import AutoProcessor

    from .configuration_bertram import BertramConfig

    AutoProcessor.register(BertramConfig, processing.BertramProcessor, exist_ok=True)


def _connect(auto: str, own: str, register: Callable[[Any], None]) -> None:
    """Registers our module once it is complete; whoever imports the Auto class imports our module too."""

    def import_own(_: ModuleType) -> None:
        import_module(f".{own}", __name__)

    when_imported(f"{__name__}.{own}", register)
    when_imported(f"transformers.models.auto.{auto}", import_own)


_connect("configuration_auto", "configuration_bertram", _register_config)
_connect("modeling_auto", "modeling_bertram", _register_model)
_connect("processing_auto", "processing_bertram", _register_processor)
