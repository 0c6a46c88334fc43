import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from bertram_hf import WordVectors
from bertram_hf.evaluation import SentenceEmbedder, TextClassification

TRAIN = ["a sour fruit", "the fruit tree", "a small dog", "the dog and the king"] * 3
LABELS = [0, 0, 1, 1] * 3
TEST, TEST_LABELS = ["the kumquat", "an old fruit", "a dog", "the quokka"], [0, 0, 1, 1]


@pytest.fixture
def embedder(make_encoder, bert_tokenizer):
    return SentenceEmbedder(make_encoder(), bert_tokenizer, show_progress=False)


@pytest.fixture
def task(embedder):
    return TextClassification(embedder, TRAIN, LABELS, TEST, TEST_LABELS)


@pytest.fixture
def vectors():
    return WordVectors(["kumquat"], torch.randn(1, 32, generator=torch.Generator().manual_seed(0)))


def test_answers_are_those_of_a_regression_on_standardised_embeddings(embedder, task):
    train, test = (embedder.embed(texts).double().numpy() for texts in (TRAIN, TEST))
    mean, scale = train.mean(axis=0), train.std(axis=0)
    classifier = LogisticRegression(C=0.01, max_iter=1000).fit((train - mean) / scale, LABELS)
    np.testing.assert_array_equal(task.plain, classifier.predict((test - mean) / scale) == TEST_LABELS)


def test_vectors_count_in_learning_and_in_classifying(embedder, task, vectors):
    for mode in ("slash", "replace"):
        train, test = (embedder.embed(texts, vectors, mode).double().numpy() for texts in (TRAIN, TEST))
        mean, scale = train.mean(axis=0), train.std(axis=0)
        classifier = LogisticRegression(C=0.01, max_iter=1000).fit((train - mean) / scale, LABELS)
        correct = classifier.predict((test - mean) / scale) == TEST_LABELS
        everything, touched = task.evaluate(vectors, mode)
        assert everything == task.score(correct)
        assert touched == task.score(correct, np.array([True, False, False, False]))
        assert task.evaluate(WordVectors(["zebra"], torch.ones(1, 32)), mode)[1] is None


def test_score_compares_with_the_plain_answers(task):
    task.__dict__["plain"] = np.array([True, False, True, False])
    answers = np.array([True, True, True, True])
    score = task.score(answers)
    assert (score.accuracy, score.gain, score.num_texts) == (1.0, 0.5, 4)
    assert 0 <= score.gain_low < 0.5 < score.gain_high <= 1
    chosen = task.score(answers, np.array([True, False, True, False]))
    assert (chosen.gain, chosen.gain_low, chosen.gain_high, chosen.num_texts) == (0, 0, 0, 2)


def test_nothing_to_learn_or_to_classify_is_refused(embedder):
    with pytest.raises(ValueError, match="at least two labels to learn; got 4 and 1"):
        TextClassification(embedder, TRAIN, [0] * 12, TEST, TEST_LABELS)
    with pytest.raises(ValueError, match="got 0 and 2"):
        TextClassification(embedder, TRAIN, LABELS, [], [])
