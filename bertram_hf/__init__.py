"""BERTRAM for Hugging Face Transformers: input embeddings for words that a model does not know."""

from transformers import AutoConfig, AutoModel, AutoProcessor

from .baking import bake
from .configuration_bertram import PRESETS, BertramConfig
from .embedding_space import embedding_fingerprint
from .finetuning import SlashAugmentation
from .form_tokenization import FormTokenizer
from .induction import induce_vectors
from .injection import BertramEmbeddingInjector
from .injection_policy import InjectionPolicy
from .label_alignment import align_word_labels, find_answer_tokens, ignore_injected_labels
from .modeling_bertram import BertramModel, BertramOutput
from .processing_bertram import BertramProcessor, EncodedWord
from .rare_words import RareWord, RareWords, find_rare_words
from .version import __version__
from .word_matching import WordError
from .word_report import WordReport, report_word
from .word_vectors import WordVectors

AutoConfig.register("bertram", BertramConfig, exist_ok=True)
AutoModel.register(BertramConfig, BertramModel, exist_ok=True)
AutoProcessor.register(BertramConfig, BertramProcessor, exist_ok=True)

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
