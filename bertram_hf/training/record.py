"""What a training run leaves beside its stages: finished models, and the record that model cards are made of."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from transformers import PreTrainedModel

from ..evaluation.recovery import RecoveryScore, evaluate_recovery
from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..processing_look_alikes import LOOK_ALIKES_NAME
from ..utils.environment import installed_versions
from ..utils.files import read_json, write_json
from ..utils.hashing import fingerprint
from ..utils.names import TRAINING_NAME
from .data import TrainingData
from .recipe import Recipe
from .stage import read_record

STAGE_FACTS = ("epochs", "steps", "train_loss", "eval_loss", "seconds")
EVALUATION = "Recovery of held-out words: rank of the true embedding among the whole vocabulary by centred cosine."


@dataclass(frozen=True)
class SystemWriter:
    """Saves and scores the trained systems of a recipe.

    Attributes:
        recipe: The recipe.
        data: Its words and contexts.
        encoder: The encoder.
        process: This process among those that train; the main one writes.
        command: The command that was given, for the record.
        show_progress: Whether to show progress bars.
    """

    recipe: Recipe
    data: TrainingData
    encoder: PreTrainedModel
    process: PartialState
    command: str | None = None
    show_progress: bool = True

    def finish(self, preset: str, model: BertramModel, stages: Sequence[Path]) -> Path:
        """Saves a trained system with its record and scores it on the held-out words. Returns its folder."""
        folder = Path(self.recipe.output) / preset
        records = [read_record(stage) for stage in stages]
        made_from = self._fingerprint(records[-1]["fingerprint"])
        path = folder / TRAINING_NAME
        found = read_json(path) if path.is_file() else {}
        # Only the main process decides: another one may look when this one has already written.
        if self.process.is_main_process and found.get("fingerprint") != made_from:
            unfinished = folder.with_name(f"{preset}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)  # of a killed run
            processor = BertramProcessor.from_pretrained(stages[-1])
            save_model(model, unfinished, dtype=self.recipe.dtype, save_layers=self.recipe.save_layers)
            processor.save_pretrained(unfinished)
            model = BertramModel.from_pretrained(unfinished, encoder=self.encoder)  # what users get is what is scored
            scores = self._score(model, processor)
            stage_records = dict(zip([stage.name for stage in stages], records, strict=True))
            record = describe_training(self.recipe, self.data, stage_records, scores, command=self.command)
            record["fingerprint"] = made_from
            write_json(unfinished / TRAINING_NAME, record)
            # Only now, and the record last: a kill or a full disk leaves the system that was there before.
            folder.mkdir(exist_ok=True)
            if processor.look_alikes is None:
                (folder / LOOK_ALIKES_NAME).unlink(missing_ok=True)
            for file in sorted(unfinished.iterdir(), key=lambda file: file.name == TRAINING_NAME):
                file.replace(folder / file.name)
            unfinished.rmdir()
        self.process.wait_for_everyone()
        return folder

    def _fingerprint(self, trained: str) -> str:
        """Names all that a saved system and its record depend on: the last stage, and how it is saved and scored."""
        recipe, heldout = self.recipe, self.data.heldout_contexts
        saved = [recipe.dtype, recipe.encoder_name or str(recipe.encoder), recipe.description, asdict(recipe.heldout)]
        saved += ["layers"] if recipe.save_layers else []
        contexts = [[word, heldout[word]] for word in self.data.heldout]
        return fingerprint([trained, saved, contexts])

    def _score(self, model: BertramModel, processor: BertramProcessor) -> list[RecoveryScore]:
        """Scores a model on the held-out words; nothing if there are none."""
        heldout = self.recipe.heldout
        if not self.data.heldout:
            return []
        return evaluate_recovery(
            model,
            processor,
            {word: self.data.heldout_contexts[word] for word in self.data.heldout},
            self.data.targets,
            vocabulary=self.encoder.get_input_embeddings().weight.detach().float(),
            num_contexts=heldout.num_contexts,
            num_draws=heldout.num_draws,
            seed=self.recipe.seed,
            show_progress=self.show_progress,
        )


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
    return {
        "command": command,
        "recipe": asdict(recipe),
        "seed": recipe.seed,
        "versions": installed_versions(),
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


def save_model(model: BertramModel, folder: Path, *, dtype: str, save_layers: bool = False) -> None:
    """Saves a model without its frozen encoder, or with its layers; the weights in `dtype`, to be loaded in the model's
    own."""
    state = {name: value.to(getattr(torch, dtype)) for name, value in model.state_dict().items()}
    model.save_pretrained(folder, state_dict=state, include_encoder="layers" if save_layers else model.trained_encoder)
