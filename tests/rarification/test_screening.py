"""Tests of scores that are computed in half precision first."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax

from bertram_hf.rarification.screening import (
    MIN_OBSERVED,
    SAFETY,
    ScreenedScores,
    Screening,
    log_odds,
)
from bertram_hf.utils.models import is_fast_at_bfloat16


def draw_scores(number: int, *, seed: int = 0, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns exact scores, scores that are off, and labels."""
    draw = np.random.default_rng(seed)
    logits = draw.normal(size=(number, 4)) * 3
    off = logits + draw.uniform(-noise, noise, size=logits.shape)
    return log_softmax(logits, axis=1), log_softmax(off, axis=1), draw.integers(4, size=number)


def test_log_odds_are_those_of_the_label_even_where_probabilities_are_one():
    scores, _, labels = draw_scores(50)
    p = np.exp(scores[np.arange(50), labels])
    np.testing.assert_allclose(log_odds(scores, labels), np.log(p / (1 - p)), rtol=1e-6)
    sure = log_softmax(np.array([[100.0, 0, 0], [0, 100.0, 0]]), axis=1)
    np.testing.assert_allclose(log_odds(sure, np.array([0, 0])), [100 - np.log(2), -100])


def test_bounds_hold_the_exact_log_odds():
    exact, rough, labels = draw_scores(3000, noise=0.05)
    screening = Screening()
    first = ScreenedScores(labels, rough, lambda indices: exact[indices], screening)
    assert np.isinf(first.low).all()  # nothing is known yet
    assert np.isinf(first.high).all()
    assert first.make_exact(np.arange(3000) < MIN_OBSERVED)
    assert screening.margin == pytest.approx(SAFETY * screening.largest_error)
    odds = log_odds(exact, labels)
    assert ((first.low <= odds) & (odds <= first.high)).all()
    assert (first.high - first.low)[first.is_exact].max() == 0 < (first.high - first.low)[~first.is_exact].min()
    np.testing.assert_array_equal(first.scores[first.is_exact], exact[first.is_exact])
    assert np.isinf(first.scores[~first.is_exact]).all()


def test_what_is_exact_is_not_computed_again():
    exact, rough, labels = draw_scores(30, noise=0.05)
    asked = []

    def score(indices: np.ndarray) -> np.ndarray:
        asked.extend(indices.tolist())
        return exact[indices]

    screened = ScreenedScores(labels, rough, score, Screening())
    assert screened.make_exact(np.arange(30) < 10)
    assert screened.make_exact(np.arange(30) < 20)
    assert not screened.make_exact(np.arange(30) < 20)
    assert asked == list(range(20))


def test_a_larger_error_widens_the_bounds_of_all():
    exact, rough, labels = draw_scores(MIN_OBSERVED + 10, noise=0.01)
    rough[MIN_OBSERVED] = log_softmax(exact[MIN_OBSERVED] + [1, 0, 0, 0])
    screened = ScreenedScores(labels, rough, lambda indices: exact[indices], Screening())
    rows = np.arange(len(labels))
    screened.make_exact(rows < MIN_OBSERVED)
    before = screened.screening.margin
    screened.make_exact(rows == MIN_OBSERVED)
    assert screened.screening.margin > 2 * before
    assert (screened.high - screened.low)[-1] == pytest.approx(2 * screened.screening.margin)


def test_no_other_device_is_taken_for_fast():
    assert not is_fast_at_bfloat16(torch.device("meta"))
    assert isinstance(is_fast_at_bfloat16(torch.device("cpu")), bool)
