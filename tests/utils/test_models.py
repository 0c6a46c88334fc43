import pytest
import torch
from support.tiny_models import FAMILIES
from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForSequenceClassification

from bertram_hf.evaluation.rarified import predict_labels
from bertram_hf.masked_lm.train import score_masked_lm


def test_a_failure_leaves_the_model_in_the_mode_it_was_in(bert_tokenizer):
    config = AutoConfig.for_model("bert", **FAMILIES["bert"] | {"vocab_size": 641})
    classifier = AutoModelForSequenceClassification.from_config(config).train()
    too_long = "river " * (2 * config.max_position_embeddings)
    with pytest.raises((IndexError, RuntimeError)):
        predict_labels(classifier, bert_tokenizer, [too_long], max_length=10_000)
    assert classifier.training
    model = AutoModelForMaskedLM.from_config(config).train()
    with pytest.raises(IndexError):
        score_masked_lm(model, [{"input_ids": torch.tensor([[10_000]]), "labels": torch.tensor([[1]])}])
    assert model.training
