"""What a training run leaves beside its stages: finished models, and the record that model cards are made of."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from .modeling_bertram import BertramModel
from .training_data import TrainingData
from .training_recipe import Recipe
from .word_recovery import RecoveryScore

STAGE_FACTS = ("epochs", "steps", "train_loss", "eval_loss", "seconds")
EVALUATION = "Recovery of held-out words: rank of the true embedding among the whole vocabulary by centred cosine."


def describe_training(
    recipe: Recipe,
    data: TrainingData,
    stages: Mapping[str, Mapping[str, Any]],
    scores: Sequence[RecoveryScore],
    *,
    command: str | None,
) -> dict[str, Any]:
    """Returns the content of `training.json`: recipe, data, stages and scores of one system."""
    num_contexts = sum(data.contexts.num_contexts[word] for word in data.train)
    packages = ("bertram-hf", "torch", "transformers")
    return {
        "command": command,
        "recipe": asdict(recipe),
        "seed": recipe.seed,
        "versions": {name: version(name) for name in packages} | {"python": platform.python_version()},
        "data": {
            "description": recipe.description,
            "training_words": len(data.train),
            "contexts": num_contexts,
            "sources": {
                "vocabulary": len(data.train) - data.num_approximated,
                "approximation": data.num_approximated,
            },
        },
        "stages": [
            {"stage": name} | {key: value for key, value in record.items() if key in STAGE_FACTS}
            for name, record in stages.items()
        ],
        "evaluation": {
            "description": EVALUATION,
            "num_words": len(data.heldout),
            "scores": [score.to_dict() for score in scores],
        },
    }


def save_model(model: BertramModel, folder: Path, *, dtype: str) -> None:
    """Saves a model without its frozen encoder; the weights in `dtype`, to be loaded in the model's own."""
    state = {name: value.to(getattr(torch, dtype)) for name, value in model.state_dict().items()}
    model.save_pretrained(folder, state_dict=state, include_encoder=not model.config.freeze_encoder)
