import pytest
import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel, get_peft_model
from support.tiny_models import FAMILIES
from transformers import AutoConfig, AutoModelForSequenceClassification, Trainer, TrainingArguments

from bertram_hf import BertramEmbeddingInjector

TEXTS = ["the old kumquat", "a small tree"] * 4


@pytest.fixture
def make_injector(bert_tokenizer):
    """Returns a function that makes the same injected classifier each time."""

    def make(**settings):
        config = AutoConfig.for_model("bert", **FAMILIES["bert"], vocab_size=641, num_labels=2)
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_config(config)
        vectors = {"kumquat": torch.randn(32) * 0.1}
        return BertramEmbeddingInjector(model, bert_tokenizer, vectors, **settings)

    return make


def train(model, tokenizer, folder):
    dataset = Dataset.from_dict({**tokenizer(TEXTS), "labels": [0, 1] * 4})
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=5,
        save_steps=5,
        learning_rate=1e-2,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    )
    Trainer(model=model, args=arguments, train_dataset=dataset, processing_class=tokenizer).train()


@torch.no_grad()
def logits_of(model, tokenizer):
    return model.eval()(**tokenizer(TEXTS[:2], padding=True, return_tensors="pt")).logits


@pytest.mark.parametrize("train_vectors", [False, True])
def test_lora_around_an_injected_model_trains_saves_loads_and_merges(make_injector, tmp_path, train_vectors):
    injector = make_injector(train_vectors=train_vectors)
    tokenizer = injector.tokenizer
    untrained = logits_of(injector, tokenizer)
    settings = LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"])
    model = get_peft_model(injector, settings)
    train(model, tokenizer, tmp_path / "run")
    trained = logits_of(model, tokenizer)
    assert not torch.allclose(trained, untrained, atol=1e-3)

    model.save_pretrained(tmp_path / "adapter")
    for folder in (tmp_path / "adapter", tmp_path / "run" / "checkpoint-5"):
        loaded = PeftModel.from_pretrained(make_injector(train_vectors=train_vectors), folder)
        torch.testing.assert_close(logits_of(loaded, tokenizer), trained)

    merged = loaded.merge_and_unload()
    assert type(merged) is BertramEmbeddingInjector
    torch.testing.assert_close(logits_of(merged, tokenizer), trained)
    merged.save_pretrained(tmp_path / "merged")
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "merged")
    torch.testing.assert_close(logits_of(again, again.tokenizer), trained)


def test_the_adapter_of_a_saved_injector_is_put_on_it_again(make_injector, tmp_path):
    make_injector().save_pretrained(tmp_path / "injected")
    injector = AutoModelForSequenceClassification.from_pretrained(tmp_path / "injected")
    model = get_peft_model(injector, LoraConfig(task_type="SEQ_CLS", r=4, target_modules="all-linear"))
    train(model, injector.tokenizer, tmp_path / "run")
    model.save_pretrained(tmp_path / "adapter")
    fresh = AutoModelForSequenceClassification.from_pretrained(tmp_path / "injected")
    loaded = PeftModel.from_pretrained(fresh, tmp_path / "adapter")
    torch.testing.assert_close(logits_of(loaded, fresh.tokenizer), logits_of(model, injector.tokenizer))
