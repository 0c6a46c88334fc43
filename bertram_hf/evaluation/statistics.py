"""Intervals by resampling, and paired comparisons of systems."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

NUM_RESAMPLES = 1000
SIGNIFICANCE = 0.05


def bootstrap_interval(
    num_items: int,
    statistic: Callable[[np.ndarray], float],
    *,
    groups: np.ndarray | None = None,
    confidence: float = 0.95,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> tuple[float, float]:
    """Returns the percentile interval of a statistic over resamples of the items, drawn with replacement.

    Args:
        num_items: How many items there are: words, pairs or texts.
        statistic: Returns the score of the items with some indices.
        groups: (num_items,), which items belong together and are drawn together, such as pairs of one word; by default
            each stands alone.
        confidence: Share of the resamples whose score lies within.
        num_resamples: How many resamples are drawn.
        seed: Seed of the draws.

    Raises:
        ValueError: If there are no items.

    Example:
        >>> ranks = np.array([1.0, 0.5, 0.1, 0.2])
        >>> low, high = bootstrap_interval(4, lambda items: ranks[items].mean())
        >>> bool(low < ranks.mean() < high)
        True
    """
    if num_items < 1:
        raise ValueError("A confidence interval needs at least one item; got none.")
    members = None if groups is None else [np.flatnonzero(groups == group) for group in np.unique(groups)]
    num_drawn = num_items if members is None else len(members)
    samples = np.random.default_rng(seed).integers(num_drawn, size=(num_resamples, num_drawn))
    scores = [
        statistic(sample if members is None else np.concatenate([members[group] for group in sample]))
        for sample in samples
    ]
    low, high = np.nanquantile(scores, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class Comparison:
    """How a system stands against the best one.

    Attributes:
        accuracy: Share of correct answers, the mean over runs.
        num_instances: Of how many, over all runs.
        p_value: Of a two-sided binomial test against the best system: were both equally good, how likely is it that the
            instances on which they differ are divided so unevenly? 1 for the best itself.
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


def compare_systems(
    runs: Sequence[Mapping[str, np.ndarray]], instances: Sequence[Sequence[Hashable]]
) -> dict[str, Comparison]:
    """Compares systems by which of the same instances each answers correctly.

    Args:
        runs: For each run, such as a seed, and each system (N,), whether it is right on each instance. A run without
            instances is left out.
        instances: For each run, what its N instances are. One that takes part in several runs counts once in the test,
            for the system that is right on it more often.

    Returns:
        For each system its comparison with the best; nothing if there are no instances.

    Raises:
        ValueError: If systems have not answered the same instances.

    Example:
        >>> correct = {"plain": np.zeros(9, bool), "bertram": np.ones(9, bool)}
        >>> compared = compare_systems([correct], [range(9)])
        >>> compared["bertram"].accuracy, compared["plain"].is_near_best
        (1.0, False)
    """
    pooled = _pool_runs(runs, instances)
    if not pooled:
        return {}
    kept = [run for run, run_instances in zip(runs, instances, strict=True) if len(run_instances)]
    accuracies = {name: float(np.mean([np.mean(run[name]) for run in kept])) for name in pooled}
    num_instances = sum(map(len, instances))
    best = max(accuracies, key=lambda name: accuracies[name])
    return {
        name: Comparison(
            accuracies[name],
            num_instances,
            sign_test(pooled[best] - pooled[name]),
            accuracies[name] == accuracies[best],
        )
        for name in pooled
    }


def compare_pairs(
    runs: Sequence[Mapping[str, np.ndarray]], instances: Sequence[Sequence[Hashable]]
) -> dict[str, dict[str, float]]:
    """Returns for each system the p-value of the test of `compare_systems` against every other one.

    Example:
        >>> correct = {"plain": np.zeros(9, bool), "bertram": np.ones(9, bool)}
        >>> compare_pairs([correct], [range(9)])
        {'plain': {'bertram': 0.00390625}, 'bertram': {'plain': 0.00390625}}
    """
    pooled = _pool_runs(runs, instances)
    return {
        name: {other: sign_test(pooled[name] - pooled[other]) for other in pooled if other != name} for name in pooled
    }


def format_comparison(comparison: Comparison | None) -> str:
    """Returns an accuracy in percent as in the paper: the best underlined, those that are not worse for sure in bold.

    Example:
        >>> format_comparison(Comparison(0.629, 100, 1.0, is_best=True))
        '<u>**62.9**</u>'
    """
    if comparison is None:
        return ""
    return mark_best(f"{100 * comparison.accuracy:.1f}", comparison.is_best, comparison.p_value)


def mark_best(text: str, is_best: bool, p_value: float) -> str:
    """Underlines what is best and makes bold what does not differ significantly from it.

    Example:
        >>> mark_best("0.269", True, 1.0), mark_best("0.251", False, 0.01)
        ('<u>**0.269**</u>', '0.251')
    """
    text = f"**{text}**" if p_value >= SIGNIFICANCE else text
    return f"<u>{text}</u>" if is_best else text


def sign_test(differences: np.ndarray) -> float:
    """Returns the p-value of a two-sided binomial test: are positive and negative differences equally likely?

    Args:
        differences: (N,), by how much one system is better than another on each instance; those of 0 do not count.

    Example:
        >>> sign_test(np.array([1] * 8 + [-1] + [0] * 5))
        0.0390625
    """
    from scipy.stats import binomtest

    num_positive, num_negative = int((differences > 0).sum()), int((differences < 0).sum())
    return float(binomtest(num_positive, num_positive + num_negative).pvalue) if num_positive + num_negative else 1.0


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


def _pool_runs(
    runs: Sequence[Mapping[str, np.ndarray]], instances: Sequence[Sequence[Hashable]]
) -> dict[str, np.ndarray]:
    """Returns for each system how often it is right on each different instance; nothing if there are no instances."""
    for correct, run_instances in zip(runs, instances, strict=True):
        sizes = {name: len(answers) for name, answers in correct.items()}
        if set(sizes.values()) - {len(run_instances)} or set(sizes) != set(runs[0]):
            raise ValueError(f"Systems must have answered the same {len(run_instances)} instances; got {sizes}.")
    numbers: dict[Hashable, int] = {}
    rows = [numbers.setdefault(instance, len(numbers)) for run_instances in instances for instance in run_instances]
    if not rows:
        return {}
    return {name: np.bincount(rows, weights=np.concatenate([run[name] for run in runs])) for name in runs[0]}


def _accuracy(answers: np.ndarray) -> tuple[float | None, int]:
    return (float(np.mean(answers)) if len(answers) else None), len(answers)
