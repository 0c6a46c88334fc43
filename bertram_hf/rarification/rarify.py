"""Dataset rarification (Section 4): test sets in which understanding rare words decides.

A word on which a classifier's decision rests is replaced by a rare synonym. The test set belongs to this classifier: it
compares ways to represent rare words for it, not classifiers. It is never asked about a rare word.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets import Dataset, Features, Value
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .baseline import check_columns, check_labels, train_baseline
from .replacement import ReplaceableWord, choose_substitute, find_replaceable, replace_words
from .search import DecisiveWordSearch, Outcome
from .substitutions import Substitutions

REPLACED = {
    **dict.fromkeys(("word", "substitute", "kind", "column"), Value("string")),
    "start": Value("int64"),
}
PARTS = ("text", "pair")


@dataclass(frozen=True)
class CandidateSplit:
    """A data set in two parts.

    Attributes:
        train: Rows to train the baseline on.
        candidates: Rows that have a word with substitutes, to make the test set from.
        num_without_words: How many rows have no such word; they are all in `train`.
    """

    train: Dataset
    candidates: Dataset
    num_without_words: int


@dataclass(frozen=True)
class GenerationSummary:
    """How a test set came about.

    Attributes:
        num_candidates: Candidates that there were: the sum of the next five.
        num_rarified: Rows of the test set.
        num_without_words: Candidates without a word that has substitutes and tokens of its own.
        num_wrong_at_start: Candidates that the model classifies wrongly as they are.
        num_truncated: Candidates whose words with substitutes all stand beyond `max_length` tokens.
        num_not_flipped: Candidates about which the model is still right when as many words as may be are masked.
        num_replaced: By kind of substitute, how many words were replaced.
        num_queries: How many different inputs the model was asked about.
    """

    num_candidates: int
    num_rarified: int
    num_without_words: int
    num_wrong_at_start: int
    num_truncated: int
    num_not_flipped: int
    num_replaced: dict[str, int]
    num_queries: int


@dataclass(frozen=True)
class RarifiedTestSet:
    """A rarified test set.

    Attributes:
        dataset: Rows with `label`, `text`, `rarified_text` and `replaced`; for pairs also `pair` and `rarified_pair`.
            `replaced` has for each word, the most decisive first: `word`, `substitute`, `kind`, `column` ("text" or
            "pair") and `start`, the character at which the word begins in the original text.
        summary: How many candidates became rows, and why the others did not.
    """

    dataset: Dataset
    summary: GenerationSummary


@dataclass(frozen=True)
class Rarification:
    """What `rarify` returns: the split, what the Trainer measured, and the test set."""

    split: CandidateSplit
    training: dict[str, float]
    test: RarifiedTestSet


def rarify(
    dataset: Dataset,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    substitutions: Substitutions,
    *,
    text_column: str = "text",
    pair_column: str | None = None,
    label_column: str = "label",
    max_length: int = 128,
    max_masked: int = 5,
    misspelling_share: float = 0.1,
    min_train_share: float = 1 / 3,
    seed: int = 0,
    training_arguments: Mapping[str, Any] | None = None,
    show_progress: bool = True,
) -> Rarification:
    """Splits a data set, trains a baseline on one part in place, and makes a rarified test set from the other.

    Its three steps are [`split_candidates`], [`train_baseline`] and [`generate`], which say more about the arguments.

    Args:
        dataset: Texts, or pairs of texts, with class numbers.
        model: A model for sequence classification, which is trained.
        tokenizer: Its tokenizer.
        substitutions: Which words may be replaced, and by what.
        text_column: The column of texts.
        pair_column: For text pairs, the column of second texts.
        label_column: The column of labels.
        max_length: Inputs are cut to so many tokens.
        max_masked: At most so many words are replaced in a row.
        misspelling_share: How likely a word may be replaced by a misspelling.
        min_train_share: At least this share of the rows is for training.
        seed: The seed of all draws.
        training_arguments: Further `TrainingArguments`.
        show_progress: Whether a progress bar is shown.

    Returns:
        The split, what the Trainer measured, and the test set.

    Example:
        >>> result = rarify(dataset, model, tokenizer, substitutions)  # doctest: +SKIP
        >>> result.test.dataset[0]["rarified_text"]  # doctest: +SKIP
        'i think i will go finish up my washables .'
    """
    columns: dict[str, Any] = {"text_column": text_column, "pair_column": pair_column}
    split = split_candidates(
        dataset,
        substitutions,
        **columns,
        misspelling_share=misspelling_share,
        min_train_share=min_train_share,
        seed=seed,
    )
    columns |= {"label_column": label_column, "max_length": max_length}
    training = train_baseline(
        model, tokenizer, split.train, **columns, seed=seed, training_arguments=training_arguments
    )
    test = generate(
        split.candidates,
        model,
        tokenizer,
        substitutions,
        **columns,
        max_masked=max_masked,
        misspelling_share=misspelling_share,
        seed=seed,
        show_progress=show_progress,
    )
    return Rarification(split, training, test)


def split_candidates(
    dataset: Dataset,
    substitutions: Substitutions,
    *,
    text_column: str = "text",
    pair_column: str | None = None,
    misspelling_share: float = 0.1,
    min_train_share: float = 1 / 3,
    seed: int = 0,
) -> CandidateSplit:
    """Splits a data set into a training set and candidates for the test set ("Dataset Splitting").

    Candidates are all rows with a word that has substitutes, or as many of them, drawn at random, as leave
    `min_train_share` of all rows for training. Rows of the same texts stay together. Rows keep their order.

    Args:
        dataset: The data set.
        substitutions: Which words may be replaced.
        text_column: The column of texts.
        pair_column: For text pairs, the column of second texts.
        misspelling_share: How likely a word may be replaced by a misspelling; the same as for `generate`.
        min_train_share: At least this share of the rows is for training.
        seed: Another seed gives another split; the same as for `generate`.

    Raises:
        ValueError: If a column is missing or holds no text, or a share is not between 0 and 1.

    Example:
        >>> split_candidates(dataset, substitutions).candidates.num_rows  # doctest: +SKIP
        5066
    """
    check_columns(dataset, text_column=text_column, pair_column=pair_column, label_column=None)
    check_shares(misspelling_share=misspelling_share, min_train_share=min_train_share)
    rows_of: dict[tuple[str, ...], list[int]] = {}
    for row, texts in enumerate(read_rows(dataset, text_column, pair_column)):
        rows_of.setdefault(texts, []).append(row)
    with_words = [
        rows
        for texts, rows in rows_of.items()
        if find_replaceable(texts, substitutions, misspelling_share=misspelling_share, seed=seed)
    ]
    max_candidates = len(dataset) - math.ceil(min_train_share * len(dataset))
    num_with_words = sum(map(len, with_words))
    if num_with_words > max_candidates:
        with_words = random.Random(f"{seed} candidates").sample(with_words, len(with_words))
    chosen: set[int] = set()
    for rows in with_words:
        if len(chosen) + len(rows) <= max_candidates:
            chosen.update(rows)
    return CandidateSplit(
        train=dataset.select([row for row in range(len(dataset)) if row not in chosen]),
        candidates=dataset.select(sorted(chosen)),
        num_without_words=len(dataset) - num_with_words,
    )


def generate(
    candidates: Dataset,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    substitutions: Substitutions,
    *,
    text_column: str = "text",
    pair_column: str | None = None,
    label_column: str = "label",
    max_length: int = 128,
    max_masked: int = 5,
    misspelling_share: float = 0.1,
    seed: int = 0,
    tokens_per_batch: int = 4096,
    screening: bool | None = None,
    show_progress: bool = True,
) -> RarifiedTestSet:
    """Makes a rarified test set ("Test Set Generation").

    Of each candidate that the model classifies correctly, the word is masked whose mask makes the correct label least
    likely, then one more, until the model's answer is wrong; if it is not after `max_masked` words, the candidate is
    left out. Then each of these words is replaced by a substitute, drawn at random. So in each row of the result:

    - with masks in the place of the replaced words, the model is wrong;
    - with the original words, it is right.

    Masks are put among the tokens, where special tokens that stand in a text, such as "[MASK]", are text. Only words
    whose mask is within `max_length` tokens are masked; of equally decisive words, the first is.

    Args:
        candidates: Texts, or pairs of texts, with class numbers.
        model: The trained baseline. It is used in evaluation mode, whatever it is in.
        tokenizer: Its tokenizer.
        substitutions: Which words may be replaced, and by what.
        text_column: The column of texts.
        pair_column: For text pairs, the column of second texts; words of both are replaced.
        label_column: The column of labels.
        max_length: Inputs are cut to so many tokens.
        max_masked: At most so many words are replaced in a row.
        misspelling_share: How likely a word may be replaced by a misspelling.
        seed: Another seed gives misspellings to other words, and other substitutes.
        tokens_per_batch: How many tokens, with padding, the model gets at once.
        screening: Whether words that cannot be the most decisive, by a margin of half as much again as the largest
            error seen so far, are ruled out by scores in bfloat16. By default where this is faster.
        show_progress: Whether a progress bar is shown.

    Raises:
        ValueError: If a column is missing or holds no text, a label is no class of the model, a number is too small, or
            the model's logits are not finite.

    Example:
        >>> test = generate(split.candidates, model, tokenizer, substitutions)  # doctest: +SKIP
        >>> test.summary.num_rarified  # doctest: +SKIP
        1322
    """
    check_shares(misspelling_share=misspelling_share)
    for name, number in (("max_masked", max_masked), ("tokens_per_batch", tokens_per_batch)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1; got {number}.")
    check_columns(candidates, text_column=text_column, pair_column=pair_column, label_column=label_column)
    search = DecisiveWordSearch(
        model,
        tokenizer,
        max_length=max_length,
        max_masked=max_masked,
        tokens_per_batch=tokens_per_batch,
        screening=screening,
    )
    check_labels(candidates, model.config, label_column)
    rows = read_rows(candidates, text_column, pair_column)
    words = [find_replaceable(texts, substitutions, misspelling_share=misspelling_share, seed=seed) for texts in rows]
    outcomes = search.find(rows, words, candidates[label_column][:], show_progress=show_progress)
    dataset = _build_dataset(candidates, label_column, rows, words, outcomes, seed)
    dropped = Counter(outcome.dropped for outcome in outcomes)
    summary = GenerationSummary(
        num_candidates=len(rows),
        num_rarified=len(dataset),
        num_without_words=dropped["no_words"],
        num_wrong_at_start=dropped["wrong_at_start"],
        num_truncated=dropped["truncated"],
        num_not_flipped=dropped["not_flipped"],
        num_replaced=dict(Counter(item["kind"] for replaced in dataset["replaced"] for item in replaced)),
        num_queries=search.num_queries,
    )
    return RarifiedTestSet(dataset, summary)


def read_rows(dataset: Dataset, text_column: str, pair_column: str | None) -> list[tuple[str, ...]]:
    """Returns the text, or the two texts, of each row."""
    columns = [column for column in (text_column, pair_column) if column is not None]
    return list(zip(*(dataset[column][:] for column in columns), strict=True))


def check_shares(**shares: float) -> None:
    """Raises a ValueError unless all shares are between 0 and 1."""
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must be between 0 and 1; got {share}.")


def _build_dataset(
    candidates: Dataset,
    label_column: str,
    rows: Sequence[tuple[str, ...]],
    words: Sequence[Sequence[ReplaceableWord]],
    outcomes: Sequence[Outcome],
    seed: int,
) -> Dataset:
    """Puts substitutes in the place of the words that were found."""
    chosen = [row for row, outcome in enumerate(outcomes) if outcome.dropped is None]
    labels = candidates[label_column][:]
    parts = PARTS[: len(rows[0])] if rows else PARTS[:1]
    columns: dict[str, list[Any]] = {name: [] for name in ("label", *parts, *(f"rarified_{part}" for part in parts))}
    columns["replaced"] = []
    for row in chosen:
        texts = rows[row]
        replaced = [words[row][index] for index in outcomes[row].masked]
        substitutes = [choose_substitute(word, texts, seed=seed) for word in replaced]
        rarified = replace_words(texts, [(w, s.text) for w, s in zip(replaced, substitutes, strict=True)])
        columns["label"].append(labels[row])
        for part, text, rarified_text in zip(parts, texts, rarified, strict=True):
            columns[part].append(text)
            columns[f"rarified_{part}"].append(rarified_text)
        columns["replaced"].append(
            [
                {"word": w.text, "substitute": s.text, "kind": s.kind, "column": PARTS[w.part], "start": w.start}
                for w, s in zip(replaced, substitutes, strict=True)
            ]
        )
    features = {name: Value("string") for name in columns} | {"replaced": [REPLACED]}
    features["label"] = candidates.features[label_column]
    return Dataset.from_dict(columns, features=Features(features))
