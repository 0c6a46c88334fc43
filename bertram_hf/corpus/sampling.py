"""A uniform random sample of sentences for each word, drawn in one pass and bounded memory."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import compress, pairwise, repeat

import numpy as np
import pyarrow as pa
import xxhash

from ..processing_words import fold_case, folded_spellings
from ..words.scanning import is_counted, sampling_pattern
from .settings import CorpusSettings
from .storage import SampleWriter, parts_of
from .stretches import is_plain, number_stretches
from .terms import TermFinder

MAX_ROWS = 1 << 19  # of sampled sentences in memory, before they are written out
MAX_CHARACTERS = 1 << 24
MAX_SENTENCE_CHARACTERS = 2000
SKETCH_SIZE = 1 << 16
BATCH_SIZE = 1 << 14  # sentences that go through at once
MAX_BATCH_CHARACTERS = 1 << 21


class SentenceSampler:
    """Keeps, for each word, the sentences with the smallest keys.

    A key is a hash of the sentence, mixed with one of the word. The K different sentences with the smallest keys are a
    uniform sample, whatever the order or the number of tasks, and equal sentences have equal keys.

    Sentences go through in batches, so that NumPy does what is done for each word.

    Args:
        words: The words to sample sentences for.
        settings: How to sample.
        runs: Where sampled sentences go; it may hold more for a word than its sample, never less.

    Attributes:
        report: How many sentences were seen and left out.
        term_counts: How often the words occur that `CountWords` does not see, such as "New York".
        sketch: The smallest hashes of the sentences, for `estimate_distinct`.
    """

    def __init__(self, words: list[str], settings: CorpusSettings, runs: SampleWriter) -> None:
        self.settings, self.runs = settings, runs
        self.report: Counter[str] = Counter()
        self.term_counts: Counter[str] = Counter()
        self.ids: dict[str, int] = {}  # by how a word stands in folded sentences
        self.term_ids: dict[str, int] = {}
        for row, word in enumerate(words):
            if not is_counted(word):
                self.term_ids[word] = row
                continue
            for spelling in folded_spellings(word) if settings.lower_case and not word.isascii() else (word,):
                self.ids.setdefault(spelling, row)
        self.terms = TermFinder(list(self.term_ids), ignore_case=settings.lower_case)
        self.salts = hash_texts(words, settings.seed)
        self.parts = parts_of(words, settings.num_parts)
        self.limits = np.full(len(words), np.iinfo(np.uint64).max, np.uint64)
        self.kept = (np.zeros(0, np.int32), np.zeros(0, np.uint64))
        self.sketch = np.zeros(0, np.uint64)
        self._sentences: list[str] = []  # still to be looked at
        self._rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._row_texts: list[str] = []
        self._num_waiting = self._num_rows = self._num_characters = 0

    def add(self, sentences: Iterable[str]) -> None:
        """Takes the sentences, without line breaks, of a document."""
        new = list(sentences)
        self._sentences += new
        self._num_waiting += sum(map(len, new))
        if len(self._sentences) >= BATCH_SIZE or self._num_waiting >= MAX_BATCH_CHARACTERS:
            self._add_batch()

    def flush(self) -> None:
        """Writes all that is still in memory."""
        if self._sentences:
            self._add_batch()
        self._write_rows()

    def _add_batch(self) -> None:
        """Looks for the words in the sentences that were added, and takes those whose key is small enough.

        Arrays have an entry for each different stretch (`num_tokens`, `num_found`), for each stretch of the text
        (`numbers`, `owners`), for each sentence (`lengths` to `hashes`) or for each word found in one (`rows`, `ids`).
        """
        texts, self._sentences, self._num_waiting = self._sentences, [], 0
        joined = "\n".join(texts)
        folded = fold_case(joined) if self.settings.lower_case else joined
        different, numbers, bounds = number_stretches(folded)
        num_tokens, num_found, found_ids = self._look_up(different)

        lengths = np.diff(np.append(0, np.cumsum(num_tokens[numbers]))[bounds])
        is_short = lengths < self.settings.min_sentence_words
        is_cut = ~is_short & (lengths > self.settings.max_sentence_words)
        num_characters = np.fromiter(map(len, texts), np.int64, len(texts))
        is_overlong = ~is_short & ~is_cut & (num_characters > MAX_SENTENCE_CHARACTERS)
        is_usual = ~is_short & ~is_cut & ~is_overlong
        self.report["num_sentences"] += len(texts)
        for name, is_so in (("short", is_short), ("cut", is_cut), ("overlong", is_overlong)):
            self.report[f"num_{name}_sentences"] += int(is_so.sum())
        hashes = hash_texts(texts, self.settings.seed)
        self.sketch = add_to_sketch(self.sketch, hashes[~is_short])

        owners = np.repeat(np.arange(len(texts)), np.diff(bounds))
        used = np.flatnonzero((num_found[numbers] > 0) & is_usual[owners])
        rows, ids = spread(owners[used], numbers[used], num_found, found_ids)
        # What regular expressions must find: terms, and the words of long sentences.
        lines = folded.split("\n") if self.term_ids or is_cut.any() else []
        terms = dict(self._find_terms(texts, lines, different, numbers, bounds))
        pairs = [(index, self.term_ids[term]) for index in terms if is_usual[index] for term, _, _ in terms[index]]
        windows: list[str] = []
        for index in np.flatnonzero(is_cut).tolist():
            for window, window_ids in self._cut_windows(texts[index], lines[index], terms.get(index, [])):
                pairs += zip(repeat(len(texts) + len(windows)), window_ids)
                windows.append(window)
        if pairs:
            more = np.array(pairs)
            rows, ids = np.append(rows, more[:, 0]), np.append(ids, more[:, 1].astype(np.int32))
        self._take(texts + windows, np.append(hashes, hash_texts(windows, self.settings.seed)), rows, ids)

    def _look_up(self, stretches: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the number of tokens of each stretch, how many of them are words to sample for, and their ids."""
        num_tokens, num_found = np.ones((2, len(stretches)), np.int64)
        ids: list[int] = []
        for number, stretch in enumerate(stretches):
            if is_plain(stretch):
                row = self.ids.get(stretch)
                if row is None:
                    num_found[number] = 0
                else:
                    ids.append(row)
            else:
                tokens = sampling_pattern(stretch).findall(stretch)
                found = [self.ids[token] for token in tokens if token in self.ids]
                num_tokens[number], num_found[number] = len(tokens), len(found)
                ids += found
        return num_tokens, num_found, np.array(ids, np.int32)

    def _find_terms(
        self, sentences: list[str], folded: list[str], different: list[str], numbers: np.ndarray, bounds: np.ndarray
    ) -> Iterator[tuple[int, list[tuple[str, int, int]]]]:
        """Yields the sentences, by index, that hold terms, and what `TermFinder.find` finds in them."""
        if not self.term_ids:
            return
        may_hold = np.fromiter(map(self.terms.may_begin_in, different), bool, len(different))
        begin = np.append(0, np.cumsum(may_hold[numbers]))[bounds]
        for index in np.flatnonzero(np.diff(begin)).tolist():
            found = self.terms.find(sentences[index], folded[index])
            for term, _, count in found:
                self.term_counts[term] += count
            if found:
                yield index, found

    def _cut_windows(
        self, sentence: str, folded: str, terms: list[tuple[str, int, int]]
    ) -> Iterator[tuple[str, list[int]]]:
        """Cuts a long sentence around the first occurrence of each word; words at one place share a window.

        Yields:
            A window, and the ids of its words.
        """
        pattern, size = sampling_pattern(folded), self.settings.max_sentence_words
        tokens, spans = pattern.findall(folded), [match.span() for match in pattern.finditer(folded)]
        last_start = len(tokens) - size
        windows: dict[int, tuple[list[int], list[str]]] = defaultdict(lambda: ([], []))
        first = dict(zip(reversed(tokens), reversed(range(len(tokens))), strict=True))
        for token in filter(self.ids.__contains__, first):
            windows[max(0, min(first[token] - size // 2, last_start))][0].append(self.ids[token])
        starts = np.array([start for start, _ in spans])
        for term, position, _ in terms:
            index = max(0, int(np.searchsorted(starts, position, side="right")) - 1)
            windows[max(0, min(index - size // 2, last_start))][1].append(term)
        for start, (ids, found) in windows.items():
            end = spans[start + size - 1][1] if start < last_start else None
            text = sentence[spans[start][0] if start else 0 : end]
            if len(text) > MAX_SENTENCE_CHARACTERS:
                self.report["num_overlong_sentences"] += 1
                continue
            # A term that touches the edge may have lost its end.
            yield text, [*ids, *(self.term_ids[term] for term in found if self.terms.has(term, text))]

    def _take(self, texts: list[str], hashes: np.ndarray, rows: np.ndarray, ids: np.ndarray) -> None:
        """Takes the pairs of a text and a word whose key is small enough."""
        keys = mix_keys(hashes[rows], self.salts[ids])
        small = keys <= self.limits[ids]
        rows, ids, keys = rows[small], ids[small], keys[small]
        is_used = np.zeros(len(texts), bool)
        is_used[rows] = True
        self._rows.append((ids, keys, (np.cumsum(is_used) - 1 + len(self._row_texts))[rows]))
        used = list(compress(texts, is_used.tolist()))
        self._row_texts += used
        self._num_rows += len(rows)
        self._num_characters += sum(map(len, used))
        # With many words, more rows, since writing some goes through all keys that are kept.
        if self._num_rows > max(MAX_ROWS, len(self.kept[0]) // 4) or self._num_characters > MAX_CHARACTERS:
            self._write_rows()

    def _write_rows(self) -> None:
        """Writes the sentences that are still in their words' samples, and sets the limit for those to come."""
        num_kept = len(self.kept[0])
        ids = np.concatenate([self.kept[0], *(rows[0] for rows in self._rows)])
        keys = np.concatenate([self.kept[1], *(rows[1] for rows in self._rows)])
        texts = np.concatenate([np.full(num_kept, -1), *(rows[2] for rows in self._rows)])
        chosen = smallest_keys(ids, keys, self.settings.max_contexts)
        self.kept = ids[chosen], keys[chosen]
        ends = np.flatnonzero(np.append(np.diff(self.kept[0]) != 0, True)) if len(chosen) else np.zeros(0, np.int64)
        full = ends[np.diff(ends, prepend=-1) == self.settings.max_contexts]
        self.limits[self.kept[0][full]] = self.kept[1][full]
        new = chosen[chosen >= num_kept]
        parts = self.parts[ids[new]]
        new = new[np.argsort(parts, kind="stable")]
        bounds = np.append(0, np.cumsum(np.bincount(parts, minlength=self.settings.num_parts)))
        sentences = pa.array(self._row_texts, pa.string())
        indices = texts.astype(np.int32)
        self.runs.write(
            [pa.array(ids[rows]), pa.array(keys[rows]), pa.DictionaryArray.from_arrays(indices[rows], sentences)]
            for rows in (new[start:end] for start, end in pairwise(bounds))
        )
        self._rows, self._row_texts = [], []
        self._num_rows = self._num_characters = 0


def spread(
    sentences: np.ndarray, numbers: np.ndarray, num_found: np.ndarray, found_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns a row for each word that was found in a stretch: its sentence and id.

    Args:
        sentences: The sentence of each stretch.
        numbers: The number of each stretch.
        num_found: How many words each different stretch has.
        found_ids: Their ids, one stretch after the other.

    Example:
        >>> sentences, numbers = np.array([0, 1, 1]), np.array([1, 0, 1])
        >>> [column.tolist() for column in spread(sentences, numbers, np.array([1, 2]), np.array([7, 8, 9]))]
        [[0, 0, 1, 1, 1], [8, 9, 7, 8, 9]]
    """
    sizes = num_found[numbers]
    firsts = (np.cumsum(num_found) - num_found)[numbers]
    if len(sizes) and sizes.max() == 1:
        return sentences, found_ids[firsts]
    steps = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(sentences, sizes), found_ids[np.repeat(firsts, sizes) + steps]


def hash_texts(texts: list[str], seed: int) -> np.ndarray:
    """Returns the 64-bit hash of each text."""
    return np.fromiter(map(sampling_key, texts, repeat(seed)), np.uint64, len(texts))


def sampling_key(text: str, seed: int) -> int:
    """Returns a 64-bit hash."""
    return xxhash.xxh3_64_intdigest(text.encode(), seed)


def mix_keys(hashes: np.ndarray, salts: np.ndarray) -> np.ndarray:
    """Returns the keys of sentences for words.

    The bits are mixed (as in SplitMix64), since of sentences that two words share, the smallest of `hash ^ salt` would
    hardly ever be the same: the two samples would not be independent.
    """
    keys = hashes ^ salts
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def smallest_keys(ids: np.ndarray, keys: np.ndarray, limit: int) -> np.ndarray:
    """Returns the rows that have the `limit` smallest different keys of their id, by id and key.

    Of equal rows, the first is taken.

    Example:
        >>> smallest_keys(np.array([1, 0, 1, 1, 1]), np.array([7, 9, 5, 5, 6], np.uint64), 2).tolist()
        [1, 2, 4]
    """
    # One number for both sorts nine times as fast as two, and the bits of the key that it has no room for hardly ever
    # make a difference.
    num_id_bits = int(ids.max(initial=0)).bit_length()
    order = np.argsort(ids.astype(np.uint64) << np.uint64(64 - num_id_bits) | keys >> np.uint64(num_id_bits))
    if np.any((ids[order[1:]] == ids[order[:-1]]) & (keys[order[1:]] < keys[order[:-1]])):
        order = np.lexsort((keys, ids))
    ids, keys = ids[order], keys[order]
    is_new = np.ones(len(ids), bool)
    is_new[1:] = (ids[1:] != ids[:-1]) | (keys[1:] != keys[:-1])
    starts = np.flatnonzero(is_new)
    order, ids = np.minimum.reduceat(order, starts) if len(starts) else order, ids[starts]
    indices = np.arange(len(ids))
    is_first = np.ones(len(ids), bool)
    is_first[1:] = ids[1:] != ids[:-1]
    ranks = indices - np.maximum.accumulate(np.where(is_first, indices, 0))
    return order[ranks < limit]


def add_to_sketch(sketch: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """Returns the smallest different hashes, sorted, of a sketch and of more."""
    if len(sketch) == SKETCH_SIZE:
        hashes = hashes[hashes < sketch[-1]]
    merged = np.sort(np.concatenate([sketch, hashes]))
    return merged[np.append(np.ones(min(1, len(merged)), bool), merged[1:] != merged[:-1])][:SKETCH_SIZE]


def estimate_distinct(sketch: np.ndarray) -> int:
    """Returns how many different hashes there were, from the smallest ones; exact if these are all."""
    return len(sketch) if len(sketch) < SKETCH_SIZE else int((SKETCH_SIZE - 1) * 2.0**64 / float(sketch[-1]))
