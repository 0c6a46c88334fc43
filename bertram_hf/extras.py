"""Packages that only some features need: what to install if one of them is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

# Modules of packages that are not always installed, and the extra of pyproject.toml that brings them.
EXTRAS = {
    **dict.fromkeys(("datatrove", "loguru", "pyarrow", "xxhash"), "corpus"),
    **dict.fromkeys(("accelerate", "yaml"), "train"),
    **dict.fromkeys(("lemminflect", "matplotlib", "nltk", "scipy", "wordfreq"), "evaluation"),
    "rich": "demo",
    "sentence_transformers": "sentence-transformers",
}


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Says which extra to install if a package is missing that the block imports.

    Args:
        extra: Name of the extra.
        what: What it is needed for; begins the message.

    Raises:
        ImportError: With a message for people.

    Example:
        >>> with needs_extra("evaluation", "A figure"):
        ...     import no_such_package
        Traceback (most recent call last):
        ImportError: A figure needs no_such_package, which is missing. Run: pip install "bertram-hf[evaluation]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(
            f'{what} needs {error.name}, which is missing. Run: pip install "bertram-hf[{extra}]"'
        ) from error
