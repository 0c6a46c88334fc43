"""One-token approximation: target vectors for words of several pieces."""

from .approximate import approximate_vectors

__all__ = ["approximate_vectors"]
