"""One stage of training, on `transformers.Trainer`."""

import logging
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from transformers import EarlyStoppingCallback, TrainingArguments

from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..utils.files import read_json, write_json
from ..utils.trainer import last_whole_checkpoint
from .batches import WordBatches, WordCollator, count_repetitions
from .losses import EncoderLoss, MimickingLoss
from .recipe import Recipe, StageSettings
from .trainer import BertramTrainer

logger = logging.getLogger(__name__)
STAGE_NAME = "stage.json"


def check_trainer_fields(recipe: Recipe) -> None:
    """Raises a ValueError if a stage of a recipe gives the Trainer a field that it does not have, or text for a number.

    Recipes do not check this themselves, so that reading one does not load the Trainer.
    """
    stages = {"context": recipe.context, "form": recipe.form, "combined": recipe.combined, "pieces": recipe.pieces}
    stages |= {f"combined_for.{preset}": recipe.combined_stage(preset) for preset in recipe.combined_for}
    defaults = {entry.name: entry.default for entry in fields(TrainingArguments)}
    for stage, settings in stages.items():
        for name, value in () if settings is None else settings.trainer.items():
            if name not in defaults:
                raise ValueError(f"{stage}.trainer.{name}: TrainingArguments has no such field. Check its name.")
            is_number = isinstance(defaults[name], int | float) and not isinstance(defaults[name], bool)
            if is_number and (isinstance(value, bool) or not isinstance(value, int | float | type(None))):
                raise ValueError(f"{stage}.trainer.{name}: expected a number; got {value!r}.")


def train_stage(
    model: BertramModel,
    processor: BertramProcessor,
    inputs: WordCollator,
    occurrences: np.ndarray,
    *,
    settings: StageSettings,
    folder: str | os.PathLike,
    fingerprint: str,
    vocabulary: torch.Tensor,
    heldout: Mapping[int, list[dict[str, torch.Tensor]]] | None = None,
    encoder_loss: EncoderLoss | None = None,
    seed: int = 0,
) -> BertramModel:
    """Trains a model, or goes on where a killed run was, or loads what a finished one left.

    Args:
        model: The model at its start; changed in place.
        processor: Its processor, saved beside it.
        inputs: Makes batches of training words.
        occurrences: (W,), how often each training word occurs in the corpus.
        settings: How to train.
        folder: Where checkpoints and the trained model are kept.
        fingerprint: Stands for all that the result depends on. A folder with another one is begun anew.
        vocabulary: (V, H), the encoder's input embeddings.
        heldout: Batches of held-out words, by number of contexts.
        encoder_loss: The second loss of batches with probes.
        seed: Seed of batches and dropout.

    Returns:
        The trained model, which `folder` then holds too.
    """
    folder = Path(folder)
    record = read_record(folder)
    if record.get("fingerprint") == fingerprint and record.get("finished"):
        logger.info("%s is finished; it is not trained again.", folder)
        return BertramModel.from_pretrained(folder, encoder=model.encoder if model.config.has_context else None)
    if settings.patience and heldout is None:
        raise ValueError("patience needs held-out words to watch; set development_share of heldout above 0.")
    best = {"metric_for_best_model": "mrr", "load_best_model_at_end": True} if settings.patience else {}
    arguments = TrainingArguments(
        **{
            "output_dir": str(folder),
            "per_device_train_batch_size": 1,  # an item is a batch
            "train_sampling_strategy": "sequential",  # the batches are drawn at random already
            "remove_unused_columns": False,
            "logging_steps": 50,
            "save_total_limit": 1,
            "seed": seed,
            "report_to": "none",
            "eval_strategy": "no" if heldout is None else "epoch",
            "save_strategy": "epoch",
            "max_grad_norm": 0.0,  # as the released code
            **best,
            **settings.trainer,
        }
    )
    batches = WordBatches(
        inputs,
        inputs.contexts.offsets,
        count_repetitions(occurrences, settings.max_repetitions),
        words_per_batch=settings.words_per_batch,
        contexts_per_batch=settings.contexts_per_batch,
        min_contexts=settings.min_contexts,
        max_contexts=settings.max_contexts,
        bare_share=getattr(settings, "bare_share", 0.0),
        seed=seed,
    )
    optimizer = _table_optimizer(model, arguments, settings.lazy_adam)
    # Only now, when all settings have proved good, is the folder of other ones given up.
    process = PartialState()
    if process.is_main_process and record.get("fingerprint") != fingerprint:
        if folder.exists():
            logger.warning("%s was trained with other settings or data; beginning anew.", folder)
            shutil.rmtree(folder)
        write_record(folder, {"fingerprint": fingerprint})
    process.wait_for_everyone()
    trainer = BertramTrainer(
        model,
        arguments,
        loss=MimickingLoss(settings.loss, vocabulary.to(arguments.device)),
        train_batches=batches,
        heldout=heldout,
        vocabulary=vocabulary,
        encoder_loss=encoder_loss,
        processing_class=processor,
        callbacks=[EarlyStoppingCallback(settings.patience)] if settings.patience else None,
        optimizers=(optimizer, None),
    )
    start = time.perf_counter()
    checkpoint = last_whole_checkpoint(folder)
    result = trainer.train(resume_from_checkpoint=checkpoint)
    model = trainer.model
    if process.is_main_process:
        model.save_pretrained(folder, include_encoder=model.trained_encoder)
        processor.save_pretrained(folder)
        history = trainer.state.log_history
        evaluations = [entry for entry in history if "eval_loss" in entry]
        if arguments.load_best_model_at_end:  # what is saved is not what was evaluated last
            evaluations = [entry for entry in evaluations if entry["step"] == trainer.state.best_global_step]
        write_record(
            folder,
            {
                "fingerprint": fingerprint,
                "finished": True,
                "epochs": trainer.state.epoch,
                "steps": trainer.state.global_step,
                "train_loss": result.training_loss,
                "eval_loss": evaluations[-1]["eval_loss"] if evaluations else None,
                "seconds": round(time.perf_counter() - start, 1),
                "history": history,
            },
        )
        for path in folder.glob("checkpoint-*"):
            shutil.rmtree(path)
    process.wait_for_everyone()
    return model


def read_record(folder: Path) -> dict[str, Any]:
    """Returns what a stage wrote of itself; nothing if there is none."""
    path = folder / STAGE_NAME
    return read_json(path) if path.is_file() else {}


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Writes what a stage says of itself, at once."""
    write_json(folder / STAGE_NAME, record)


def _table_optimizer(
    model: BertramModel, arguments: TrainingArguments, lazy_adam: bool
) -> torch.optim.Optimizer | None:
    """Returns an optimizer for a form part that is nothing but a table of n-grams; None leaves it to the Trainer."""
    if model.config.mode != "form" or model.config.form_encoder != "ngram":
        return None
    table = model.form_encoder.embeddings
    if lazy_adam:
        if arguments.max_grad_norm or PartialState().num_processes > 1:
            raise ValueError(
                "lazy_adam takes neither max_grad_norm nor several processes: PyTorch can neither clip nor add up its "
                "sparse gradients. Set lazy_adam: false."
            )
        table.sparse = True
        return torch.optim.SparseAdam(table.parameters(), lr=arguments.learning_rate)
    is_adam = str(getattr(arguments.optim, "value", arguments.optim)) in ("adamw_torch", "adamw_torch_fused")
    # Several processes must add up their gradients, and clipping needs their norm: neither is sure for sparse ones.
    if not is_adam or arguments.max_grad_norm or PartialState().num_processes > 1:
        return None
    table.sparse = True
    return TableAdamW(
        table.parameters(),
        lr=arguments.learning_rate,
        betas=(arguments.adam_beta1, arguments.adam_beta2),
        eps=arguments.adam_epsilon,
        weight_decay=arguments.weight_decay,
    )


class TableAdamW(torch.optim.AdamW):
    """AdamW for tables with sparse gradients, with the result of dense ones: every row moves in every step.

    Making a dense gradient takes longer than the step itself: as much memory as the table has, new in each step. Here a
    sparse gradient is written into a dense one that is kept, and wiped out of it afterwards.

    Args:
        params: The tables; each gets sparse gradients.
        options: Further arguments of `torch.optim.AdamW`.

    Example:
        >>> table = torch.nn.EmbeddingBag(1000, 8, sparse=True)
        >>> optimizer = TableAdamW(table.parameters(), lr=0.01)
        >>> table(torch.tensor([[1, 2]])).sum().backward()
        >>> optimizer.step()
    """

    def __init__(self, params: Any, **options: Any) -> None:
        super().__init__(params, fused=True, **options)
        self._gradients: dict[torch.Tensor, torch.Tensor] = {}

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Makes one step; the gradients are gone afterwards."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        rows: dict[torch.Tensor, torch.Tensor] = {}
        for table in (parameter for group in self.param_groups for parameter in group["params"]):
            if table.grad is None:
                continue
            sparse = table.grad.coalesce()
            if table not in self._gradients:
                self._gradients[table] = torch.zeros_like(table)
            gradient = self._gradients[table]
            rows[table] = sparse.indices()[0]
            gradient[rows[table]] = sparse.values()
            table.grad = gradient
        super().step()
        for table, touched in rows.items():
            self._gradients[table][touched] = 0.0
            table.grad = None
        return loss
