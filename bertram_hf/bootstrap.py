"""Confidence intervals by bootstrap: what a score would be, had other items of the same kind been drawn."""

from collections.abc import Callable

import numpy as np

NUM_RESAMPLES = 1000


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
