"""BC5CDR: chemicals and diseases are found in abstracts, by the whole model fine-tuned with the stock Trainer.

    bertram adapt data/pubmed.jsonl data/medquad.jsonl --title-column title --model all-MiniLM-L6-v2 \
        --output my-medicine
    python examples/medicine/bc5cdr.py data/bc5cdr --model all-MiniLM-L6-v2 --adapted my-medicine \
        --output results/medicine/bc5cdr.json

F1 of whole entities: of all, and of those that hold an injected word, whether they stand in the training texts or not.
Gains over the plain model with 95% intervals by paired bootstrap over the sentences.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from systems import NEW_TOKENS, TRAINING, compare, inject, read_systems
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from bertram_hf import align_word_labels

LABELS = ("O", "I-Entity", "B-Entity")  # B where an entity follows another one at once
SETTINGS: dict[str, Any] = {"num_train_epochs": 3, "learning_rate": 2e-4, "per_device_train_batch_size": 32}
MAX_LENGTH = 128
Span = tuple[int, int]


def read_sentences(path: Path) -> Dataset:
    """Reads sentences of words with labels."""
    rows: list[dict[str, list]] = [{"words": [], "word_labels": []}]
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("-DOCSTART-"):
            rows.append({"words": [], "word_labels": []})
        else:
            word, *_, label = line.split("\t")
            rows[-1]["words"].append(word)
            rows[-1]["word_labels"].append(LABELS.index(label))
    return Dataset.from_list([row for row in rows if row["words"]])


def find_entities(labels: Sequence[int]) -> set[Span]:
    """Returns the first word of each entity, and the one behind it.

    Example:
        >>> sorted(find_entities([0, 1, 1, 2, 0]))
        [(1, 3), (3, 4)]
    """
    entities, start = set(), None
    for place, label in enumerate([*labels, 0]):
        if start is not None and label != 1:
            entities.add((start, place))
            start = None
        if label and start is None:
            start = place
    return entities


def count_entities(
    keep: Callable[[int, Span], bool], answers: Sequence[set[Span]], right: Sequence[set[Span]]
) -> np.ndarray:
    """Returns how many entities that are kept each of N sentences has: found rightly, found, and to be found (N, 3)."""
    rows = enumerate(zip(answers, right, strict=True))
    return np.array(
        [[sum(keep(row, span) for span in spans) for spans in (own & true, own, true)] for row, (own, true) in rows]
    )


def score_f1(counts: np.ndarray, items: np.ndarray) -> float:
    """Returns F1, in points, of some sentences of (N, 3)."""
    both, own, true = counts[items].sum(axis=0)
    return 200 * both / max(own + true, 1)


def find(name: str, system: tuple, trained: bool, train: Dataset, test: Dataset) -> list[set[Span]]:
    """Fine-tunes a model and returns the entities that it finds in each sentence."""
    set_seed(0)
    model = AutoModelForTokenClassification.from_pretrained(name, num_labels=len(LABELS))
    model, tokenizer = inject(model, AutoTokenizer.from_pretrained(name), *system, trained=trained)

    def encode(batch: dict[str, list]) -> dict[str, list]:
        encoded = tokenizer(batch["words"], is_split_into_words=True, truncation=True, max_length=MAX_LENGTH)
        rows = enumerate(batch["word_labels"])
        return {**encoded, "labels": [align_word_labels(encoded, labels, batch_index=row) for row, labels in rows]}

    parts = [part.map(encode, batched=True, remove_columns=part.column_names) for part in (train, test)]
    with TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, **SETTINGS, **TRAINING)
        collator = DataCollatorForTokenClassification(tokenizer)
        trainer = Trainer(model, arguments, collator, parts[0], processing_class=tokenizer)
        trainer.train()
        found = trainer.predict(parts[1])
    answers = found.predictions.argmax(axis=-1)
    return [
        find_entities(own[true != -100].tolist())
        for own, true in zip(answers, np.asarray(found.label_ids), strict=True)
    ]


def main() -> None:
    """Finds entities and writes the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="folder with train.txt and test.txt")
    parser.add_argument("--model", required=True)
    parser.add_argument("--adapted", required=True, metavar="FOLDER", help="what `bertram adapt` wrote")
    parser.add_argument("--output", required=True, help="JSON file")
    arguments = parser.parse_args()
    train, test = (read_sentences(Path(arguments.folder) / f"{name}.txt") for name in ("train", "test"))
    systems = read_systems(arguments.adapted, SentenceTransformer(arguments.model, device="cpu"))
    own = systems["bertram-pieces, auto"][0]
    words = [[word.lower() for word in words] for words in test["words"]]
    right = [find_entities(labels) for labels in test["word_labels"]]
    seen = {
        " ".join(words[start:end]).lower()
        for words, labels in zip(train["words"], train["word_labels"], strict=True)
        for start, end in find_entities(labels)
    }

    def is_injected(row: int, span: Span) -> bool:
        return any(word in own for word in words[row][slice(*span)])

    def is_seen(row: int, span: Span) -> bool:
        return " ".join(words[row][slice(*span)]) in seen

    groups = {
        "all": lambda row, span: True,
        "injected": is_injected,
        "injected, seen": lambda row, span: is_injected(row, span) and is_seen(row, span),
        "injected, unseen": lambda row, span: is_injected(row, span) and not is_seen(row, span),
    }
    rows: list[dict[str, Any]] = []
    plain: dict[str, np.ndarray] = {}  # what the plain model finds, by group
    for name, system in systems.items():
        start = time.process_time()
        found = find(arguments.model, system, name == NEW_TOKENS, train, test)
        seconds = round(time.process_time() - start, 1)
        for group, keep in groups.items():
            counts = count_entities(keep, found, right)
            gained = compare(score_f1, plain.setdefault(group, counts), counts, len(test))
            number = int(counts[:, 2].sum())
            rows.append({"system": name, "entities": group, "number": number, **gained, "processor_seconds": seconds})
            print(json.dumps(rows[-1]), flush=True)
        content = json.dumps(vars(arguments) | {"rows": rows}, indent=2)
        Path(arguments.output).write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
