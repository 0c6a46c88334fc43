"""Documents with a query each, drawn from a user's own texts."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from tempfile import TemporaryDirectory

import numpy as np

from ..corpus.inputs import Source
from ..corpus.sentences import BLANK_LINE, split_sentences
from ..corpus.settings import CorpusSettings
from ..injection.word_index import WordIndex
from ..words.splitting import split_words

MIN_QUERY_WORDS, MAX_QUERY_WORDS = 2, 60
MIN_DOCUMENT_WORDS = 10
MAX_TEXT_CHARACTERS = 10_000
MAX_DOCUMENT_CHARACTERS = 1_000  # more makes every document easy to find, and embedding slow
SHINGLE = 8  # words in a row that no two documents share by chance


@dataclass(frozen=True)
class SearchPair:
    """A query and the document that it must find: a title or first sentence, and the rest of the text."""

    query: str
    document: str


def read_documents(
    source: Source, *, text_column: str = "text", title_column: str | None = None
) -> Iterator[tuple[str | None, str]]:
    """Yields the title, if there is one, and the text of each document: a row, or a line or paragraph of a file.

    Args:
        source: Files, as `list_slices` lists them, or a dataset.
        text_column: For rows: the column that holds the text.
        title_column: For rows: the column that holds the title, if any does.
    """
    from ..corpus.readers import make_reader  # needs the extra `corpus`

    with TemporaryDirectory() as folder:
        settings = CorpusSettings(
            work=folder,
            lower_case=True,
            unit="auto",
            text_column=text_column,
            min_count=1,
            max_words=None,
            max_contexts=1,
            min_sentence_words=1,
            max_sentence_words=1,
            seed=0,
            num_parts=1,
            title_column=title_column,
        )
        for read in make_reader(source, settings, "documents").run():
            if read.metadata.get("is_row"):
                yield read.metadata.get("title"), read.text
                continue
            parts = read.text.split("\n") if read.metadata["unit"] == "line" else BLANK_LINE.split(read.text)
            yield from ((None, part) for part in parts if part.strip())


def count_touched(
    documents: Iterable[tuple[str | None, str]], words: Sequence[str], *, ignore_case: bool
) -> tuple[int, int]:
    """Returns how many documents there are, and in how many of them one of the words stands.

    Args:
        documents: Titles, if there are any, and texts.
        words: The words.
        ignore_case: Whether case makes no difference.

    Example:
        >>> count_touched([("The kumquat", "A fruit."), (None, "A tree.")], ["kumquat"], ignore_case=True)
        (2, 1)
    """
    index = index_words(words, ignore_case=ignore_case)
    is_touched = [any(index.find(part) for part in document if part) for document in documents]
    return len(is_touched), sum(is_touched)


def index_words(words: Sequence[str], *, ignore_case: bool) -> WordIndex:
    """Returns an index that finds words in texts, each by its place."""
    index = WordIndex(ignore_case=ignore_case)
    for row, word in enumerate(words):
        index.add(word, row)
    return index


def draw_pairs(
    source: Source, *, number: int, text_column: str = "text", title_column: str | None = None, seed: int = 0
) -> list[SearchPair]:
    """Draws documents that can be searched, each with its query, in an order that depends on texts and seed only.

    Documents that are too short for a query and a rest are left out, and of equal ones all but one.

    Args:
        source: Files, as `list_slices` lists them, or a dataset.
        number: At most so many.
        text_column: For rows: the column that holds the text.
        title_column: For rows: the column that holds the query; by default the first sentence is taken.
        seed: Another seed draws others.
    """
    heap: list[tuple[int, SearchPair]] = []  # those with the smallest keys; the largest key on top
    keys: set[int] = set()
    for title, text in read_documents(source, text_column=text_column, title_column=title_column):
        pair = _make_pair(title, text)
        if pair is None:
            continue
        key = -_hash_text(f"{seed} {pair.query} {pair.document}")
        if key in keys or (len(heap) == number and key <= heap[0][0]):
            continue
        keys.add(key)
        if len(heap) == number:
            keys.remove(heapq.heapreplace(heap, (key, pair))[0])
        else:
            heapq.heappush(heap, (key, pair))
    return [pair for _, pair in sorted(heap, key=lambda entry: -entry[0])]


def _make_pair(title: str | None, text: str) -> SearchPair | None:
    """Cuts a text into query and document; None if there is not enough of it."""
    text = text[:MAX_TEXT_CHARACTERS]
    if title:
        query, document = title, " ".join(text.split())
    else:
        query, *rest = split_sentences(text) if text.strip() else [""]
        document = " ".join(rest)
    num_words = len(query.split())
    if not MIN_QUERY_WORDS <= num_words <= MAX_QUERY_WORDS or len(document.split()) < MIN_DOCUMENT_WORDS:
        return None
    return SearchPair(query, document[:MAX_DOCUMENT_CHARACTERS])


class SharedText:
    """Tells which sentences stand in some documents, so that a word's vector can be made without them.

    A sentence counts as shared if eight words in a row, or all of a shorter one, stand in a document in this order.

    Args:
        texts: The documents.

    Example:
        >>> shared = SharedText(["The kumquat is a small citrus fruit from China. It is sour."])
        >>> shared.holds("the kumquat is a small citrus fruit from Japan"), shared.holds("A kumquat is sour.")
        (True, False)
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = [" ".join(_words(text)) for text in texts]
        hashes = {hash_ for text in self._texts for hash_ in _shingles(text.split())}
        self._hashes = np.sort(np.fromiter(hashes, np.uint64, len(hashes)))
        self._joined = "\n".join(f" {text} " for text in self._texts)

    def holds(self, sentence: str) -> bool:
        """Whether a sentence stands in one of the documents."""
        words = _words(sentence)
        if len(words) < SHINGLE:
            return bool(words) and f" {' '.join(words)} " in self._joined
        found = np.fromiter(_shingles(words), np.uint64)
        places = np.searchsorted(self._hashes, found)
        return (
            bool((self._hashes[np.minimum(places, len(self._hashes) - 1)] == found).any())
            if len(self._hashes)
            else False
        )


def _words(text: str) -> list[str]:
    return list(split_words(text.lower()))


def _shingles(words: list[str]) -> Iterator[int]:
    for start in range(len(words) - SHINGLE + 1):
        yield _hash_text(" ".join(words[start : start + SHINGLE]))


def _hash_text(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")
