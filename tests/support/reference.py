"""BERTRAM straight from the paper's equations: one word, one context, one position at a time, no padding."""

import torch


def induce(model, processor, word, contexts):
    """Returns v_(w,C) and the weights rho, from the parameters of `model` but without calling it."""
    mode = model.config.mode
    form = form_vector(model, processor, word) if model.config.has_form else None
    if mode == "form" or not contexts:
        return form, []
    (encoded,) = processor.encode([word], [contexts])
    states = [
        context_vector(model, ids, position, form)
        for ids, position in zip(encoded.input_ids, encoded.mask_positions, strict=True)
    ]
    rho = weights(model, states)
    pooled = sum(weight * state for weight, state in zip(rho, states, strict=True))
    vector = model.output_map.weight @ pooled  # A · v
    if model.output_map.bias is not None:
        vector = vector + model.output_map.bias
    if mode == "shallow":
        alpha = torch.sigmoid(model.gate.weight[0] @ torch.cat([vector, form]) + model.gate.bias[0])
        vector = alpha * vector + (1 - alpha) * form
    return vector, rho


def form_vector(model, processor, word):
    """Mean of the embeddings of all n-grams, unknown ones included."""
    rows = [model.form_encoder.embeddings.weight[i] for i in processor.encode_form(word)]
    return sum(rows) / len(rows)


def context_vector(model, ids, position, form):
    """h_i(e_1, ..., e_m): the last layer at the mask, with the form vector where the mode puts it."""
    table = model.encoder.get_input_embeddings().weight
    rows = [table[i] for i in ids]
    if model.config.context_encoder == "bag-of-words":
        inner = [rows[i] for i in range(1, len(ids) - 1) if ids[i] != ids[position]]
        return sum(inner) / len(inner) if inner else torch.zeros_like(rows[0])
    if model.config.mode == "replace":
        rows[position] = form
    elif model.config.mode == "add":
        rows[1] = form
    elif model.config.mode == "add-quotes":
        rows[2] = form
    return model.encoder(inputs_embeds=torch.stack(rows)[None]).last_hidden_state[0, position]


def weights(model, states):
    """rho_i of Attentive Mimicking by the full matrix s_ij, or 1 / m."""
    if model.config.context_weighting == "uniform":
        return [torch.tensor(1 / len(states))] * len(states)
    layer = model.context_attention.projection
    keys = [layer.weight @ state + layer.bias for state in states]
    similarity = [[torch.dot(a, b) / len(a) ** 0.5 for b in keys] for a in keys]
    total = sum(sum(row) for row in similarity)
    return [sum(row) / (total + 1e-12) for row in similarity]
