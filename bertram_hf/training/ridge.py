"""A closed-form start of the output map: ridge regression from contexts, and spelling, to targets."""

import numpy as np
import torch
from torch import nn

from ..modeling_bertram import BertramModel
from .batches import WordCollator, draw_sizes

WORDS_PER_BLOCK = 512
NUM_DRAWS = 4  # of contexts for each word; one if the encoder has to read them
CONTEXTS_PER_READING = 64


@torch.no_grad()
def start_from_ridge(
    model: BertramModel,
    inputs: WordCollator,
    *,
    penalty: float,
    min_contexts: int,
    max_contexts: int,
    max_words: int | None = None,
    seed: int = 0,
) -> None:
    """Sets A and b and, if there are any, A', F and c to a ridge regression onto the targets, in place; in mode pieces,
    where words have many features, A' to zero.

    It is the exact minimum of the squared error with the penalty for uniform weights of the contexts, and so the
    context attention, if there is one, starts with uniform weights.

    Args:
        model: The model.
        inputs: The training words; without cached features, the encoder reads their contexts.
        penalty: The ridge penalty, for features of variance one, in units of a word.
        min_contexts: Each word takes part four times (once without cached features), with the means of random numbers
            of contexts from this one
        max_contexts: to this one, so that the map fits words with few contexts.
        max_words: At most so many words, drawn at random, take part; all if not given.
        seed: Seed of these draws.
    """
    generator = np.random.default_rng(seed)
    chosen = np.flatnonzero(inputs.targets.isfinite().all(dim=1).numpy())
    if max_words is not None:
        chosen = generator.permutation(chosen)[:max_words]
    blocks = np.array_split(chosen, -(-len(chosen) // WORDS_PER_BLOCK))

    num_draws = 1 if inputs.features is None else NUM_DRAWS

    def draw(words: np.ndarray) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [_mean_inputs(model, inputs, words, min_contexts, max_contexts, generator) for _ in range(num_draws)]

    sample = torch.cat([block[0] for block in draw(generator.permutation(chosen)[:WORDS_PER_BLOCK])])
    mean, scale = sample.mean(dim=0), sample.std(dim=0)
    has_second_map = model.config.second_map and not model.config.reads_pieces
    has_bias = model.output_map.bias is not None
    if not has_bias:
        mean[: model.config.context_size] = 0.0  # which only b could make up for
    scale = torch.where(scale > 1e-4 * scale.max(), scale, torch.inf)  # a feature that never changes says nothing
    size = len(mean)
    context_size = model.config.context_size
    second_size = context_size if has_second_map else 0
    # Columns for A, F and A', and two more for b and c; without spelling the last is always zero.
    num_columns = size + second_size + 2
    square = torch.zeros(num_columns, num_columns, dtype=torch.float64)
    cross = torch.zeros(num_columns, inputs.targets.shape[1], dtype=torch.float64)
    for words in blocks:
        targets = inputs.targets[words].double()
        for means, share in draw(words):
            shares = torch.cat([share.expand(-1, context_size), (1 - share).expand(-1, size - context_size)], dim=1)
            slopes = shares * (means - mean) / scale
            columns = torch.cat([slopes, share * slopes[:, :second_size], share * has_bias, 1 - share], dim=1)
            square.addmm_(columns.T, columns)
            cross.addmm_(columns.T, targets)
    penalties = torch.full((num_columns,), penalty * num_draws, dtype=torch.float64)
    penalties[-2:] = 1e-6
    square.diagonal().add_(penalties)  # in place: with all layers of a large encoder this is gigabytes
    solution = torch.linalg.solve(square, cross)  # (columns, H)
    weights, biases = solution[:size] / scale[:, None], solution[-2:]
    _set_linear(model.output_map, weights[:context_size], biases[0], mean[:context_size])
    if model.config.form_strength is not None and not model.config.reads_pieces:
        _set_linear(model.form_map, weights[context_size:], biases[1], mean[context_size:])
    if has_second_map:
        second_weights = solution[size:-2] / scale[:context_size, None]
        _set_linear(model.second_map, second_weights, torch.zeros_like(biases[0]), mean[:context_size])
    elif model.config.second_map:
        nn.init.zeros_(model.second_map.weight)
    if model.config.context_weighting == "attentive":
        model.context_attention.projection.weight.zero_()
        model.context_attention.projection.bias.fill_(1.0)
    elif model.config.context_weighting == "scored":
        model.context_attention.score.weight.zero_()


def _mean_inputs(
    model: BertramModel,
    inputs: WordCollator,
    words: np.ndarray,
    min_contexts: int,
    max_contexts: int,
    generator: np.random.Generator,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the mean of a draw of each word's contexts, with its form vector beside it if that counts (W, size), and
    the share of the contexts (W, 1)."""
    offsets = inputs.contexts.offsets
    available = np.diff(offsets)[words]
    counts = np.minimum(draw_sizes(len(words), min_contexts, max_contexts, generator), available)
    rows = np.concatenate(
        [offsets[word] + generator.permutation(n)[:k] for word, n, k in zip(words, available, counts, strict=True)]
    )
    batch = inputs(words, rows, counts)
    owners = torch.from_numpy(np.repeat(np.arange(len(words)), counts))
    if "context_embeddings" in batch:
        features = batch["context_embeddings"].double()
    else:
        names = ("input_ids", "attention_mask", "mask_positions", "num_pieces")
        read = {name: batch[name].to(model.device) for name in names if name in batch}
        features = torch.cat(
            [
                model.encode_contexts(**dict(zip(read, part, strict=True))).double().cpu()
                for part in zip(*(tensor.split(CONTEXTS_PER_READING) for tensor in read.values()), strict=True)
            ]
        )
    num_contexts = torch.from_numpy(counts)[:, None].double()
    means = (
        torch.zeros(len(words), features.shape[1], dtype=torch.float64).index_add(0, owners, features) / num_contexts
    )
    if model.config.form_strength is None or model.config.reads_pieces:
        return means, torch.ones_like(num_contexts)
    form = batch.get("form_embeddings")
    if form is None:
        form = model.encode_forms(batch["form_ids"].to(model.device)).cpu()
    return torch.cat([means, form.double()], dim=1), num_contexts / (num_contexts + model.config.form_strength)


def _set_linear(linear: nn.Linear, weights: torch.Tensor, bias: torch.Tensor, mean: torch.Tensor) -> None:
    """Sets a map to `bias + (x - mean) · weights`."""
    linear.weight.copy_(weights.T)
    if linear.bias is not None:
        linear.bias.copy_(bias - mean @ weights)
