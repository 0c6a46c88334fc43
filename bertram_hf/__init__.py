"""BERTRAM for Hugging Face Transformers: input embeddings for words that a model does not know.

Names are imported when they are first used, and the Auto classes learn of BERTRAM when Transformers loads them, so that
`import bertram_hf` costs next to nothing.
"""

from typing import TYPE_CHECKING, Any

from .utils.imports import import_lazily, when_imported
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
__getattr__ = import_lazily(__name__, _MODULES)

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


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register_configs(auto: Any) -> None:
    from .configuration_bertram import BertramConfig
    from .injection.configuration import InjectedConfig

    for config_class in (BertramConfig, InjectedConfig):
        auto.AutoConfig.register(config_class.model_type, config_class, exist_ok=True)


def _register_models(auto: Any) -> None:
    from .configuration_bertram import BertramConfig
    from .injection.auto import make_loader
    from .injection.configuration import InjectedConfig
    from .modeling_bertram import BertramModel

    auto.AutoModel.register(BertramConfig, BertramModel, exist_ok=True)
    for name, auto_class in vars(auto).items():
        if name.startswith("AutoModel") and hasattr(auto_class, "_model_mapping"):
            auto_class.register(InjectedConfig, make_loader(auto_class), exist_ok=True)


def _register_tokenizer(auto: Any) -> None:
    from .injection.auto import InjectedTokenizer
    from .injection.configuration import InjectedConfig

    auto.AutoTokenizer.register(InjectedConfig, InjectedTokenizer, exist_ok=True)


def _register_processor(auto: Any) -> None:
    from .configuration_bertram import BertramConfig
    from .processing_bertram import BertramProcessor

    auto.AutoProcessor.register(BertramConfig, BertramProcessor, exist_ok=True)


for _module, _register in (
    ("configuration_auto", _register_configs),
    ("modeling_auto", _register_models),
    ("tokenization_auto", _register_tokenizer),
    ("processing_auto", _register_processor),
):
    when_imported(f"transformers.models.auto.{_module}", _register, waiting_for=__name__)
