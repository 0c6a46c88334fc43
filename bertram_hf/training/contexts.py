"""The contexts of many words, tokenised once and kept in memory-mapped files."""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..processing_bertram import BertramProcessor
from ..utils.files import read_json, write_json, write_whole
from ..utils.hashing import fingerprint
from ..utils.progress import progress_bar

logger = logging.getLogger(__name__)
FORMAT_VERSION = 1
WORDS_PER_WINDOW = 256


class EncodedContexts:
    """Token ids and mask positions of C contexts of W words, the contexts of the first word first.

    Attributes:
        words: W words, each with at least one context.
        offsets: (W + 1,), word `i` owns the contexts `offsets[i]` to `offsets[i + 1]`.
        mask_positions: (C,).
        dropped: How many contexts of each word were dropped because the word was not found in them.
        key: Names what the files were made from: the words, their contexts and the processor.

    `build` makes them; `without_contexts` is for words whose spelling alone is read.
    """

    words: list[str]
    dropped: dict[str, int]
    key: str
    offsets: np.ndarray
    mask_positions: np.ndarray
    _token_offsets: np.ndarray
    _tokens: np.ndarray

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "EncodedContexts":
        """Opens what `build` wrote."""
        folder = Path(folder)
        contexts = cls()
        description = read_json(folder / "contexts.json")
        contexts.words, contexts.dropped, contexts.key = (description[name] for name in ("words", "dropped", "key"))
        contexts.offsets = np.load(folder / "offsets.npy")
        contexts.mask_positions = np.load(folder / "mask_positions.npy", mmap_mode="r")
        contexts._token_offsets = np.load(folder / "token_offsets.npy", mmap_mode="r")
        contexts._tokens = np.memmap(folder / "tokens.bin", dtype=np.int32, mode="r")
        return contexts

    @classmethod
    def without_contexts(cls, words: Sequence[str]) -> "EncodedContexts":
        """Returns words that have no contexts."""
        contexts = cls()
        contexts.words, contexts.dropped = list(words), {}
        contexts.key = fingerprint(contexts.words)
        contexts.offsets = np.zeros(len(words) + 1, dtype=np.int64)
        contexts.mask_positions = contexts._tokens = np.zeros(0, dtype=np.int32)
        contexts._token_offsets = np.zeros(1, dtype=np.int64)
        return contexts

    def __len__(self) -> int:
        return len(self.mask_positions)

    def input_ids(self, index: int) -> list[int]:
        """Returns the token ids of one context, special tokens and prefix included."""
        return self._tokens[self._token_offsets[index] : self._token_offsets[index + 1]].tolist()

    def owners(self, rows: np.ndarray) -> np.ndarray:
        """Returns the index of the word that each of some contexts belongs to."""
        return np.searchsorted(self.offsets, rows, side="right") - 1

    @property
    def num_contexts(self) -> np.ndarray:
        """(W,), how many contexts each word has."""
        return np.diff(self.offsets)

    @classmethod
    def build(
        cls,
        processor: BertramProcessor,
        contexts: Iterable[tuple[str, Sequence[str]]],
        folder: str | os.PathLike,
        *,
        show_progress: bool = True,
    ) -> "EncodedContexts":
        """Tokenises contexts, unless `folder` holds the same ones already.

        Args:
            processor: The model's processor.
            contexts: Words with their contexts; read twice, so no generator.
            folder: Where to keep the files; made anew if they are of other contexts or another processor.
            show_progress: Whether a run of more than a few seconds shows a progress bar.

        Raises:
            ValueError: If no word has a context with it.
        """
        folder = Path(folder)
        key = _contexts_key(processor, contexts)
        if (folder / "contexts.json").exists():
            found = cls.load(folder)
            if found.key == key:
                return found
        for path in folder.parent.glob(f"{folder.name}.*.tmp"):
            shutil.rmtree(path)  # tokens of a killed run, which may be many
        with write_whole(folder) as (unfinished,):
            unfinished.mkdir()
            _write_contexts(unfinished, key, processor, contexts, show_progress=show_progress)
        return cls.load(folder)


def _write_contexts(
    folder: Path,
    key: str,
    processor: BertramProcessor,
    contexts: Iterable[tuple[str, Sequence[str]]],
    *,
    show_progress: bool,
) -> None:
    """Tokenises contexts into the files of a folder."""
    words: list[str] = []
    dropped: dict[str, int] = {}
    num_contexts: list[int] = []
    lengths: list[int] = []
    mask_positions: list[int] = []
    entries = iter(progress_bar(contexts, desc="Tokenising", unit="word", show_progress=show_progress))
    with open(folder / "tokens.bin", "wb") as tokens:
        while window := list(islice(entries, WORDS_PER_WINDOW)):
            for entry in processor.encode([word for word, _ in window], [texts for _, texts in window]):
                if entry.dropped:
                    dropped[entry.word] = len(entry.dropped)
                if not entry.used:
                    continue
                words.append(entry.word)
                num_contexts.append(len(entry.used))
                lengths += map(len, entry.input_ids)
                mask_positions += entry.mask_positions
                for ids in entry.input_ids:
                    tokens.write(np.asarray(ids, dtype=np.int32).tobytes())
    if not words:
        raise ValueError("No word has a context that contains it. Check that words and contexts belong together.")
    if dropped:
        logger.warning(f"{sum(dropped.values())} contexts of {len(dropped)} words do not hold their word.")
    np.save(folder / "offsets.npy", np.cumsum([0, *num_contexts]))
    np.save(folder / "token_offsets.npy", np.cumsum([0, *lengths]))
    np.save(folder / "mask_positions.npy", np.asarray(mask_positions, dtype=np.int32))
    write_json(folder / "contexts.json", {"key": key, "words": words, "dropped": dropped})


def _contexts_key(processor: BertramProcessor, contexts: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Hashes everything that the token ids depend on."""
    digest = hashlib.sha256()

    def update(value: Any) -> None:
        digest.update(json.dumps(value, ensure_ascii=True).encode())

    update([FORMAT_VERSION, processor.max_length, processor.prefix, processor.match])
    digest.update(processor.tokenizer.backend_tokenizer.to_str().encode())
    for word, texts in contexts:
        update([word, *texts])
    return digest.hexdigest()[:32]
