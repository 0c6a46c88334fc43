"""Scores of a classifier that are computed in half precision first, and in full only where that leaves a doubt.

How far scores in half precision are off is seen wherever both are computed.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from transformers import PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

from ..modeling_context import can_read_packed, read_packed

MIN_OBSERVED = 200
SAFETY = 1.5
Score = Callable[[np.ndarray], np.ndarray]


class Screening:
    """How far log-odds in half precision have been off so far.

    Attributes:
        num_observed: How many have been compared with the exact ones.
        largest_error: How far off one of these was at most.

    Example:
        >>> screening = Screening()
        >>> screening.observe(np.full(200, 1.01), np.ones(200))
        >>> round(screening.margin, 3)
        0.015
    """

    def __init__(self) -> None:
        self.num_observed, self.largest_error = 0, 0.0

    @property
    def margin(self) -> float:
        """How far off log-odds may be: half as much again as has been seen; any number before enough has been seen."""
        return SAFETY * self.largest_error if self.num_observed >= MIN_OBSERVED else np.inf

    def observe(self, rough: np.ndarray, exact: np.ndarray) -> None:
        """Compares log-odds in half precision, shape (N,), with the exact ones."""
        self.num_observed += len(rough)
        self.largest_error = max(self.largest_error, float(np.abs(rough - exact).max(initial=0)))


class ScreenedScores:
    """Scores of N inputs, of which some are exact and the others lie between bounds.

    Args:
        labels: (N,), the class of each input that matters.
        rough: (N, classes), log p(y | x) in half precision.
        score: Returns the exact scores, shape (n, classes), of n inputs by their indices.
        screening: How far scores in half precision are off; learns from each exact score.

    Attributes:
        rough_odds: (N,), log-odds in half precision.
        scores: (N, classes), log p(y | x); infinite where not exact.
        low: (N,), what the log-odds of each input are at least.
        high: (N,), what they are at most.
    """

    def __init__(self, labels: np.ndarray, rough: np.ndarray, score: Score, screening: Screening) -> None:
        self.labels, self.screening = labels, screening
        self.rough_odds = log_odds(rough, labels)
        self.scores = np.full_like(rough, np.inf)
        self._odds = np.full(len(rough), np.nan)
        self._score = score

    @property
    def is_exact(self) -> np.ndarray:
        """(N,), whether the score of each input is exact."""
        return ~np.isnan(self._odds)

    @property
    def low(self) -> np.ndarray:
        """(N,), what the log-odds of each input are at least."""
        return np.where(self.is_exact, self._odds, self.rough_odds - self.screening.margin)

    @property
    def high(self) -> np.ndarray:
        """(N,), what the log-odds of each input are at most."""
        return np.where(self.is_exact, self._odds, self.rough_odds + self.screening.margin)

    def make_exact(self, is_chosen: np.ndarray) -> bool:
        """Computes the exact scores of chosen inputs, as far as they are not exact yet. Returns whether any was not.

        Args:
            is_chosen: (N,).
        """
        chosen = np.flatnonzero(is_chosen & ~self.is_exact)
        if not len(chosen):
            return False
        self.scores[chosen] = self._score(chosen)
        self._odds[chosen] = log_odds(self.scores[chosen], self.labels[chosen])
        self.screening.observe(self.rough_odds[chosen], self._odds[chosen])
        return True


def log_odds(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Returns log(p / (1 - p)) for p = p(y | x), shape (N,). Half precision makes about the same errors in it
    everywhere, which cannot be said of probabilities near 0 and 1.

    Args:
        scores: (N, classes), log p(y | x).
        labels: (N,), the class y of each input.

    Example:
        >>> log_odds(np.log([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]), np.array([0, 1])).round(2).tolist()
        [0.0, -1.1]
    """
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, labels] = -np.inf
    return scores[rows, labels] - np.logaddexp.reduce(others, axis=1)


def classify(model: PreTrainedModel, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Returns the logits (N, classes) that the model gives, with less work where possible.

    Args:
        model: A sequence classifier in evaluation mode.
        inputs: `input_ids`, `attention_mask` and, if the model takes them, `token_type_ids`; padding on the right.
    """
    if not reads_first_token(model):
        return model(**inputs).logits
    encoder = model.base_model
    first = read_packed(
        encoder,
        encoder.get_input_embeddings()(inputs["input_ids"]),
        inputs["attention_mask"],
        torch.zeros(len(inputs["input_ids"]), 1, dtype=torch.long, device=inputs["input_ids"].device),
        inputs.get("token_type_ids"),
    )[-1]  # (N, 1, hidden)
    pooler = getattr(encoder, "pooler", None)  # BERT's head stands behind a pooler, others hold their own
    with torch.autocast(first.device.type, enabled=False):  # costs nothing and keeps all digits of the logits
        first = first.to(model.dtype)
        return model.classifier(first if pooler is None else pooler(first))


def reads_first_token(model: PreTrainedModel) -> bool:
    """Whether the model is a classifier of Transformers, unchanged, that looks at the first token of BERT's layers."""
    standard_class = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING.get(type(model.config), None)
    return type(model) is standard_class and can_read_packed(model.base_model)
