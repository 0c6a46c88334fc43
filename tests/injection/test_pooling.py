"""Means over tokens that leave out what injection added."""

import pickle

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from support.tiny_injection import make_injector, make_vectors
from transformers import AutoModel

from bertram_hf import BertramEmbeddingInjector, WordVectors
from bertram_hf.injection.sentence_transformers import inject_sentence_transformer

TEXTS = ["the old kumquat / tree", "a tree", "kumquat", "a / quokka, a kumquat"]


@pytest.fixture
def injector(bert_tokenizer):
    return make_injector(bert_tokenizer, make_vectors())


@pytest.fixture
def make_sentence_transformer(make_encoder, bert_tokenizer, tmp_path):
    def make(pooling="mean"):
        make_encoder("bert").save_pretrained(tmp_path / "encoder")
        bert_tokenizer.save_pretrained(tmp_path / "encoder")
        modules = [Transformer(str(tmp_path / "encoder")), Pooling(32, pooling_mode=pooling)]
        return SentenceTransformer(modules=modules, device="cpu")

    return make


def test_added_slashes_are_left_out_and_slashes_of_the_text_are_not(injector):
    batch = injector.tokenizer(TEXTS, padding=True, return_tensors="pt")
    mask = injector.pooling_mask(batch["input_ids"], batch["attention_mask"]).bool()
    first_id, plain = injector.table.first_id, injector.plain_tokenizer
    for text, ids, row in zip(TEXTS, batch["input_ids"], mask, strict=True):
        kept = ids[row]
        assert kept[kept < first_id].tolist() == plain(text)["input_ids"]
        assert (kept >= first_id).sum() == text.count("kumquat") + text.count("quokka")
    whole = injector.tokenizer(TEXTS[:1], return_tensors="pt")["input_ids"]
    assert injector.pooling_mask(whole).tolist() == injector.pooling_mask(whole, torch.ones_like(whole)).tolist()


def test_what_stands_in_place_of_the_pieces_is_pooled(bert_tokenizer, make_encoder):
    vectors = make_vectors()
    misspelt = WordVectors(vectors.words, vectors.embeddings, look_alikes={"kumquat": {"fruit": 0.9}})
    for mode, num_left_out in (("replace", 0), ("auto", 1)):  # auto: the quokka's
        injector = BertramEmbeddingInjector(make_encoder("bert"), bert_tokenizer, misspelt, mode=mode)
        batch = injector.tokenizer(["a / kumquat and a quokka"], return_tensors="pt")
        mask = injector.pooling_mask(**{name: batch[name] for name in ("input_ids", "attention_mask")})
        assert (batch["attention_mask"] - mask).sum() == num_left_out
        injector.remove()


def test_the_mask_follows_packs_and_devices(injector):
    batch = injector.tokenizer(["a kumquat and a quokka"], return_tensors="pt")
    assert (injector.pooling_mask(batch["input_ids"]) == 0).sum() == 2
    injector.remove_pack("animals")
    batch = injector.tokenizer(["a kumquat and a quokka"], return_tensors="pt")
    assert (injector.pooling_mask(batch["input_ids"]) == 0).sum() == 1
    injector.half()
    assert injector.table.is_beside.dtype == torch.bool
    assert (injector.pooling_mask(batch["input_ids"]) == 0).sum() == 1
    injector.to("meta")
    assert injector.table.is_beside.device.type == "meta"


@pytest.mark.parametrize("mode", ["replace", "slash", "auto"])
def test_sentence_transformers_pool_by_the_mask(make_sentence_transformer, mode):
    model = make_sentence_transformer()
    injected = inject_sentence_transformer(model, make_vectors(), mode)
    embeddings = injected.encode(TEXTS, convert_to_tensor=True)
    injector = injected[0].injector
    for text, embedding in zip(TEXTS, embeddings, strict=True):
        batch = injector.tokenizer([text], return_tensors="pt")
        with torch.no_grad():
            states = injector(**batch).last_hidden_state[0]
        kept = injector.pooling_mask(batch["input_ids"])[0].bool()
        torch.testing.assert_close(embedding, states[kept].mean(dim=0), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("pooling", ["cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_every_pooling_works_and_survives_saving(make_sentence_transformer, tmp_path, pooling):
    injected = inject_sentence_transformer(make_sentence_transformer(pooling), make_vectors(), "slash")
    expected = injected.encode(TEXTS, convert_to_tensor=True)
    assert torch.isfinite(expected).all()
    one_by_one = torch.stack([injected.encode(text, convert_to_tensor=True) for text in TEXTS])
    torch.testing.assert_close(one_by_one, expected, atol=1e-5, rtol=1e-4)
    injected.save_pretrained(str(tmp_path / "saved"))
    loaded = SentenceTransformer(str(tmp_path / "saved"), trust_remote_code=True, device="cpu")
    torch.testing.assert_close(loaded.encode(TEXTS, convert_to_tensor=True), expected, atol=1e-6, rtol=1e-5)
    copied = pickle.loads(pickle.dumps(injected))  # as processes get it
    torch.testing.assert_close(copied.encode(TEXTS, convert_to_tensor=True), expected, atol=1e-6, rtol=1e-5)


def test_prompts_are_left_out_as_before(make_sentence_transformer):
    model = make_sentence_transformer()
    model[1].include_prompt = False
    injected = inject_sentence_transformer(model, make_vectors(), "slash")
    embedding = injected.encode("a kumquat", prompt="the old tree: ", convert_to_tensor=True)
    batch = injected[0].injector.tokenizer(["the old tree: a kumquat"], return_tensors="pt")
    with torch.no_grad():
        states = injected[0].injector(**batch).last_hidden_state[0]
    kept = injected[0].injector.pooling_mask(batch["input_ids"])[0].bool()
    kept[: 1 + len(model.tokenizer("the old tree: ", add_special_tokens=False)["input_ids"])] = False
    torch.testing.assert_close(embedding, states[kept].mean(dim=0), atol=1e-5, rtol=1e-4)


def test_a_plain_model_gets_the_mask_too(bert_tokenizer, make_encoder, tmp_path):
    make_encoder("bert").save_pretrained(tmp_path)
    injector = BertramEmbeddingInjector(AutoModel.from_pretrained(tmp_path), bert_tokenizer, make_vectors(), "slash")
    batch = injector.tokenizer(TEXTS, padding=True, return_tensors="pt")
    mask = injector.pooling_mask(batch["input_ids"], batch["attention_mask"])
    assert mask.shape == batch["attention_mask"].shape
    assert (mask <= batch["attention_mask"]).all()
