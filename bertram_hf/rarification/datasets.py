"""Classification sets: texts with labels, from files or from the Hub."""

import csv
import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from datasets import ClassLabel, Dataset, Features, Value, load_dataset
from datasets.exceptions import DatasetGenerationError

# How `datasets` calls the readers of files, by suffix; compressed files have one more.
READERS = {".csv": "csv", ".tsv": "csv", ".jsonl": "json", ".json": "json", ".parquet": "parquet"}


def load_labelled_texts(
    inputs: Sequence[str] = (),
    *,
    dataset: Sequence[str] = (),
    label_column: str = "label",
    max_texts: int | None = None,
    seed: int = 0,
) -> Dataset:
    """Loads texts with labels; labels become class numbers, in the order of their sorted names.

    Args:
        inputs: CSV, TSV, JSONL or Parquet files of the same columns, compressed or not; or
        dataset: a dataset on the Hub: `[name]`, `[name, config]` or `[name, config, split]`.
        label_column: The column of labels.
        max_texts: At most so many texts, drawn at random.
        seed: Seed of that draw.

    Raises:
        ValueError: If both or none are given, a file is of another kind, there is no column of labels, or a row has no
            label.

    Example:
        >>> load_labelled_texts(["news.tsv"], label_column="topic").features["topic"]  # doctest: +SKIP
        ClassLabel(names=['business', 'sports'])
    """
    if bool(inputs) == bool(dataset):
        raise ValueError("Expected files or the name of a dataset, one of the two; give inputs or dataset.")
    if dataset:
        name, config, split = [*dataset, None, None][:3]
        texts = load_dataset(name, config, split=split or "train")
    else:
        suffixes = {
            next((suffix for suffix in Path(path).suffixes[::-1] if suffix in READERS), None) for path in inputs
        }
        suffix = suffixes.pop()
        if suffix is None or suffixes:
            raise ValueError(f"Expected files of one kind among {', '.join(READERS)}; got {', '.join(inputs)}.")
        options = _table_options(inputs, suffix) if READERS[suffix] == "csv" else {}
        try:
            texts = load_dataset(READERS[suffix], data_files=list(inputs), split="train", **options)
        except DatasetGenerationError as error:
            raise ValueError(
                f"Expected {suffix} files; {', '.join(inputs)} cannot be read: {error.__cause__ or error}. Mend them."
            ) from error
    if label_column not in texts.column_names:
        raise ValueError(
            f"Expected a column {label_column!r}; got {', '.join(texts.column_names)}. Set label_column "
            "(--label-column)."
        )
    unlabelled = [row for row, label in enumerate(texts[label_column][:], start=1) if label is None or label == ""]
    if unlabelled:
        raise ValueError(
            f"Expected a label in every row; {len(unlabelled)} have none in column {label_column!r}, the first is row "
            f"{unlabelled[0]}. A line break or a tab inside a text cuts its row in two."
        )
    if not isinstance(texts.features[label_column], ClassLabel):
        names = sorted(map(str, texts.unique(label_column)))
        labels = [names.index(str(label)) for label in texts[label_column]]
        texts = texts.remove_columns(label_column).add_column(label_column, labels)
        texts = texts.cast_column(label_column, ClassLabel(names=names) if len(names) > 1 else Value("int64"))
    if max_texts is not None and len(texts) > max_texts:
        texts = texts.shuffle(seed=seed).select(range(max_texts))
    return texts


def _table_options(inputs: Sequence[str], suffix: str) -> dict[str, Any]:
    """Returns how CSV or TSV files are read: all columns as text, as they stand ("NA" and "007", too)."""
    options: dict[str, Any] = {"keep_default_na": False}
    if suffix == ".tsv":
        options |= {"delimiter": "\t", "quoting": csv.QUOTE_NONE}  # quotes are text
    header = pd.read_csv((sorted(glob.glob(inputs[0])) or inputs)[0], nrows=0, **options)
    return options | {"features": Features({column: Value("string") for column in header.columns})}
