"""A corpus of tiny-bert's words and small recipes, for the tests of training."""

import json
import random
import re
from pathlib import Path

import numpy as np
import torch
import yaml
from support.tiny_models import FAMILIES, ORIGINAL
from transformers import AutoConfig, AutoModel, AutoProcessor, BertTokenizer

from bertram_hf import BertramModel, BertramProcessor, induce_vectors
from bertram_hf.tokenization_form import FormTokenizer
from bertram_hf.training.batches import WordCollator
from bertram_hf.training.contexts import EncodedContexts
from bertram_hf.training.inputs import cache_features
from bertram_hf.training.pieces import PieceCollator, PieceCuts, without_pieces
from bertram_hf.training.recipe import PieceStageSettings, StageSettings
from bertram_hf.training.trainer import heldout_batches

NOUNS = re.findall(
    r"\w+",
    "river mountain forest lake valley bridge village city town house garden street market school church "
    "tower castle field tree fruit lemon apple bread water wine salt sugar soup plate table chair window "
    "door wall roof floor ship boat train wagon horse cow sheep goat dog cat bird fish snake wolf fox "
    "rabbit mouse king queen soldier doctor ",
)
SEVERAL_PIECES = ["kumquat", "quokka", "zebra"]
HELDOUT = ["castle", "lemon", "horse"]
RELATIVES = {"castle": "castles", "lemon": "lemons", "horse": "horses"}  # of the same families
ADJECTIVES = re.findall(
    r"\w+", "red green blue white black small large old new young long short bright dark cold warm quiet loud"
)
VERBS = re.findall(r"\w+", "eat carry find lose make take give hold open close build break")
APPROXIMATE = {"approximate": True, "approximation": {"iterations": 2, "num_templates": 2}}


def make_sentences(number=400, seed=0):
    """Returns sentences in which some relatives of held-out words stand too."""
    draw = random.Random(seed)
    nouns = [*NOUNS, *SEVERAL_PIECES, *RELATIVES.values()]
    return [
        f"the {draw.choice(ADJECTIVES)} {draw.choice(nouns)} and the {draw.choice(nouns)} {draw.choice(VERBS)} "
        f"a {draw.choice(ADJECTIVES)} {draw.choice(nouns)} near the {draw.choice(nouns)}"
        for _ in range(number)
    ]


def write_encoder(folder):
    """Saves the tiny encoder with its tokenizer. Returns the folder."""
    tiny_encoder().save_pretrained(folder)
    BertTokenizer.from_pretrained(ORIGINAL / "tiny-bert").save_pretrained(folder)
    return folder


def read_training(output, system):
    """Returns the record of a trained system."""
    return json.loads((output / system / "training.json").read_text())


def induce(folder, words, **loading):
    """Returns a trained system's vectors of words from one context each."""
    model, processor = AutoModel.from_pretrained(folder, **loading), AutoProcessor.from_pretrained(folder)
    contexts = {word: [f"the old {word} near the {NOUNS[row]}"] for row, word in enumerate(words)}
    return induce_vectors(model, processor, contexts, show_progress=False).embeddings


def write_recipe(folder, encoder, sentences=None, **fields):
    """Writes a corpus, held-out words and a small recipe for them. Returns the recipe's path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.txt").write_text("\n".join(make_sentences() if sentences is None else sentences) + "\n")
    (folder / "heldout.txt").write_text("\n".join(HELDOUT) + "\n")
    trainer = {"num_train_epochs": 1, "use_cpu": True, "logging_steps": 1}
    stage = {"contexts_per_batch": 48, "trainer": trainer | {"learning_rate": 1e-3}}
    recipe = {
        "encoder": str(encoder),
        "output": str(folder / "out"),
        "corpora": [{"inputs": [str(folder / "corpus.txt")], "min_count": 5, "max_contexts": 8}],
        "max_length": 24,
        "targets": {"approximate": False},
        "heldout": {"words": str(folder / "heldout.txt"), "num_contexts": [0, 1, 4], "development_share": 0.1},
        "context": stage,
        "form": {"words_per_batch": 16, "trainer": trainer},
        "combined": stage,
        "form_min_count": 2,
    }
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe | fields))
    return path


def tiny_encoder():
    """Returns an encoder with as many embeddings as tiny-bert has tokens, with the same random weights each time."""
    torch.manual_seed(0)
    encoder = AutoModel.from_config(AutoConfig.for_model("bert", **FAMILIES["bert"], vocab_size=324)).eval()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return encoder


def prepare_stage(folder, mode="context", *, cache=None, num_words=24, num_contexts=6, **fields):
    """Returns the arguments of `train_stage` for a tiny model, with features in `folder` if `cache` names their dtype.

    A process that is to be killed makes its own, so nothing here is a fixture.
    """
    encoder = tiny_encoder()
    tokenizer = BertTokenizer.from_pretrained(ORIGINAL / "tiny-bert")
    words = NOUNS[:num_words]
    processor = BertramProcessor.from_encoder(tokenizer, mode=mode, form_words=words, max_length=24)
    if processor.form is not None:  # every n-gram of so few words
        processor.form = FormTokenizer.from_words(words, unit="ngram", min_count=1)
    num_units = 2 if processor.form is None else len(processor.form)
    model = BertramModel.from_encoder(encoder, mode=mode, form_vocab_size=num_units, **fields)
    contexts = [
        (word, [f"the {a} {word} near the {n}" for a, n in _pairs(i, num_contexts)]) for i, word in enumerate(words)
    ]
    encoded = EncodedContexts.without_contexts(words)
    if mode != "form":
        masking = without_pieces(processor)
        encoded = EncodedContexts.build(masking, contexts, Path(folder) / "tokens", show_progress=False)
    cuts = PieceCuts(processor, words, hard_share=0.5) if mode == "pieces" else None
    features = None
    if cache is not None:
        features = cache_features(
            model, processor, encoded, Path(folder) / "features", dtype=cache, cuts=cuts, show_progress=False
        )
    vocabulary = encoder.get_input_embeddings().weight.detach()
    targets = vocabulary[tokenizer.convert_tokens_to_ids(words)]
    inputs = WordCollator(processor, encoded, targets, features)
    if cuts is not None:
        inputs = PieceCollator(processor, encoded, targets, features, cuts=cuts)
    return {
        "model": model,
        "processor": processor,
        "inputs": inputs,
        "occurrences": np.full(num_words, 250),  # each word twice in an epoch
        "vocabulary": vocabulary,
        "heldout": heldout_batches(inputs, (0,) if mode == "form" else (1, 4)),
        "seed": 5,
    }


def small_stage(mode="context", *, trainer=None, **fields):
    """Returns settings for 6 steps in each of two epochs, with checkpoints in between."""
    sizes = {"min_contexts": 0, "max_contexts": 0} if mode == "form" else {"min_contexts": 1, "max_contexts": 4}
    arguments = {
        "num_train_epochs": 2,
        "learning_rate": 1e-3,
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": 5,
        "use_cpu": True,
        "disable_tqdm": True,
    }
    settings = PieceStageSettings if mode == "pieces" else StageSettings
    return settings(**{"words_per_batch": 8, "trainer": arguments | (trainer or {})} | sizes | fields)


def _pairs(seed, number):
    draw = random.Random(seed)
    return [(draw.choice(ADJECTIVES), draw.choice(NOUNS)) for _ in range(number)]
