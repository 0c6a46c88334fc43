"""What users know of their terms: glossaries and aliases, from files or as they are."""

import os
from collections.abc import Mapping, Sequence

from .term_files import describe_rejected, read_aliases, read_glossary


def read_definitions(
    glossary: str | os.PathLike[str] | Mapping[str, Sequence[str]] | None,
    aliases: str | os.PathLike[str] | Mapping[str, str] | None,
) -> tuple[dict[str, list[str]], list[str]]:
    """Returns the definitions of terms, of which what a short form stands for is one, and notes on rows that were left
    out.

    Example:
        >>> read_definitions({"kumquat": ["a small citrus fruit"]}, {"kq": "kumquat"})
        ({'kumquat': ['a small citrus fruit'], 'kq': ['kumquat']}, [])
    """
    definitions: dict[str, list[str]] = {}
    notes: list[str] = []
    if isinstance(glossary, Mapping):
        definitions |= {term: list(texts) for term, texts in glossary.items()}
    elif glossary is not None:
        read = read_glossary(glossary)
        definitions |= read.definitions
        notes.append(describe_rejected(read.rejected, glossary))
    long_forms: Mapping[str, str] = aliases if isinstance(aliases, Mapping) else {}
    if aliases is not None and not isinstance(aliases, Mapping):
        found = read_aliases(aliases)
        long_forms = found.long_forms
        notes.append(describe_rejected(found.rejected, aliases))
    for short_form, long_form in long_forms.items():
        definitions.setdefault(short_form, []).append(long_form)
    return definitions, [f"{note}." for note in notes if note]
