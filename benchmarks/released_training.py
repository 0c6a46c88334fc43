"""The training loops of the released code, written anew, for `training.py` to be measured beside.

Context stage: contexts tokenised one by one in every epoch and padded to 96 tokens, all layers at all positions, eager
attention, no gradient in the frozen encoder. Form stage: `nn.Embedding` and a mean, Adam over the whole table,
parameter by parameter. Today's kernels.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from induction import MAX_LENGTH
from torch import nn
from transformers import PreTrainedModel, get_linear_schedule_with_warmup

from bertram_hf import BertramModel, BertramProcessor
from bertram_hf.processing_bertram import pad_rows
from bertram_hf.tokenization_form import PAD_ID
from bertram_hf.training.batches import WordBatches
from bertram_hf.training.recipe import PAPER_CONTEXT_STAGE, PAPER_FORM_STAGE


def read_as_released(
    processor: BertramProcessor,
    texts: Sequence[tuple[str, str]],
    targets: torch.Tensor,
    words: np.ndarray,
    rows: np.ndarray,
    num_contexts: np.ndarray,
) -> dict[str, Any]:
    """Makes a batch of contexts, each a word and a text, tokenised one by one and padded to `MAX_LENGTH`."""
    input_ids = torch.zeros(len(rows), MAX_LENGTH, dtype=torch.long)
    attention_mask, mask_positions = torch.zeros_like(input_ids), torch.zeros(len(rows), dtype=torch.long)
    for index, row in enumerate(rows):
        word, text = texts[row]
        encoded = processor.encode([word], [[text]])[0]  # equal to the released one on these texts
        length, mask_positions[index] = len(encoded.input_ids[0]), encoded.mask_positions[0]
        input_ids[index, :length], attention_mask[index, :length] = torch.tensor(encoded.input_ids[0]), 1
    inputs = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": torch.zeros_like(input_ids)}
    return {
        "inputs": inputs,
        "mask_positions": mask_positions,
        "sizes": num_contexts.tolist(),
        "labels": targets[words],
    }


def train_contexts_as_released(
    model: BertramModel, encoder: PreTrainedModel, batches: WordBatches, *, num_epochs: int, stop_after: int
) -> list[float]:
    """Trains A, b and the weighting as timoschick/bertram does. Returns the loss of every step until `stop_after`.

    Args:
        model: Trained in place.
        encoder: The model's encoder with eager attention.
        batches: Batches from `read_as_released`.
        num_epochs: Epochs of the learning-rate schedule.
        stop_after: Epochs to train.
    """
    trained = [*model.context_attention.parameters(), *model.output_map.parameters()]
    settings = PAPER_CONTEXT_STAGE.trainer
    optimizer = torch.optim.AdamW(
        trained, lr=settings["learning_rate"], weight_decay=settings["weight_decay"], foreach=False
    )
    num_steps = num_epochs * len(batches)
    schedule = get_linear_schedule_with_warmup(optimizer, math.ceil(settings["warmup_steps"] * num_steps), num_steps)
    losses = []
    for epoch in range(stop_after):
        batches.set_epoch(epoch)
        for index in range(len(batches)):
            batch: Any = batches[index]
            with torch.no_grad():
                hidden_states = encoder(**batch["inputs"]).last_hidden_state
            context_embeddings = hidden_states[torch.arange(len(hidden_states)), batch["mask_positions"]]
            pooled = []
            for own in context_embeddings.split(batch["sizes"]):
                projected = model.context_attention.projection(own)
                scores = projected @ projected.T / projected.shape[-1] ** 0.5  # (C, C)
                pooled.append(scores.sum(dim=1) / (scores.sum() + 1e-12) @ own)
            loss = nn.functional.mse_loss(model.output_map(torch.stack(pooled)), batch["labels"])
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=False)
    return losses


def train_forms_as_released(
    table: nn.Embedding, processor: BertramProcessor, words: list[str], targets: torch.Tensor, batches: WordBatches
) -> None:
    """Trains n-gram embeddings in place for one epoch as timoschick/bertram does; `batches` holds rows of words."""
    optimizer = torch.optim.Adam(table.parameters(), lr=PAPER_FORM_STAGE.trainer["learning_rate"], foreach=False)
    schedule = get_linear_schedule_with_warmup(optimizer, 0, len(batches))
    for index in range(len(batches)):
        rows: Any = batches[index]
        form_ids = pad_rows([processor.encode_form(words[row]) for row in rows], PAD_ID)
        mask = (form_ids != PAD_ID).float()
        form_embeddings = (table(form_ids) * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        loss = nn.functional.mse_loss(form_embeddings, targets[rows])
        loss.backward()
        loss.item()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=False)
