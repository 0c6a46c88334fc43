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
    by_mode: bool = False,
) -> dict[str, list[dict[str, Any]]]:
    """Returns the rows of each system.

    Args:
        runs: Systems and seeds.
        get_row: Returns the row of one of them, or None.
        without: Models that take no part.
        by_mode: Whether how vectors are injected changes a row. If not, a model has one row for each seed; else one for
            each seed and mode, and what is indomain, which has no texts here, takes no part.
    """
    results: dict[str, list[dict[str, Any]]] = {}
    seen = set()
    for system, seed in runs:
        key = (system.model, system.mode if by_mode else None, seed)
        if system.model in without or key in seen or (by_mode and system.indomain):
            continue
        row = get_row(system, seed)
        if row is not None:
            seen.add(key)
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
    note: str = "",
    gains: bool = False,
) -> str:
    """Draws scores by number of contexts, means over seeds with intervals, and returns a section with their table.

    Args:
        path: The figure.
        results: For each system its rows, one for each seed, with `scores`. A system that reads no contexts has one
            score, for 0 contexts: alone in the table, in the figure a level line. Further columns of the table are
            `extra_scores`, by name.
        key: The score to show; `{key}_low` and `{key}_high` are the ends of its interval.
        systems: All systems, so that each has the same colour in every figure.
        title: Above table and figure.
        y_label: What the score is.
        command: The command that makes them, for the record.
        note: Lines above the table.
        gains: Whether scores have a `gain` over the encoder without injection, for a second table.

    Returns:
        The section, which shows the figure of the same folder.
    """
    lines = {system: average_scores(rows, key) for system, rows in results.items()}
    numbers = sorted({point.x for points in lines.values() for point in points})
    table = tabulate_scores(results, key)
    text = f"## {title}\n\n{y_label}, by number of contexts; 95% intervals by bootstrap, means over the seeds named.\n"
    if any(reads_nothing(points) for points in lines.values()):
        text += "A system that reads no contexts has one score, whatever their number; it stands under 0.\n"
    text += note
    if gains:
        table += "\n\nGain over the encoder without injection; 95% intervals by paired bootstrap.\n\n"
        table += tabulate_scores(results, "gain", sign="+")
    draw_lines(
        path,
        {system: level(lines.get(system, []), numbers) for system in systems},
        x_label="number of contexts",
        y_label=y_label,
        title=title,
        log_x=True,
    )
    return f"{text}Command: `{command}`\n\n{table}\n\n![{title}]({path.name})\n"


def tabulate_scores(results: Mapping[str, Sequence[dict[str, Any]]], key: str, *, sign: str = "") -> str:
    """Returns a table of scores with a row for each system and a column for each number of contexts.

    Args:
        results: For each system its rows; see `draw_curves`.
        key: The score to show.
        sign: "+" to write the sign of positive scores, too.
    """
    lines = {system: average_scores(rows, key) for system, rows in results.items()}
    numbers = sorted({point.x for points in lines.values() for point in points})
    table = []
    for system, points in lines.items():
        found = results[system]
        cells = {"system": system, "seeds": ", ".join(str(row["seed"]) for row in found)}
        cells |= {f"{number:g}": "" for number in numbers} | {f"{point.x:g}": _cell(point, sign) for point in points}
        for name in found[0].get("extra_scores", {}):
            cells[name] = _cell(_average([row["extra_scores"][name] for row in found], key), sign)
        table.append(cells)
    return format_rows(table)


def _cell(point: Point, sign: str) -> str:
    return f"{point.y:{sign}.3f} [{point.low:{sign}.3f}, {point.high:{sign}.3f}]"


def reads_nothing(points: Sequence[Point]) -> bool:
    """Whether all that a system has is a score for 0 contexts."""
    return [point.x for point in points] == [0]


def level(points: list[Point], numbers: Sequence[float]) -> list[Point]:
    """Returns the points of a line; the one score of a system that reads no contexts stands for every number."""
    return [replace(points[0], x=number) for number in numbers] if reads_nothing(points) else points


def average_scores(rows: Sequence[dict[str, Any]], key: str) -> list[Point]:
    """Returns the points of a line: for each number of contexts the means of score and interval ends over seeds."""
    return [_average(scores, key) for scores in zip(*(row["scores"] for row in rows), strict=True)]


def _average(scores: Sequence[dict[str, Any]], key: str) -> Point:
    """Returns the point of one number of contexts, from the scores of several seeds."""
    means = [float(np.mean([score[name] for score in scores])) for name in (key, f"{key}_low", f"{key}_high")]
    return Point(scores[0]["contexts"], *means)
