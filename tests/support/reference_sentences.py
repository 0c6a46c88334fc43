"""Evaluation by sentence embeddings once more: one text at a time, plain loops, and vectors put in by hand."""

import torch
from scipy.stats import spearmanr


@torch.no_grad()
def embed_one(encoder, tokenizer, text, vectors=None, mode="replace"):
    """Returns the embedding of a text of BERT's words with spaces between, as a unit vector (H,)."""
    table = encoder.get_input_embeddings().weight
    rows, pooled = [table[tokenizer.cls_token_id]], [True]
    for word in text.lower().split():
        pieces = [table[token_id] for token_id in tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word))]
        has_vector = vectors is not None and word in vectors
        if has_vector and (mode == "replace" or (mode == "auto" and word in vectors.replacing())):
            rows.append(vectors[word])
            pooled.append(True)
            continue
        rows += pieces
        pooled += [True] * len(pieces)
        if has_vector:
            rows += [table[tokenizer.convert_tokens_to_ids("/")], vectors[word]]
            pooled += [False, True]
    rows.append(table[tokenizer.sep_token_id])
    pooled.append(True)
    states = encoder(inputs_embeds=torch.stack(rows)[None]).last_hidden_state[0]
    mean = states[torch.tensor(pooled)].mean(dim=0)
    return mean / mean.norm()


def rank_definitions(encoder, tokenizer, definitions, others, vectors=None, mode="replace"):
    """Returns 1 / rank of the best own definition of each word."""
    texts = []
    for text in [*(text for own in definitions.values() for text in own), *others]:
        if text not in texts:
            texts.append(text)
    reciprocal_ranks = []
    for word, own in definitions.items():
        query = embed_one(encoder, tokenizer, word, vectors, mode)
        scores = {text: float(query @ embed_one(encoder, tokenizer, text, vectors, mode)) for text in texts}
        ranked = sorted(texts, key=lambda text: -scores[text])
        reciprocal_ranks.append(1 / min(1 + ranked.index(text) for text in own))
    return reciprocal_ranks


def correlate_terms(encoder, tokenizer, pairs, vectors=None, mode="replace"):
    """Returns the rank correlation of ratings and cosines."""
    cosines = []
    for pair in pairs:
        first, second = (embed_one(encoder, tokenizer, term, vectors, mode) for term in (pair.first, pair.second))
        cosines.append(float(first @ second))
    return float(spearmanr([pair.rating for pair in pairs], cosines).statistic)
