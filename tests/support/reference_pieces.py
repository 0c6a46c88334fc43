"""Mode pieces, written down naively: one word, one context, one layer at a time, no padding."""

import torch


def induce(model, processor, word, contexts):
    """Returns the vector of a word whose contexts have the form (text before it, text after it)."""
    shown = induce_from_readings(
        model, [read(model, processor, word, *context) for context in contexts or [("", "")]], len(contexts)
    )
    if model.config.piece_strength is None or not contexts:
        return rescale(model, shown)
    hidden = [read(model, processor, word, *context, pieces=[model.config.hidden_token_id]) for context in contexts]
    unseen = rescale(model, induce_from_readings(model, hidden, len(contexts)))
    share = len(contexts) / (len(contexts) + model.config.piece_strength)
    if model.config.agreement_threshold is not None:
        mean = model.get_input_embeddings().weight.mean(dim=0)
        alone = induce(model, processor, word, []) - mean
        agreement = alone @ (unseen - mean) / alone.norm() / (unseen - mean).norm()
        share /= 1 + torch.exp(model.config.agreement_slope * (agreement - model.config.agreement_threshold))
    return rescale(model, (1 - share) * rescale(model, shown) + share * unseen)


def rescale(model, vector):
    """Scales a vector to the norm that the model gives to all."""
    if model.config.output_norm is None:
        return vector
    mean = model.get_input_embeddings().weight.mean(dim=0)
    return mean + model.config.output_norm * (vector - mean) / (vector - mean).norm()


def induce_from_readings(model, readings, num_contexts):
    """Weighs readings and maps them to a vector."""
    if model.config.context_weighting == "scored":
        scores = torch.stack([model.context_attention.score.weight[0] @ reading for reading in readings])
        weights = torch.exp(scores) / torch.exp(scores).sum()
    else:
        weights = torch.full((len(readings),), 1 / len(readings))
    pooled = sum(weight * reading for weight, reading in zip(weights, readings, strict=True))
    vector = model.output_map.weight @ pooled + model.output_map.bias
    if model.config.second_map:
        share = num_contexts / (num_contexts + model.config.form_strength)
        vector = vector + share * (model.second_map.weight @ pooled + model.second_map.bias)
    return vector


def read(model, processor, word, before, after, pieces=None):
    """Reads "[CLS] before pieces / [MASK] after [SEP]", with the word's own pieces unless others are given."""
    tokenizer = processor.tokenizer
    encode = lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]  # noqa: E731
    ends = tokenizer("")["input_ids"]
    space = tokenizer.convert_tokens_to_ids("Ġ")  # a token of its own in a small vocabulary
    pieces = pieces or [piece for piece in encode(f" {word}") if piece != space]
    left = [ends[0], *encode(before)]
    ids = [*left, *pieces, encode(" /")[-1], tokenizer.mask_token_id, *encode(after), ends[-1]]
    states = model.encoder(torch.tensor([ids]), output_hidden_states=True).hidden_states[1:]
    if model.config.context_layers == "last":
        states = states[-1:]
    table = model.get_input_embeddings().weight
    first, number = len(left), len(pieces)
    return torch.cat(
        [
            *(layer[0, first + number + 1] for layer in states),
            *(layer[0, first : first + number].mean(dim=0) for layer in states),
            torch.stack([table[piece] for piece in pieces]).mean(dim=0),
            table[pieces[0]],
            table[pieces[-1]],
        ]
    )
