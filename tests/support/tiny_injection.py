"""Word vectors and an injector on a tiny classifier."""

import torch
from support.tiny_models import FAMILIES
from transformers import AutoConfig, AutoModelForSequenceClassification

from bertram_hf import BertramEmbeddingInjector, WordVectors


def make_vectors():
    return WordVectors(
        ["kumquat", "quokka"],
        torch.randn(2, FAMILIES["bert"]["hidden_size"]) * 0.1,
        context_weights={"kumquat": torch.tensor([0.25, 0.75]), "quokka": torch.ones(1)},
        used_contexts={"kumquat": [0, 2], "quokka": [0]},
        dropped_contexts={"kumquat": {1: "word not found"}},
        failed={"numbat": "no contexts"},
    )


def make_injector(tokenizer, vectors):
    """Returns an injector with two packs around a tiny classifier."""
    config = AutoConfig.for_model("bert", **FAMILIES["bert"], vocab_size=641, num_labels=3)
    classifier = AutoModelForSequenceClassification.from_config(config).eval()
    injector = BertramEmbeddingInjector(classifier, tokenizer, vectors.select(["kumquat"]), mode="slash")
    injector.add(vectors.select(["quokka"]), "animals")
    return injector
