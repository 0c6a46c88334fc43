"""The report of an adaptation: one HTML file that works offline, and the same as JSON."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..processing_words import replace_surrogates
from ..utils.files import write_json, write_whole

TEMPLATES = Path(__file__).parent / "templates"
HTML_NAME, JSON_NAME = "report.html", "report.json"
NEEDED = ("model", "verdict", "words")  # everything else may be missing or empty
LABELS = {True: "Injection helps", False: "Injection does not help", None: "Not judged"}
NO_CLEAR_EFFECT = "No clear effect"
TONES = {True: "good", False: "bad", None: "open"}  # classes of the template
MODES = {
    "auto": "appends the vector to rare words; replaces misspellings and words whose pieces mislead",
    "slash": "appends the vector to the word",
    "replace": "replaces the word by the vector",
}
TEXT_COUNTS = {
    "num_texts": "texts",
    "num_different_words": "different words",
    "num_rare_words": "rare words",
    "num_injected_words": "injected words",
    "num_touched_texts": "texts with an injected word",
}
GAIN_GROUPS = {
    "ways": "Ways to inject",
    "by_repetition": "Texts that are searched",
    "simpler": "Simpler vectors, for comparison",
    "by_contexts": "Queries by sentences of their least known word",
    "by_reliability": "Queries by reliability of their least known word",
}
NUM_TICKS = 5  # at most, so that their labels have room on a phone
MARGIN = 0.07  # of an axis, on both sides, where the outermost labels have room
CURVE_TOP, CURVE_BOTTOM = 20, 260  # pixels between which the curve is drawn
CURVE_LEFT, CURVE_RIGHT = 20, 93  # percent
MAX_VALUE_LABELS, MAX_POINT_LABELS = 6, 9  # of the curve


@dataclass(frozen=True)
class Axis:
    """A line of numbers on which zero and all values have their place.

    Attributes:
        low: Its lower end.
        high: Its upper end.
        step: Between ticks.
    """

    low: float
    high: float
    step: float

    @classmethod
    def around(cls, values: Sequence[float]) -> "Axis":
        """Returns an axis with zero, all values and a margin.

        Example:
            >>> Axis.around([-0.5, 1.5]).ticks
            [-0.5, 0.0, 0.5, 1.0, 1.5]
        """
        low, high = min([0.0, *values]), max([0.0, *values])
        if low == high:
            low, high = -0.01, 0.01
        rough = (high - low) / (NUM_TICKS - 1)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough * (1 - 1e-9))
        margin = MARGIN * (high - low)
        return cls(low - margin, high + margin, step)

    @property
    def ticks(self) -> list[float]:
        """The round numbers to label."""
        first, last = math.ceil(self.low / self.step), math.floor(self.high / self.step)
        return [number * self.step for number in range(first, last + 1)]

    def place(self, value: float) -> float:
        """Returns where a value lies, from 0 (low end) to 1."""
        return (value - self.low) / (self.high - self.low)


def render_report(report: Mapping[str, Any]) -> str:
    """Returns the report of an adaptation as one HTML file, which needs no network.

    Words and sentences of the texts are shown as text, whatever they hold.

    Args:
        report: What `report.json` holds. Everything but `model`, `verdict` and `words` may be missing.

    Raises:
        ValueError: If one of these is missing.

    Example:
        >>> words = [{"word": "kumquat", "count": 3, "injected": True}]
        >>> page = render_report({"model": "bert-base-uncased", "verdict": {"helps": True}, "words": words})
        >>> "Injection helps" in page, "kumquat" in page
        (True, True)
    """
    return _render(_clean(report))


def write_report(report: Mapping[str, Any], folder: Path) -> None:
    """Writes `report.html` and `report.json` into a folder, each whole or not at all.

    Args:
        report: See `render_report`.
        folder: Where to write; it is made if it is missing.

    Raises:
        ValueError: If the report lacks a part that it needs; nothing is written then.

    Example:
        >>> write_report({"model": "bert-base-uncased", "verdict": {"helps": None}, "words": []}, Path("my-model"))
        >>> sorted(path.name for path in Path("my-model").glob("report.*"))
        ['report.html', 'report.json']
    """
    cleaned = _clean(report)
    page = _render(cleaned)
    write_json(folder / JSON_NAME, cleaned)
    with write_whole(folder / HTML_NAME) as (unfinished,):
        unfinished.write_text(page, encoding="utf-8")


def _clean(report: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy that every reader of JSON takes: null for what is no number, no unpaired surrogates."""
    missing = [name for name in NEEDED if report.get(name) is None]
    if missing:
        raise ValueError(
            f"Expected a report with {', '.join(NEEDED)}; {', '.join(missing)} missing. "
            "Give what `bertram adapt` wrote to report.json."
        )
    text = json.dumps(dict(report), ensure_ascii=False)
    return json.loads(replace_surrogates(text), parse_constant=lambda name: None)


def _render(report: dict[str, Any]) -> str:
    verdict = report["verdict"]
    retrieval, code_names = verdict.get("retrieval") or {}, verdict.get("code_names") or {}
    helps, gain = verdict.get("helps"), _find_gain(verdict)
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": _format_count,
        "gain": _format_gain,
        "percent": _format_percent,
        "score": _format_score,
        "seconds": _format_seconds,
        "value": _format_value,
    }
    texts, mode = report.get("texts") or {}, verdict.get("mode")
    return environment.get_template(HTML_NAME).render(
        model=report["model"],
        facts={name: report.get(name) for name in ("output", "checkpoint") if report.get(name)},
        command=report.get("command"),
        label=NO_CLEAR_EFFECT if helps is None and gain else LABELS[helps],
        tone=TONES[helps],
        headline=verdict.get("headline"),
        advice=verdict.get("advice"),
        mode=mode,
        mode_effect=MODES.get(mode),
        metric=retrieval.get("metric") or "score",
        num_queries=retrieval.get("num_queries"),
        num_documents=retrieval.get("num_documents"),
        gain=gain,
        gains=_plot_gains(retrieval),
        code_names=code_names,
        curve=_plot_curve(code_names.get("points") or []),
        texts={TEXT_COUNTS[name]: texts[name] for name in TEXT_COUNTS if texts.get(name) is not None},
        counts=texts,
        num_words=len(report["words"]),
        words=_embed_json(report["words"]),
        notes=report.get("notes") or [],
        seconds={name: value for name, value in (report.get("seconds") or {}).items() if value is not None},
        settings=report.get("settings") or {},
        versions=report.get("versions") or {},
    )


def _embed_json(value: Any) -> Markup:
    """Returns JSON that ends no script element and holds no end of line, so that it can stand in HTML as it is."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text))


def _find_gain(verdict: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the gain that the verdict stands on: that of the chosen way, on queries that did not choose it."""
    retrieval = verdict.get("retrieval") or {}
    measured = [way for way in retrieval.get("ways") or [] if way.get("gain") is not None]
    final = retrieval.get("final") or {}
    if final.get("gain") is not None:
        return final
    return next((way for way in measured if way.get("chosen")), measured[0] if measured else None)


def _plot_gains(retrieval: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns groups of rows and the axis that they share, with places in percent; None without any gain."""
    groups = [(title, retrieval.get(name) or []) for name, title in GAIN_GROUPS.items()]
    rows = [row for _, group in groups for row in group if row.get("gain") is not None]
    if not rows:
        return None
    axis = Axis.around([end for row in rows for end in _interval(row, "gain") or (row["gain"],)])
    return {
        "groups": [
            {"title": title, "rows": [_plot_gain(row, axis) for row in group]} for title, group in groups if group
        ],
        "zero": _percent_of(axis.place(0)),
        "ticks": [(_percent_of(axis.place(tick)), _format_gain(tick, _digits(axis.step))) for tick in axis.ticks],
    }


def _plot_gain(row: Mapping[str, Any], axis: Axis) -> dict[str, Any]:
    interval = _interval(row, "gain")
    tone = "open"
    if interval and (interval[0] > 0 or interval[1] < 0):
        tone = "good" if interval[0] > 0 else "bad"
    return {
        "name": row.get("name") or "",
        "detail": row.get("detail"),
        "num_queries": row.get("num_queries"),
        "plain": row.get("plain"),
        "injected": row.get("injected"),
        "chosen": bool(row.get("chosen")),
        "tone": tone,
        "gain": row.get("gain"),
        "interval": interval,
        "dot": None if row.get("gain") is None else _percent_of(axis.place(row["gain"])),
        "bar": interval and [_percent_of(axis.place(end)) for end in interval],
    }


def _plot_curve(points: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Returns the share won back by number of sentences: x in percent, y in pixels; None without any point."""
    known = sorted(
        (point for point in points if point.get("won_back") is not None), key=lambda point: point.get("contexts") or 0
    )
    if not known:
        return None
    axis = Axis.around([1, *(end for point in known for end in _interval(point, "won_back") or (point["won_back"],))])

    def height(value: float) -> float:
        return round(CURVE_BOTTOM - axis.place(value) * (CURVE_BOTTOM - CURVE_TOP), 1)

    gap = (CURVE_RIGHT - CURVE_LEFT) / max(len(known) - 1, 1)
    every = math.ceil(len(known) / MAX_POINT_LABELS)
    drawn = []
    for number, point in enumerate(known):
        interval = _interval(point, "won_back")
        left = CURVE_LEFT + gap * number if len(known) > 1 else (CURVE_LEFT + CURVE_RIGHT) / 2
        drawn.append(
            {
                **{
                    name: point.get(name)
                    for name in ("contexts", "known", "renamed", "left_out", "injected", "won_back")
                },
                "interval": interval,
                "x": round(left, 2),
                "y": height(point["won_back"]),
                "bar": interval and [height(end) for end in interval],
                "has_label": number % every == 0,
            }
        )
    return {
        "points": drawn,
        "ticks": [(height(tick), _format_percent(tick)) for tick in axis.ticks],
        "has_values": len(drawn) <= MAX_VALUE_LABELS,
        "zero": height(0),
        "bottom": CURVE_BOTTOM,
    }


def _interval(row: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    return None if low is None or high is None else (low, high)


def _percent_of(share: float) -> float:
    return round(100 * share, 2)


def _digits(step: float) -> int:
    """Returns how many decimals tell the multiples of a step apart."""
    return next(digits for digits in range(12) if abs(round(step, digits) - step) < step * 1e-6)


def _format_gain(value: float, digits: int = 3) -> str:
    text = f"{value:+.{digits}f}"
    return "0" if float(text) == 0 else text.replace("-", "−")


def _format_count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _format_percent(share: float) -> str:
    return f"{round(100 * share):,}%".replace("-", "−")


def _format_score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _format_seconds(seconds: float) -> str:
    """Returns a time as people read it.

    Example:
        >>> _format_seconds(7384), _format_seconds(240.1), _format_seconds(12.34), _format_seconds(0.04)
        ('2 h 3 min', '4 min 0 s', '12.3 s', '0.0 s')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _format_value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
