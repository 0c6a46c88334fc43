"""The paper's tables by one recipe."""

from .recipe import EvaluationRecipe
from .runner import Reproduction

__all__ = ["EvaluationRecipe", "Reproduction"]
