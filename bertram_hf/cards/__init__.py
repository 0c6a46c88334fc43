"""Model cards, generated from the saved files, and the code that is uploaded with a model."""

from .card import write_card
from .remote_code import add_remote_code

__all__ = ["add_remote_code", "write_card"]
