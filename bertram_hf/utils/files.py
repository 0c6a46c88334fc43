"""Reading and writing of small files."""

import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file at once: a kill leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def read_json(path: Path) -> dict[str, Any]:
    """Returns the JSON object in a file.

    Raises:
        ValueError: If there is none.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must hold JSON; it cannot be read: {error}. Save the folder again.") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold a JSON object; got {type(value).__name__}. Save the folder again.")
    return value


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
