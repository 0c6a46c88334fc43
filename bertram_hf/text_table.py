"""Tables in plain text."""

import unicodedata
from collections.abc import Iterable, Sequence


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
