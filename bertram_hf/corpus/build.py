"""From a corpus to word counts and, for each word, a random sample of sentences."""

import errno
import json
import logging
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from datasets import Dataset, IterableDataset, load_dataset

from ..processing_words import check_word
from ..utils.files import only_writer, read_json, read_word_file
from ..utils.imports import needs_extra
from ..words.splitting import normalize_counts, normalize_spelling
from .inputs import Paths, Source, identify, list_slices
from .settings import MISSING_NAME, CorpusSettings

logger = logging.getLogger(__name__)
FORMAT_VERSION = 1
MARKER_NAME = "fingerprint-2"  # in the folder of an unfinished run; the number is the version of its files
DEFAULT_MIN_COUNT = 100
SUBMITTED_NAME = "submitted.json"
SUMMARY_NAME = "corpus.json"


@dataclass(frozen=True)
class CorpusSummary:
    """What was read, left out and written. All numbers are of the whole corpus, whatever the number of workers.

    Attributes:
        num_documents: Rows of JSONL, Parquet or a dataset; a text file is one document.
        num_empty_documents: Rows without text.
        num_invalid_lines: Lines left out since they are not valid UTF-8 or JSON, and rows with characters replaced
            since no encoding can write them.
        num_long_lines: Lines or paragraphs of more than 1 MB, which were cut, in files as in rows.
        num_occurrences: Words in the text, each as often as it stands there.
        num_numbers: Tokens without a letter, which are not counted as words.
        num_long_words: Tokens of more than 100 characters, which are not counted as words.
        num_different_words: Words in `counts`.
        num_sentences: Sentences in the text.
        num_short_sentences: Sentences left out for having too few words.
        num_cut_sentences: Sentences of too many words, of which a window around the word is used.
        num_overlong_sentences: Sentences or windows left out for having more than 2,000 characters.
        num_duplicate_sentences: How many of the sentences that are long enough repeat an earlier one; an estimate
            (about 0.4 %) if there are more than 65,536 different ones.
        num_words: Words in `contexts`.
        num_contexts: Sentences in `contexts`.
        num_missing_words: Words, of those asked for, that have no sentence and so no row in `contexts`.
        missing_words: The first 100 of them.
        fingerprint: Stands for the inputs and settings.

    Example:
        >>> summary = build_corpus("novels/*.txt", "my-corpus", lower_case=True, words=["kumquat", "kumqat"])
        >>> summary.num_words, summary.missing_words
        (1, ['kumqat'])
    """

    num_documents: int
    num_empty_documents: int
    num_invalid_lines: int
    num_long_lines: int
    num_occurrences: int
    num_numbers: int
    num_long_words: int
    num_different_words: int
    num_sentences: int
    num_short_sentences: int
    num_cut_sentences: int
    num_overlong_sentences: int
    num_duplicate_sentences: int
    num_words: int
    num_contexts: int
    num_missing_words: int
    missing_words: list[str]
    fingerprint: str

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "CorpusSummary":
        """Reads the summary of a finished corpus."""
        content = _read_summary(folder)
        return cls(**{field.name: content[field.name] for field in fields(cls)})


def build_corpus(
    inputs: Paths | Dataset | IterableDataset,
    output: str | os.PathLike[str],
    *,
    lower_case: bool,
    words: Iterable[str] | None = None,
    min_count: int | None = None,
    max_words: int | None = None,
    max_contexts: int = 64,
    min_sentence_words: int = 4,
    max_sentence_words: int = 50,
    seed: int = 0,
    unit: Literal["auto", "line", "paragraph"] = "auto",
    text_column: str = "text",
    num_parts: int = 16,
    executor: Literal["local", "ray", "slurm"] = "local",
    num_workers: int = 1,
    executor_options: Mapping[str, Any] | None = None,
    show_progress: bool = True,
) -> CorpusSummary | None:
    """Counts the words of a corpus and samples sentences for them.

    It writes these to `output`:

    - `counts/`: Parquet with every `word` and its `count`. What a word is, `find_rare_words` tells.
    - `contexts/`: Parquet with `word`, `count` and `contexts`: a uniform random sample of at most `max_contexts` of the
      different sentences that have the word. The order is random too, so the first n are a sample of n.
    - `corpus.json`: the settings, and how much was read and left out.

    Given words that have no sentence are kept too: `read_missing_words` returns them.

    Counts are of all occurrences, those in repeated or left-out sentences included. `BertramProcessor` finds the word
    in every one of its sentences, since both look for it in the same way. The samples of two words are independent.

    The result depends on the text and the settings only, not on the number of workers or the executor. If the run is
    killed, the same call goes on where it was; with other inputs or settings it begins anew. What `output` held before
    stays until the new result is complete.

    Args:
        inputs: Files (text; JSONL if named .jsonl, .ndjson or .json; .csv and .tsv with a header row; .parquet; each
            but Parquet may be compressed), folders or patterns such as `"novels/*.txt"`; or a `datasets.Dataset` or
            `IterableDataset`. The latter is known by its name, its first 100 rows and such steps as `take(1000)`, not
            by the functions of `map` and `filter`: if only these differ, give another `output`.
        output: The folder to write. All workers must see it.
        lower_case: Whether "Kumquat" is "kumquat": True for uncased models. Sentences keep their case.
        words: Words to sample sentences for, such as "kumquat", "New York" or "C++".
        min_count: How often a word must occur to be sampled as a frequent one. Default: 100, as in the paper, if no
            words are given; else only these are sampled.
        max_words: If given, only so many frequent words, the most frequent ones.
        max_contexts: The size of the samples.
        min_sentence_words: Shorter sentences are left out.
        max_sentence_words: Of longer sentences, a window of so many words around the word's first occurrence is used.
        seed: Another seed gives other samples.
        unit: Whether sentences end at the end of each "line", or lines are wrapped within a "paragraph". "auto"
            decides for each file or row from its first 64 kB; see `detect_unit`.
        text_column: The column that holds the text.
        num_parts: How many Parquet files to write; more need less memory.
        executor: Where the datatrove steps run: "local", on a "ray" cluster, or as "slurm" jobs.
        num_workers: How many tasks run at once. There are at most 64, each of 4 MB of text or more.
        executor_options: More arguments for datatrove's executor, such as `{"partition": "cpu", "time": "2:00:00"}`.
        show_progress: Whether to show a progress bar.

    Returns:
        The summary; None if Slurm jobs were submitted. Call again when they have run; before, that is an error.

    Raises:
        ValueError, TypeError, OSError: If the inputs or settings cannot be used, or the output cannot be written.

    Example:
        >>> summary = build_corpus("novels/*.txt", "my-corpus", lower_case=True, words=["kumquat", "kumqat"])
        >>> load_contexts("my-corpus")[0]["word"]
        'kumquat'
    """
    if words is None and min_count is None:
        min_count = DEFAULT_MIN_COUNT
    numbers = {
        "min_count": 1 if min_count is None else min_count,
        "max_contexts": max_contexts,
        "num_parts": num_parts,
        "num_workers": num_workers,
    }
    numbers |= {"min_sentence_words": min_sentence_words, "max_sentence_words": max_sentence_words}
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1; got {number}.")
    if executor not in ("local", "ray", "slurm"):
        raise ValueError(f'executor must be "local", "ray" or "slurm"; got {executor!r}.')
    with needs_extra("corpus", "Building a corpus"):
        from .executors import plan_phases, run_phases, slurm_executors
    output = Path(output).absolute()
    work = output / ".work"
    source: Source = inputs if isinstance(inputs, Dataset | IterableDataset) else list_slices(inputs)
    settings = CorpusSettings(
        work=str(work),
        lower_case=lower_case,
        unit=unit,
        text_column=text_column,
        min_count=min_count,
        max_words=max_words,
        max_contexts=max_contexts,
        min_sentence_words=min_sentence_words,
        max_sentence_words=max_sentence_words,
        seed=seed,
        num_parts=num_parts,
    )
    given = None if words is None else _normalize_words(words, lower_case)
    described = settings.describe() | {"version": FORMAT_VERSION}
    identity = json.dumps([described, given, identify(source, text_column)])
    fingerprint = blake2b(identity.encode(), digest_size=16).hexdigest()
    with _clear_write_errors(output):
        is_finished = _is_finished(output, fingerprint)
        if is_finished:
            logger.warning("%s already holds the result of the same inputs and settings; nothing to do.", output)
            if not work.exists():  # nor is anything written, where perhaps nothing can be
                return CorpusSummary.load(output)
        with only_writer(output):
            if not is_finished:
                _check_submitted(output)
                _prepare(work, fingerprint, given)
                described |= {"words_given": given is not None, "fingerprint": fingerprint}
                phases, options = plan_phases(source, settings, described), executor_options or {}
                if executor == "slurm":
                    executors = slurm_executors(phases, settings, num_workers=num_workers, options=options)
                    executors[-1].run()
                    jobs = [str(job.job_id) for job in executors if job.job_id != -1]  # -1: was complete already
                    (work / SUBMITTED_NAME).write_text(json.dumps(jobs))
                    return None
                run_phases(
                    phases,
                    settings,
                    executor=executor,
                    num_workers=num_workers,
                    options=options,
                    show_progress=show_progress,
                )
            shutil.rmtree(work, ignore_errors=True)
    return CorpusSummary.load(output)


def load_contexts(folder: str | os.PathLike[str]) -> Dataset:
    """Loads the words with their contexts that `build_corpus` wrote.

    Example:
        >>> summary = build_corpus("novels/*.txt", "my-corpus", lower_case=True, words=["kumquat", "kumqat"])
        >>> load_contexts("my-corpus").column_names
        ['word', 'count', 'contexts']
    """
    return _load(folder, "contexts")


def read_missing_words(folder: str | os.PathLike[str]) -> list[str]:
    """Returns the words that a corpus was built for, as `words=` or `--words`, and has no sentence of.

    Example:
        >>> summary = build_corpus("novels/*.txt", "my-corpus", lower_case=True, words=["kumquat", "kumqat"])
        >>> read_missing_words("my-corpus")
        ['kumqat']
    """
    path = Path(folder) / "contexts" / MISSING_NAME
    return read_word_file(path) if path.is_file() else []


def check_case(folders: Iterable[str | os.PathLike[str]], lower_case: bool) -> None:
    """Raises if a corpus was built for an encoder that reads case in another way.

    With such a corpus most sentences of a word are lost: they are those of another spelling.

    Args:
        folders: What `build_corpus` wrote.
        lower_case: Whether the encoder is uncased.

    Raises:
        ValueError: With the way to mend it.

    Example:
        >>> summary = build_corpus("novels/*.txt", "my-corpus", lower_case=True, words=["kumquat", "kumqat"])
        >>> check_case(["my-corpus"], lower_case=True)
    """
    for folder in folders:
        if _read_summary(folder)["lower_case"] != lower_case:
            raise ValueError(
                f"{folder} was built {'without' if lower_case else 'with'} --lower-case; this encoder reads words "
                f"{'in lower case' if lower_case else 'as they are'}, so sentences would be lost. Build it anew: "
                "bertram corpus ... --encoder ENCODER"
            )


def load_counts(folder: str | os.PathLike[str]) -> Dataset:
    """Loads the word counts that `build_corpus` wrote.

    Example:
        >>> summary = build_corpus("novels/*.txt", "my-corpus", lower_case=True, words=["kumquat", "kumqat"])
        >>> load_counts("my-corpus").column_names
        ['word', 'count']
    """
    return _load(folder, "counts")


def read_counts(folders: Iterable[str | os.PathLike[str]]) -> Counter[str]:
    """Returns how often words, in lower case, occur in corpora that `build_corpus` wrote.

    Example:
        >>> summary = build_corpus("novels/*.txt", "my-corpus", lower_case=True, words=["kumquat", "kumqat"])
        >>> read_counts(["my-corpus"])["kumquat"]
        60
    """
    counts: Counter[str] = Counter()
    for folder in folders:
        table = load_counts(folder)
        counts.update(normalize_counts(dict(zip(table["word"][:], table["count"][:], strict=True)), lower_case=True))
    return counts


def _read_summary(folder: str | os.PathLike[str]) -> dict[str, Any]:
    path = Path(folder) / SUMMARY_NAME
    if not os.path.isdir(folder):
        raise ValueError(f"There is no folder {folder}. Check the path, or write a corpus with `bertram corpus`.")
    if not path.is_file():
        raise ValueError(f"Expected a corpus in {folder}; it has no {path.name}. Write one with `bertram corpus`.")
    content = read_json(path)
    missing = {"lower_case", *(field.name for field in fields(CorpusSummary))} - content.keys()
    if missing:
        raise ValueError(f"{path} has no {', '.join(sorted(missing))}. Build the corpus anew with `bertram corpus`.")
    return content


def _load(folder: str | os.PathLike[str], name: str) -> Dataset:
    CorpusSummary.load(folder)  # raises unless it is whole
    return load_dataset("parquet", data_files=str(Path(folder) / name / "*.parquet"), split="train")


def _normalize_words(words: Iterable[str], lower_case: bool) -> list[str]:
    """Checks given words and writes each in one spelling, once, sorted."""
    if isinstance(words, str):
        raise TypeError(f"words must be a list of words; got the string {words!r:.80}. Put a single word in a list.")
    normalized = set()
    for word in words:
        check_word(word, whitespace=False)
        normalized.add(normalize_spelling(word, lower_case))
    if not normalized:
        raise ValueError("words must hold at least one word; got none. Leave it out for all frequent words.")
    return sorted(normalized)


def _is_finished(output: Path, fingerprint: str) -> bool:
    try:
        return CorpusSummary.load(output).fingerprint == fingerprint
    except ValueError:
        return False


def _check_submitted(output: Path) -> None:
    """Raises if Slurm jobs were submitted that have not published their result: they work in the same folder."""
    record, marker = output / ".work" / SUBMITTED_NAME, output / ".work" / MARKER_NAME
    if record.is_file() and not (marker.is_file() and _is_finished(output, marker.read_text())):
        jobs = ",".join(json.loads(record.read_text()))  # a list
        raise ValueError(
            f"Expected the Slurm jobs {jobs} to have written {output}; they have not yet. Wait for them (squeue -j "
            f"{jobs}). If they failed or were cancelled, delete {record} and run the same again: it goes on where they "
            "were."
        )


def _prepare(work: Path, fingerprint: str, given: list[str] | None) -> None:
    """Makes the work folder, or keeps what an earlier run of the same settings left there."""
    marker = work / MARKER_NAME
    if marker.is_file() and marker.read_text() == fingerprint:
        logger.warning("Going on with the unfinished run in %s.", work)
        return
    if work.exists():
        logger.warning("The unfinished run in %s is of other inputs, settings or versions; beginning anew.", work)
        shutil.rmtree(work)
    work.mkdir(parents=True)
    if given is not None:
        (work / "words.json").write_text(json.dumps(given), encoding="utf-8")
    marker.write_text(fingerprint)


@contextmanager
def _clear_write_errors(output: Path) -> Iterator[None]:
    """Says which folder could not be written, and that nothing is lost."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise
        raise OSError(
            error.errno,
            f"Could not write to {output}: {os.strerror(error.errno)}. What it held before is intact. "
            "Make room and run the same command: it goes on where it was",
        ) from error
