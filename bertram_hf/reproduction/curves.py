"""Scores by number of contexts: a table and a figure for all systems."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..utils.tables import format_rows
from .figures import Point, draw_lines
from .recipe import EvaluatedSystem


def collect_rows(
    runs: Iterable[tuple[EvaluatedSystem, int]],
    get_row: Callable[[EvaluatedSystem, int], dict[str, Any] | None],
    *,
    without: Sequence[str],
) -> dict[str, list[dict[str, Any]]]:
    """Returns the rows of each system. A model has one for each seed: how vectors are injected does not change them."""
    results: dict[str, list[dict[str, Any]]] = {}
    seen = set()
    for system, seed in runs:
        if system.model in without or (system.model, seed) in seen:
            continue
        row = get_row(system, seed)
        if row is not None:
            seen.add((system.model, seed))
            results.setdefault(system.name, []).append(row)
    return results


def draw_curves(
    path: Path,
    results: Mapping[str, Sequence[dict[str, Any]]],
    key: str,
    *,
    systems: Sequence[str],
    title: str,
    y_label: str,
    command: str | None,
) -> str:
    """Draws scores by number of contexts, means over seeds with intervals, and returns a section with their table.

    Args:
        path: The figure.
        results: For each system its rows, one for each seed, with `scores`. A system that reads no contexts has one
            score, for 0 contexts: alone in the table, in the figure a level line.
        key: The score to show; `{key}_low` and `{key}_high` are the ends of its interval.
        systems: All systems, so that each has the same colour in every figure.
        title: Above table and figure.
        y_label: What the score is.
        command: The command that makes them, for the record.

    Returns:
        The section, which shows the figure of the same folder.
    """
    lines = {system: average_scores(rows, key) for system, rows in results.items()}
    numbers = sorted({point.x for points in lines.values() for point in points})
    table = [
        {"system": system, "seeds": ", ".join(str(row["seed"]) for row in results[system])}
        | {f"{number:g}": "" for number in numbers}
        | {f"{point.x:g}": f"{point.y:.3f} [{point.low:.3f}, {point.high:.3f}]" for point in points}
        for system, points in lines.items()
    ]
    text = f"## {title}\n\n{y_label}, by number of contexts; 95% intervals by bootstrap, means over the seeds named.\n"
    if any(reads_nothing(points) for points in lines.values()):
        text += "A system that reads no contexts has one score, whatever their number; it stands under 0.\n"
    draw_lines(
        path,
        {system: level(lines.get(system, []), numbers) for system in systems},
        x_label="number of contexts",
        y_label=y_label,
        title=title,
        log_x=True,
    )
    return f"{text}Command: `{command}`\n\n{format_rows(table)}\n\n![{title}]({path.name})\n"


def reads_nothing(points: Sequence[Point]) -> bool:
    """Whether all that a system has is a score for 0 contexts."""
    return [point.x for point in points] == [0]


def level(points: list[Point], numbers: Sequence[float]) -> list[Point]:
    """Returns the points of a line; the one score of a system that reads no contexts stands for every number."""
    return [replace(points[0], x=number) for number in numbers] if reads_nothing(points) else points


def average_scores(rows: Sequence[dict[str, Any]], key: str) -> list[Point]:
    """Returns the points of a line: for each number of contexts the means of score and interval ends over seeds."""
    numbers = [score["contexts"] for score in rows[0]["scores"]]
    points = []
    for index, number in enumerate(numbers):
        means = [
            float(np.mean([row["scores"][index][name] for row in rows])) for name in (key, f"{key}_low", f"{key}_high")
        ]
        points.append(Point(number, *means))
    return points
