"""Tables in Markdown."""

from collections.abc import Mapping, Sequence
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
