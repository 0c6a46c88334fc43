"""Words of texts: splitting, pieces, families, rare words."""

from .families import word_family
from .pieces import PieceReader
from .rare import RareWord, RareWords, find_rare_words
from .splitting import split_words

__all__ = ["PieceReader", "RareWord", "RareWords", "find_rare_words", "split_words", "word_family"]
