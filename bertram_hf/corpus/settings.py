"""What a corpus is made from, and what its steps must know."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MISSING_NAME = "words_without_sentence.txt"  # beside the contexts: given words, one on each line

COLUMN = "column "  # begins the names of columns in a reader's report


@dataclass(frozen=True)
class CorpusSettings:
    """The arguments of `build_corpus` that change its result, and the folder in which the steps work."""

    work: str
    lower_case: bool
    unit: str
    text_column: str
    min_count: int | None
    max_words: int | None
    max_contexts: int
    min_sentence_words: int
    max_sentence_words: int
    seed: int
    num_parts: int
    title_column: str | None = None  # read beside the text, for documents; titles are no part of a corpus

    def folder(self, name: str) -> Path:
        """Returns a folder inside the work folder, which is made if it is not there."""
        path = Path(self.work) / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def given_words(self) -> list[str] | None:
        """Returns the words that were given to sample sentences for, besides frequent ones; None if none were."""
        path = Path(self.work) / "words.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None  # a list

    def describe(self) -> dict[str, Any]:
        """Returns what changes the result."""
        return {key: value for key, value in asdict(self).items() if key not in ("work", "title_column")}


@dataclass(frozen=True)
class CorpusSource:
    """A source of contexts. One of the first three fields is given.

    Args:
        inputs: Text, JSONL or Parquet files, folders or patterns.
        dataset: A dataset on the Hub, `[name]`, `[name, config]` or `[name, config, split]`; it is streamed.
        folder: What `bertram corpus` wrote.
        min_count: How often a word must occur to be trained on. The paper's is 100.
        max_contexts: Sentences sampled for each word.
        options: More arguments of `build_corpus`, such as `text_column`, `executor` and `num_workers`.

    Example:
        >>> CorpusSource(inputs=["novels/*.txt"], min_count=20).max_contexts
        64
    """

    inputs: list[str] = field(default_factory=list)
    dataset: list[str] = field(default_factory=list)
    folder: str | None = None
    min_count: int = 100
    max_contexts: int = 64
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = [name for name in ("inputs", "dataset", "folder") if getattr(self, name)]
        if len(given) != 1:
            raise ValueError(f"a corpus is one of inputs, dataset and folder; got {' and '.join(given) or 'none'}.")
