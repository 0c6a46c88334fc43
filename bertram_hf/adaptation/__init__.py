"""A user's texts in, a model that knows their words out."""

from .adapt import adapt
from .run import Adaptation
from .term_files import read_aliases, read_glossary

__all__ = ["Adaptation", "adapt", "read_aliases", "read_glossary"]
