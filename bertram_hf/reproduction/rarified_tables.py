"""Tables and figures of rarified test sets."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import compress, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluation.statistics import accuracy_below, compare_pairs, compare_systems, format_comparison, gain_by_band
from ..utils.tables import format_rows
from .figures import Point, draw_lines
from .recipe import EvaluatedSystem
from .systems import ORIGINAL, PLAIN

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


@dataclass(frozen=True)
class RarifiedAnswers:
    """What the systems answered on the rarified set of one seed.

    Attributes:
        correct: For each system (N,), whether it is right on each text.
        subsets: For each subset (N,), which texts belong to it.
        counts: For each text, how often each of its rare words occurs in the corpora.
        originals: For each text, what it was before.
    """

    correct: Mapping[str, np.ndarray]
    subsets: Mapping[str, np.ndarray]
    counts: Sequence[Sequence[int]]
    originals: Sequence[Hashable]


@dataclass(frozen=True)
class AccuracyReport:
    """What systems are worth on a rarified set.

    Attributes:
        section: The table of accuracies and that of gains by frequency, as Markdown.
        summary: What the tables leave out, ready for JSON.
        below: Accuracy on the texts whose rare words are less frequent than a limit.
        gains: Gain over the plain model by frequency; None without the plain model.
    """

    section: str
    summary: dict[str, Any]
    below: CountScores
    gains: CountScores | None


def report_accuracies(
    title: str,
    systems: Sequence[EvaluatedSystem],
    answers: Mapping[int, RarifiedAnswers],
    *,
    max_count: int,
    command: str | None = None,
) -> AccuracyReport:
    """Compares systems on a rarified set, and by the frequency of the rare words.

    Args:
        title: Above the table.
        systems: The rows of the table.
        answers: Of each seed.
        max_count: Rare words occur less often.
        command: The command that makes all this, for the record.
    """
    runs = list(answers.values())
    rivals = [system.name for system in systems if system.model != ORIGINAL]
    plain = next((system.name for system in systems if system.model == PLAIN), None)
    questions = {
        subset: (
            [{name: run.correct[name][run.subsets[subset]] for name in rivals} for run in runs],
            [list(compress(run.originals, run.subsets[subset])) for run in runs],
        )
        for subset in runs[0].subsets
    }
    compared = {subset: compare_systems(*asked) for subset, asked in questions.items()}
    p_values = compare_pairs(*questions["All"])
    sizes = {subset: round(np.mean([run.subsets[subset].sum() for run in runs])) for subset in compared}

    def format_accuracy(name: str, subset: str) -> str:
        if name in rivals:
            return format_comparison(compared[subset].get(name))
        accuracies = [run.correct[name][run.subsets[subset]].mean() for run in runs if run.subsets[subset].any()]
        return f"{100 * np.mean(accuracies):.1f}" if accuracies else ""

    rows = [
        {"model": system.name}
        | {f"{subset} ({sizes[subset]})": format_accuracy(system.name, subset) for subset in compared}
        | ({} if plain is None else {f"p against {plain}": _format_p(p_values.get(system.name, {}).get(plain))})
        for system in systems
    ]
    text = (
        f"## {title}\n\nAccuracy in percent, means over seeds {', '.join(map(str, answers))} "
        "(mean number of texts in brackets).\n"
        "Best underlined; bold: not significantly worse, by a two-sided binomial test over all texts (p >= 0.05);\n"
        "the vectors of the original words take no part in that. All pairs of systems: `summary.json`, p_values.\n"
        f"Command: `{command}`\n\n{format_rows(rows)}\n"
    )
    pooled = {system.name: np.concatenate([run.correct[system.name] for run in runs]) for system in systems}
    counts = [numbers for run in runs for numbers in run.counts]
    below = score_limits(pooled, counts, max_count)
    gains = None if plain is None else score_bands(pooled, counts, max_count, baseline=plain)
    if gains is not None and gains.scores and any(gains.num_texts):
        text += (
            f"\nGain in accuracy over {plain} in points, on the texts whose rare words all occur so often in the "
            f"corpora\n(number of texts over all seeds in brackets):\n\n{format_rows(gains.rows())}\n"
        )
    summary = {
        "command": command,
        "seeds": list(answers),
        "subsets": {
            subset: {name: asdict(entry) for name, entry in found.items()} for subset, found in compared.items()
        },
        "p_values": {"All": p_values},
        "accuracy_below": below.to_dict(),
        "gain_by_band": None if gains is None else gains.to_dict(),
    }
    return AccuracyReport(text, summary, below, gains)


def draw_accuracies(folder: Path, title: str, systems: Sequence[EvaluatedSystem], report: AccuracyReport) -> None:
    """Draws accuracy and gain by the frequency of the rare words, the paper's Figures 2 and 3, in a folder."""
    _draw(folder / "accuracy-by-count.png", report.below, systems, title=title, y_label="accuracy (%)", log_x=True)
    if report.gains is not None:
        plain = next(system.name for system in systems if system.model == PLAIN)
        y_label = f"gain in accuracy over {plain} (points)"
        _draw(folder / "gain-by-count.png", report.gains, systems, title=title, y_label=y_label, zero_line=True)


def _format_p(p_value: float | None) -> str:
    return "" if p_value is None else f"{p_value:.2g}"


def _draw(
    path: Path,
    scores: CountScores,
    systems: Sequence[EvaluatedSystem],
    *,
    title: str,
    y_label: str,
    log_x: bool = False,
    zero_line: bool = False,
) -> None:
    """Draws scores by count, if there are any."""
    lines = {system.name: scores.points(system.name) for system in systems}
    if any(lines.values()):
        draw_lines(
            path,
            lines,
            x_label="how often each rare word occurs in the corpora (number of texts over all seeds)",
            y_label=y_label,
            title=title,
            log_x=log_x,
            x_ticks=scores.ticks(),
            zero_line=zero_line,
        )
