"""Training the classifier that a data set is rarified for ("Baseline Training" in Section 4)."""

import re
import tempfile
from collections.abc import Mapping
from typing import Any

from datasets import ClassLabel, Dataset, Value
from transformers import (
    DataCollatorWithPadding,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Trainer,
    TrainingArguments,
)

from ..injection.augmentation import SlashAugmentation
from ..utils.models import longest_input

# Appendix B. For RoBERTa-large the paper has a learning rate of 1e-5 and 10,000 steps of warm-up.
PAPER_ARGUMENTS: dict[str, Any] = {
    "num_train_epochs": 3,
    "per_device_train_batch_size": 32,
    "learning_rate": 5e-5,
    "warmup_steps": 0.1,
    "weight_decay": 0.01,
}
OWN_ARGUMENTS: dict[str, Any] = {"remove_unused_columns": False, "report_to": "none", "save_strategy": "no"}


def train_baseline(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    train: Dataset,
    *,
    text_column: str = "text",
    pair_column: str | None = None,
    label_column: str = "label",
    max_length: int = 128,
    seed: int = 0,
    training_arguments: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """Fine-tunes a classifier in place by the paper's recipe: words masked or doubled, embeddings frozen.

    The input embeddings stay frozen afterwards, and the model is in evaluation mode. Special tokens that stand in a
    text are text: a space is put into them, so that only the masks of the recipe are masks.

    Args:
        model: A model for sequence classification, which is changed.
        tokenizer: Its tokenizer.
        train: Texts and labels; the labels are class numbers.
        text_column: The column of texts.
        pair_column: For text pairs, the column of second texts.
        label_column: The column of labels.
        max_length: Inputs are cut to so many tokens.
        seed: The seed of masks, order of rows and dropout. Of the classifier's new weights it is not: these are there
            already.
        training_arguments: Further `TrainingArguments`, or others in place of the paper's: 3 epochs, batches of 32,
            learning rate 5e-5 with 10 % warm-up, weight decay 0.01. Nothing is saved unless `output_dir` and
            `save_strategy` say so.

    Returns:
        What the Trainer measured, `train_loss` and `train_runtime` among them.

    Raises:
        ValueError: If there are no rows, a column is missing, or a label is no class of the model.

    Example:
        >>> train_baseline(model, tokenizer, split.train, training_arguments={"bf16": True})  # doctest: +SKIP
        {'train_runtime': 812.4, ...}
    """
    check_columns(train, text_column=text_column, pair_column=pair_column, label_column=label_column)
    check_labels(train, model.config, label_column)
    check_max_length(model, max_length)
    if not len(train):
        raise ValueError("Expected texts to train on; got none. Give more data, or raise min_train_share.")
    columns = [column for column in (text_column, pair_column) if column is not None]
    augment = SlashAugmentation(tokenizer, columns=columns, seed=seed)
    special_tokens = re.compile("|".join(re.escape(token) for token in tokenizer.all_special_tokens))

    def encode(batch: dict[str, Any]) -> dict[str, Any]:
        texts = {column: [break_tokens(text, special_tokens) for text in batch[column]] for column in columns}
        augmented = augment(texts)
        encoded = tokenizer(*(augmented[column] for column in columns), truncation=True, max_length=max_length)
        return {**encoded, "labels": batch[label_column]}

    model.get_input_embeddings().weight.requires_grad_(False)
    with tempfile.TemporaryDirectory() as folder:
        arguments = (
            {"output_dir": folder, "seed": seed} | PAPER_ARGUMENTS | OWN_ARGUMENTS | dict(training_arguments or {})
        )
        trainer = Trainer(
            model=model,
            args=TrainingArguments(**arguments),
            train_dataset=train.with_transform(encode),
            data_collator=DataCollatorWithPadding(tokenizer),
        )
        metrics = trainer.train().metrics
    model.eval()
    return metrics


def break_tokens(text: str, tokens: re.Pattern[str]) -> str:
    """Puts a space into what would be read as a special token.

    Example:
        >>> break_tokens("a [MASK]", re.compile(r"\\[MASK\\]"))
        'a [ MASK]'
    """
    return tokens.sub(lambda match: f"{match.group()[0]} {match.group()[1:]}", text)


def to_class_numbers(dataset: Dataset, config: PreTrainedConfig, *, label_column: str = "label") -> Dataset:
    """Returns a data set whose labels are class numbers of a model: names become the numbers they have in its config.

    Numbers and `ClassLabel` stay as they are.

    Raises:
        ValueError: If a name is no class of the model, or a number is none.

    Example:
        >>> to_class_numbers(dataset, model.config)["label"][:3]  # doctest: +SKIP
        [0, 3, 1]
    """
    if label_column not in dataset.column_names:
        raise ValueError(
            f"Expected a column {label_column!r}; got {', '.join(dataset.column_names)}. Set label_column."
        )
    if dataset.features[label_column].dtype == "string":
        unknown = sorted(set(dataset[label_column][:]) - set(config.label2id), key=str)
        if unknown:
            raise ValueError(
                f"Expected labels among the model's, {', '.join(config.label2id)}; got {unknown[0]!r}. Set label2id in "
                "the model's config, or rename the labels."
            )
        numbers = [config.label2id[name] for name in dataset[label_column]]
        names = [config.id2label[number] for number in range(config.num_labels)]
        feature = ClassLabel(names=names) if len(set(names)) == len(names) else Value("int64")
        dataset = (
            dataset.remove_columns(label_column).add_column(label_column, numbers).cast_column(label_column, feature)
        )
    check_labels(dataset, config, label_column)
    return dataset


def check_columns(dataset: Dataset, *, text_column: str, pair_column: str | None, label_column: str | None) -> None:
    """Raises a ValueError unless a data set has these columns, and text in those of text."""
    names = {"text_column": text_column, "pair_column": pair_column, "label_column": label_column}
    for argument, column in names.items():
        if column is None:
            continue
        if column not in dataset.column_names:
            raise ValueError(f"Expected a column {column!r}; got {', '.join(dataset.column_names)}. Set {argument}.")
        if argument == "label_column":
            continue
        if dataset.features[column].dtype not in ("string", "large_string"):
            raise ValueError(
                f"Expected text in column {column!r}; got {dataset.features[column].dtype}. Set {argument}."
            )
        if None in dataset[column][:]:
            raise ValueError(f"Expected a text in each row of column {column!r}; some have none. Drop these rows.")


def check_labels(dataset: Dataset, config: PreTrainedConfig, label_column: str) -> None:
    """Raises a ValueError unless all labels are class numbers of a model."""
    if config.num_labels < 2:
        raise ValueError(
            f"Expected a classifier with at least 2 classes; got num_labels={config.num_labels}. Load the model with "
            "AutoModelForSequenceClassification and num_labels."
        )
    for label in set(dataset[label_column][:]):
        if not isinstance(label, int) or not 0 <= label < config.num_labels:
            raise ValueError(
                f"Expected labels from 0 to {config.num_labels - 1}, the model's classes; got {label!r} in column "
                f"{label_column!r}. Use to_class_numbers for names, or load the model with the right num_labels."
            )


def check_max_length(model: PreTrainedModel, max_length: int) -> None:
    """Raises a ValueError if inputs would be longer than the model has positions."""
    longest = longest_input(model)
    if longest is not None and max_length > longest:
        raise ValueError(f"max_length must be at most {longest}, which the model can read; got {max_length}. Lower it.")
