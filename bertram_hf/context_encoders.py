"""Context part: what an encoder says at the masked word, and how encoders are built and checked."""

import inspect

import torch
from torch import nn
from transformers import AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.masking_utils import create_bidirectional_mask
from transformers.models.auto.modeling_auto import MODEL_MAPPING

# Encoders whose layers are BERT's to the letter, so that the last one can be run at a single position.
BERT_LAYERED_TYPES = ("bert", "roberta", "xlm-roberta", "camembert", "electra")


def build_encoder(config: PreTrainedConfig) -> PreTrainedModel:
    """Builds an encoder with new weights, without the pooler that BERTRAM does not read.

    Raises:
        ValueError: If the encoder cannot be used with BERTRAM.
    """
    if type(config) not in MODEL_MAPPING:
        raise ValueError(f"There is no base model for the encoder type {config.model_type!r}.")
    model_class = MODEL_MAPPING[type(config)]
    model_class = model_class[0] if isinstance(model_class, tuple) else model_class
    check_encoder_type(model_class, config)
    return AutoModel.from_config(config, **pooler_arguments(model_class))


def pooler_arguments(model_class: type[PreTrainedModel]) -> dict[str, bool]:
    """Returns the argument that leaves out the pooler, for classes that have it."""
    takes_pooler = "add_pooling_layer" in inspect.signature(model_class.__init__).parameters
    return {"add_pooling_layer": False} if takes_pooler else {}


def check_encoder_type(model_class: type[PreTrainedModel], config: PreTrainedConfig) -> None:
    """Raises a ValueError that names the encoder if it is not an encoder that takes `inputs_embeds`."""
    name = f"{model_class.__name__} (model type {config.model_type!r})"
    if config.is_encoder_decoder:
        raise ValueError(f"{name} is an encoder-decoder. BERTRAM needs an encoder such as BERT or RoBERTa.")
    if "inputs_embeds" not in inspect.signature(model_class.forward).parameters:
        raise ValueError(f"{name} does not take inputs_embeds, so no vector can be put into its input.")


@torch.no_grad()
def check_encoder_reads_embeddings(encoder: PreTrainedModel) -> None:
    """Raises a ValueError that names the encoder unless `inputs_embeds` means the same to it as `input_ids`.

    Some encoders take `inputs_embeds` and then treat them differently (ESM) or not at all (CANINE, I-BERT).
    """
    name = f"{type(encoder).__name__} (model type {encoder.config.model_type!r})"
    was_training = encoder.training
    encoder.eval()
    try:
        table = encoder.get_input_embeddings()
        low, high = table.weight.shape[0] // 2, table.weight.shape[0]
        input_ids = torch.arange(low, min(low + 4, high), device=table.weight.device)[None]
        expected = encoder(input_ids=input_ids).last_hidden_state
        actual = encoder(inputs_embeds=table(input_ids)).last_hidden_state
    except Exception as error:  # an encoder may fail here in any way; the caller must learn which encoder it was
        raise ValueError(f"{name} cannot be read through inputs_embeds, which BERTRAM needs: {error}") from error
    finally:
        encoder.train(was_training)
    if not torch.allclose(expected, actual, atol=1e-2 if expected.dtype != torch.float32 else 1e-4):
        raise ValueError(f"{name} gives other outputs for inputs_embeds than for input_ids; BERTRAM cannot use it.")


def read_at_positions(
    encoder: PreTrainedModel, inputs_embeds: torch.Tensor, attention_mask: torch.Tensor, positions: torch.Tensor
) -> torch.Tensor:
    """Returns the encoder's last hidden state at one position of each input.

    Of encoders with BERT's layers, the last one is run at these positions only, unless accelerate has spread the layers
    over devices, which needs whole layers.

    Args:
        encoder: Any encoder that takes `inputs_embeds`.
        inputs_embeds: (C, T, H).
        attention_mask: (C, T), padding on the right.
        positions: (C,).

    Returns:
        (C, hidden).
    """
    rows = torch.arange(len(positions), device=positions.device)
    if encoder.config.model_type in BERT_LAYERED_TYPES and not hasattr(encoder.encoder.layer[-1], "_hf_hook"):
        return _read_bert_layers(encoder, inputs_embeds, attention_mask, rows, positions)
    return encoder(inputs_embeds=inputs_embeds, attention_mask=attention_mask).last_hidden_state[rows, positions]


def _read_bert_layers(
    encoder: PreTrainedModel,
    inputs_embeds: torch.Tensor,
    attention_mask: torch.Tensor,
    rows: torch.Tensor,
    positions: torch.Tensor,
) -> torch.Tensor:
    """Runs all layers but the last in full, and the last one only for the queries at `positions`."""
    hidden_states = encoder.embeddings(inputs_embeds=inputs_embeds)  # (C, T, hidden)
    if hasattr(encoder, "embeddings_project"):  # ELECTRA
        hidden_states = encoder.embeddings_project(hidden_states)
    layer_mask = create_bidirectional_mask(
        config=encoder.config, inputs_embeds=hidden_states, attention_mask=attention_mask
    )
    for layer in encoder.encoder.layer[:-1]:
        hidden_states = layer(hidden_states, layer_mask)
    last_layer = encoder.encoder.layer[-1]
    attention = last_layer.attention.self
    residual = hidden_states[rows, positions][:, None]  # (C, 1, hidden)

    def split_heads(states: torch.Tensor) -> torch.Tensor:
        return states.unflatten(-1, (attention.num_attention_heads, -1)).transpose(1, 2)  # (C, heads, T, head)

    attended = nn.functional.scaled_dot_product_attention(
        split_heads(attention.query(residual)),
        split_heads(attention.key(hidden_states)),
        split_heads(attention.value(hidden_states)),
        attn_mask=attention_mask[:, None, None].bool(),
        dropout_p=attention.dropout.p if attention.training else 0.0,
    )
    attention_output = last_layer.attention.output(attended.transpose(1, 2).flatten(2), residual)
    return last_layer.output(last_layer.intermediate(attention_output), attention_output)[:, 0]


def average_context(
    embeddings: nn.Module, input_ids: torch.Tensor, attention_mask: torch.Tensor, mask_positions: torch.Tensor
) -> torch.Tensor:
    """Returns the mean input embedding of each context's own tokens (bag of words, Section 3.1).

    The first and last token (CLS, SEP) and all masks are no words of the context.

    Args:
        embeddings: The encoder's input embeddings.
        input_ids: (C, T).
        attention_mask: (C, T), padding on the right.
        mask_positions: (C,).

    Returns:
        (C, H); zero for a context without other words.
    """
    positions = torch.arange(input_ids.shape[1], device=input_ids.device)
    is_inside = (positions > 0) & (positions < attention_mask.sum(dim=1, keepdim=True) - 1)
    token_embeddings = embeddings(input_ids)
    weights = (is_inside & (input_ids != input_ids.gather(1, mask_positions[:, None]))).to(token_embeddings.dtype)
    summed = torch.einsum("ct,cth->ch", weights, token_embeddings)
    return summed / weights.sum(dim=1, keepdim=True).clamp(min=1)
