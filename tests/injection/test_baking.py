import json
import os
import subprocess
import sys

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from bertram_hf import BertramEmbeddingInjector, WordVectors, bake

TEXTS = [
    "the kumquat, a small Tree and (resigntaion)",
    "kumquat",
    "no kumquats, a myocardial infarction's tree",
    "the old town",
]
FAMILIES = ["bert", "roberta", "distilbert", "electra", "albert", "modernbert", "deberta"]

WITHOUT_THE_PACKAGE = """
import json, sys
sys.modules["bertram_hf"] = None
from transformers import AutoModelForMaskedLM, AutoTokenizer
model, tokenizer = AutoModelForMaskedLM.from_pretrained(sys.argv[1]).eval(), AutoTokenizer.from_pretrained(sys.argv[1])
print(json.dumps(model(**tokenizer(json.loads(sys.argv[2]), padding=True, return_tensors="pt")).logits.tolist()))
"""


@pytest.fixture
def make_masked(make_encoder, gapless_tokenizer, roberta_tokenizer):
    def make(family="bert", mode="replace", more=()):
        tokenizer = roberta_tokenizer if family == "roberta" else gapless_tokenizer
        encoder = make_encoder(family, vocab_size=len(tokenizer))
        torch.manual_seed(0)
        model = AutoModelForMaskedLM.from_config(encoder.config).eval()
        size = model.get_input_embeddings().weight.shape[1]
        words = ["kumquat", "resigntaion", "myocardial infarction", *more]
        vectors = WordVectors(words, torch.randn(len(words), size) * 0.05, misleading={"resigntaion": True})
        return BertramEmbeddingInjector(model, tokenizer, vectors, mode=mode)

    return make


def assert_baked_gives_the_same(injector, texts, folder):
    """Bakes and loads; returns the injector's logits and the baked tokenizer."""
    vocab_size = injector.model.config.vocab_size
    injector.bake(folder)
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    batch, baked = (each(texts, padding=True, return_tensors="pt") for each in (injector.tokenizer, tokenizer))
    with torch.no_grad():
        expected, logits = injector(**batch).logits, model(**baked).logits
    assert baked["attention_mask"].tolist() == batch["attention_mask"].tolist()
    assert model.config.vocab_size == model.get_input_embeddings().num_embeddings == logits.shape[-1] >= len(tokenizer)
    is_token = batch["attention_mask"].bool()
    torch.testing.assert_close(logits[is_token][:, :vocab_size], expected[is_token], atol=1e-5, rtol=1e-4)
    assert logits[is_token][:, vocab_size:].max() < expected[is_token].min()
    return expected, tokenizer


@pytest.mark.parametrize("family", FAMILIES)
def test_baked_model_gives_the_same_outputs_and_never_predicts_a_new_token(make_masked, tmp_path, family):
    injector = make_masked(family)
    expected, _ = assert_baked_gives_the_same(injector, TEXTS, tmp_path)
    # The injector goes on as before.
    with torch.no_grad():
        assert torch.equal(injector(**injector.tokenizer(TEXTS, padding=True, return_tensors="pt")).logits, expected)


def test_baked_model_needs_no_package(make_masked, tmp_path):
    injector = make_masked()
    injector.bake(tmp_path / "plain")
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_PACKAGE, str(tmp_path / "plain"), json.dumps(TEXTS[:1])],
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    logits = torch.tensor(json.loads(process.stdout.splitlines()[-1]))
    with torch.no_grad():
        expected = injector(**injector.tokenizer(TEXTS[:1], return_tensors="pt")).logits
    torch.testing.assert_close(logits[..., : expected.shape[-1]], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_released_style_wants_the_token_in_the_text(make_masked, tmp_path, family):
    injector = make_masked(family, mode="slash")
    model, tokenizer = injector.bake(tmp_path, token_style="released")
    plain = injector.plain_tokenizer
    assert tokenizer("a kumquat")["input_ids"] == plain("a kumquat")["input_ids"]
    written = tokenizer("a kumquat / <BERTRAM:kumquat>", return_tensors="pt")
    spliced = injector.tokenizer("a kumquat", return_tensors="pt")
    assert written["input_ids"].shape == spliced["input_ids"].shape
    with torch.no_grad():
        logits = model(**written).logits[..., : injector.model.config.vocab_size]
        torch.testing.assert_close(logits, injector(**spliced).logits, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("mode", ["slash", "auto"])
@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "albert"])
def test_words_keep_their_pieces_beside_their_vectors(make_masked, tmp_path, family, mode):
    more = ["infarction", "acute myocardial infarction", "it's", "C++", "zorilla-like", "zorilla_like"]
    injector = make_masked(family, mode, more)
    texts = [
        *TEXTS,
        "an acute myocardial infarction, an infarction",
        "a myocardial infarction: it's C++",
        "zorilla-like or zorilla_like",
        "kumquat/kumquat [kumquat] kumquat-tree",
        "kumquat_tree",
    ]
    _, tokenizer = assert_baked_gives_the_same(injector, texts, tmp_path)
    assert tokenizer.mask_token_id == injector.plain_tokenizer.mask_token_id
    plain = "the old town"
    assert tokenizer(plain).keys() == injector.plain_tokenizer(plain).keys()
    assert tokenizer(plain)["input_ids"] == injector.plain_tokenizer(plain)["input_ids"]
    pair = injector.plain_tokenizer(plain, "a tree", truncation=True, max_length=6)
    assert dict(tokenizer(plain, "a tree", truncation=True, max_length=6)) == dict(pair)


def test_many_rules_are_told(make_masked, caplog, monkeypatch):
    monkeypatch.setattr("bertram_hf.injection.baking.MANY_RULES", 1)
    injector = make_masked()
    vectors = injector.pack()
    bake(injector.remove(), injector.plain_tokenizer, vectors, mode="slash")
    assert "3 words keep their pieces" in caplog.text


@pytest.mark.parametrize("as_mapping", [True, False])
def test_vectors_are_baked_into_a_plain_model_without_an_injector(make_masked, tmp_path, as_mapping):
    injector = make_masked()
    vectors = injector.pack()
    expected, _ = injector.bake(tmp_path)
    plain, tokenizer = injector.remove(), injector.plain_tokenizer
    before = {name: value.clone() for name, value in plain.state_dict().items()}
    given = {word: vectors[word] for word in vectors} if as_mapping else vectors
    baked, baked_tokenizer = bake(plain, tokenizer, given, mode="replace")
    batch = baked_tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        assert torch.equal(baked(**batch).logits, expected(**batch).logits)
    assert baked_tokenizer.tokenize("kumquat") == ["kumquat"] != tokenizer.tokenize("kumquat")
    assert all(torch.equal(value, before[name]) for name, value in plain.state_dict().items())


def test_words_that_lose_their_accents_are_named(make_encoder, gapless_tokenizer, tmp_path):
    vectors = {word: torch.ones(32) * 0.1 for word in ("rosé", "kumquat", "한국", "C++")}
    injector = BertramEmbeddingInjector(make_encoder("bert"), gapless_tokenizer, vectors, mode="replace")
    with pytest.raises(
        ValueError, match=r"1 words are other words to the tokenizer.*'rosé' is 'rose'\. Leave them out"
    ):
        injector.bake(tmp_path)


def test_words_without_spaces_are_baked_where_they_are_found(make_encoder, roberta_tokenizer, tmp_path):
    encoder = make_encoder("roberta", vocab_size=len(roberta_tokenizer))
    size = encoder.get_input_embeddings().weight.shape[1]
    words = {word: torch.randn(size) for word in ("金桔", "橙abc", "abc金")}
    injector = BertramEmbeddingInjector(encoder, roberta_tokenizer, words, mode="replace")
    injector.bake(tmp_path)
    baked = AutoTokenizer.from_pretrained(tmp_path)
    texts = ["我喜欢金桔的味道", "金桔abc", "橙abcdef", "xabc金的", "a 橙abc b"]
    for text, ids in zip(texts, injector.tokenizer(texts)["input_ids"], strict=True):
        assert [i >= len(roberta_tokenizer) for i in baked(text)["input_ids"]] == [
            i >= len(roberta_tokenizer) for i in ids
        ]


def test_removed_packs_are_not_baked(make_masked, tmp_path):
    injector = make_masked()
    injector.add({"tree": torch.zeros(32)}, name="garden")
    injector.remove_pack("garden")
    _, tokenizer = injector.bake(tmp_path)
    assert tokenizer("a tree")["input_ids"] == injector.plain_tokenizer("a tree")["input_ids"]


def test_words_that_cannot_become_tokens_are_named(make_encoder, bert_tokenizer, gapless_tokenizer, tmp_path):
    for tokenizer, word in ((gapless_tokenizer, "tree"), (bert_tokenizer, "kumquat")):  # known, and a gap in the ids
        injector = BertramEmbeddingInjector(make_encoder(), tokenizer, {word: torch.zeros(32)}, mode="replace")
        with pytest.raises(ValueError, match=f"1 words cannot become new tokens.*{word!r}"):
            injector.bake(tmp_path)
