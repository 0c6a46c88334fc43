"""Reading text files that people give, such as lists of words."""

import os
from pathlib import Path


def read_utf8(path: str | os.PathLike[str]) -> str:
    """Reads a text file, without a byte-order mark.

    Raises:
        ValueError: If it is not UTF-8; the message names the file.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Expected UTF-8 text in {path}; got {error}. Convert it (iconv -f ENCODING -t UTF-8)."
        ) from error


def read_word_file(path: str | os.PathLike[str]) -> list[str]:
    """Reads a file of words, one on each line; blank lines and outer spaces are left out.

    Raises:
        ValueError: If it is not UTF-8.

    Example:
        >>> read_word_file("words.txt")  # doctest: +SKIP
        ['kumquat', 'New York']
    """
    return [line.strip() for line in read_utf8(path).splitlines() if line.strip()]
