import argparse
import copy
import json
import signal
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from support.tiny_models import ORIGINAL
from transformers import AutoConfig, AutoModel

from bertram_hf import WordError, WordVectors
from bertram_hf.approximation.approximate import Stage, approximate_vectors, plan_stages, start_vectors
from bertram_hf.approximation.objective import OneTokenObjective, Templates, TemplateSampler
from bertram_hf.approximation.optimizers import minimize_adam, minimize_lbfgs
from bertram_hf.cli import approximate

WORDS = ["kumquat", "tree", "greenhousing", "mountains", "gardener", "river", "unwolfish", "walking", "goldsmith"]
EXPECTED = json.loads((ORIGINAL / "ota" / "ota.json").read_text(encoding="utf-8"))


def approximate_by_reference(encoder, tokenizer, word, templates, learning_rate):
    """The released loop for one word, step by step: each run in full, all layers, one position after the other."""
    table = encoder.get_input_embeddings().weight.detach()
    pieces = tokenizer(f" {word}", add_special_tokens=False)["input_ids"]
    vector = table[pieces].mean(dim=0) if len(pieces) > 1 else torch.zeros_like(table[0])
    vector = vector.clone().requires_grad_()
    optimizer = torch.optim.Adam([vector], lr=learning_rate)
    for left, right in templates:
        gold = encoder(inputs_embeds=table[[*left, *pieces, *right]][None], output_hidden_states=True).hidden_states
        rows = [*table[left], vector, *table[right]]
        states = encoder(inputs_embeds=torch.stack(rows)[None], output_hidden_states=True).hidden_states
        loss = torch.zeros(())
        for expected, actual in list(zip(gold, states, strict=True))[:-1]:
            difference = [actual[0, i] - expected[0, i] for i in range(len(left))]
            loss = loss + torch.stack(difference).square().mean()
            difference = [actual[0, -i] - expected[0, -i] for i in range(1, len(right) + 1)]
            loss = loss + torch.stack(difference).square().mean()
        optimizer.zero_grad()
        (vector.grad,) = torch.autograd.grad(loss, vector)
        optimizer.step()
    return vector.detach()


@pytest.fixture
def parts(make_encoder, bert_tokenizer):
    return make_encoder("bert"), bert_tokenizer


@pytest.mark.parametrize("name", ["tiny-bert", "tiny-roberta"])
def test_vectors_of_the_released_code(name, bert_tokenizer, roberta_tokenizer):
    expected = EXPECTED[name]
    tokenizer = bert_tokenizer if name == "tiny-bert" else roberta_tokenizer
    config = AutoConfig.for_model(
        name.removeprefix("tiny-"), **json.loads((ORIGINAL / name / "config.json").read_text())
    )
    encoder = AutoModel.from_config(config).eval()
    encoder.load_state_dict(load_file(ORIGINAL / "ota" / f"{name}.safetensors"), strict=False)
    objective = OneTokenObjective(encoder)
    full_stop = tokenizer.convert_tokens_to_ids(".")
    for num_pieces in {len(pieces) for pieces in expected["pieces"].values()}:
        words = [word for word, pieces in expected["pieces"].items() if len(pieces) == num_pieces]
        piece_ids = torch.tensor([tokenizer.convert_tokens_to_ids(expected["pieces"][word]) for word in words])
        assert tokenizer([f" {word}" for word in words], add_special_tokens=False)["input_ids"] == piece_ids.tolist()
        templates = Templates(
            torch.tensor([[tokenizer.cls_token_id]] * len(words)),
            torch.tensor([[full_stop, tokenizer.sep_token_id]] * len(words)),
        )
        targets = objective.read_pieces(piece_ids, templates)

        def evaluate(vectors, rows, number, templates=templates, targets=targets):
            return objective.evaluate(vectors, templates, targets)

        start = start_vectors(objective, piece_ids)
        minimized = minimize_adam(evaluate, start, learning_rate=expected["learning_rate"], iterations=200)
        vectors = torch.tensor([expected["vectors"][word] for word in words])
        torch.testing.assert_close(minimized.rows, vectors, atol=2e-5, rtol=0)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "albert", "distilbert", "deberta-v2", "modernbert"])
def test_fast_equals_the_released_loop(make_encoder, bert_tokenizer, roberta_tokenizer, family):
    encoder, tokenizer = make_encoder(family), roberta_tokenizer if family == "roberta" else bert_tokenizer
    vectors = approximate_vectors(
        encoder, tokenizer, WORDS[:4], optimizer="adam", iterations=4, learning_rate=0.01, seed=3
    )
    sampler = TemplateSampler(tokenizer, num_embeddings=641, seed=3)
    for word in WORDS[:4]:
        drawn = [sampler.draw([word], number) for number in range(4)]
        templates = [(template.left_ids[0].tolist(), template.right_ids[0].tolist()) for template in drawn]
        expected = approximate_by_reference(encoder, tokenizer, word, templates, 0.01)
        torch.testing.assert_close(vectors[word], expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("family", ["bert", "electra", "mpnet", "distilbert", "modernbert"])
def test_last_layers_may_be_left_out(make_encoder, bert_tokenizer, family):
    encoder = make_encoder(family).eval()
    objective = OneTokenObjective(encoder)
    words = ["mountains", "gardener", "walking"]
    piece_ids = torch.tensor(bert_tokenizer(words, add_special_tokens=False)["input_ids"])
    templates = TemplateSampler(bert_tokenizer, num_embeddings=641, seed=0).draw(words, 0)
    targets = objective.read_pieces(piece_ids, templates)
    vectors = start_vectors(objective, piece_ids)
    left, right = (encoder.get_input_embeddings()(ids) for ids in (templates.left_ids, templates.right_ids))
    inputs_embeds = torch.cat([left, vectors[:, None], right], dim=1)
    all_states = encoder(inputs_embeds=inputs_embeds, output_hidden_states=True).hidden_states
    expected = torch.zeros(len(words))
    for num_layers, (states, target) in enumerate(zip(all_states, targets, strict=False)):
        for here, there in ((states[:, :2], target[:, :2]), (states[:, 3:], target[:, 2:])):
            expected = expected + (here - there).square().mean(dim=(1, 2)).detach()
        losses, _ = objective.evaluate(vectors, templates, targets[: num_layers + 1])
        torch.testing.assert_close(losses, expected)


def test_half_precision_changes_little(parts):
    single = approximate_vectors(*parts, WORDS, dtype="float32").embeddings
    half = approximate_vectors(*parts, WORDS, dtype="bfloat16").embeddings
    assert half.dtype == torch.float32
    assert torch.cosine_similarity(single, half).min() > 0.95
    assert not torch.equal(single, half)


@pytest.mark.parametrize(("optimizer", "own"), [("adam", torch.float32), ("lbfgs", torch.float16)])
def test_own_precision_is_kept(parts, optimizer, own):
    encoder, tokenizer = parts
    settings = {"optimizer": optimizer, "iterations": 3}
    kept = approximate_vectors(encoder.to(own), tokenizer, WORDS[:3], dtype="float32", **settings)
    vectors = approximate_vectors(encoder, tokenizer, WORDS[:3], **settings)
    assert torch.equal(vectors.embeddings, kept.embeddings)
    assert vectors.embeddings.isfinite().all()


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs"])
def test_batched_equals_one_by_one(parts, optimizer):
    settings = {"optimizer": optimizer, "iterations": 8, "num_templates": 2, "dtype": "float32"}
    together = approximate_vectors(*parts, WORDS, **settings)
    assert together.words == WORDS
    for word in WORDS:
        alone = approximate_vectors(*parts, [word], **settings)
        torch.testing.assert_close(together[word], alone[word], atol=1e-4, rtol=0)
    small = approximate_vectors(*parts, reversed(WORDS), batch_size=2, **settings)
    torch.testing.assert_close(small.select(WORDS).embeddings, together.embeddings, atol=1e-4, rtol=0)


def test_seed_decides(parts):
    first, again = (approximate_vectors(*parts, WORDS[:2], iterations=2) for _ in range(2))
    assert torch.equal(first.embeddings, again.embeddings)
    other = approximate_vectors(*parts, WORDS[:2], iterations=2, seed=1)
    assert not torch.allclose(first.embeddings, other.embeddings, atol=1e-4)


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs"])
def test_loss_falls_on_templates_not_seen(parts, optimizer):
    encoder, tokenizer = parts
    words = ["mountains", "gardener", "walking"]
    vectors = approximate_vectors(*parts, words, optimizer=optimizer, iterations=100 if optimizer == "adam" else 16)
    objective = OneTokenObjective(encoder)
    piece_ids = torch.tensor(tokenizer([f" {word}" for word in words], add_special_tokens=False)["input_ids"])
    templates = TemplateSampler(tokenizer, num_embeddings=641, seed=99).draw(words, 0)
    targets = objective.read_pieces(piece_ids, templates)
    before, _ = objective.evaluate(start_vectors(objective, piece_ids), templates, targets)
    after, _ = objective.evaluate(vectors.embeddings, templates, targets)
    assert (after < before).all()


def test_known_embedding_is_found_again(parts):
    encoder, tokenizer = parts
    words = ["tree", "river"]
    vectors = approximate_vectors(*parts, words, iterations=120, num_templates=2)
    table = encoder.get_input_embeddings().weight
    truth = table[tokenizer.convert_tokens_to_ids(words)]
    assert torch.cosine_similarity(vectors.embeddings, truth).min() > 0.9


def test_encoder_is_left_as_it_was(parts):
    encoder, tokenizer = parts
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    encoder.train()
    first = approximate_vectors(encoder, tokenizer, WORDS[:2], iterations=2)
    assert encoder.training
    assert all(parameter.grad is None and parameter.requires_grad for parameter in encoder.parameters())
    assert all(torch.equal(before[name], tensor) for name, tensor in encoder.state_dict().items())
    assert torch.equal(
        first.embeddings, approximate_vectors(encoder.eval(), tokenizer, WORDS[:2], iterations=2).embeddings
    )


def test_saved_equals_returned(parts, tmp_path):
    vectors = approximate_vectors(*parts, [*WORDS, WORDS[0]], output=tmp_path, iterations=2)
    loaded = WordVectors.from_pretrained(tmp_path)
    assert loaded.words == vectors.words == WORDS
    assert torch.equal(loaded.embeddings, vectors.embeddings)
    assert loaded.embedding_fingerprint == vectors.embedding_fingerprint is not None


KILLED = """
import os, signal, sys
from transformers import AutoModel, AutoTokenizer
from bertram_hf.approximation.resumable import FinishedBatches
from bertram_hf.approximation.approximate import approximate_vectors

write, written = FinishedBatches.write, []

def write_and_die(self, *batch):
    write(self, *batch)
    written.append(batch)
    if len(written) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

FinishedBatches.write = write_and_die
encoder, output, *words = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(encoder)
approximate_vectors(AutoModel.from_pretrained(encoder), tokenizer, words, output=output, iterations=4, batch_size=2)
"""


def test_killed_run_goes_on_with_the_same_result(parts, tmp_path, monkeypatch):
    for part in parts:
        part.save_pretrained(tmp_path / "encoder")
    command = [sys.executable, "-c", KILLED, str(tmp_path / "encoder"), str(tmp_path / "killed"), *WORDS]
    assert subprocess.run(command, capture_output=True).returncode == -signal.SIGKILL
    assert len(list((tmp_path / "killed" / "batches").glob("*.safetensors"))) == 3
    (tmp_path / "killed" / "batches" / "half.tmp").write_bytes(b"half a fi")
    settings = {"iterations": 4, "batch_size": 2}
    expected = approximate_vectors(*parts, WORDS, output=tmp_path / "whole", **settings)
    num_finished = sum(len(load_file(path)["embeddings"]) for path in (tmp_path / "killed").rglob("*.safetensors"))
    evaluated = []

    def start_and_count(objective, piece_ids):
        evaluated.append(len(piece_ids))
        return start_vectors(objective, piece_ids)

    monkeypatch.setattr("bertram_hf.approximation.approximate.start_vectors", start_and_count)
    resumed = approximate_vectors(*parts, WORDS, output=tmp_path / "killed", **settings)
    assert sum(evaluated) == len(WORDS) - num_finished
    assert torch.equal(resumed.embeddings, expected.embeddings)
    evaluated.clear()
    approximate_vectors(*parts, [*WORDS, "forests"], output=tmp_path / "killed", **settings)
    assert evaluated == [1]  # only the new word


def test_other_settings_begin_anew_and_say_so(parts, tmp_path, caplog):
    approximate_vectors(*parts, WORDS[:3], output=tmp_path, iterations=2)
    second = approximate_vectors(*parts, WORDS[:3], output=tmp_path, iterations=3, seed=1)
    assert "made with other settings (iterations, seed); all words begin anew" in caplog.text
    assert torch.equal(second.embeddings, approximate_vectors(*parts, WORDS[:3], iterations=3, seed=1).embeddings)


def test_vectors_of_others_are_not_overwritten(parts, tmp_path, make_encoder):
    approximate_vectors(*parts, WORDS[:2], output=tmp_path / "ours", iterations=1)
    with pytest.raises(ValueError, match=r"ones of this encoder \(embeddings 641x16-.*another encoder \(641x32-"):
        approximate_vectors(make_encoder("electra"), parts[1], WORDS, output=tmp_path / "ours", iterations=1)
    deeper = copy.deepcopy(parts[0])  # with the same embeddings
    with torch.no_grad():
        deeper.encoder.layer[0].output.dense.weight.mul_(2)
    with pytest.raises(ValueError, match="those of another encoder"):
        approximate_vectors(deeper, parts[1], WORDS[:2], output=tmp_path / "ours", iterations=1)
    WordVectors.from_dict({"kumquat": [1.0] * 32}).save_pretrained(tmp_path / "induced")
    with pytest.raises(ValueError, match="holds vectors that this run would overwrite"):
        approximate_vectors(*parts, WORDS, output=tmp_path / "induced", iterations=1)


def test_words_that_cannot_have_a_vector(parts):
    words = ["kumquat", " ", "字", "a" * 100]
    with pytest.raises(WordError, match="3 of 4 words cannot have a vector") as caught:
        approximate_vectors(*parts, words)
    assert "' ' is empty" in str(caught.value)
    assert "'字' is only [UNK] to the tokenizer" in str(caught.value)
    vectors = approximate_vectors(*parts, words, errors="skip", iterations=1)
    assert vectors.words == ["kumquat"]
    assert list(vectors.failed) == words[1:]
    nothing = approximate_vectors(*parts, [" "], errors="skip")
    assert nothing.embeddings.shape == (0, 32)


def test_bad_arguments(parts, make_encoder):
    _, tokenizer = parts
    with pytest.raises(TypeError, match="Expected a list of words; got the text 'kumquat'"):
        approximate_vectors(*parts, "kumquat")
    with pytest.raises(TypeError, match="Expected words as strings; got 3"):
        approximate_vectors(*parts, [3])
    with pytest.raises(ValueError, match="iterations must be positive; got 0"):
        approximate_vectors(*parts, WORDS, iterations=0)
    with pytest.raises(ValueError, match="optimizer must be one of lbfgs, adam; got 'sgd'"):
        approximate_vectors(*parts, WORDS, optimizer="sgd")
    with pytest.raises(ValueError, match="The tokenizer has 323 tokens, the encoder 300 embeddings"):
        approximate_vectors(make_encoder("bert", vocab_size=300), tokenizer, WORDS)
    with pytest.raises(ValueError, match=r"Expected an encoder of two or more layers.*BertModel has 1"):
        approximate_vectors(make_encoder("bert", num_hidden_layers=1), tokenizer, WORDS)


def test_templates_are_made_of_words(bert_tokenizer, roberta_tokenizer):
    for tokenizer, is_word in (
        (bert_tokenizer, lambda token: not token.startswith(("[", "#"))),
        (roberta_tokenizer, lambda token: token.startswith("Ġ") and len(token) > 1),
    ):
        sampler = TemplateSampler(tokenizer, num_embeddings=641, seed=0)
        tokens = tokenizer.convert_ids_to_tokens(sampler.candidate_ids)
        assert all(map(is_word, tokens))
        assert not set(sampler.candidate_ids) & set(tokenizer.all_special_ids)
        templates = sampler.draw(WORDS, 5)
        assert (templates.left_ids[:, 0] == tokenizer.cls_token_id).all()
        assert tokenizer.convert_ids_to_tokens(templates.right_ids[0, 1:]) == [".", tokenizer.sep_token]
        assert torch.equal(sampler.draw(WORDS[2:3], 5).left_ids, templates.left_ids[2:3])


def test_stages_use_all_iterations():
    assert plan_stages(24, 8, 11) == [Stage(12, 1, 6), Stage(6, 2, 9), Stage(3, 4, 11), Stage(3, 8, 11)]
    assert plan_stages(10, 6, 1) == [Stage(5, 1, 1), Stage(2, 2, 1), Stage(1, 4, 1), Stage(2, 6, 1)]
    assert plan_stages(3, 1, 5) == [Stage(3, 1, 5)]
    assert plan_stages(1, 8, 5) == [Stage(1, 8, 5)]


def quadratics():
    """Four bowls, each with a minimum of its own."""
    generator = torch.Generator().manual_seed(0)
    roots = torch.randn(4, 6, 6, generator=generator)
    matrices = roots @ roots.mT + 0.1 * torch.eye(6)
    minima = torch.randn(4, 6, generator=generator)

    def evaluate(rows, numbers, number):
        differences = rows - minima[numbers]
        gradients = torch.einsum("rij,rj->ri", matrices[numbers], differences)
        return 1 + (differences * gradients).sum(dim=1) / 2, gradients

    return evaluate, minima


def test_lbfgs_finds_the_minimum_of_each_row():
    evaluate, minima = quadratics()
    minimized = minimize_lbfgs(evaluate, torch.zeros(4, 6), max_step=1.0, stages=[20, 40])
    torch.testing.assert_close(minimized.rows, minima, atol=1e-2, rtol=0)
    assert (minimized.num_iterations == 60).all()
    early = minimize_lbfgs(evaluate, torch.zeros(4, 6), max_step=1.0, stages=[200], tolerance=1e-3)
    assert (early.num_iterations < 60).all()
    assert (early.losses < 1.05).all()


def test_adam_equals_torch():
    evaluate, minima = quadratics()
    rows = torch.zeros(4, 6, requires_grad=True)
    optimizer = torch.optim.Adam([rows], lr=0.01)
    for iteration in range(250):
        rows.grad = evaluate(rows.detach(), torch.arange(4), iteration)[1]
        optimizer.step()
    minimized = minimize_adam(evaluate, torch.zeros(4, 6), learning_rate=0.01, iterations=250)
    torch.testing.assert_close(minimized.rows, rows.detach(), atol=1e-5, rtol=0)
    assert (minimized.num_iterations == 250).all()
    early = minimize_adam(evaluate, minima, learning_rate=0.01, iterations=1000, tolerance=1e-3)
    assert (early.num_iterations == 200).all()


def test_command_writes_vectors(parts, tmp_path, capsys):
    for part in parts:
        part.save_pretrained(tmp_path / "encoder")
    (tmp_path / "words.txt").write_text("kumquat\n\ngardener\n字\n", encoding="utf-8")
    parser = argparse.ArgumentParser()
    approximate.add_command(parser.add_subparsers())
    command = ["approximate", *(str(tmp_path / name) for name in ("encoder", "words.txt", "out")), "--iterations", "2"]
    arguments = parser.parse_args([*command, "--skip-errors", "--json"])
    arguments.run(arguments)
    summary = json.loads(capsys.readouterr().out)
    assert (summary["words"], list(summary["failed"])) == (2, ["字"])
    assert WordVectors.from_pretrained(tmp_path / "out").words == ["kumquat", "gardener"]
    arguments = parser.parse_args(command)
    with pytest.raises(WordError, match="1 of 3 words cannot have a vector"):
        arguments.run(arguments)
