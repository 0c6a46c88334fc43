"""Words and sentences to vectors."""

from .definitions import add_definitions
from .draws import ContextDraws
from .induce import induce_vectors
from .piece_vectors import mean_piece_vectors
from .report import WordReport, report_word
from .resumable import ResumableInduction
from .word_vectors import WordVectors

__all__ = [
    "ContextDraws",
    "ResumableInduction",
    "WordReport",
    "WordVectors",
    "add_definitions",
    "induce_vectors",
    "mean_piece_vectors",
    "report_word",
]
