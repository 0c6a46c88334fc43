"""BERTRAM for Hugging Face Transformers: input embeddings for words that a model does not know.

Names are imported when they are first used, and the Auto classes learn of BERTRAM when Transformers loads them, so that
`import bertram_hf` costs next to nothing.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .utils.imports import import_lazily, when_imported
from .version import __version__

if TYPE_CHECKING:
    from .adaptation import Adaptation, adapt
    from .configuration_bertram import PRESETS, BertramConfig
    from .induction import WordReport, WordVectors, find_checkpoint, induce_vectors, report_word
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
    "adaptation": ("Adaptation", "adapt"),
    "configuration_bertram": ("PRESETS", "BertramConfig"),
    "induction": ("WordReport", "WordVectors", "find_checkpoint", "induce_vectors", "report_word"),
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
__getattr__ = import_lazily(__name__, _MODULES)

__all__ = [
    "PRESETS",
    "Adaptation",
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
    "adapt",
    "align_word_labels",
    "bake",
    "embedding_fingerprint",
    "find_answer_tokens",
    "find_checkpoint",
    "find_rare_words",
    "ignore_injected_labels",
    "induce_vectors",
    "report_word",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register_config(own: Any) -> None:
    from transformers import AutoConfig

    AutoConfig.register(own.BertramConfig.model_type, own.BertramConfig, exist_ok=True)


def _register_injected_config(own: Any) -> None:
    from transformers import AutoConfig

    AutoConfig.register(own.InjectedConfig.model_type, own.InjectedConfig, exist_ok=True)


def _register_model(own: Any) -> None:
    from transformers import AutoModel

    AutoModel.register(own.BertramModel.config_class, own.BertramModel, exist_ok=True)


def _register_processor(own: Any) -> None:
    from transformers import AutoProcessor

    from .configuration_bertram import BertramConfig

    AutoProcessor.register(BertramConfig, own.BertramProcessor, exist_ok=True)


def _register_injected_models(auto: Any) -> None:
    from .injection.auto import make_loader
    from .injection.configuration import InjectedConfig

    for name, auto_class in list(vars(auto).items()):
        if name.startswith("AutoModel") and hasattr(auto_class, "_model_mapping"):
            auto_class.register(InjectedConfig, make_loader(auto_class), exist_ok=True)


def _register_injected_tokenizer(auto: Any) -> None:
    from .injection.auto import InjectedTokenizer
    from .injection.configuration import InjectedConfig

    auto.AutoTokenizer.register(InjectedConfig, InjectedTokenizer, exist_ok=True)


def _connect(auto: str, own: str, register: Callable[[Any], None]) -> None:
    """Registers our module once it is complete; whoever imports the Auto class imports our module too."""

    def import_own(_: ModuleType) -> None:
        import_module(f".{own}", __name__)

    when_imported(f"{__name__}.{own}", register)
    when_imported(f"{_AUTO}.{auto}", import_own)


_AUTO = "transformers.models.auto"
_connect("configuration_auto", "configuration_bertram", _register_config)
_connect("configuration_auto", "injection.configuration", _register_injected_config)
_connect("modeling_auto", "modeling_bertram", _register_model)
_connect("processing_auto", "processing_bertram", _register_processor)
when_imported(f"{_AUTO}.modeling_auto", _register_injected_models)
when_imported(f"{_AUTO}.tokenization_auto", _register_injected_tokenizer)
