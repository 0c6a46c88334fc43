"""The context half of the network: contexts read by an encoder, and weighted."""

import copy
import inspect
import os

import torch
import transformers  # AutoModel is looked up at its use: its import imports modeling_bertram, and that this file.
from torch import nn
from torch.compiler import is_compiling
from transformers import PreTrainedConfig, PreTrainedModel

# Encoders whose layers are BERT's to the letter; MPNet's have other names, and a bias by distance.
BERT_LAYERED_TYPES = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "mpnet")
MAX_SHORT_TOKENS = 64
EPSILON = 1e-12


def build_encoder(config: PreTrainedConfig) -> PreTrainedModel:
    """Builds an encoder with new weights, without the pooler that BERTRAM does not read.

    Raises:
        ValueError: If the encoder cannot be used with BERTRAM.
    """
    if type(config) not in transformers.MODEL_MAPPING:
        raise ValueError(f"There is no base model for the encoder type {config.model_type!r}.")
    model_class = transformers.MODEL_MAPPING[type(config)]
    model_class = model_class[0] if isinstance(model_class, tuple) else model_class
    check_encoder_type(model_class, config)
    return transformers.AutoModel.from_config(config, **pooler_arguments(model_class))


def copy_encoder(encoder: str | os.PathLike | PreTrainedModel) -> PreTrainedModel:
    """Loads a pretrained encoder, or copies a loaded one without its head; the pooler is left out.

    Raises:
        ValueError: If the encoder cannot be used with BERTRAM.
    """
    if isinstance(encoder, PreTrainedModel):
        encoder = copy.deepcopy(encoder.base_model)
    else:
        encoder = transformers.AutoModel.from_pretrained(encoder)
    check_encoder_type(type(encoder), encoder.config)
    check_encoder_reads_embeddings(encoder)
    if pooler_arguments(type(encoder)):
        encoder.pooler = None
    return encoder


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
    """Raises a ValueError that names the encoder unless `inputs_embeds` means the same to it as `input_ids`, and
    padding means nothing.

    Some encoders take `inputs_embeds` and then treat them differently (ESM) or not at all (CANINE, I-BERT); others read
    what stands in padded positions (FNet), so that a vector would depend on the batch.
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
        number = input_ids.shape[1]
        mask = (torch.arange(2 * number, device=input_ids.device) < number).long()[None]
        first, second = (
            encoder(inputs_embeds=table(torch.cat([input_ids, padding], dim=1)), attention_mask=mask)
            for padding in (input_ids, torch.zeros_like(input_ids))
        )
    except Exception as error:  # an encoder may fail here in any way; the caller must learn which encoder it was
        raise ValueError(f"{name} cannot be read through inputs_embeds, which BERTRAM needs: {error}") from error
    finally:
        encoder.train(was_training)
    tolerance = 1e-2 if expected.dtype != torch.float32 else 1e-4
    if not torch.allclose(expected, actual, atol=tolerance):
        raise ValueError(f"{name} gives other outputs for inputs_embeds than for input_ids; BERTRAM cannot use it.")
    if not torch.allclose(first.last_hidden_state[:, :number], second.last_hidden_state[:, :number], atol=tolerance):
        raise ValueError(f"{name} reads what stands in padded positions; BERTRAM cannot use it.")


def read_at_positions(
    encoder: PreTrainedModel,
    inputs_embeds: torch.Tensor,
    attention_mask: torch.Tensor,
    positions: torch.Tensor,
    *,
    all_layers: bool = False,
) -> torch.Tensor:
    """Returns the encoder's hidden states at some positions of each input.

    Args:
        encoder: Any encoder that takes `inputs_embeds`.
        inputs_embeds: (C, T, H).
        attention_mask: (C, T), padding on the right.
        positions: (C, P).
        all_layers: Whether to read all layers instead of the last one.

    Returns:
        (C, P, hidden), or (C, P, layers * hidden), the first layer first.
    """
    if can_read_packed(encoder):
        states = read_packed(encoder, inputs_embeds, attention_mask, positions)
        return torch.cat(states, dim=-1) if all_layers else states[-1]
    rows = torch.arange(len(positions), device=positions.device)[:, None]
    outputs = encoder(inputs_embeds=inputs_embeds, attention_mask=attention_mask, output_hidden_states=all_layers)
    if not all_layers:
        return outputs.last_hidden_state[rows, positions]
    return torch.cat([states[rows, positions] for states in outputs.hidden_states[1:]], dim=-1)


def can_read_packed(encoder: PreTrainedModel) -> bool:
    """Whether `read_packed` may stand in for the encoder.

    It may if the encoder has BERT's layers, dropout is off, and nothing (a compiler, accelerate's hooks) needs to see
    whole layers.
    """
    return (
        encoder.config.model_type in BERT_LAYERED_TYPES
        and not encoder.training
        and not is_compiling()
        and not hasattr(encoder.encoder.layer[-1], "_hf_hook")
    )


def read_packed(
    encoder: PreTrainedModel,
    inputs_embeds: torch.Tensor,
    attention_mask: torch.Tensor,
    positions: torch.Tensor,
    token_type_ids: torch.Tensor | None = None,
) -> list[torch.Tensor]:
    """Does the same as running the encoder, with less work: padding exists only inside attention, so that the linear
    layers see real tokens, and the last layer is run only at the positions (C, P) that are read. Returns (C, P, hidden)
    for each layer."""
    hidden_states = encoder.embeddings(inputs_embeds=inputs_embeds, token_type_ids=token_type_ids)  # (C, T, hidden)
    if hasattr(encoder, "embeddings_project"):  # ELECTRA
        hidden_states = encoder.embeddings_project(hidden_states)
    num_contexts, num_tokens = attention_mask.shape
    is_token = attention_mask.bool()
    kept = is_token.flatten().nonzero()[:, 0]
    packed = hidden_states.flatten(0, 1)[kept]  # (tokens, hidden)
    lengths = attention_mask.sum(dim=1)
    read = (lengths.cumsum(dim=0) - lengths)[:, None] + positions  # (C, P), where they stand among the packed tokens

    def unpack(states: torch.Tensor) -> torch.Tensor:
        if len(kept) == is_token.numel():
            return states.unflatten(0, (num_contexts, num_tokens))  # (C, T, hidden)
        padded = states.new_zeros(num_contexts * num_tokens, states.shape[-1]).index_copy(0, kept, states)
        return padded.unflatten(0, (num_contexts, num_tokens))  # (C, T, hidden)

    def attend(parts: AttentionParts, queries: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        query, key, value = (
            states.unflatten(-1, (parts.num_heads, -1)).transpose(1, 2)  # (C, heads, T, head)
            for states in (queries, unpack(parts.key(packed)), unpack(parts.value(packed)))
        )
        attended = attend_to_tokens(query, key, value, is_token, bias)
        return attended.transpose(1, 2).flatten(2).flatten(0, 1)  # (C * queries, hidden)

    def finish(layer: nn.Module, attended: torch.Tensor) -> torch.Tensor:
        return layer.output(layer.intermediate(attended), attended)

    bias: torch.Tensor | None = None  # (1, heads, T, T)
    if hasattr(encoder.encoder, "compute_position_bias"):  # MPNet
        bias = encoder.encoder.compute_position_bias(hidden_states[:1])
    *layers, last_layer = encoder.encoder.layer
    states_read: list[torch.Tensor] = []
    for layer in layers:
        parts = AttentionParts(layer.attention)
        attended = attend(parts, unpack(parts.query(packed)), bias)[kept]
        packed = finish(layer, parts.finish(attended, packed))
        states_read.append(packed[read])
    parts, residual = AttentionParts(last_layer.attention), packed[read]
    if bias is not None:
        bias = bias[0][:, positions].transpose(0, 1)  # (C, heads, P, T)
    attended = attend(parts, parts.query(residual), bias).view_as(residual)
    return [*states_read, finish(last_layer, parts.finish(attended, residual))]


class AttentionParts:
    """The parts of a layer's attention, whatever an encoder calls them.

    Args:
        attention: The attention of a layer of BERT or MPNet.
    """

    def __init__(self, attention: nn.Module) -> None:
        self.attention, self.is_mpnet = attention, hasattr(attention, "attn")
        inner = attention.attn if self.is_mpnet else attention.self
        names = ("q", "k", "v") if self.is_mpnet else ("query", "key", "value")
        self.query, self.key, self.value = (getattr(inner, name) for name in names)
        self.num_heads = inner.num_attention_heads

    def finish(self, attended: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Returns the output of the attention (..., hidden)."""
        if self.is_mpnet:
            return self.attention.LayerNorm(self.attention.attn.o(attended) + residual)
        return self.attention.output(attended, residual)


def attend_to_tokens(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    is_token: torch.Tensor,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """Returns what PyTorch's attention gives; on short texts, PyTorch's kernel for processors makes little of bfloat16.

    Args:
        query: (C, heads, queries, head).
        key: (C, heads, T, head).
        value: (C, heads, T, head).
        is_token: (C, T), false for padding.
        bias: (1 or C, heads, queries, T), added to the scores.

    Returns:
        (C, heads, queries, head).
    """
    is_token = is_token[:, None, None]
    if query.dtype != torch.bfloat16 or query.device.type != "cpu" or key.shape[2] > MAX_SHORT_TOKENS:
        mask = is_token if bias is None else bias.to(query.dtype).masked_fill(~is_token, -torch.inf)
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    scores = torch.matmul(query * query.shape[-1] ** -0.5, key.transpose(-1, -2)).float()
    scores = scores if bias is None else scores + bias
    weights = scores.masked_fill_(~is_token, -torch.inf).softmax(dim=-1)  # softmax in bfloat16 is slow
    return torch.matmul(weights.to(value.dtype), value)


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


def read_pieces(
    encoder: PreTrainedModel,
    inputs_embeds: torch.Tensor,
    attention_mask: torch.Tensor,
    mask_positions: torch.Tensor,
    num_pieces: torch.Tensor,
    *,
    most_pieces: int,
    all_layers: bool = False,
) -> torch.Tensor:
    """Reads contexts in which a word's pieces, a separator and the mask stand side by side, in this order.

    Args:
        encoder: Any encoder that takes `inputs_embeds`.
        inputs_embeds: (C, T, H).
        attention_mask: (C, T), padding on the right.
        mask_positions: (C,).
        num_pieces: (C,), of each context's word.
        most_pieces: The largest of them, or a larger number.
        all_layers: Whether to read all layers instead of the last one.

    Returns:
        (C, 2 * size + 3 * H): the state at the mask, the mean of the states at the pieces, and the input embeddings of
        the pieces: their mean, the first and the last one.
    """
    first, last = mask_positions - 1 - num_pieces, mask_positions - 2
    number = torch.arange(most_pieces, device=num_pieces.device)
    is_piece = number < num_pieces[:, None]  # (C, P)
    pieces = torch.where(is_piece, first[:, None] + number, mask_positions[:, None])
    positions = torch.cat([mask_positions[:, None], pieces], dim=1)
    states = read_at_positions(encoder, inputs_embeds, attention_mask, positions, all_layers=all_layers)
    rows = torch.arange(len(positions), device=positions.device)
    shares = (is_piece / num_pieces[:, None]).to(states.dtype)
    mean_state = torch.einsum("cp,cph->ch", shares, states[:, 1:])
    mean_piece = torch.einsum("cp,cph->ch", shares.to(inputs_embeds.dtype), inputs_embeds[rows[:, None], pieces])
    static = [mean_piece, inputs_embeds[rows, first], inputs_embeds[rows, last]]
    return torch.cat([states[:, 0], mean_state, *(part.to(states.dtype) for part in static)], dim=-1)


def hide_pieces(
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    mask_positions: torch.Tensor,
    num_pieces: torch.Tensor,
    token_id: int,
) -> dict[str, torch.Tensor]:
    """Writes one token in place of the pieces before each mask; what stands behind them moves up.

    Args:
        input_ids: (C, T).
        attention_mask: (C, T), padding on the right.
        mask_positions: (C,).
        num_pieces: (C,), of each context's word.
        token_id: The token.

    Returns:
        The same inputs, changed.
    """
    first = (mask_positions - 1 - num_pieces)[:, None]
    place = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
    source = place + (place > first) * (num_pieces[:, None] - 1)  # (C, T)
    is_inside = source < input_ids.shape[1]
    source = source.clamp(max=input_ids.shape[1] - 1)
    return {
        "input_ids": input_ids.gather(1, source).scatter(1, first, token_id),
        "attention_mask": attention_mask.gather(1, source) * is_inside,
        "mask_positions": mask_positions + 1 - num_pieces,
        "num_pieces": torch.ones_like(num_pieces),
    }


class ScoredWeights(nn.Module):
    """A context counts by a learned score of its own, in a softmax over the contexts of its word."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.score = nn.Linear(size, 1, bias=False)

    def forward(self, context_embeddings: torch.Tensor, word_indices: torch.Tensor, num_words: int) -> torch.Tensor:
        """Returns the weights (C,) of contexts (C, hidden) that belong to the words `word_indices` (C,)."""
        scores = self.score(context_embeddings)[:, 0].float()
        largest = scores.new_full((num_words,), -torch.inf).scatter_reduce(0, word_indices, scores.detach(), "amax")
        exponentials = (scores - largest[word_indices]).exp()
        weights = exponentials / sum_by_word(exponentials, word_indices, num_words)[word_indices]
        return weights.to(context_embeddings.dtype)


class AttentiveWeights(nn.Module):
    """Attentive Mimicking: a context counts by how well it agrees with the other contexts of its word."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.projection = nn.Linear(size, size)

    def forward(self, context_embeddings: torch.Tensor, word_indices: torch.Tensor, num_words: int) -> torch.Tensor:
        """Returns the weights (C,) of contexts (C, hidden) that belong to the words `word_indices` (C,).

        The released weights are sum_j s_ij / (sum_ij s_ij + 1e-12) with s_ij = l_i · l_j / sqrt(d). The sum over j is
        taken before the product, so that the cost is linear in the number of contexts. There is no softmax.
        """
        projected = self.projection(context_embeddings).float()
        totals = sum_by_word(projected, word_indices, num_words)  # (W, hidden)
        scores = (projected * totals[word_indices]).sum(dim=-1) / projected.shape[-1] ** 0.5
        denominators = sum_by_word(scores, word_indices, num_words) + EPSILON
        return (scores / denominators[word_indices]).to(context_embeddings.dtype)


def index_words(num_contexts: torch.Tensor, total: int) -> torch.Tensor:
    """Returns for each of `total` contexts the index (C,) of its word."""
    words = torch.arange(len(num_contexts), device=num_contexts.device)
    return words.repeat_interleave(num_contexts, output_size=total)


def sum_by_word(values: torch.Tensor, word_indices: torch.Tensor, num_words: int) -> torch.Tensor:
    """Sums rows (C, ...) that belong to the same word into (W, ...).

    In double precision where the device has it: the sum runs row by row, and a word may have 100,000 contexts.
    """
    accumulated = values.float() if values.device.type == "mps" else values.double()
    zeros = accumulated.new_zeros(num_words, *values.shape[1:])
    return zeros.index_add(0, word_indices, accumulated).to(values.dtype)
