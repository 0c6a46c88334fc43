"""Text cut into stretches, so that each different one is looked at once.

A token of `counting_pattern` or `sampling_pattern` holds, and depends on, no ASCII character but letters, digits and
`_-'`. So text may be cut wherever one of these, or any character beyond ASCII, meets another character: "It's (said)
COVID-19." becomes "It's", " (", "said", ") ", "COVID-19", ".", and the tokens of the text are those of its stretches.
NumPy finds the places in a table of the 256 bytes and Arrow tells which stretches are the same, so what is left to
Python and its regular expressions are the different ones: one of fifty, in a megabyte of prose.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

# In UTF-8, bytes from 0x80 on are those of the characters beyond ASCII.
IS_INSIDE = np.array([byte >= 0x80 or chr(byte).isalnum() or chr(byte) in "_-'" for byte in range(256)])


def cut_stretches(content: bytes) -> pa.StringArray:
    """Returns the stretches of UTF-8 text, from first to last; nothing is copied.

    Example:
        >>> cut_stretches(b"It's (said) COVID-19.").to_pylist()
        ["It's", ' (', 'said', ') ', 'COVID-19', '.']
    """
    is_inside = IS_INSIDE[np.frombuffer(content, np.uint8)]
    edges = np.flatnonzero(is_inside[1:] != is_inside[:-1]) + 1
    offsets = np.concatenate([[0], edges, [len(content)] if content else []]).astype(np.int32)
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(content))


def count_stretches(texts: Iterable[str]) -> dict[str, int]:
    """Returns the different stretches of texts, and how often each occurs.

    Example:
        >>> count_stretches(["a kumquat", "a lemon"])
        {'a': 2, ' ': 2, 'kumquat': 1, '\\n': 1, 'lemon': 1}
    """
    counts = cut_stretches("\n".join(texts).encode()).value_counts()
    return dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))


def number_stretches(lines: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Numbers the different stretches of lines.

    Example:
        >>> different, numbers, bounds = number_stretches("a kumquat\\na lemon")
        >>> different, numbers.tolist(), bounds.tolist()
        (['a', ' ', 'kumquat', '\\n', 'lemon'], [0, 1, 2, 3, 0, 1, 4], [0, 4, 7])

    Returns:
        The different stretches; the number of each stretch of the text; and where in these numbers each line begins,
        and the last one ends. A stretch with a line break, which holds no token, belongs to either line.
    """
    content = lines.encode()
    stretches = cut_stretches(content)
    encoded = stretches.dictionary_encode()
    starts = np.frombuffer(stretches.buffers()[1], np.int32)[:-1]
    breaks = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))
    bounds = np.concatenate([[0], np.searchsorted(starts, breaks, side="right"), [len(starts)]])
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(), bounds


def is_plain(stretch: str) -> bool:
    """Whether a stretch is a single token: nothing but ASCII letters and digits."""
    return stretch.isascii() and stretch.isalnum()
