"""The datatrove steps that count words and sample their sentences; `build_corpus` puts them together.

Every step writes only files of its own task, under a temporary name until they are whole. So a task that was killed can
run again, and what the steps write does not depend on how many run at once.
"""

import os
import shutil
from collections import Counter
from collections.abc import Mapping
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.pipeline.base import PipelineStep

from ..utils.files import read_json, write_json
from ..words.scanning import MAX_WORD_LENGTH
from ..words.splitting import split_words
from .sampling import SentenceSampler, add_to_sketch, estimate_distinct, smallest_keys
from .sentences import split_sentences
from .settings import MISSING_NAME, CorpusSettings
from .storage import (
    CONTEXTS_SCHEMA,
    COUNT_SCHEMA,
    ROW_SCHEMA,
    RunWriter,
    SampleFiles,
    SampleWriter,
    merge_batches,
    parts_of,
    read_runs,
    words_to_sample,
    write_parquet,
)
from .stretches import count_stretches, is_plain

MAX_BATCH_CHARACTERS = 1 << 22  # of text whose stretches are counted at once
MAX_DIFFERENT_WORDS = 1 << 17  # in memory, before counts are written out
NUM_MISSING_SHOWN = 100


class CountWords(PipelineStep):
    """Counts the words of its task's texts."""

    type = "CORPUS"
    name = "Count words"

    def __init__(self, settings: CorpusSettings) -> None:
        super().__init__()
        self.settings = settings

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        counts: Counter[str] = Counter()  # of stretches
        report: Counter[str] = Counter()
        texts: list[str] = []
        num_characters = 0
        with RunWriter(self.settings.folder("count") / f"{rank:05d}.arrow", COUNT_SCHEMA) as runs:
            for document in data:
                texts.append(document.text.lower() if self.settings.lower_case else document.text)
                num_characters += len(texts[-1])
                if num_characters > MAX_BATCH_CHARACTERS:
                    counts.update(count_stretches(texts))
                    texts, num_characters = [], 0
                if len(counts) > MAX_DIFFERENT_WORDS:
                    self._write(counts, runs, report)
                    counts.clear()
            counts.update(count_stretches(texts))
            self._write(counts, runs, report)
        write_json(self.settings.folder("count") / f"{rank:05d}.json", report)

    def _write(self, stretches: Counter[str], runs: RunWriter, report: Counter[str]) -> None:
        """Writes the counts of words, a batch for each part."""
        counts: Counter[str] = Counter()
        for stretch, count in stretches.items():
            for word in (stretch,) if is_plain(stretch) else split_words(stretch):
                if not (word.isalpha() or any(map(str.isalpha, word))):
                    report["num_numbers"] += count
                elif len(word) > MAX_WORD_LENGTH:
                    report["num_long_words"] += count
                else:
                    counts[word] += count
        report["num_occurrences"] += counts.total()
        words, numbers = pa.array(counts.keys(), pa.string()), pa.array(counts.values(), pa.int64())
        parts = parts_of(counts, self.settings.num_parts)
        for part in range(self.settings.num_parts):
            rows = pa.array(np.flatnonzero(parts == part))
            runs.write([words.take(rows), numbers.take(rows)])


class MergeCounts(PipelineStep):
    """Adds up the counts, one part of the words after the other."""

    type = "CORPUS"
    name = "Merge counts"

    def __init__(self, settings: CorpusSettings) -> None:
        super().__init__()
        self.settings = settings

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        for part in range(rank, self.settings.num_parts, world_size):
            folder, num_parts = self.settings.folder("count"), self.settings.num_parts
            runs = read_runs(folder, part, num_parts)
            total = merge_batches(runs, schema=COUNT_SCHEMA, reduce=_add_up)
            write_parquet(total.sort_by("word"), self.settings.folder("result/counts") / f"part-{part:05d}.parquet")


class SampleSentences(PipelineStep):
    """Samples the sentences of its task's texts; see `SentenceSampler`."""

    type = "CORPUS"
    name = "Sample sentences"

    def __init__(self, settings: CorpusSettings) -> None:
        super().__init__()
        self.settings = settings

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        folder = self.settings.folder("sample")
        sampler = SentenceSampler(words_to_sample(self.settings), self.settings, SampleWriter(folder, rank))
        for document in data:
            sampler.add(split_sentences(document.text, document.metadata["unit"]))
        sampler.flush()
        np.save(folder / f"{rank:05d}.npy", sampler.sketch)
        write_json(folder / f"{rank:05d}.terms.json", sampler.term_counts)
        write_json(folder / f"{rank:05d}.json", sampler.report)


class MergeContexts(PipelineStep):
    """Reduces the sampled sentences to those with the smallest keys, one part of the words after the other."""

    type = "CORPUS"
    name = "Merge contexts"

    def __init__(self, settings: CorpusSettings) -> None:
        super().__init__()
        self.settings = settings

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        words = words_to_sample(self.settings)
        term_counts: Counter[str] = Counter()
        for path in self.settings.folder("sample").glob("*.terms.json"):
            term_counts.update(read_json(path))
        for part in range(rank, self.settings.num_parts, world_size):
            self._merge(part, words, term_counts)

    def _merge(self, part: int, words: list[str], term_counts: Mapping[str, int]) -> None:
        num_parts, samples = self.settings.num_parts, SampleFiles(self.settings.folder("sample"))
        rows = merge_batches(samples.read_part(part), schema=ROW_SCHEMA, reduce=self._keep_smallest)
        ids, starts = np.unique(rows["id"].to_numpy(), return_index=True)
        found = [words[row] for row in ids]
        counts_file = self.settings.folder("result/counts") / f"part-{part:05d}.parquet"
        counts = dict(zip(*pq.read_table(counts_file).to_pydict().values(), strict=True)) | dict(term_counts)
        offsets = pa.array(np.append(starts, len(rows)), pa.int32())
        texts = samples.read_texts(rows)
        # A word is also found where it is written otherwise in upper case only, as ς and σ: not counted, but there.
        numbers = [counts.get(word, int(size)) for word, size in zip(found, np.diff(offsets), strict=True)]
        columns = [pa.array(found, pa.string()), pa.array(numbers, pa.int64())]
        table = pa.table([*columns, pa.ListArray.from_arrays(offsets, texts)], schema=CONTEXTS_SCHEMA)
        write_parquet(table, self.settings.folder("result/contexts") / f"part-{part:05d}.parquet")
        mine = compress(words, parts_of(words, num_parts) == part)
        report = {"num_contexts": len(rows), "missing": sorted(set(mine).difference(found))}
        write_json(self.settings.folder("merge") / f"{part:05d}.json", report)

    def _keep_smallest(self, rows: pa.Table) -> pa.Table:
        chosen = smallest_keys(rows["id"].to_numpy(), rows["key"].to_numpy(), self.settings.max_contexts)
        return rows.take(pa.array(chosen))


class Publish(PipelineStep):
    """Writes the summary, then puts the result in the place of an earlier one.

    Parts that were moved before a kill are not there to be moved again; corpus.json, which makes a corpus whole, comes
    last.
    """

    type = "CORPUS"
    name = "Publish"

    def __init__(self, settings: CorpusSettings, described: dict[str, Any]) -> None:
        super().__init__()
        self.settings, self.described = settings, described

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        result, output = self.settings.folder("result"), Path(self.settings.work).parent
        if not (result / "corpus.json").exists() and (result / "counts").exists():
            write_json(result / "corpus.json", self._summarize())
        replaced = self.settings.folder("replaced")
        if (output / "corpus.json").exists() and (result / "contexts").exists():
            os.replace(output / "corpus.json", replaced / "corpus.json")
        for name in ("counts", "contexts", "corpus.json"):
            if (result / name).exists():
                if (output / name).exists():
                    shutil.rmtree(replaced / name, ignore_errors=True)
                    os.replace(output / name, replaced / name)
                os.replace(result / name, output / name)

    def _summarize(self) -> dict[str, Any]:
        """Adds up what the tasks reported."""
        totals: Counter[str] = Counter()
        for path in [
            *self.settings.folder("count").glob("*[0-9].json"),
            *self.settings.folder("count").glob("*.reader.json"),
            *self.settings.folder("sample").glob("*[0-9].json"),
        ]:
            totals.update(read_json(path))
        merges = [read_json(path) for path in self.settings.folder("merge").glob("*.json")]
        missing = sorted(word for merge in merges for word in merge["missing"])
        if given := sorted({*missing}.intersection(self.settings.given_words() or [])):
            text = "".join(f"{word}\n" for word in given)
            (self.settings.folder("result/contexts") / MISSING_NAME).write_text(text, encoding="utf-8")
        num_usable = totals["num_sentences"] - totals["num_short_sentences"]
        sketch = np.zeros(0, np.uint64)
        for path in self.settings.folder("sample").glob("*.npy"):
            sketch = add_to_sketch(sketch, np.load(path))
        names = (
            "num_documents num_empty_documents num_invalid_lines num_long_lines num_occurrences num_numbers "
            "num_long_words num_sentences num_short_sentences num_cut_sentences num_overlong_sentences"
        )
        result = self.settings.folder("result")
        return (
            self.described
            | {name: totals[name] for name in names.split()}
            | {
                "num_duplicate_sentences": max(0, num_usable - estimate_distinct(sketch)),
                "num_different_words": sum(pq.read_metadata(path).num_rows for path in result.glob("counts/*.parquet")),
                "num_words": sum(pq.read_metadata(path).num_rows for path in result.glob("contexts/*.parquet")),
                "num_contexts": sum(merge["num_contexts"] for merge in merges),
                "num_missing_words": len(missing),
                "missing_words": missing[:NUM_MISSING_SHOWN],
            }
        )


def _add_up(counts: pa.Table) -> pa.Table:
    """Returns one row for each word, with the sum of its counts."""
    sums = counts.group_by("word").aggregate([("count", "sum")])
    return pa.table([sums["word"], sums["count_sum"]], schema=COUNT_SCHEMA)
