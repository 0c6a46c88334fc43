"""Test set generation straight from Section 4 of the paper: one text, one mask, one pass of the model at a time."""

import torch

from bertram_hf.rarification.replacement import replace_words


def log_probabilities(model, tokenizer, texts, *, max_length):
    """Returns log p(y | x) of each class, and how many mask tokens the model sees."""
    # As lists: Transformers takes an empty second text for none if it is alone.
    encoded = tokenizer(*([text] for text in texts), truncation=True, max_length=max_length, return_tensors="pt")
    with torch.no_grad():
        logits = model(**encoded).logits[0]
    num_masks = int((encoded["input_ids"] == tokenizer.mask_token_id).sum())
    return logits.double().log_softmax(dim=-1), num_masks


def mask_words(tokenizer, texts, words):
    """Writes the mask token in the place of words."""
    return replace_words(texts, [(word, tokenizer.mask_token) for word in words])


def find_decisive_words(model, tokenizer, texts, words, label, *, max_length, max_masked):
    """Returns the indices of the words that are masked until the label is wrong, or why there are none."""
    if not words:
        return "no_words"
    scores, _ = log_probabilities(model, tokenizer, texts, max_length=max_length)
    if scores.argmax() != label:
        return "wrong_at_start"
    masked = []
    while len(masked) < max_masked:
        best = None
        for index in range(len(words)):
            if index in masked:
                continue
            chosen = [words[i] for i in [*masked, index]]
            variant = mask_words(tokenizer, texts, chosen)
            scores, num_masks = log_probabilities(model, tokenizer, variant, max_length=max_length)
            if num_masks == len(chosen) and (best is None or scores[label] < best[1][label]):
                best = index, scores
        if best is None:
            return "not_flipped" if masked else "truncated"
        masked.append(best[0])
        if best[1].argmax() != label:
            return masked
    return "not_flipped"
