"""Text to word counts and contexts."""

from .build import CorpusSummary, build_corpus, load_contexts, load_counts
from .contexts import CorpusContexts, CorpusSource

__all__ = ["CorpusContexts", "CorpusSource", "CorpusSummary", "build_corpus", "load_contexts", "load_counts"]
