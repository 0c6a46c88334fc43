"""What the steps of a corpus must know."""

import json
from dataclasses import asdict, dataclass
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
        return {key: value for key, value in asdict(self).items() if key != "work"}
