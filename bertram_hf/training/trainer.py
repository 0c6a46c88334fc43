"""`transformers.Trainer` for words: batches are whole items, and held-out words are ranked in the vocabulary."""

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

from ..evaluation.recovery import score_recovery
from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..utils.models import in_eval_mode
from ..utils.trainer import only_item
from .batches import WordCollator
from .losses import EncoderLoss, MimickingLoss

logger = logging.getLogger(__name__)
EVALUATION_BATCH = 256
PROBE_INPUTS = (
    *("probe_words", "probe_ids", "probe_mask", "probe_pooled"),
    *("answer_ids", "answer_mask", "is_definition"),
)


class BertramTrainer(Trainer):
    """Trains a [`BertramModel`] on whole batches of words.

    Evaluation is done by every process on all held-out words: they are few, and ranks need the whole vocabulary.

    Args:
        model: The model.
        args: `TrainingArguments`.
        loss: The loss.
        train_batches: A dataset whose items are batches, such as [`WordBatches`].
        heldout: For each number of contexts, batches of held-out words; or None.
        vocabulary: (V, H), the encoder's input embeddings, among which the targets of held-out words are ranked.
        encoder_loss: A second loss, for batches with probes. A word without a target has not-a-numbers as its label.

    Example:
        >>> from bertram_hf.training.recipe import LossSettings
        >>> batch = processor(["kumquat"], [["She peeled a kumquat."]]) | {"labels": torch.ones(1, 768)}
        >>> table = model.get_input_embeddings().weight.detach()
        >>> arguments = TrainingArguments("trainer", max_steps=1, use_cpu=True, save_strategy="no")
        >>> loss = MimickingLoss(LossSettings(), table)
        >>> trainer = BertramTrainer(model, arguments, loss=loss, train_batches=[batch], vocabulary=table)
        >>> trainer.train().global_step
        {'train_runtime': ...}
        1
    """

    def __init__(
        self,
        model: BertramModel,
        args: TrainingArguments,
        *,
        loss: MimickingLoss,
        train_batches: Dataset,
        heldout: Mapping[int, list[dict[str, torch.Tensor]]] | None = None,
        vocabulary: torch.Tensor,
        encoder_loss: EncoderLoss | None = None,
        processing_class: BertramProcessor | None = None,
        callbacks: list[TrainerCallback] | None = None,
        optimizers: tuple[Any, Any] = (None, None),
    ) -> None:
        super().__init__(
            model,
            args,
            data_collator=only_item,
            train_dataset=train_batches,
            eval_dataset=None if heldout is None else [],
            processing_class=processing_class,
            callbacks=callbacks,
            optimizers=optimizers,
        )
        self.loss, self.heldout, self.embedding_table = loss, heldout, vocabulary
        self.encoder_loss = encoder_loss

    def compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, **unused: Any) -> Any:
        labels = inputs.pop("labels")
        words, *probes = (inputs.pop(name, None) for name in PROBE_INPUTS)
        # Before the model runs: to ask a GPU how many there are waits for all that it has to do.
        targeted = labels.isfinite().all(dim=1).nonzero()[:, 0]
        outputs = model(**inputs)
        loss = outputs.word_embeddings.sum() * 0.0
        if len(targeted):
            loss = self.loss(outputs.word_embeddings[targeted], labels[targeted])
        if words is not None and self.encoder_loss is not None:
            loss = loss + self.encoder_loss(outputs.word_embeddings[words], *probes)
        return (loss, outputs) if return_outputs else loss

    @torch.no_grad()
    def evaluate(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> dict[str, float]:
        """Returns the loss on held-out words and how well they are recovered, for each number of contexts."""
        model = self.model
        with in_eval_mode(model):
            metrics: dict[str, float] = {}
            losses, ranks = [], []
            for number, batches in (self.heldout or {}).items():
                induced, true = [], []
                for batch in batches:
                    inputs = self._prepare_inputs(batch)
                    true.append(inputs.pop("labels"))
                    induced.append(model(**inputs).word_embeddings)
                vectors, targets = torch.cat(induced), torch.cat(true)
                losses.append(self.loss(vectors, targets).item())
                score = score_recovery(vectors, targets, self.embedding_table, contexts=number)
                ranks.append(score.mrr)
                metrics |= {
                    f"{metric_key_prefix}_mrr_{number}": score.mrr,
                    f"{metric_key_prefix}_norm_{number}": score.norm_ratio,
                }
            metrics |= {
                f"{metric_key_prefix}_loss": float(np.mean(losses)),
                f"{metric_key_prefix}_mrr": float(np.mean(ranks)),
            }
        self.log(metrics)
        self.control: Any = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        """Leaves out the norm, which is for the log, if nothing is clipped: it is slow for a large table, and PyTorch
        cannot compute it of sparse gradients."""
        return grad_norm

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        """Saves checkpoints without what is frozen of the encoder, which would be most of each."""
        folder = output_dir or self.args.output_dir
        if self.args.should_save:
            self.model.save_pretrained(folder, state_dict=state_dict, include_encoder=self.model.trained_encoder)


def heldout_batches(inputs: WordCollator, numbers: tuple[int, ...]) -> dict[int, list[dict[str, torch.Tensor]]]:
    """Returns, for each number of contexts, all words in batches with their first so many contexts."""
    offsets = inputs.contexts.offsets
    batches: dict[int, list[dict[str, torch.Tensor]]] = {}
    for number in numbers:
        batches[number] = []
        for start in range(0, len(offsets) - 1, EVALUATION_BATCH):
            words = np.arange(start, min(start + EVALUATION_BATCH, len(offsets) - 1))
            counts = np.minimum(np.diff(offsets)[words], number)
            rows = np.concatenate([np.arange(offsets[w], offsets[w] + n) for w, n in zip(words, counts, strict=True)])
            batches[number].append(inputs(words, rows.astype(np.int64), counts))
    return batches
