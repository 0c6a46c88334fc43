"""Classification sets: texts with labels, from files or from the Hub."""

from collections.abc import Sequence
from pathlib import Path

from datasets import ClassLabel, Dataset, Value, load_dataset

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
        ValueError: If both or none are given, a file is of another kind, or there is no column of labels.

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
        options = {"delimiter": "\t", "quoting": 3} if suffix == ".tsv" else {}  # 3: quotes are text
        texts = load_dataset(READERS[suffix], data_files=list(inputs), split="train", **options)
    if label_column not in texts.column_names:
        raise ValueError(f"Expected a column {label_column!r}; got {', '.join(texts.column_names)}. Set label_column.")
    if not isinstance(texts.features[label_column], ClassLabel):
        names = sorted(map(str, texts.unique(label_column)))
        labels = [names.index(str(label)) for label in texts[label_column]]
        texts = texts.remove_columns(label_column).add_column(label_column, labels)
        texts = texts.cast_column(label_column, ClassLabel(names=names) if len(names) > 1 else Value("int64"))
    if max_texts is not None and len(texts) > max_texts:
        texts = texts.shuffle(seed=seed).select(range(max_texts))
    return texts
