"""The head of a masked language model, put on an encoder that has none so that it predicts something from the start."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from transformers import AutoModelForMaskedLM, PreTrainedModel
from transformers.utils import logging


def add_masked_lm_head(encoder_name_or_path: str | os.PathLike[str], token_counts: torch.Tensor) -> PreTrainedModel:
    """Returns an encoder with a masked-LM head that predicts something from the start, and frozen input embeddings.

    The decoder is the input embeddings, its bias the logarithm of each token's frequency; the layer before it hands the
    encoder's output on, and its normalisation makes the logits vary by about one.

    Args:
        encoder_name_or_path: Folder or Hub name of an encoder.
        token_counts: (V,), how often each token occurs; of fewer tokens than the encoder has embeddings, if it has more
            than its tokenizer.

    Raises:
        ValueError: If the encoder has a head already, or one that is not built like BERT's and RoBERTa's.
    """
    with _without_warnings():  # that the head is missing, which Transformers takes for a damaged checkpoint
        model, loading = AutoModelForMaskedLM.from_pretrained(
            encoder_name_or_path, dtype=torch.float32, output_loading_info=True
        )
    transform, norm, decoder = find_head(model)
    names = {id(module): name for name, module in model.named_modules()}
    if f"{names[id(transform)]}.weight" not in loading["missing_keys"]:
        raise ValueError(
            f"Expected an encoder without a masked-LM head; {encoder_name_or_path} has one. Load it with "
            "AutoModelForMaskedLM, and train it on with Transformers if need be."
        )
    embeddings = model.get_input_embeddings().weight
    frequencies = torch.ones(embeddings.shape[0], dtype=torch.float64)  # as if each token had been seen once more
    frequencies[: len(token_counts)] += token_counts
    spread = (embeddings - embeddings.mean(dim=0)).norm(dim=1).square().mean().sqrt()
    with torch.no_grad():
        nn.init.eye_(transform.weight)
        if transform.bias is not None:
            transform.bias.zero_()
        norm.weight.fill_(1 / spread.item())
        if norm.bias is not None:
            norm.bias.zero_()
        decoder.bias.copy_((frequencies / frequencies.sum()).log())
    embeddings.requires_grad_(False)
    return model


def find_head(model: PreTrainedModel) -> tuple[nn.Linear, nn.LayerNorm, nn.Linear]:
    """Returns the parts of a masked-LM head: dense layer, normalisation, and the decoder, tied to the embeddings.

    Raises:
        ValueError: If the head has other parts.
    """
    inside = set(model.base_model.modules())
    decoder = model.get_output_embeddings()
    head = [module for module in model.modules() if module not in inside and module is not decoder]
    dense = [module for module in head if type(module) is nn.Linear]
    norms = [module for module in head if type(module) is nn.LayerNorm]
    is_square = len(dense) == 1 and dense[0].in_features == dense[0].out_features
    is_tied = decoder is not None and decoder.weight is model.get_input_embeddings().weight
    if not (is_square and len(norms) == 1 and is_tied and getattr(decoder, "bias", None) is not None):
        raise ValueError(
            "Expected a masked-LM head as BERT and RoBERTa have it: a square dense layer, a LayerNorm, and a decoder "
            f"with bias that shares the input embeddings; {type(model).__name__} has another. Set tie_word_embeddings "
            "in its config if it is false, or take another encoder."
        )
    return dense[0], norms[0], decoder


class MaskedTokenModel(PreTrainedModel):
    """A masked language model in training: it predicts the masked tokens alone.

    The loss is the model's own. What it saves is the running of the decoder at all other tokens, which for a small
    encoder is as much work as the encoder.

    Args:
        model: The masked language model, which is trained in place.
    """

    accepts_loss_kwargs = False
    _supports_sdpa = _supports_flash_attn = _supports_flex_attn = True  # if the model inside does

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model.config)
        self.model = model
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        labels: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """Returns the `loss` of tokens (C, T) whose label is not -100."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        is_masked = labels != -100
        base = self.model.base_model
        heads = [child for child in self.model.children() if child is not base]
        if len(heads) == 1:
            logits = heads[0](base(**inputs).last_hidden_state[is_masked])  # (masked, V)
        else:  # a head in several parts, which only its model can put together
            logits = self.model(**inputs).logits[is_masked]
        loss = nn.functional.cross_entropy(logits, labels[is_masked], reduction="sum")
        return {"loss": loss / is_masked.sum().clamp(min=1)}


@contextmanager
def _without_warnings() -> Iterator[None]:
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
