"""Training of mode pieces."""

import json
import shutil

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
from bertram_hf.induction import add_definitions
from bertram_hf.training import Recipe, train_recipe
from bertram_hf.training.batches import WordBatches
from bertram_hf.training.contexts import EncodedContexts
from bertram_hf.training.losses import EncoderLoss
from bertram_hf.training.pieces import PieceCuts, Probes, without_pieces
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


def test_how_much_pieces_count_is_set_after_training(tmp_path, encoder_folder):
    misspellings = {"num_words": 30, "max_contexts": 2}
    folder = train(tmp_path, encoder_folder, look_alikes=misspellings)
    stage = (tmp_path / "out" / "stages" / "bertram-pieces" / "model.safetensors").stat().st_mtime_ns
    fields = ("piece_strength", "agreement_threshold", "hidden_token_id")
    model = AutoModel.from_pretrained(folder, encoder=str(encoder_folder))
    unknown = AutoProcessor.from_pretrained(folder).tokenizer.unk_token_id
    assert [getattr(model.config, name) for name in fields] == [8, 0.1, unknown]
    shutil.rmtree(folder)
    train(
        tmp_path,
        encoder_folder,
        pieces=STAGE | {"piece_strength": None, "agreement_threshold": None},
        look_alikes=misspellings,
    )
    assert (tmp_path / "out" / "stages" / "bertram-pieces" / "model.safetensors").stat().st_mtime_ns == stage
    config = AutoModel.from_pretrained(folder, encoder=str(encoder_folder)).config
    assert [getattr(config, name) for name in fields] == [None, None, None]


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


@pytest.mark.parametrize("name", ["hard_share", "random_share", "hidden_share", "bare_share"])
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


def test_definitions_and_texts_are_trained_for(tmp_path, encoder_folder, definitions_file, monkeypatch):
    kinds = []
    compute = EncoderLoss.__call__
    monkeypatch.setattr(EncoderLoss, "__call__", lambda *inputs: kinds.append(inputs[-1]) or compute(*inputs))
    fields = {"definitions": definitions_file, "pieces": STAGE | {"meaning": 0.5, "restoring": 2.0}}
    path = write_recipe(tmp_path / "with", encoder_folder, systems=["bertram-pieces"], **fields)
    run = TrainingRun(Recipe.load(path), show_progress=False)
    assert run.data.definitions.keys() == {"river", "kumquat"}  # of no held-out word, and none that tells its word
    assert "kumquat" in run.data.untargeted
    assert not {*run.data.untargeted} & {*run.data.train, *run.data.development, *HELDOUT}
    run.train()
    assert torch.cat(kinds).any()
    assert not torch.cat(kinds).all()
    trained = induce(tmp_path / "with" / "out" / "bertram-pieces", SEVERAL_PIECES, encoder=str(encoder_folder))
    folder = train(tmp_path / "without", encoder_folder, pieces=STAGE | {"meaning": 0.0, "restoring": 0.0})
    without = induce(folder, SEVERAL_PIECES, encoder=str(encoder_folder))
    assert torch.isfinite(trained).all()
    assert not torch.equal(trained, without)


def test_a_spelling_is_left_out_and_its_family_is_not(tmp_path, encoder_folder):
    excluded = tmp_path / "rare.txt"
    excluded.write_text("Kumquat\nriver\n")
    found = []
    for heldout in ({}, {"excluded_spellings": [str(excluded)]}):
        path = write_recipe(tmp_path, encoder_folder, systems=["bertram-pieces"], heldout=heldout)
        found.append(TrainingRun(Recipe.load(path), show_progress=False).data)
    assert set(found[0].untargeted) - set(found[1].untargeted) == {"kumquat"}
    assert found[0].train == found[1].train  # words with a target are left out by family only


@pytest.fixture
def probes(tmp_path):
    """Probes of a word with a token and two definitions, and of one with neither."""
    processor = prepare_stage(tmp_path, "pieces", num_words=2)["processor"]
    definitions = {"river": ["a long water", "a cold water"], "quokka": []}
    contexts = add_definitions({word: [f"the old {word} near the {word}"] for word in definitions}, definitions)
    encoded = EncodedContexts.build(without_pieces(processor), contexts.items(), tmp_path / "tokens-2")
    cuts = PieceCuts(processor, list(definitions), hard_share=0.5)
    return Probes(cuts, encoded, list(definitions.values()))


def decode(probes, ids):
    return probes.processor.tokenizer.decode(ids, skip_special_tokens=False).replace("[PAD]", "").strip()


def test_a_definition_is_never_both_context_and_answer(probes):
    seen = set()
    for rows, numbers in (([0, 1, 3], [2, 1]), ([2, 3], [1, 1]), ([3], [0, 1]), ([0], [1, 0])):
        batch = probes.draw(np.array([0, 1]), np.array(rows), np.array(numbers))
        told = [decode(probes, ids) for ids in batch["answer_ids"][batch["is_definition"]]]
        read = {1: "[CLS] a long water [SEP]", 2: "[CLS] a cold water [SEP]"}
        assert len(told) == 1
        assert told[0] not in [read[row] for row in rows if row in read]
        assert batch["probe_words"][batch["is_definition"]].tolist() == [0]
        seen.update(told)
    assert len(seen) == 2
    everything = probes.draw(np.array([0, 1]), np.array([1, 2, 3]), np.array([2, 1]))
    assert not everything or not everything["is_definition"].any()


@pytest.mark.parametrize(("word", "spelling"), [(0, "river"), (1, "quokka")])
def test_a_text_is_to_be_understood_as_it_is(probes, word, spelling):
    tokenizer = probes.processor.tokenizer
    own, slash = probes.processor.encode_pieces(spelling), tokenizer.convert_tokens_to_ids("/")
    forms = set()
    for start in range(40):  # the draws depend on the rows
        batch = probes.draw(np.array([word]), np.array([0] + [1] * start), np.array([1 + start]))
        for row in (~batch["is_definition"]).nonzero()[:, 0].tolist() if batch else ():
            ids, answer = batch["probe_ids"][row].tolist(), batch["answer_ids"][row]
            place = ids.index(tokenizer.mask_token_id)
            assert ids.count(tokenizer.mask_token_id) == 1
            is_beside = ids[place - 1] == slash
            start_of_word = place - 1 - len(probes.cuts.hard_cut(word)) if is_beside else place
            kept = [i for i, pooled in zip(ids, batch["probe_pooled"][row].tolist(), strict=True) if pooled]
            restored = [*ids[:start_of_word], *own, *ids[place + 1 :]]
            assert [i for i in restored if i != tokenizer.pad_token_id] == [
                i for i in answer.tolist() if i != tokenizer.pad_token_id
            ]
            assert kept.count(slash) == 0
            assert tokenizer.mask_token_id in kept
            forms.add(is_beside)
    assert forms == {True, False}


def test_the_loss_through_the_encoder_is_what_it_says(probes):
    encoder, tokenizer = tiny_encoder(), probes.processor.tokenizer
    vectors = torch.randn(4, encoder.config.hidden_size, requires_grad=True)
    answers = ["a long water", "a dog", "the old king and queen", "the river near"]
    texts, is_beside = ["[MASK]", "ku / [MASK]", "[MASK]", "the ku / [MASK] near"], [False, True, False, True]
    told, asked = (tokenizer(each, padding=True, return_tensors="pt") for each in (answers, texts))
    pooled = asked["attention_mask"].clone()
    expected_texts = []
    table = encoder.get_input_embeddings().weight
    for row, text in enumerate(texts):
        (ids,) = tokenizer(text, return_tensors="pt")["input_ids"]
        place = ids.tolist().index(tokenizer.mask_token_id)
        rows = torch.stack([vectors[row] if i == place else table[token] for i, token in enumerate(ids)])
        states = encoder(inputs_embeds=rows[None]).last_hidden_state[0]
        kept = [i for i in range(len(ids)) if not (is_beside[row] and i == place - 1)]
        pooled[row, [i for i in range(len(ids)) if i not in kept]] = 0
        expected_texts.append(states[kept].mean(dim=0))
    expected_answers = [
        encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(dim=0) for text in answers
    ]
    cosines = torch.stack(
        [torch.stack([torch.cosine_similarity(a, b, dim=0) for b in expected_answers]) for a in expected_texts]
    )
    meaning = -torch.log_softmax(cosines[:3, :3] / 0.05, dim=1).diagonal().mean()
    loss = EncoderLoss(encoder, tokenizer.mask_token_id, meaning=0.5, restoring=2.0)(
        vectors,
        asked["input_ids"],
        asked["attention_mask"],
        pooled,
        told["input_ids"],
        told["attention_mask"],
        torch.tensor([True, True, True, False]),
    )
    torch.testing.assert_close(loss, 0.5 * meaning + 2.0 * (1 - cosines[3, 3]), atol=1e-4, rtol=1e-4)
    loss.backward()
    assert vectors.grad.abs().sum(dim=1).min() > 0


def test_random_and_hidden_cuts_are_drawn(tmp_path):
    processor = prepare_stage(tmp_path, "pieces", num_words=8)["processor"]
    cuts = PieceCuts(processor, ["river", "kumquat"], hard_share=1.0, hidden_share=0.5)
    unknown = [processor.tokenizer.unk_token_id]
    draws = [cuts.draw(np.array([0, 1]), np.array([row]), np.array([1, 0])) for row in range(200)]
    assert 60 < sum(first == unknown for first, _ in draws) < 140
    assert all(
        second == processor.encode_pieces("kumquat") for _, second in draws
    )  # without contexts nothing is hidden
    assert draws == [cuts.draw(np.array([0, 1]), np.array([row]), np.array([1, 0])) for row in range(200)]
    at_random = PieceCuts(processor, ["kumquat"], hard_share=1.0, random_share=1.0)
    reader = PieceReader(processor.tokenizer)
    found = {tuple(at_random.draw(np.array([0]), np.array([row]))[0]) for row in range(100)}
    assert all("".join(map(reader.read, pieces)).replace("·", "") == "kumquat" for pieces in found)
    assert cuts.key != at_random.key
