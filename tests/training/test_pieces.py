"""Training of mode pieces."""

import json

import numpy as np
import pytest
import torch
from support.tiny_training import (
    HELDOUT,
    SEVERAL_PIECES,
    induce,
    prepare_stage,
    read_training,
    tiny_encoder,
    write_encoder,
    write_recipe,
)
from transformers import AutoModel, AutoProcessor

from bertram_hf.evaluation.recovery import hide_words
from bertram_hf.training import Recipe, train_recipe
from bertram_hf.training.batches import WordBatches
from bertram_hf.training.contexts import EncodedContexts
from bertram_hf.training.losses import MeaningLoss
from bertram_hf.training.pieces import Meanings, PieceCuts, without_pieces
from bertram_hf.training.recipe import PieceStageSettings
from bertram_hf.training.run import TrainingRun
from bertram_hf.words import PieceReader

STAGE = {
    "words_per_batch": 16,
    "ridge": 1.0,
    "trainer": {"num_train_epochs": 2, "use_cpu": True, "logging_steps": 1, "learning_rate": 1e-3},
}


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def train(folder, encoder, **fields):
    path = write_recipe(folder, encoder, systems=["bertram-pieces"], **{"pieces": STAGE} | fields)
    train_recipe(Recipe.load(path), show_progress=False)
    return folder / "out" / "bertram-pieces"


@pytest.mark.parametrize("freeze_encoder", [True, False])
def test_a_recipe_trains_and_the_model_loads(tmp_path, encoder_folder, freeze_encoder):
    folder = train(tmp_path, encoder_folder, pieces=STAGE | {"freeze_encoder": freeze_encoder})
    model = AutoModel.from_pretrained(folder, encoder=str(encoder_folder))
    assert AutoProcessor.from_pretrained(folder).pieces
    original = tiny_encoder()
    assert torch.equal(model.get_input_embeddings().weight, original.get_input_embeddings().weight)
    weight = "encoder.layer.0.intermediate.dense.weight"
    assert torch.equal(model.encoder.state_dict()[weight], original.state_dict()[weight]) == freeze_encoder
    assert torch.isfinite(induce(folder, [*SEVERAL_PIECES, "river"], encoder=str(encoder_folder))).all()
    record = read_training(tmp_path / "out", "bertram-pieces")
    assert [score["contexts"] for score in record["evaluation"]["scores"]] == [0, 1, 4]
    assert record["evaluation"]["num_words"] == len(HELDOUT)


def test_training_in_bfloat16_is_about_the_same(tmp_path, encoder_folder):
    vectors = []
    for dtype in ("float32", "bfloat16"):
        folder = train(tmp_path / dtype, encoder_folder, pieces=STAGE | {"encoder_dtype": dtype})
        vectors.append(induce(folder, SEVERAL_PIECES, encoder=str(encoder_folder)))
    assert not torch.equal(*vectors)
    assert torch.cosine_similarity(*vectors).min() > 0.98


def test_misspellings_are_learnt_on_top(tmp_path, encoder_folder):
    folder = train(tmp_path, encoder_folder, look_alikes={"num_words": 30, "max_contexts": 2})
    processor = AutoProcessor.from_pretrained(folder)
    assert processor.pieces
    assert {"river", "mountain"} <= set(processor.look_alikes.words)
    assert AutoModel.from_pretrained(folder, encoder=str(encoder_folder)).config.look_alikes


def test_cuts_hide_known_words_and_keep_natural_pieces(tmp_path):
    stage = prepare_stage(tmp_path, "pieces", num_words=8)
    processor = stage["processor"]
    words = [*stage["inputs"].contexts.words, *SEVERAL_PIECES]
    cuts = PieceCuts(processor, words, hard_share=0.5, seed=3)
    assert cuts.words == words
    reader = PieceReader(processor.tokenizer)
    rows = np.arange(len(words))
    for word, pieces in zip(words, cuts.draw(rows, rows), strict=True):
        assert "".join(map(reader.read, pieces)).replace("·", "") == word
        assert len(pieces) > 1
        if word in SEVERAL_PIECES:
            assert pieces == processor.encode_pieces(word)
    assert cuts.draw(rows, rows) == PieceCuts(processor, words, hard_share=0.5, seed=3).draw(rows, rows)
    respelled = cuts.respell({0: "quokka"})
    assert respelled.draw(rows[:1], rows[:1]) == [processor.encode_pieces("quokka")] != cuts.draw(rows[:1], rows[:1])
    assert cuts.key != respelled.key != cuts.harden().key


def test_the_model_never_sees_the_token_of_a_training_word(tmp_path):
    stage = prepare_stage(tmp_path, "pieces", num_words=8)
    inputs = stage["inputs"]
    words, offsets = np.arange(8), inputs.contexts.offsets
    batch = inputs(words, offsets[:-1], np.ones(8, dtype=np.int64))
    own = stage["processor"].tokenizer.convert_tokens_to_ids(inputs.contexts.words)
    for row, token in enumerate(own):
        start = batch["mask_positions"][row] - 1 - batch["num_pieces"][row]
        assert token not in batch["input_ids"][row, start : batch["mask_positions"][row]]
        assert token not in batch["form_ids"][row]


def test_recovery_hides_the_words_too(tmp_path):
    processor = prepare_stage(tmp_path, "pieces", num_words=8)["processor"]
    (token,) = processor.encode_pieces("castle")
    assert token not in hide_words(processor, ["castle"]).encode_form("castle")
    assert processor.encode_pieces("castle") == [token]
    processor.tokenizer.add_tokens(["żółw"])
    with pytest.raises(ValueError, match="cannot be written without their own token"):
        hide_words(processor, ["żółw"])


def test_some_words_come_without_contexts(tmp_path):
    inputs = prepare_stage(tmp_path, "pieces")["inputs"]
    batches = WordBatches(
        inputs,
        inputs.contexts.offsets,
        np.full(24, 20),
        words_per_batch=40,
        min_contexts=1,
        max_contexts=4,
        bare_share=0.5,
    )
    numbers = torch.cat([batches[index]["num_contexts"] for index in range(len(batches))])
    assert 0.4 < (numbers == 0).double().mean() < 0.6
    assert numbers.max() == 4
    everything = WordBatches(
        inputs, inputs.contexts.offsets, np.ones(24, dtype=int), words_per_batch=8, max_contexts=4, bare_share=1.0
    )
    assert "input_ids" not in everything[0]


@pytest.mark.parametrize("name", ["hard_share", "bare_share"])
def test_shares_are_checked(name):
    with pytest.raises(ValueError, match=rf"{name} must lie in \[0, 1\]"):
        PieceStageSettings(**{name: 1.5})


@pytest.fixture
def definitions_file(tmp_path):
    """Definitions of training words, of one with no target, of a held-out word, and one that tells its own word."""
    definitions = {
        "river": ["water near a valley", "a long cold water"],
        "kumquat": ["a small fruit", "a fruit near the lemon"],
        "lemon": ["a sour fruit"],
        "bridges": ["many a bridge"],
    }
    path = tmp_path / "definitions.jsonl"
    lines = [json.dumps({"word": word, "definitions": texts}) for word, texts in definitions.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_definitions_are_read_and_trained_for(tmp_path, encoder_folder, definitions_file, monkeypatch):
    losses = []
    compute = MeaningLoss.__call__
    monkeypatch.setattr(MeaningLoss, "__call__", lambda *inputs: losses.append(compute(*inputs)) or losses[-1])
    fields = {"definitions": definitions_file, "pieces": STAGE | {"meaning": 0.5}}
    path = write_recipe(tmp_path / "with", encoder_folder, systems=["bertram-pieces"], **fields)
    run = TrainingRun(Recipe.load(path), show_progress=False)
    assert run.data.definitions.keys() == {"river", "kumquat"}  # of no held-out word, and none that tells its word
    assert run.data.defined == ["kumquat"]
    run.train()
    assert losses
    trained = induce(tmp_path / "with" / "out" / "bertram-pieces", SEVERAL_PIECES, encoder=str(encoder_folder))
    without = induce(train(tmp_path / "without", encoder_folder), SEVERAL_PIECES, encoder=str(encoder_folder))
    assert torch.isfinite(trained).all()
    assert not torch.equal(trained, without)


def test_a_definition_is_never_both_context_and_answer(tmp_path):
    processor = prepare_stage(tmp_path, "pieces", num_words=2)["processor"]
    definitions = {"river": ["a long water", "a cold water"], "lake": []}
    contexts = {
        word: [f"the {word} near the house", *(f"{word} : {text}" for text in definitions[word])]
        for word in definitions
    }
    encoded = EncodedContexts.build(without_pieces(processor), contexts.items(), tmp_path / "tokens-2")
    meanings = Meanings(processor, encoded, list(definitions.values()))
    pieces = [processor.encode_pieces("kumquat"), processor.encode_pieces("quokka")]
    words = np.array([0, 1])
    seen = set()
    for rows, numbers in (([0, 1, 3], [2, 1]), ([2, 3], [1, 1]), ([3], [0, 1])):
        batch = meanings.draw(words, np.array(rows), np.array(numbers), pieces)
        assert batch["meaning_words"].tolist() == [0]
        told = processor.tokenizer.decode(batch["definition_ids"][0], skip_special_tokens=True)
        assert told not in [contexts["river"][row].removeprefix("river : ") for row in rows if row < 3]
        seen.add(told)
        assert (batch["meaning_ids"] == processor.tokenizer.mask_token_id).sum() == 1
    assert seen == set(definitions["river"])
    assert meanings.draw(words, np.array([1, 2, 3]), np.array([2, 1]), pieces) == {}


def test_the_meaning_loss_is_the_cross_entropy_through_the_encoder(tmp_path):
    processor, encoder = prepare_stage(tmp_path, "pieces", num_words=2)["processor"], tiny_encoder()
    tokenizer = processor.tokenizer
    vectors = torch.randn(3, encoder.config.hidden_size, requires_grad=True)
    definitions = tokenizer(["a long water", "a dog", "the old king and queen"], padding=True, return_tensors="pt")
    texts = tokenizer(["[MASK]", "ku / [MASK]", "[MASK]"], padding=True, return_tensors="pt")
    inputs = [texts["input_ids"], texts["attention_mask"], definitions["input_ids"], definitions["attention_mask"]]
    loss = MeaningLoss(encoder, tokenizer.mask_token_id)(vectors, *inputs)
    table, embedded = encoder.get_input_embeddings().weight, []
    for number, text in enumerate(["[MASK]", "ku / [MASK]", "[MASK]"]):
        (ids,) = tokenizer(text, return_tensors="pt")["input_ids"]
        rows = torch.stack([vectors[number] if token == tokenizer.mask_token_id else table[token] for token in ids])
        embedded.append(encoder(inputs_embeds=rows[None]).last_hidden_state[0].mean(dim=0))
    told = [
        encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(dim=0)
        for text in ("a long water", "a dog", "the old king and queen")
    ]
    cosines = torch.stack([torch.stack([torch.cosine_similarity(a, b, dim=0) for b in told]) for a in embedded])
    expected = -torch.log_softmax(cosines / 0.05, dim=1).diagonal().mean()
    torch.testing.assert_close(loss, expected, atol=1e-4, rtol=1e-4)
    loss.backward()
    assert vectors.grad.abs().sum() > 0
