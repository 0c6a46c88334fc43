"""Labelled texts to rarified test sets."""

from .misspellings import read_misspellings
from .rarify import rarify
from .substitutions import Substitutions
from .synonyms import find_synonyms

__all__ = ["Substitutions", "find_synonyms", "rarify", "read_misspellings"]
