"""A GPU works ahead of Python as long as nobody asks it for a number; see `support/device_waits.py`."""

import copy

import pytest
import torch
from support.device_waits import DeviceWaits
from support.tiny_models import FAMILIES
from transformers import AutoConfig, AutoModel, TrainingArguments

from bertram_hf import BertramEmbeddingInjector
from bertram_hf.induction.reliability import assess_vectors
from bertram_hf.training.losses import MimickingLoss
from bertram_hf.training.recipe import LossSettings
from bertram_hf.training.trainer import BertramTrainer

WORDS = ["kumquat", "qualm", "quackish"]
CONTEXTS = [["She peeled a kumquat.", "A sour kumquat and another sour fruit"], ["qualm is the word"], []]
PIECES = {"piece_strength": 2, "hidden_token_id": 20, "context_layers": "all", "context_weighting": "scored"}
LENGTHS, MOST_PIECES = "read_packed: kept = is_token", "_read_contexts: most_pieces ="


@pytest.fixture
def make_batch(make_pair):
    def make(mode):
        model, processor = make_pair(mode, max_length=64, **(PIECES if mode == "pieces" else {}))
        return model, processor(WORDS, CONTEXTS)

    return make


def count_waits(act):
    with DeviceWaits() as waits:
        act()
    return waits.places


@pytest.mark.parametrize("act", [torch.Tensor.item, lambda t: t[t > 0], torch.Tensor.nonzero, torch.Tensor.cpu])
def test_waits_are_seen(act):
    assert len(count_waits(lambda: act(torch.ones(1)))) == 1
    assert count_waits(lambda: torch.ones(2)[torch.tensor([1])] + 1) == []


@pytest.mark.parametrize(
    ("mode", "expected"), [("add", [LENGTHS]), ("shallow", [LENGTHS]), ("pieces", [MOST_PIECES, LENGTHS, LENGTHS])]
)
def test_contexts_are_read_with_few_waits_and_words_finished_without(make_batch, mode, expected):
    model, batch = make_batch(mode)
    with torch.no_grad():
        form = model.encode_forms(batch["form_ids"])
        names = ("input_ids", "attention_mask", "mask_positions", "num_pieces")
        inputs = {name: batch[name] for name in names if name in batch}
        owners = torch.repeat_interleave(torch.arange(3), batch["num_contexts"])
        places = count_waits(lambda: model.encode_contexts(**inputs, form_embeddings=form[owners]))
        assert [place[: len(known)] for place, known in zip(places, expected, strict=True)] == expected
        readings = (form, model.encode_contexts(**inputs, form_embeddings=form[owners]), batch["num_contexts"])
        assert count_waits(lambda: model.finish(*readings)) == []
        induced = model.finish(*readings).word_embeddings
        # Two halves of the contexts, and the numbers themselves.
        assert len(count_waits(lambda: assess_vectors(model, WORDS, *readings, induced))) <= 4


@pytest.mark.parametrize("lacks", [[], [1]])
def test_a_training_step_waits_before_the_model_runs_and_not_after(make_batch, tmp_path, lacks):
    model, batch = make_batch("add")
    model.form_encoder.dropout = 0.0
    table = model.get_input_embeddings().weight.detach().clone()
    arguments = TrainingArguments(str(tmp_path), max_steps=1, use_cpu=True, save_strategy="no", report_to=[])
    settings = LossSettings(mse=1.0, cosine=1.0, contrastive=1.0)
    loss = MimickingLoss(settings, table)
    trainer = BertramTrainer(model, arguments, loss=loss, train_batches=[batch], vocabulary=table)
    labels = table[5:8].clone()
    labels[lacks] = torch.nan
    found = []
    places = count_waits(lambda: found.append(trainer.compute_loss(model.train(), {**batch, "labels": labels})))
    assert places[0].startswith("compute_loss: targeted =")
    assert not any(place.startswith("compute_loss") for place in places[1:])
    assert len(places) <= 2
    kept = [row for row in range(3) if row not in lacks]
    expected = loss(model(**batch).word_embeddings[kept], labels[kept])
    torch.testing.assert_close(found[0], expected, atol=1e-5, rtol=1e-4)
    assert count_waits(found[0].backward) == []


@pytest.mark.parametrize("train_vectors", [False, True])
def test_injected_embeddings_are_looked_up_without_a_wait(bert_tokenizer, train_vectors):
    config = AutoConfig.for_model("bert", **FAMILIES["bert"], vocab_size=641)
    vectors = {"kumquat": torch.ones(config.hidden_size)}
    plain = AutoModel.from_config(config).eval()
    injector = BertramEmbeddingInjector(copy.deepcopy(plain), bert_tokenizer, vectors, train_vectors=train_vectors)
    batch = dict(injector.tokenizer(["a kumquat", "no word here"], padding=True, return_tensors="pt"))
    assert count_waits(lambda: injector.table(batch["input_ids"])) == []
    assert (
        count_waits(lambda: injector.pooling_mask(**{name: batch[name] for name in ("input_ids", "attention_mask")}))
        == []
    )
    safe = {**batch, "input_ids": batch["input_ids"].clamp(max=640)}
    assert len(count_waits(lambda: injector(**batch))) <= len(count_waits(lambda: plain(**safe)))
