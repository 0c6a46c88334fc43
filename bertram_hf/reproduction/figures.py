"""Figures of scores, as PNG."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..utils.imports import needs_extra

MARKERS = "os^Dv<>Px*"
COLORS = [f"C{number}" for number in range(10)]
# For an eleventh line and those after it, which are dashed.
COLORS += ["#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#a6761d", "#000000", "#0b3c8c", "#8c0b2f", "#4d4d4d"]


@dataclass(frozen=True)
class Point:
    """A point of a line, with its confidence interval if that is known."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


def draw_lines(
    path: str | os.PathLike[str],
    lines: Mapping[str, Sequence[Point]],
    *,
    x_label: str,
    y_label: str,
    title: str,
    log_x: bool = False,
    x_ticks: Mapping[float, str] | None = None,
    zero_line: bool = False,
) -> None:
    """Draws one line for each system and writes a PNG file.

    Args:
        path: The file.
        lines: The points of each system; confidence intervals are drawn as bands. A system without points has no line,
            but keeps its colour, so that figures of the same systems agree.
        x_label: What the x-axis shows, with its unit.
        y_label: What the y-axis shows, with its unit.
        title: Above the figure.
        log_x: Whether the x-axis is logarithmic (to base 2, as contexts double). An x of 0, which has no place there,
            stands one step left of the smallest other x.
        x_ticks: Where the x-axis has labels, and which; by default at every x of a point.
        zero_line: Whether y = 0 is drawn, for gains.

    Raises:
        ValueError: If there is nothing to draw, or matplotlib is missing.
    """
    if not any(lines.values()):
        raise ValueError(f"There is nothing to draw in {path}: no system has a score.")
    figure, axes = _new_figure()
    drawn = sorted({point.x for points in lines.values() for point in points})
    zero = min((x for x in drawn if x > 0), default=1) / 2 if log_x else 0

    def place(x: float) -> float:
        return zero if x == 0 else x

    for number, (name, points) in enumerate(lines.items()):
        if not points:
            continue
        xs, ys = [place(point.x) for point in points], [point.y for point in points]
        marker = MARKERS[(number + 5 * (number // 10)) % len(MARKERS)]
        color = COLORS[number % len(COLORS)]
        style = "-" if number < 10 else "--"
        axes.plot(xs, ys, style, marker=marker, markersize=4, linewidth=1.4, color=color, label=name)
        lows, highs = [point.low for point in points], [point.high for point in points]
        if None not in lows and None not in highs:
            axes.fill_between(xs, lows, highs, color=color, alpha=0.10, linewidth=0)
    if log_x:
        axes.set_xscale("log", base=2)
    ticks = x_ticks or {x: f"{x:g}" for x in drawn}
    axes.set_xticks([place(x) for x in ticks], list(ticks.values()))
    axes.minorticks_off()
    if zero_line:
        axes.axhline(0, color="black", linewidth=0.8, linestyle=":")
    axes.set(xlabel=x_label, ylabel=y_label, title=title)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, bbox_inches="tight", metadata={"Software": None})


def _new_figure() -> tuple[Any, Any]:
    """Returns a figure that no window system is asked for."""
    with needs_extra("evaluation", "A figure"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(6.4, 4.2))
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()
