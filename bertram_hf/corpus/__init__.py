"""Text to word counts and contexts."""

from .build import CorpusSummary, build_corpus, check_case, load_contexts, load_counts, read_missing_words
from .contexts import CorpusContexts, CorpusSource

__all__ = [
    "CorpusContexts",
    "CorpusSource",
    "CorpusSummary",
    "build_corpus",
    "check_case",
    "load_contexts",
    "load_counts",
    "read_missing_words",
]
