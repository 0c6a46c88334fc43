"""Ohsumed: abstracts are told by disease, from few texts of each class or from all.

    bertram adapt data/pubmed.jsonl data/medquad.jsonl --title-column title --model all-MiniLM-L6-v2 \
        --output my-medicine
    python examples/medicine/ohsumed.py data/ohsumed-training.tsv data/ohsumed-test.tsv \
        --model all-MiniLM-L6-v2 --adapted my-medicine --output results/medicine/ohsumed.json

By logistic regression on embeddings, or also by fine-tuning the whole model with the stock Trainer. Points of accuracy;
gains over the plain model with 95% intervals by paired bootstrap over the test texts. Where few texts are learnt from,
they are drawn several times, and a text's answers are averaged.
"""

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from datasets import Dataset, concatenate_datasets
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from systems import NEW_TOKENS, TRAINING, compare, inject, read_systems
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments, set_seed

from bertram_hf.adaptation.embedders import SentenceTransformerEmbedder
from bertram_hf.evaluation.classification import INVERSE_PENALTY, MAX_ITERATIONS

BUDGETS: tuple[int | None, ...] = (5, 20, None)  # texts of each class
NUM_DRAWS, NUM_EPOCHS, MAX_LENGTH = 5, {5: 20, 20: 10, None: 3}, 128
SETTINGS: dict[str, Any] = {"learning_rate": 1e-4, "per_device_train_batch_size": 16}


def draw_rows(labels: np.ndarray, budget: int | None, seed: int) -> np.ndarray:
    """Returns the rows of so many texts of each class."""
    order = np.random.default_rng(seed).permutation(len(labels))
    if budget is None:
        return order
    return np.concatenate([order[labels[order] == label][:budget] for label in np.unique(labels)])


def learn_embeddings(train: np.ndarray, labels: np.ndarray, test: np.ndarray, budget: int | None) -> np.ndarray:
    """Returns what regression answers (draws, N)."""
    answers = []
    for seed in range(1 if budget is None else NUM_DRAWS):
        rows = draw_rows(labels, budget, seed)
        classifier = make_pipeline(StandardScaler(), LogisticRegression(C=INVERSE_PENALTY, max_iter=MAX_ITERATIONS))
        answers.append(classifier.fit(train[rows], labels[rows]).predict(test))
    return np.stack(answers)


def fine_tune(name: str, system: tuple, trained: bool, train: Dataset, test: Dataset, budget: int | None) -> np.ndarray:
    """Returns what the fine-tuned model answers (1, N)."""
    set_seed(0)
    labels = train.features["label"].num_classes
    model = AutoModelForSequenceClassification.from_pretrained(name, num_labels=labels)
    model, tokenizer = inject(model, AutoTokenizer.from_pretrained(name), *system, trained=trained)

    def encode(batch: dict[str, list]) -> dict[str, list]:
        return {**tokenizer(batch["text"], truncation=True, max_length=MAX_LENGTH), "labels": batch["label"]}

    rows = draw_rows(np.array(train["label"]), budget, seed=0)
    parts = [part.map(encode, batched=True, remove_columns=part.column_names) for part in (train.select(rows), test)]
    with TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, num_train_epochs=NUM_EPOCHS[budget], **SETTINGS, **TRAINING)
        trainer = Trainer(model=model, args=arguments, train_dataset=parts[0], processing_class=tokenizer)
        trainer.train()
        return trainer.predict(parts[1]).predictions.argmax(axis=-1)[None]


def main() -> None:
    """Classifies and writes the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", help="TSV file with `text` and `label`")
    parser.add_argument("test", help="the same, of the texts to classify")
    parser.add_argument("--model", required=True)
    parser.add_argument("--adapted", required=True, metavar="FOLDER", help="what `bertram adapt` wrote")
    parser.add_argument("--output", required=True, help="JSON file")
    parser.add_argument("--fine-tuning", action="store_true", help="fine-tune, too, which takes much longer")
    arguments = parser.parse_args()
    tables = [Dataset.from_csv(path, sep="\t", quoting=3) for path in (arguments.train, arguments.test)]
    texts = concatenate_datasets(tables).class_encode_column("label")
    train, test = texts.select(range(len(tables[0]))), texts.select(range(len(tables[0]), len(texts)))
    train_labels, test_labels = np.array(train["label"]), np.array(test["label"])
    plain = SentenceTransformer(arguments.model, device="cpu")
    embedder = SentenceTransformerEmbedder(plain, dtype=torch.bfloat16, show_progress=False)

    def accuracy(answers: np.ndarray, items: np.ndarray) -> float:
        return 100 * float((answers[:, items] == test_labels[items]).mean())

    rows: list[dict[str, Any]] = []
    found: dict[tuple[str, int | None], np.ndarray] = {}  # the plain model's answers

    def add(system: str, method: str, budget: int | None, answers: np.ndarray, seconds: float) -> None:
        own = found.setdefault((method, budget), answers)
        gained = compare(accuracy, own, answers, len(test_labels))
        rows.append({"system": system, "method": method, "texts_of_each_class": budget or "all", **gained})
        rows[-1]["processor_seconds"] = round(seconds, 1)
        print(json.dumps(rows[-1]), flush=True)
        content = json.dumps(vars(arguments) | {"rows": rows}, indent=2)
        Path(arguments.output).write_text(content + "\n", encoding="utf-8")

    for name, system in read_systems(arguments.adapted, plain).items():
        embeddings = embedder.embed([*train["text"], *test["text"]], *system).double().numpy()
        for budget in BUDGETS:
            start = time.process_time()
            answers = learn_embeddings(embeddings[: len(train)], train_labels, embeddings[len(train) :], budget)
            add(name, "regression", budget, answers, time.process_time() - start)
        for budget in BUDGETS if arguments.fine_tuning else ():
            start = time.process_time()
            answers = fine_tune(arguments.model, system, name == NEW_TOKENS, train, test, budget)
            add(name, "fine-tuning", budget, answers, time.process_time() - start)


if __name__ == "__main__":
    main()
