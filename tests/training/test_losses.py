import math

import pytest
import torch

from bertram_hf.training.losses import MimickingLoss
from bertram_hf.training.recipe import LossSettings


@pytest.fixture
def vectors():
    generator = torch.Generator().manual_seed(0)
    vocabulary = torch.randn(9, 4, generator=generator) + 0.5
    return torch.randn(3, 4, generator=generator), vocabulary[[2, 5, 7]], vocabulary


def centred_cosine(left, right, vocabulary):
    mean = [sum(column) / len(column) for column in zip(*vocabulary.tolist(), strict=True)]
    left, right = ([x - m for x, m in zip(v.tolist(), mean, strict=True)] for v in (left, right))
    product = sum(x * y for x, y in zip(left, right, strict=True))
    return product / math.sqrt(sum(x * x for x in left)) / math.sqrt(sum(x * x for x in right))


def naive_terms(induced, true, vocabulary, temperature):
    """Returns the three terms, word by word."""
    words, size = induced.shape
    squares = sum((induced[w, d] - true[w, d]).item() ** 2 for w in range(words) for d in range(size))
    cosines = [centred_cosine(induced[w], true[w], vocabulary) for w in range(words)]
    contrasts = []
    for word in range(words):
        scores = [math.exp(centred_cosine(induced[word], row, vocabulary) / temperature) for row in vocabulary]
        contrasts.append(-math.log(math.exp(cosines[word] / temperature) / sum(scores)))
    return squares / (words * size), sum(1 - c for c in cosines) / words, sum(contrasts) / words


@pytest.mark.parametrize("temperature", [0.05, 0.7])
def test_every_term_equals_its_formula(vectors, temperature):
    terms = naive_terms(*vectors, temperature)
    induced, true, vocabulary = vectors
    for index, name in enumerate(("mse", "cosine", "contrastive")):
        only = LossSettings(**{"mse": 0.0} | {name: 2.0}, temperature=temperature)
        assert MimickingLoss(only, vocabulary)(induced, true).item() == pytest.approx(2 * terms[index], rel=1e-4)
    mixed = LossSettings(mse=0.5, cosine=0.3, contrastive=0.2, temperature=temperature)
    expected = 0.5 * terms[0] + 0.3 * terms[1] + 0.2 * terms[2]
    assert MimickingLoss(mixed, vocabulary)(induced, true).item() == pytest.approx(expected, rel=1e-4)


def test_default_is_the_loss_of_the_model(make_pair):
    model, processor = make_pair("add")
    inputs = processor(["kumquat", "qualm"], [["a kumquat"], ["the old qualm"]])
    labels = torch.randn(2, 32)
    with torch.no_grad():
        outputs = model(**inputs, labels=labels)
    loss = MimickingLoss(LossSettings(), model.get_input_embeddings().weight)
    torch.testing.assert_close(loss(outputs.word_embeddings, labels), outputs.loss)


def test_perfect_vectors_have_no_loss_but_the_temperature(vectors):
    _, true, vocabulary = vectors
    loss = MimickingLoss(LossSettings(cosine=1.0), vocabulary)
    assert loss(true, true).item() == pytest.approx(0, abs=1e-6)
    sharp = MimickingLoss(LossSettings(mse=0.0, contrastive=1.0, temperature=1e-3), vocabulary)
    assert sharp(true, true).item() == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    "weights", [{"mse": 0.0}, {"mse": -1.0}, {"cosine": -0.1}, {"contrastive": 1.0, "temperature": 0.0}]
)
def test_weights_that_make_no_loss_are_refused(weights):
    with pytest.raises(ValueError, match="Expected weights of 0 or more, one of them positive"):
        LossSettings(**weights)
