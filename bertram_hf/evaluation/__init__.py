"""Evaluators and statistics."""

from .classification import TextClassification
from .definitions import DefinitionRetrieval
from .embedding import SentenceEmbedder
from .misspellings import evaluate_misspellings
from .rarified import evaluate_rarified
from .recovery import RecoveryScore, evaluate_recovery
from .similarity import evaluate_similarity, read_rated_pairs
from .statistics import bootstrap_interval, compare_systems
from .terms import TermSimilarity, read_rated_terms
from .wnlampro import read_wnlampro
from .wnlampro_scoring import evaluate_wnlampro, paired_t_test

__all__ = [
    "DefinitionRetrieval",
    "RecoveryScore",
    "SentenceEmbedder",
    "TermSimilarity",
    "TextClassification",
    "bootstrap_interval",
    "compare_systems",
    "evaluate_misspellings",
    "evaluate_rarified",
    "evaluate_recovery",
    "evaluate_similarity",
    "evaluate_wnlampro",
    "paired_t_test",
    "read_rated_pairs",
    "read_rated_terms",
    "read_wnlampro",
]
