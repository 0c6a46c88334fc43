"""Tables in Markdown and in plain text."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

TITLES = {"mrr": "MRR"}


def format_facts(facts: Mapping[str, Any]) -> str:
    """Returns a table with a row for each fact that is known."""
    return format_rows([{"": key, " ": value} for key, value in facts.items() if value is not None])


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns rows as a table; a column that no row has is not there.

    Example:
        >>> print(format_rows([{"contexts": 1, "mrr": 0.05}, {"contexts": 2, "mrr": None}]))
        | contexts | MRR |
        | --- | --- |
        | 1 | 0.05 |
        | 2 |  |
    """
    columns = list(dict.fromkeys(key for row in rows for key, value in row.items() if value is not None))
    if not columns:
        return ""
    lines = [[format_title(column) for column in columns], ["---"] * len(columns)]
    lines += [[_format_value(row.get(column)) for column in columns] for row in rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def format_title(key: str) -> str:
    """Returns a key as people write it."""
    return TITLES.get(key, key.replace("_", " "))


def _format_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return " ".join(str(value).split())
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def format_columns(rows: Sequence[Sequence[str]], *, right_aligned: Iterable[int] = ()) -> str:
    """Writes rows as text in aligned columns.

    Example:
        >>> print(format_columns([("word", "count"), ("kumquat", "3")], right_aligned=[1]))
        word     count
        kumquat      3
    """
    widths = [max(map(_display_width, column)) for column in zip(*rows, strict=True)]
    right = set(right_aligned)
    lines = []
    for row in rows:
        spaces = [" " * (width - _display_width(cell)) for width, cell in zip(widths, row, strict=True)]
        cells = [s + cell if i in right else cell + s for i, (s, cell) in enumerate(zip(spaces, row, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _display_width(text: str) -> int:
    """Returns how many columns a terminal needs: two for an East Asian wide character, none for a mark."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
