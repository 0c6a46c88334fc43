"""Comparison of systems that answered the same questions: subsets, significance, tables as in the paper."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Comparison:
    """How a system stands against the best one.

    Attributes:
        accuracy: Share of correct answers, the mean over runs.
        num_instances: Of how many, over all runs.
        p_value: Of a two-sided binomial test against the best system: were both equally good, how likely is it that the
            instances which only one of them answers correctly are divided so unevenly? The largest of all runs', for
            runs share texts and must not be pooled. 1 for the best itself.
        is_best: Whether no system is better.
    """

    accuracy: float
    num_instances: int
    p_value: float
    is_best: bool

    @property
    def is_near_best(self) -> bool:
        """Whether the system does not differ significantly from the best one."""
        return self.p_value >= SIGNIFICANCE


def compare_systems(runs: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Comparison]:
    """Compares systems by which of the same instances each answers correctly.

    Args:
        runs: For each run, such as a seed, and each system (N,), whether it is right on each instance. A run without
            instances is left out.

    Returns:
        For each system its comparison with the best; nothing if there are no instances.

    Raises:
        ValueError: If systems have not answered the same instances.

    Example:
        >>> correct = {"plain": np.zeros(9, bool), "bertram": np.ones(9, bool)}
        >>> compared = compare_systems([correct])
        >>> compared["bertram"].accuracy, compared["plain"].is_near_best
        (1.0, False)
    """
    for correct in runs:
        sizes = {name: len(answers) for name, answers in correct.items()}
        if len(set(sizes.values())) > 1 or set(sizes) != set(runs[0]):
            raise ValueError(f"Systems must have answered the same instances; got {sizes} of them.")
    runs = [correct for correct in runs if correct and len(next(iter(correct.values())))]
    if not runs:
        return {}
    accuracies = {name: float(np.mean([np.mean(correct[name]) for correct in runs])) for name in runs[0]}
    best = max(accuracies, key=lambda name: accuracies[name])
    return {
        name: Comparison(
            accuracy,
            sum(len(correct[name]) for correct in runs),
            max(sign_test(correct[name], correct[best]) for correct in runs),
            accuracy == accuracies[best],
        )
        for name, accuracy in accuracies.items()
    }


def format_comparison(comparison: Comparison | None) -> str:
    """Returns an accuracy in percent as in the paper: the best underlined, those that are not worse for sure in bold.

    Example:
        >>> format_comparison(Comparison(0.629, 100, 1.0, is_best=True))
        '<u>**62.9**</u>'
    """
    if comparison is None:
        return ""
    text = f"{100 * comparison.accuracy:.1f}"
    text = f"**{text}**" if comparison.is_near_best else text
    return f"<u>{text}</u>" if comparison.is_best else text


def sign_test(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the p-value of a two-sided binomial test on the instances that only one of two systems has right.

    Example:
        >>> sign_test(np.array([True] * 8 + [False]), np.array([False] * 8 + [True]))
        0.0390625
    """
    from scipy.stats import binomtest

    first, second = np.asarray(first, bool), np.asarray(second, bool)
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    return float(binomtest(only_first, only_first + only_second).pvalue) if only_first + only_second else 1.0


def accuracy_below(
    correct: np.ndarray, counts: Sequence[Sequence[int]], limits: Sequence[int]
) -> list[tuple[int, float | None, int]]:
    """Returns, for each limit, the accuracy on instances whose rare words all occur less often, and how many there are.

    Args:
        correct: (N,).
        counts: For each instance, how often each of its rare words occurs in the corpus.
        limits: The paper's c_max.

    Example:
        >>> accuracy_below(np.array([True, False]), [[0], [3, 1]], limits=[1, 4])
        [(1, 1.0, 1), (4, 0.5, 2)]
    """
    largest = np.array([max(numbers) for numbers in counts])
    return [(limit, *_accuracy(correct[largest < limit])) for limit in limits]


def gain_by_band(
    correct: np.ndarray, baseline: np.ndarray, counts: Sequence[Sequence[int]], edges: Sequence[float]
) -> list[tuple[float, float, float | None, int]]:
    """Returns, for each band [c0, c1) of counts, the gain in accuracy over a baseline on the instances whose rare words
    all lie in it, and how many there are.

    Args:
        correct: (N,), of the system.
        baseline: (N,), of the model without it.
        counts: For each instance, how often each of its rare words occurs in the corpus.
        edges: B + 1 edges of B bands.

    Example:
        >>> gain_by_band(np.array([True]), np.array([False]), [[3, 1]], edges=[0, 2, float("inf")])
        [(0, 2, None, 0), (2, inf, None, 0)]
    """
    smallest, largest = (np.array([pick(numbers) for numbers in counts]) for pick in (min, max))
    bands = []
    for low, high in pairwise(edges):
        inside = (smallest >= low) & (largest < high)
        accuracy, number = _accuracy(correct[inside])
        base, _ = _accuracy(baseline[inside])
        bands.append((low, high, None if accuracy is None or base is None else accuracy - base, number))
    return bands


def _accuracy(answers: np.ndarray) -> tuple[float | None, int]:
    return (float(np.mean(answers)) if len(answers) else None), len(answers)
