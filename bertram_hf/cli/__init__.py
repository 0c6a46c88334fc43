"""The command line, `bertram`."""

from .main import main

__all__ = ["main"]
