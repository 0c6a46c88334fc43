"""Tables and figures of a rarified set: accuracy of every system, by kind and by frequency of the rare words."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import compress, pairwise
from pathlib import Path

import numpy as np

from .evaluated_systems import ORIGINAL, PLAIN, EvaluatedSystem
from .figures import Point, draw_lines
from .markdown_table import format_rows
from .paired_scores import accuracy_below, compare_systems, format_comparison, gain_by_band
from .result_rows import write_json

COUNT_LIMITS = (1, 2, 4, 8, 16, 32, 64, 128)
COUNT_BANDS = (0, 1, 4, 16, 64, float("inf"))


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


def write_accuracies(
    path: Path,
    title: str,
    systems: Sequence[EvaluatedSystem],
    answers: Sequence[RarifiedAnswers],
    *,
    command: str | None = None,
) -> None:
    """Writes the table of accuracies and, as figures and data, how they depend on the frequency of the rare words.

    Args:
        path: The beginning of all file names.
        title: Above table and figures.
        systems: The rows of the table.
        answers: Of each seed.
        command: The command, for the record.
    """
    rivals = [system.name for system in systems if system.model != ORIGINAL]
    compared = {
        subset: compare_systems(
            [{name: seed.correct[name][seed.subsets[subset]] for name in rivals} for seed in answers],
            [list(compress(seed.originals, seed.subsets[subset])) for seed in answers],
        )
        for subset in answers[0].subsets
    }
    sizes = {subset: round(np.mean([seed.subsets[subset].sum() for seed in answers])) for subset in compared}

    def format_accuracy(name: str, subset: str) -> str:
        if name in rivals:
            return format_comparison(compared[subset].get(name))
        accuracies = [seed.correct[name][seed.subsets[subset]].mean() for seed in answers if seed.subsets[subset].any()]
        return f"{100 * np.mean(accuracies):.1f}" if accuracies else ""

    rows = [
        {"model": system.name}
        | {f"{subset} ({sizes[subset]})": format_accuracy(system.name, subset) for subset in compared}
        for system in systems
    ]
    text = (
        f"# {title}\n\nAccuracy in percent, means over {len(answers)} seeds (mean number of texts in brackets).\n"
        "Best underlined; bold: not surely worse, by a two-sided binomial test over all texts (p >= 0.05);\n"
        "the vectors of the original words take no part in that.\n"
        f"Command: `{command}`\n\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".md").write_text(text + format_rows(rows) + "\n", encoding="utf-8")
    write_json(
        path.with_suffix(".json"),
        {subset: {name: asdict(entry) for name, entry in entries.items()} for subset, entries in compared.items()},
    )
    _draw_frequencies(path, title, systems, answers)


def _draw_frequencies(
    path: Path, title: str, systems: Sequence[EvaluatedSystem], answers: Sequence[RarifiedAnswers]
) -> None:
    """Draws accuracy against the largest count of a text's rare words, and the gain over the plain model by band."""
    largest = max((count for seed in answers for counts in seed.counts for count in counts), default=0)
    num_limits = sum(limit <= largest for limit in COUNT_LIMITS) + 1  # the last one includes all texts
    below = {
        system.name: average_lines(
            [accuracy_below(seed.correct[system.name], seed.counts, COUNT_LIMITS[:num_limits]) for seed in answers]
        )
        for system in systems
    }
    if not any(below.values()):
        return
    draw_lines(
        path.with_name(f"{path.name}-by-count.png"),
        {name: [Point(x, 100 * y) for x, y in points] for name, points in below.items()},
        x_label="each rare word occurs less often than (times in the corpora)",
        y_label="accuracy (%)",
        title=title,
        log_x=True,
    )
    plain = next((system.name for system in systems if system.model == PLAIN), None)
    gains: dict[str, list[tuple[float, float]]] = {}
    for system in systems:
        if plain is not None and system.name != plain:
            bands = [
                gain_by_band(seed.correct[system.name], seed.correct[plain], seed.counts, COUNT_BANDS)
                for seed in answers
            ]
            gains[system.name] = average_lines(
                [[(index, gain, number) for index, (_, _, gain, number) in enumerate(seed)] for seed in bands]
            )
    drawn = {index for points in gains.values() for index, _ in points}
    if drawn:
        draw_lines(
            path.with_name(f"{path.name}-gain.png"),
            {system.name: [Point(x, 100 * y) for x, y in gains.get(system.name, [])] for system in systems},
            x_label="how often each rare word occurs in the corpora",
            y_label=f"gain in accuracy over {plain} (points)",
            title=title,
            x_ticks={i: f"[{low:g}, {high:g})" for i, (low, high) in enumerate(pairwise(COUNT_BANDS)) if i in drawn},
            zero_line=True,
        )
    write_json(
        path.with_name(f"{path.name}-by-count.json"),
        {"accuracy_below": below, "gain_by_band": gains, "bands": [str(edge) for edge in COUNT_BANDS]},
    )


def average_lines(lines: Sequence[Sequence[tuple[float, float | None, int]]]) -> list[tuple[float, float]]:
    """Returns the mean over runs at each x, weighted by the number of texts; an x without any is left out.

    Example:
        >>> average_lines([[(1, 0.5, 10), (2, None, 0)], [(1, 1.0, 30), (2, None, 0)]])
        [(1, 0.875)]
    """
    points = []
    for parts in zip(*lines, strict=True):
        known = [(y, number) for _, y, number in parts if y is not None]
        if known:
            total = sum(number for _, number in known)
            points.append((parts[0][0], sum(y * number for y, number in known) / total))
    return points
