"""Words and sentences to vectors."""

from .checkpoints import find_checkpoint
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
    "find_checkpoint",
    "induce_vectors",
    "mean_piece_vectors",
    "report_word",
]
