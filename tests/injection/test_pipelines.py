import copy

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    pipeline,
)

from bertram_hf import BertramEmbeddingInjector

TASKS = {
    "fill-mask": (AutoModelForMaskedLM, "the {} is a [MASK]"),
    "text-classification": (AutoModelForSequenceClassification, "the {} is old"),
    "token-classification": (AutoModelForTokenClassification, "the {} is old"),
    "feature-extraction": (AutoModel, "the {} is old"),
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("mode", ["replace", "slash"])
@pytest.mark.parametrize("passed", ["injector", "model"])
def test_pipelines_use_the_vectors_and_leave_other_texts_alone(make_encoder, bert_tokenizer, task, mode, passed):
    auto_class, inputs = TASKS[task]
    torch.manual_seed(0)
    config = make_encoder("bert").config
    config.num_labels = 2
    plain = auto_class.from_config(config).eval()
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model = copy.deepcopy(plain)
    injector = BertramEmbeddingInjector(model, bert_tokenizer, {"kumquat": torch.randn(32)}, mode=mode)
    before = pipeline(task, model=plain, tokenizer=bert_tokenizer)
    after = pipeline(task, model=injector if passed == "injector" else injector.model, tokenizer=injector.tokenizer)
    assert after(inputs.format("tree")) == before(inputs.format("tree"))
    assert after(inputs.format("kumquat")) != before(inputs.format("kumquat"))
    with injector.disabled():
        assert after(inputs.format("kumquat")) == before(inputs.format("kumquat"))


def test_entities_have_the_characters_of_the_word(make_encoder, bert_tokenizer):
    torch.manual_seed(0)
    model = AutoModelForTokenClassification.from_config(make_encoder("bert").config)
    injector = BertramEmbeddingInjector(model, bert_tokenizer, {"kumquat": torch.randn(32)}, mode="replace")
    text = "the old kumquat, here"
    entities = pipeline("token-classification", model=injector.model, tokenizer=injector.tokenizer)(text)
    spans = [(entity["start"], entity["end"]) for entity in entities]
    assert (8, 15) in spans
    assert [entity["word"] for entity in entities if entity["start"] == 8] == ["kumquat"]


def test_filled_sequences_show_the_word(make_encoder, bert_tokenizer):
    model = AutoModelForMaskedLM.from_config(make_encoder("bert").config)
    injector = BertramEmbeddingInjector(model, bert_tokenizer, {"kumquat": torch.randn(32)})
    results = pipeline("fill-mask", model=injector.model, tokenizer=injector.tokenizer)("the kumquat is [MASK]")
    assert all("kumquat" in result["sequence"] for result in results)
