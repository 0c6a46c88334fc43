"""Training by a recipe: text to checkpoint."""

from .recipe import Recipe
from .run import train_recipe
from .trainer import BertramTrainer

__all__ = ["BertramTrainer", "Recipe", "train_recipe"]
