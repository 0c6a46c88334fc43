"""The contexts of words from one or more corpora."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from datasets import load_dataset

from ..induction.definitions import add_definitions
from .build import CorpusSummary, build_corpus, load_contexts
from .settings import CorpusSource


class CorpusContexts:
    """The contexts of words from one or more corpora, read from disk as they are asked for.

    Args:
        folders: What `build_corpus` wrote.

    Example:
        >>> summary = build_corpus("novels/*.txt", "my-corpus", lower_case=True, words=["kumquat", "kumqat"])
        >>> contexts = CorpusContexts(["my-corpus"])
        >>> contexts.num_contexts["kumquat"], "quokka" in contexts
        (2, False)
    """

    def __init__(self, folders: Sequence[str | os.PathLike[str]]) -> None:
        # An empty corpus has no rows to load.
        self._corpora = [load_contexts(folder) for folder in folders if CorpusSummary.load(folder).num_words]
        self._rows: dict[str, list[tuple[int, int]]] = {}
        self.counts: Counter[str] = Counter()
        self.num_contexts: Counter[str] = Counter()
        for index, corpus in enumerate(self._corpora):
            lengths = corpus.data.column("contexts").combine_chunks().value_lengths().to_pylist()
            for row, (word, count) in enumerate(zip(corpus["word"], corpus["count"], strict=True)):
                self._rows.setdefault(word, []).append((index, row))
                self.counts[word] += count
                self.num_contexts[word] += lengths[row]

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    def __getitem__(self, word: str) -> list[str]:
        """Returns a word's contexts, those of the first corpus first."""
        return [text for index, row in self._rows[word] for text in self._corpora[index][row]["contexts"]]

    def get(self, word: str) -> list[str]:
        """Returns a word's contexts, none if it never occurs."""
        if word not in self:
            return []
        return self[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)


class ContextsOf:
    """Words with their contexts, for several readings: what `EncodedContexts.build` takes.

    Args:
        words: The words.
        contexts: Their contexts; a word that never occurs has none.
        definitions: Definitions of some of them, which follow the contexts.
    """

    def __init__(
        self, words: Sequence[str], contexts: CorpusContexts, definitions: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.words, self.contexts, self.definitions = words, contexts, definitions or {}

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        for word in self.words:
            own = {word: self.definitions.get(word, ())}
            yield word, add_definitions({word: self.contexts.get(word)}, own)[word]

    def __len__(self) -> int:
        return len(self.words)


def build_source(
    source: CorpusSource,
    folder: str | os.PathLike[str],
    *,
    words: Sequence[str] = (),
    frequent_words: bool = True,
    lower_case: bool,
    seed: int = 0,
    show_progress: bool = True,
) -> Path:
    """Builds a corpus, unless it is there already, and returns its folder.

    Args:
        source: Where the text comes from.
        folder: Where the corpus is built; not used if the source is a built one.
        words: Words whose contexts are sampled however rare they are.
        frequent_words: Whether words that occur `source.min_count` times are sampled too.
        lower_case: Whether words are read in lower case.
        seed: Seed of the sample, unless `source.options` has one.
        show_progress: Whether to show progress bars.

    Raises:
        ValueError: If it is being built by Slurm jobs and not yet there.
    """
    if source.folder is not None:
        return Path(source.folder)
    inputs = source.inputs
    if source.dataset:
        name, config, split = [*source.dataset, None, None][:3]
        inputs = load_dataset(name, config, split=split or "train", streaming=True)
    summary = build_corpus(
        inputs,
        folder,
        lower_case=lower_case,
        words=list(words) or None,
        min_count=source.min_count if frequent_words else None,
        max_contexts=source.max_contexts,
        show_progress=show_progress,
        **{"seed": seed, **source.options},
    )
    if summary is None:
        raise ValueError(
            "The corpus is built by Slurm jobs that have just been submitted. Run again when they are done."
        )
    return Path(folder)
