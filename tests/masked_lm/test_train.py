import argparse
import json
import re
import shutil

import pytest
import torch
from datasets import Dataset
from support.tiny_models import FAMILIES
from support.tiny_training import make_sentences, write_encoder
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer, TrainerCallback
from transformers.trainer import DEFAULT_CALLBACKS

from bertram_hf import embedding_fingerprint
from bertram_hf.cli import masked_lm as command
from bertram_hf.masked_lm.batches import MaskedBatches, mask_heldout
from bertram_hf.masked_lm.head import MaskedTokenModel, add_masked_lm_head, find_head
from bertram_hf.masked_lm.text import prepare_text
from bertram_hf.masked_lm.train import (
    CHECKPOINTS,
    SETTINGS_NAME,
    MaskedLMRecord,
    find_family_tokens,
    score_masked_lm,
    train_masked_lm_head,
)
from bertram_hf.utils.names import MASKED_LM_NAME

TEXTS = make_sentences(300)
SMALL = {"max_steps": 8, "batch_size": 8, "save_steps": 4, "max_length": 24, "device": "cpu", "show_progress": False}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("masked-lm") / "encoder")


@pytest.fixture(scope="module")
def trained(encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("masked-lm") / "trained"
    return folder, train_masked_lm_head(encoder, TEXTS, folder, **SMALL)


def weights(folder):
    return AutoModelForMaskedLM.from_pretrained(folder).state_dict()


# --- the head


def save_encoder(family, tokenizer, folder, **fields):
    torch.manual_seed(0)
    AutoModel.from_config(
        AutoConfig.for_model(family, **FAMILIES[family], vocab_size=len(tokenizer), **fields)
    ).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "camembert", "mpnet", "distilbert"])
def test_head_starts_as_described(family, roberta_tokenizer, tmp_path):
    folder = save_encoder(family, roberta_tokenizer, tmp_path / "encoder")
    counts = torch.arange(600)
    model = add_masked_lm_head(folder, counts).eval()
    embeddings = AutoModel.from_pretrained(folder).get_input_embeddings().weight
    assert torch.equal(model.get_input_embeddings().weight, embeddings)
    transform, _, decoder = find_head(model)
    assert decoder.weight is model.get_input_embeddings().weight
    assert torch.equal(transform.weight, torch.eye(32))
    expected = torch.cat([counts, torch.zeros(len(roberta_tokenizer) - 600)]) + 1
    torch.testing.assert_close(decoder.bias.exp(), expected / expected.sum())
    assert not model.get_input_embeddings().weight.requires_grad
    assert transform.weight.requires_grad
    ids = torch.randint(5, 600, (4, 12), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits - decoder.bias
    assert 0.5 < logits.std(dim=-1).mean() < 2


def test_heads_of_other_kinds_are_refused(bert_tokenizer, tmp_path):
    for family in ("electra", "albert"):  # their embeddings are of another size than their hidden states
        folder = save_encoder(family, bert_tokenizer, tmp_path / family)
        with pytest.raises(ValueError, match="Expected a masked-LM head as BERT and RoBERTa have it"):
            add_masked_lm_head(folder, torch.ones(9))
    folder = save_encoder("bert", bert_tokenizer, tmp_path / "untied", tie_word_embeddings=False)
    with pytest.raises(ValueError, match="Set tie_word_embeddings in its config"):
        add_masked_lm_head(folder, torch.ones(9))


def test_an_encoder_that_has_a_head_is_refused(trained):
    with pytest.raises(ValueError, match=r"Expected an encoder without a masked-LM head; .*trained has one"):
        add_masked_lm_head(trained[0], torch.ones(9))


# --- the text


def prepare(texts, tokenizer, **settings):
    return prepare_text(texts, tokenizer, **{"max_length": 10, "num_heldout": 1} | settings)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_long_texts_are_cut_and_nothing_is_lost(family, bert_tokenizer, roberta_tokenizer):
    tokenizer = bert_tokenizer if family == "bert" else roberta_tokenizer
    texts = [*make_sentences(19), "a", "the small lemon " * 20]
    text = prepare(texts, tokenizer, num_heldout=2)
    blocks = [*text.train["input_ids"], *text.heldout["input_ids"]]
    assert all(ids[0] == tokenizer.cls_token_id and ids[-1] == tokenizer.sep_token_id for ids in blocks)
    assert all(6 <= len(ids) <= 10 for ids in blocks)
    num_tokens = sum(map(len, tokenizer(texts, add_special_tokens=False)["input_ids"]))
    num_kept = sum(len(ids) - 2 for ids in blocks)
    assert 0 <= num_tokens - num_kept <= 3 * text.numbers["num_short_blocks_left_out"]
    assert (text.numbers["num_texts"], text.numbers["num_heldout_texts"]) == (21, 2)
    assert text.numbers["num_tokens"] == text.token_counts.sum() == sum(len(ids) - 2 for ids in text.train["input_ids"])
    assert text.train[0]["special_tokens_mask"] == [1] + [0] * (len(text.train[0]["input_ids"]) - 2) + [1]
    assert text.train["length"] == [len(ids) for ids in text.train["input_ids"]]


def test_special_tokens_in_a_text_are_text(bert_tokenizer):
    wild = ["[MASK] [SEP] the [PAD] lemon\x00 [CLS] \ud800", *make_sentences(10), "", "x" * 5000]
    text = prepare(wild, bert_tokenizer)
    for part in (text.train, text.heldout):
        for ids in part["input_ids"]:
            assert not set(ids[1:-1]) & {bert_tokenizer.mask_token_id, bert_tokenizer.sep_token_id, 0}
    assert text.token_counts[bert_tokenizer.all_special_ids].sum() == 0


def test_a_dataset_gives_the_same_as_a_list(bert_tokenizer):
    first = prepare(TEXTS, bert_tokenizer)
    again = prepare(Dataset.from_dict({"sentence": TEXTS, "x": TEXTS}), bert_tokenizer, text_column="sentence")
    assert first.fingerprint == again.fingerprint
    assert first.numbers == again.numbers
    assert prepare(TEXTS, bert_tokenizer, seed=1).fingerprint != first.fingerprint


def test_bad_texts_are_told(bert_tokenizer):
    with pytest.raises(ValueError, match="Expected at least 10 texts, of which one is held out; got 3"):
        prepare(["a"] * 3, bert_tokenizer)
    with pytest.raises(ValueError, match="Expected texts of 4 tokens and more"):
        prepare(["a"] * 30, bert_tokenizer)
    with pytest.raises(TypeError, match=r"got NoneType \(None\) in row 1"):
        prepare(["a", None], bert_tokenizer)
    with pytest.raises(TypeError, match="got one string"):
        prepare("a text", bert_tokenizer)
    with pytest.raises(ValueError, match="Expected a column 'text'; the dataset has"):
        prepare(Dataset.from_dict({"x": ["a"]}), bert_tokenizer)
    with pytest.raises(ValueError, match="max_length must be at least 6; got 5"):
        prepare(TEXTS, bert_tokenizer, max_length=5)


# --- the batches


def make_batches(text, tokenizer, **settings):
    defaults = {"batch_size": 8, "num_batches": 80, "mask_probability": 0.5, "seed": 3}
    return MaskedBatches(text.train, tokenizer, **defaults | settings)


def test_an_epoch_has_each_block_once_with_little_padding(bert_tokenizer):
    text = prepare([*TEXTS, "the small lemon"] * 2, bert_tokenizer, max_length=24)
    batches = make_batches(text, bert_tokenizer)
    num_steps = -(-len(text.train) // 8)

    def blocks(first, last):
        restored = []
        for batch in (batches[step] for step in range(first, last)):
            ids = torch.where(batch["labels"] == -100, batch["input_ids"], batch["labels"])
            restored += [
                tuple(row[mask.bool()].tolist()) for row, mask in zip(ids, batch["attention_mask"], strict=True)
            ]
        return restored

    expected = sorted(map(tuple, text.train["input_ids"]))
    assert sorted(blocks(0, num_steps)) == expected
    assert blocks(0, 2) != blocks(num_steps, num_steps + 2)
    shares = torch.stack([batches[step]["attention_mask"].float().mean() for step in range(num_steps)])
    assert shares.mean() > 0.95


def test_a_batch_depends_on_seed_and_step_alone(bert_tokenizer):
    text = prepare(TEXTS, bert_tokenizer)
    first, second = make_batches(text, bert_tokenizer), make_batches(text, bert_tokenizer)
    first[0], torch.rand(3)
    for name, tensor in first[70].items():
        assert torch.equal(tensor, second[70][name])
    other = make_batches(text, bert_tokenizer, seed=4)
    assert any(first[step]["input_ids"].tolist() != other[step]["input_ids"].tolist() for step in range(3))
    assert (first[0]["labels"][:, 0] == -100).all()  # [CLS]
    with pytest.raises(IndexError, match="There are 80 batches; got 80"):
        first[80]


def test_words_that_are_held_out_are_read_but_never_masked(bert_tokenizer):
    tokens = find_family_tokens(bert_tokenizer, ["rivers"])
    river = bert_tokenizer.convert_tokens_to_ids("river")
    assert river in tokens
    text = prepare(TEXTS, bert_tokenizer, never_masked=tokens)
    everything = list(make_batches(text, bert_tokenizer)) + mask_heldout(
        text.heldout, bert_tokenizer, batch_size=8, mask_probability=0.5
    )
    labels = torch.cat([batch["labels"].flatten() for batch in everything])
    assert not torch.isin(labels, torch.tensor(sorted(tokens))).any()
    assert any((batch["input_ids"] == river).any() for batch in everything)
    assert find_family_tokens(bert_tokenizer, []) == set()


def test_held_out_words_at_the_beginning_of_a_text_are_held_out_too(roberta_tokenizer):
    word = next(token for token in roberta_tokenizer.get_vocab() if re.fullmatch("[a-z]{3,}", token))
    tokens = roberta_tokenizer.convert_ids_to_tokens(sorted(find_family_tokens(roberta_tokenizer, [word])))
    assert word in tokens


# --- training


def test_training_learns_and_leaves_the_embeddings_alone(encoder, trained):
    folder, record = trained
    assert record.after.perplexity < record.before.perplexity
    assert record.steps == 8
    tokenizer = AutoTokenizer.from_pretrained(folder)
    embeddings = AutoModel.from_pretrained(encoder).get_input_embeddings().weight
    model = AutoModelForMaskedLM.from_pretrained(folder)
    assert torch.equal(model.get_input_embeddings().weight, embeddings)  # to the bit
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert record.embedding_fingerprint == embedding_fingerprint(embeddings)
    layer = "encoder.layer.0.output.dense.weight"
    assert not torch.equal(model.bert.state_dict()[layer], AutoModel.from_pretrained(encoder).state_dict()[layer])
    # The reloaded model is the trained one: it has the score that was taken before it was saved.
    text = prepare_text(TEXTS, tokenizer, max_length=24, num_heldout=1000)
    batches = mask_heldout(text.heldout, tokenizer, batch_size=8, mask_probability=0.15)
    again = score_masked_lm(model, batches)
    assert again.perplexity == pytest.approx(record.after.perplexity, rel=1e-6)
    assert (again.accuracy, again.num_tokens) == (record.after.accuracy, record.after.num_tokens)
    assert not (folder / CHECKPOINTS).exists()


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])
def test_predicting_masked_tokens_alone_gives_the_loss_and_gradients_of_the_model(family, roberta_tokenizer, tmp_path):
    text = prepare_text(TEXTS, roberta_tokenizer, max_length=24, num_heldout=30)
    batch = mask_heldout(text.heldout, roberta_tokenizer, batch_size=8, mask_probability=0.3)[0]
    model = add_masked_lm_head(save_encoder(family, roberta_tokenizer, tmp_path), text.token_counts).eval()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    losses, gradients = [], []
    for version in (model, MaskedTokenModel(model).eval()):
        model.zero_grad()
        loss = version(**batch)["loss"]
        loss.backward()
        losses.append(loss.item())
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], rtol=1e-4, atol=1e-6)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    nothing = batch | {"labels": torch.full_like(batch["labels"], -100)}
    assert MaskedTokenModel(model)(**nothing)["loss"] == 0


def test_bias_alone_is_the_unigram_model(encoder):
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    text = prepare_text(TEXTS, tokenizer, max_length=24, num_heldout=30)
    batches = mask_heldout(text.heldout, tokenizer, batch_size=8, mask_probability=0.5)
    model = add_masked_lm_head(encoder, text.token_counts)
    with torch.no_grad():
        find_head(model)[1].weight.zero_()
    frequencies = (text.token_counts + 1) / (text.token_counts + 1).sum()
    labels = torch.cat([batch["labels"][batch["labels"] != -100] for batch in batches])
    expected = (-frequencies[labels].log().mean()).exp().item()
    assert score_masked_lm(model, batches).perplexity == pytest.approx(expected, rel=1e-3)


def test_one_seed_gives_one_model(encoder, trained, tmp_path):
    again = train_masked_lm_head(encoder, Dataset.from_dict({"text": TEXTS}), tmp_path / "again", **SMALL)
    assert (again.before, again.after) == (trained[1].before, trained[1].after)
    first, second = weights(trained[0]), weights(tmp_path / "again")
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = train_masked_lm_head(encoder, TEXTS, tmp_path / "other", **SMALL | {"seed": 1})
    assert other.after != again.after


def test_a_killed_run_goes_on_to_the_same_model(encoder, trained, tmp_path, monkeypatch):
    class Kill(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step == 6:
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("transformers.trainer.DEFAULT_CALLBACKS", [*DEFAULT_CALLBACKS, Kill])
        with pytest.raises(KeyboardInterrupt):
            train_masked_lm_head(encoder, TEXTS, tmp_path / "killed", **SMALL)
    assert (tmp_path / "killed" / CHECKPOINTS / "checkpoint-4").is_dir()
    assert not (tmp_path / "killed" / MASKED_LM_NAME).exists()
    (tmp_path / "killed" / CHECKPOINTS / "checkpoint-6").mkdir()  # a kill in the middle of writing
    record = train_masked_lm_head(encoder, TEXTS, tmp_path / "killed", **SMALL)
    assert record.after == trained[1].after
    first, second = weights(trained[0]), weights(tmp_path / "killed")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_finished_run_is_not_repeated_nor_overwritten(encoder, trained, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(trained[0], folder)
    (folder / "model.safetensors").unlink()
    assert train_masked_lm_head(encoder, TEXTS, folder, **SMALL) == trained[1]
    assert isinstance(trained[1], MaskedLMRecord)
    with pytest.raises(ValueError, match="these differ: learning_rate, seed, text"):
        train_masked_lm_head(encoder, TEXTS, folder, **SMALL | {"seed": 1, "learning_rate": 1e-3})
    with pytest.raises(ValueError, match="these differ: text"):
        train_masked_lm_head(encoder, TEXTS[1:], folder, **SMALL)
    (folder / MASKED_LM_NAME).unlink()
    with pytest.raises(ValueError, match="holds other files"):
        train_masked_lm_head(encoder, TEXTS, folder, **SMALL)


def test_record_has_no_paths_of_this_machine(trained):
    text = (trained[0] / MASKED_LM_NAME).read_text(encoding="utf-8")
    assert json.loads(text)["settings"]["encoder"] == "encoder"
    assert str(trained[0].parent) not in text
    assert SETTINGS_NAME not in [path.name for path in trained[0].iterdir()]


def test_roberta_is_trained_too(roberta_tokenizer, tmp_path):
    folder = save_encoder("roberta", roberta_tokenizer, tmp_path / "encoder")
    record = train_masked_lm_head(folder, TEXTS, tmp_path / "out", **SMALL | {"learning_rate": 2e-3})
    assert record.after.perplexity < record.before.perplexity
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "out")
    embeddings = AutoModel.from_pretrained(folder).get_input_embeddings().weight
    assert torch.equal(model.get_input_embeddings().weight, embeddings)


# --- command


def test_command_trains(encoder, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("\n".join([*TEXTS, "a"]), encoding="utf-8")
    parser = argparse.ArgumentParser()
    command.add_command(parser.add_subparsers())
    options = ["masked-lm", encoder, "--text", tmp_path / "text.txt", "--output", tmp_path / "out", "--max-steps", 3]
    (tmp_path / "heldout.txt").write_text("river\n", encoding="utf-8")
    options += ["--heldout-words", tmp_path / "heldout.txt"]
    options = [*map(str, options), "--batch-size", "8", "--max-length", "24", "--device", "cpu"]
    arguments = parser.parse_args([*options, "--json"])
    capsys.readouterr()
    arguments.run(arguments)
    record = json.loads(capsys.readouterr().out)
    assert record["steps"] == 3
    settings = "--max-steps 3 --batch-size 8 --learning-rate 0.0005 --max-length 24 --num-heldout 1000 --seed 0"
    settings += " --heldout-words heldout.txt"
    assert record["settings"]["heldout_words"] == ["river"]
    assert record["command"] == f"bertram masked-lm encoder --text text.txt --output out {settings}"
    assert record == json.loads((tmp_path / "out" / MASKED_LM_NAME).read_text(encoding="utf-8"))
    arguments = parser.parse_args(options)
    arguments.run(arguments)  # finished already
    out = capsys.readouterr().out
    assert f"Wrote a masked language model to {tmp_path / 'out'}: 3 steps" in out
    assert "After: perplexity " in out
    assert f"Note: {record['text']['num_short_blocks_left_out']} texts or ends of texts were too short" in out
