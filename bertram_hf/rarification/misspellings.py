"""Misspellings of words, from the dictionaries of codespell and nlpaug.

The paper takes those of Edizel et al. (2019), whose data are not published any more. Neither dictionary is part of this
package: they are read from the packages that are installed, codespell's (GPL-2.0) and nlpaug's (MIT). A file of your
own is read with `Substitutions.read(path, kind="misspelling")`.
"""

from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Literal

from ..utils.names import DICTIONARIES
from .substitutions import Kind, Substitutions

Source = Literal["codespell", "nlpaug"]


def read_misspellings(source: Source) -> Substitutions:
    """Reads the misspellings of an installed package. Only what consists of letters is used.

    - codespell: frequent errors in programs and documents. Errors that could stand for several words are left out.
    - nlpaug: errors in English Wikipedia and in learners' texts. Many are words themselves ("like" for "luck"), which
      `Substitutions.keep_rare` takes out.

    Args:
        source: Which dictionary.

    Raises:
        ValueError: If the source is not known, or its package has no dictionary.
        ImportError: If the package is not installed.

    Example:
        >>> [substitute.text for substitute in read_misspellings("codespell")["commemorate"]]
        ['commemmorate']
    """
    if source not in DICTIONARIES:
        raise ValueError(f"Expected a source among {', '.join(DICTIONARIES)}; got {source!r}.")
    lines = _dictionary_path(source).read_text(encoding="utf-8").splitlines()
    pairs = read_codespell(lines) if source == "codespell" else read_word_lists(lines)
    kind: Kind = "misspelling"
    return Substitutions(
        (word, misspelling, kind)
        for word, misspelling in pairs
        if word.isalpha() and misspelling.isalpha() and word.lower() != misspelling.lower()
    )


def read_all_misspellings(sources: Iterable[str]) -> list[Substitutions]:
    """Reads misspellings of installed packages, by their names, and of TSV files."""
    return [
        read_misspellings(source) if source in DICTIONARIES else Substitutions.read(source, kind="misspelling")  # type: ignore[arg-type]
        for source in sources
    ]


def read_codespell(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yields word and misspelling from lines such as "recieve->receive".

    Example:
        >>> list(read_codespell(["recieve->receive", "aache->cache, ache,", "clas->class, disabled due to a name"]))
        [('receive', 'recieve')]
    """
    for line in lines:
        misspelling, _, word = line.partition("->")
        if "," not in word:  # a comma stands between several corrections, or before the reason not to correct
            yield word.strip().lower(), misspelling.strip().lower()


def read_word_lists(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yields word and misspelling from lines such as "esteem estime esstem".

    Example:
        >>> list(read_word_lists(["esteem estime esstem"]))
        [('esteem', 'estime'), ('esteem', 'esstem')]
    """
    for line in lines:
        word, *misspellings = line.lower().split() or [""]
        yield from ((word, misspelling) for misspelling in misspellings)


def _dictionary_path(package: str) -> Path:
    """Finds the file of a package without importing it: nlpaug imports far more than its data."""
    try:
        found = [path for path in files(package) or [] if path.as_posix() == DICTIONARIES[package]]
    except PackageNotFoundError as error:
        raise ImportError(
            f"The misspellings of {package} are read from the package {package}, which is not installed. "
            f"Run: pip install {package}"
        ) from error
    if not found:
        raise ValueError(f"Expected {DICTIONARIES[package]} in the package {package}; it is not there. Reinstall it.")
    return Path(str(found[0].locate()))
