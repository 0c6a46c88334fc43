"""Model cards, generated from the saved files."""

from .card import write_card

__all__ = ["write_card"]
