"""A user's texts in, a model that knows their words out."""

from .adapt import adapt
from .run import Adaptation

__all__ = ["Adaptation", "adapt"]
