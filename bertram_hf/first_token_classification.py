"""Logits of a sequence classifier; of a BERT-like one the last layer is run for the first token alone."""

from collections.abc import Mapping

import torch
from transformers import PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

from .context_encoders import can_read_packed, read_packed


def classify(model: PreTrainedModel, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Returns the logits (N, classes) that the model gives, with less work where possible.

    Args:
        model: A sequence classifier in evaluation mode.
        inputs: `input_ids`, `attention_mask` and, if the model takes them, `token_type_ids`; padding on the right.
    """
    if not reads_first_token(model):
        return model(**inputs).logits
    encoder = model.base_model
    first = read_packed(
        encoder,
        encoder.get_input_embeddings()(inputs["input_ids"]),
        inputs["attention_mask"],
        torch.zeros(len(inputs["input_ids"]), dtype=torch.long, device=inputs["input_ids"].device),
        inputs.get("token_type_ids"),
    )[-1][:, None]  # (N, 1, hidden)
    pooler = getattr(encoder, "pooler", None)  # BERT's head stands behind a pooler, others hold their own
    with torch.autocast(first.device.type, enabled=False):  # costs nothing and keeps all digits of the logits
        first = first.to(model.dtype)
        return model.classifier(first if pooler is None else pooler(first))


def reads_first_token(model: PreTrainedModel) -> bool:
    """Whether the model is a classifier of Transformers, unchanged, that looks at the first token of BERT's layers."""
    standard_class = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING.get(type(model.config), None)
    return type(model) is standard_class and can_read_packed(model.base_model)
