import pytest
import torch
from datasets import Dataset
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    DataCollatorForLanguageModeling,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
)

from bertram_hf import BertramEmbeddingInjector, align_word_labels

TEXTS = ["the kumquat tree", "a small kumquat", "the old resigntaion", "a resigntaion , old"] * 6
LABELS = [0, 0, 1, 1] * 6


@pytest.fixture
def make_injector(make_encoder, bert_tokenizer):
    def make(auto_class=AutoModelForSequenceClassification, **settings):
        config = make_encoder("bert").config
        config.num_labels = 2
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
        torch.manual_seed(0)
        model = auto_class.from_config(config)
        vectors = {"kumquat": torch.randn(32) * 0.1, "resigntaion": torch.randn(32) * 0.1}
        return BertramEmbeddingInjector(model, bert_tokenizer, vectors, mode="slash", **settings)

    return make


def train(injector, dataset, folder, *, resume=None, collator=None, **arguments):
    defaults = {
        "per_device_train_batch_size": 8,
        "num_train_epochs": 8,
        "learning_rate": 2e-3,
        "save_strategy": "steps",
        "save_steps": 6,
        "report_to": "none",
        "use_cpu": True,
        "disable_tqdm": True,
        "seed": 1,
    }
    trainer = Trainer(
        model=injector,
        args=TrainingArguments(output_dir=str(folder), **defaults | arguments),
        train_dataset=dataset,
        eval_dataset=dataset,
        data_collator=collator,
        processing_class=injector.tokenizer,
        compute_metrics=lambda result: {"accuracy": float((result.predictions.argmax(-1) == result.label_ids).mean())},
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def classification(injector):
    dataset = Dataset.from_dict({"text": TEXTS, "label": LABELS})
    return dataset.map(lambda batch: injector.tokenizer(batch["text"]), batched=True)


@pytest.mark.parametrize("train_vectors", [False, True])
def test_stock_trainer_learns_evaluates_saves_and_resumes(make_injector, tmp_path, train_vectors):
    injector = make_injector(train_vectors=train_vectors)
    frozen = injector.table.weight.detach().clone()
    before = injector.table.vectors.detach().clone()
    trainer = train(injector, classification(injector), tmp_path / "once")
    assert trainer.evaluate()["eval_accuracy"] == 1.0
    assert torch.equal(injector.table.weight, frozen)
    assert torch.equal(injector.table.vectors, before) is not train_vectors

    interrupted = make_injector(train_vectors=train_vectors)
    resumed = train(
        interrupted, classification(interrupted), tmp_path / "again", resume=str(tmp_path / "once" / "checkpoint-6")
    )
    for name, value in trainer.model.state_dict().items():
        torch.testing.assert_close(resumed.model.state_dict()[name], value, atol=1e-5, rtol=1e-4)

    trainer.save_model(str(tmp_path / "final"))
    loaded = BertramEmbeddingInjector.from_pretrained(tmp_path / "final")
    batch = loaded.tokenizer(TEXTS[:4], padding=True, return_tensors="pt")
    with torch.no_grad():
        torch.testing.assert_close(loaded(**batch).logits, injector.eval()(**batch).logits, atol=1e-5, rtol=1e-4)


def test_stock_trainer_trains_a_masked_language_model(make_injector, tmp_path):
    injector = make_injector(AutoModelForMaskedLM)
    dataset = classification(injector).remove_columns(["label", "text"])
    collator = DataCollatorForLanguageModeling(injector.tokenizer, mlm_probability=0.4)
    trainer = train(injector, dataset, tmp_path, collator=collator, num_train_epochs=8, seed=3)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry] or [trainer.state.log_history]
    assert torch.isfinite(torch.tensor(trainer.state.log_history[-1]["train_loss"]))
    assert losses
    assert injector.model.get_output_embeddings().weight is injector.table.weight


def test_stock_trainer_trains_token_classification(make_injector, tmp_path):
    injector = make_injector(AutoModelForTokenClassification)
    words = [text.split() for text in TEXTS]
    tags = [[int(word in ("kumquat", "resigntaion")) for word in row] for row in words]

    def encode(batch):
        encoding = injector.tokenizer(batch["words"], is_split_into_words=True)
        labels = [align_word_labels(encoding, row, batch_index=i) for i, row in enumerate(batch["tags"])]
        return encoding | {"labels": labels}

    dataset = Dataset.from_dict({"words": words, "tags": tags}).map(encode, batched=True)
    trainer = Trainer(
        model=injector,
        args=TrainingArguments(
            output_dir=str(tmp_path),
            num_train_epochs=10,
            learning_rate=5e-3,
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            save_strategy="no",
        ),
        train_dataset=dataset,
        data_collator=DataCollatorForTokenClassification(injector.tokenizer),
    )
    trainer.train()
    predictions = trainer.predict(dataset)
    is_labelled = predictions.label_ids != -100
    accuracy = (predictions.predictions.argmax(-1) == predictions.label_ids)[is_labelled].mean()
    assert accuracy == 1.0


def test_gradient_checkpointing_and_accumulation_change_nothing(make_injector, tmp_path):
    losses = []
    for settings in ({}, {"gradient_checkpointing": True}, {"gradient_accumulation_steps": 2}):
        injector = make_injector()
        size = 8 // settings.get("gradient_accumulation_steps", 1)
        trainer = train(
            injector,
            classification(injector),
            tmp_path / str(len(losses)),
            save_strategy="no",
            num_train_epochs=1,
            per_device_train_batch_size=size,
            **settings,
        )
        losses.append(trainer.evaluate()["eval_loss"])
    assert losses[1] == pytest.approx(losses[0], abs=1e-4)
    assert losses[2] == pytest.approx(losses[0], abs=1e-3)
