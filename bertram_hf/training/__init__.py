"""Training by a recipe: text to checkpoint.

Names are imported when they are first used: reading a recipe loads no Trainer.
"""

from typing import TYPE_CHECKING

from ..utils.imports import import_lazily

if TYPE_CHECKING:
    from .recipe import Recipe
    from .run import train_recipe
    from .trainer import BertramTrainer

__getattr__ = import_lazily(__name__, {"recipe": ("Recipe",), "run": ("train_recipe",), "trainer": ("BertramTrainer",)})

__all__ = ["BertramTrainer", "Recipe", "train_recipe"]
