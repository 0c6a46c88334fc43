"""Files of words with contexts or definitions: JSON lines."""

import json
import os

from ..utils.files import read_utf8

EXPECTED = 'must look like {"word": "kumquat", "contexts": ["..."]}'


def read_word_lines(path: str | os.PathLike[str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Reads lines such as {"word": "kumquat", "contexts": ["A kumquat."], "definitions": ["a citrus fruit"]}.

    Lines of the same word are joined. Contexts may be left out where there are definitions.

    Returns:
        The contexts and the definitions of each word; either may be an empty list.

    Raises:
        ValueError: If a line is of another form, with its number.
    """
    contexts: dict[str, list[str]] = {}
    definitions: dict[str, list[str]] = {}
    for number, line in enumerate(read_utf8(path).split("\n"), start=1):
        if line.strip():
            word, texts, about = _read_line(line, f"Line {number} of {path}")
            contexts.setdefault(word, []).extend(texts)
            definitions.setdefault(word, []).extend(about)
    return contexts, definitions


def _read_line(line: str, where: str) -> tuple[str, list[str], list[str]]:
    """Reads a word, its contexts and its definitions from a line of JSON."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} {EXPECTED}; it is no JSON: {error}.") from error
    if not isinstance(entry, dict):
        raise ValueError(f"{where} {EXPECTED}; got {entry!r:.80}.")
    if "definitions" in entry:
        entry.setdefault("contexts", [])
    missing = [key for key in ("word", "contexts") if key not in entry]
    if missing:
        raise ValueError(f"{where} {EXPECTED}; there is no {' and no '.join(missing)}, only {', '.join(entry)}.")
    word, texts, definitions = entry["word"], entry["contexts"], entry.get("definitions", [])
    if not isinstance(word, str):
        raise ValueError(f"{where} {EXPECTED}; word must be a text; got {word!r:.80}.")
    for key, value in (("contexts", texts), ("definitions", definitions)):
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise ValueError(f"{where} {EXPECTED}; {key} must be a list of texts; got {value!r:.80}.")
    return word, texts, definitions
