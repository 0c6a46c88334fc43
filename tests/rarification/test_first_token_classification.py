"""Tests of the classifier that runs its last layer for the first token alone."""

import pytest
import torch
from support.tiny_models import FAMILIES
from transformers import AutoConfig, AutoModelForSequenceClassification, BertForSequenceClassification

from bertram_hf.modeling_context import BERT_LAYERED_TYPES, MAX_SHORT_TOKENS, attend_to_tokens
from bertram_hf.rarification.screening import classify, reads_first_token


def make_classifier(family: str):
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, vocab_size=50, num_labels=3, type_vocab_size=2, **FAMILIES[family])
    return AutoModelForSequenceClassification.from_config(config).eval()


def make_inputs(lengths: tuple[int, ...] = (9, 3, 5, 7)) -> dict[str, torch.Tensor]:
    attention_mask = (torch.arange(9) < torch.tensor(lengths)[:, None]).long()
    padding = 1  # the padding token of some families, which count positions by it
    input_ids = torch.randint(5, 50, (4, 9)).where(attention_mask.bool(), padding)
    return {"input_ids": input_ids, "attention_mask": attention_mask}


@pytest.mark.parametrize("family", [*BERT_LAYERED_TYPES, "distilbert"])
@pytest.mark.parametrize("lengths", [(9, 3, 5, 7), (9, 9, 9, 9)])
def test_logits_are_those_of_the_model(family, lengths):
    model, inputs = make_classifier(family), make_inputs(lengths)
    if family in ("bert", "electra"):
        inputs["token_type_ids"] = (torch.arange(9) > 4).long().expand(4, 9)
    with torch.no_grad():
        expected = model(**inputs).logits
        torch.testing.assert_close(classify(model, inputs), expected, atol=1e-5, rtol=1e-5)
    assert expected.std() > 1e-3
    assert reads_first_token(model) == (family in BERT_LAYERED_TYPES)


@pytest.mark.parametrize("family", [*BERT_LAYERED_TYPES, "distilbert"])
def test_logits_in_bfloat16_are_near(family):
    model, inputs = make_classifier(family), make_inputs()
    with torch.no_grad():
        expected = model(**inputs).logits
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = classify(model, inputs)
    assert 0 < (logits.float() - expected).abs().max() < 0.02


@pytest.mark.parametrize("num_tokens", [MAX_SHORT_TOKENS, MAX_SHORT_TOKENS + 1])
@pytest.mark.parametrize("num_queries", [1, 5])
def test_attention_in_bfloat16_is_that_of_pytorch(num_tokens, num_queries):
    torch.manual_seed(0)
    query = torch.randn(3, 2, num_queries, 8)
    key, value = torch.randn(2, 3, 2, num_tokens, 8)
    is_token = torch.arange(num_tokens) < torch.tensor([num_tokens, 1, 7])[:, None]
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=is_token[:, None, None])
    actual = attend_to_tokens(query.bfloat16(), key.bfloat16(), value.bfloat16(), is_token)
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual.float(), expected, atol=0.03, rtol=0.03)


def test_token_types_make_a_difference():
    model, inputs = make_classifier("bert"), make_inputs()
    with torch.no_grad():
        first = classify(model, inputs)
        second = classify(model, inputs | {"token_type_ids": torch.ones(4, 9, dtype=torch.long)})
    assert (first - second).abs().max() > 1e-4


def test_a_class_of_the_users_own_is_run_as_it_is():
    class Upside(BertForSequenceClassification):
        def forward(self, **inputs):
            outputs = super().forward(**inputs)
            outputs.logits = -outputs.logits
            return outputs

    model = Upside(make_classifier("bert").config).eval()
    inputs = make_inputs()
    with torch.no_grad():
        torch.testing.assert_close(classify(model, inputs), model(**inputs).logits)
