"""A page to try words in a browser."""

from .page import build_page
from .playground import Playground

__all__ = ["Playground", "build_page"]
