"""Scores by number of contexts: a table and a figure for all systems."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .figures import Point, draw_lines
from .markdown_table import format_rows


def write_curves(
    path: Path,
    results: Mapping[str, Sequence[dict[str, Any]]],
    key: str,
    *,
    systems: Sequence[str],
    title: str,
    y_label: str,
    command: str | None,
) -> None:
    """Writes a table and a figure of scores by number of contexts: means over seeds, with intervals.

    Args:
        path: The files, without `.md` and `.png`.
        results: For each system its rows, one for each seed, with `scores`.
        key: The score to show; `{key}_low` and `{key}_high` are the ends of its interval.
        systems: All systems, so that each has the same colour in every figure.
        title: Above table and figure.
        y_label: What the score is.
        command: The command that was given, for the record.
    """
    lines = {system: average_scores(rows, key) for system, rows in results.items()}
    table = [
        {"system": system, "seeds": len(results[system])}
        | {f"{point.x:g}": f"{point.y:.3f} [{point.low:.3f}, {point.high:.3f}]" for point in points}
        for system, points in lines.items()
    ]
    text = f"# {title}\n\n{y_label}, by number of contexts; 95% intervals by bootstrap, means over seeds.\n"
    path.with_suffix(".md").write_text(f"{text}Command: `{command}`\n\n{format_rows(table)}\n", encoding="utf-8")
    draw_lines(
        path.with_suffix(".png"),
        {system: [point for point in lines.get(system, []) if point.x > 0] for system in systems},
        x_label="number of contexts",
        y_label=y_label,
        title=title,
        log_x=True,
    )


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
