"""How well systems do on a rarified set, by how often its rare words occur (Figures 2 and 3 of the paper)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .figures import Point
from .paired_scores import accuracy_below, gain_by_band

PAPER_MAX_COUNT = 1000  # of MNLI-1000, for which the paper has these bands
PAPER_BANDS = (0, 125, 250, 500, float("inf"))


@dataclass(frozen=True)
class CountScores:
    """Scores of systems on the texts whose rare words occur so often.

    Attributes:
        places: Of B ranges of counts, where each stands in a figure.
        ranges: What each is called, such as "[1, 4)".
        num_texts: How many texts each holds, over all seeds.
        scores: For each system its B scores on these texts; None where there are none.
    """

    places: list[int]
    ranges: list[str]
    num_texts: list[int]
    scores: dict[str, list[float | None]]

    def points(self, system: str) -> list[Point]:
        """Returns a system's line, in percent."""
        scores = zip(self.places, self.scores.get(system, []), strict=False)  # a system without scores has no line
        return [Point(place, 100 * score) for place, score in scores if score is not None]

    def ticks(self) -> dict[float, str]:
        """Returns the labels of the x-axis: each range that holds texts, with their number below."""
        labels = zip(self.places, self.ranges, self.num_texts, strict=True)
        return {place: f"{name}\n({number})" for place, name, number in labels if number}

    def rows(self) -> list[dict[str, str]]:
        """Returns the rows of a table in percent, with the number of texts in brackets."""
        titles = [f"{name} ({number})" for name, number in zip(self.ranges, self.num_texts, strict=True)]
        return [
            {"model": system}
            | {
                title: "" if score is None else f"{100 * score:.1f}"
                for title, score in zip(titles, scores, strict=True)
            }
            for system, scores in self.scores.items()
        ]

    def to_dict(self) -> dict[str, list[str] | list[int] | dict[str, list[float | None]]]:
        """Returns what is worth keeping, ready for JSON."""
        return {"ranges": self.ranges, "num_texts": self.num_texts, "scores": self.scores}


def score_limits(correct: Mapping[str, np.ndarray], counts: Sequence[Sequence[int]], max_count: int) -> CountScores:
    """Returns the accuracy on the texts whose rare words all occur less often than a limit, for several limits.

    Args:
        correct: For each system (N,), whether it is right on each text.
        counts: For each text, how often each of its rare words occurs.
        max_count: Rare words occur less often.

    Example:
        >>> score_limits({"plain": np.array([True, False])}, [[0], [3]], max_count=4).scores
        {'plain': [1.0, 1.0, 0.5]}
    """
    limits = count_limits(max_count)
    found = {name: accuracy_below(answers, counts, limits) for name, answers in correct.items()}
    return CountScores(
        limits,
        [f"< {limit}" for limit in limits],
        [number for _, _, number in next(iter(found.values()))],
        {name: [accuracy for _, accuracy, _ in entries] for name, entries in found.items()},
    )


def score_bands(
    correct: Mapping[str, np.ndarray], counts: Sequence[Sequence[int]], max_count: int, *, baseline: str
) -> CountScores:
    """Returns the gain in accuracy over one of the systems on the texts whose rare words all lie in a band of counts.

    Args:
        correct: For each system (N,), whether it is right on each text.
        counts: For each text, how often each of its rare words occurs.
        max_count: Rare words occur less often.
        baseline: The system that the others are compared with.

    Example:
        >>> correct = {"plain": np.array([True, False]), "bertram": np.array([True, True])}
        >>> score_bands(correct, [[0], [3]], max_count=4, baseline="plain").scores
        {'bertram': [0.0, 1.0]}
    """
    edges = count_bands(max_count)
    found = {
        name: gain_by_band(answers, correct[baseline], counts, edges)
        for name, answers in correct.items()
        if name != baseline
    }
    in_bands = gain_by_band(correct[baseline], correct[baseline], counts, edges)
    return CountScores(
        list(range(len(edges) - 1)),
        [f"[{low:g}, {high:g})" for low, high in pairwise(edges)],
        [number for _, _, _, number in in_bands],
        {name: [gain for _, _, gain, _ in entries] for name, entries in found.items()},
    )


def count_limits(max_count: int) -> list[int]:
    """Returns the limits below which accuracy is measured, the paper's c_max: powers of two, of which no rare word
    reaches the last. For the paper's maximum of 100 they are those of its Figure 2, 1 to 128.

    Example:
        >>> count_limits(10)
        [1, 2, 4, 8, 16]
    """
    return [2**power for power in range((max_count - 1).bit_length() + 1)]


def count_bands(max_count: int) -> list[float]:
    """Returns the edges of the bands in which gains are measured: those of the paper's Figure 3 if rare words occur up
    to 1000 times, as there, or more; else powers of four below the maximum.

    Example:
        >>> count_bands(10), count_bands(100)
        ([0, 1, 4, inf], [0, 1, 4, 16, 64, inf])
    """
    if max_count >= PAPER_MAX_COUNT:
        return list(PAPER_BANDS)
    powers = [4**power for power in range(max_count.bit_length())]
    return [0, *(power for power in powers if power < max_count), float("inf")]
