import json

import pytest
import torch
from support.tiny_models import FAMILIES
from transformers import AutoConfig, AutoModelForSequenceClassification, BertForSequenceClassification

from bertram_hf import BertramEmbeddingInjector, WordVectors, embedding_fingerprint
from bertram_hf.injection.injector import inject_saved
from bertram_hf.injection.policy import InjectionPolicy
from bertram_hf.injection.saving import InjectorSettings

SETTINGS = {
    "model_class": "BertModel",
    "mode": "slash",
    "packs": [],
    "train_vectors": False,
    "freeze_embeddings": True,
}


def make_model():
    torch.manual_seed(0)
    config = AutoConfig.for_model("bert", **FAMILIES["bert"], vocab_size=641, num_labels=3)
    return AutoModelForSequenceClassification.from_config(config).eval()


def make_vectors(*words, **details):
    torch.manual_seed(1)
    return WordVectors(list(words), torch.randn(len(words), 32) * 0.1, **details)


def save_and_load(injector, folder):
    injector.save_pretrained(folder)
    return BertramEmbeddingInjector.from_pretrained(folder)


def test_what_is_known_of_words_is_kept(bert_tokenizer, tmp_path):
    details = {"used_contexts": {"kumquat": [0, 2]}, "look_alikes": {"kumquat": {"quat": 0.2}}, "encoder": "my-encoder"}
    injector = BertramEmbeddingInjector(make_model(), bert_tokenizer, make_vectors("kumquat", **details))
    pack = save_and_load(injector, tmp_path).pack()
    assert {name: getattr(pack, name) for name in details} == details
    selected, _ = InjectionPolicy(min_contexts=1).select(pack, bert_tokenizer)
    assert selected.words == ["kumquat"]


def test_trained_embeddings_can_be_loaded_again(bert_tokenizer, tmp_path):
    model = make_model()
    fingerprint = embedding_fingerprint(model.get_input_embeddings().weight)
    vectors = make_vectors("kumquat", embedding_fingerprint=fingerprint)
    injector = BertramEmbeddingInjector(model, bert_tokenizer, vectors, freeze_embeddings=False)
    with torch.no_grad():
        injector.table.weight.neg_()  # as a long training might
    batch = injector.tokenizer("a kumquat", return_tensors="pt")
    loaded = save_and_load(injector, tmp_path)
    torch.testing.assert_close(loaded(**batch).logits, injector(**batch).logits)


def test_fine_tuned_models_take_vectors_if_told(bert_tokenizer, tmp_path):
    model = make_model()
    vectors = make_vectors("kumquat", embedding_fingerprint=embedding_fingerprint(model.get_input_embeddings().weight))
    with torch.no_grad():
        model.get_input_embeddings().weight[5, 3] *= -1
    with pytest.raises(ValueError, match="if it was fine-tuned from the model that they are for, say fine_tuned=True"):
        BertramEmbeddingInjector(model, bert_tokenizer, vectors)
    injector = BertramEmbeddingInjector(model, bert_tokenizer, vectors, fine_tuned=True)
    loaded = save_and_load(injector, tmp_path)
    loaded.add(vectors, "again")
    assert [list(words) for words in loaded.packs.values()] == [["kumquat"], ["kumquat"]]


def test_a_removed_pack_leaves_no_files(bert_tokenizer, tmp_path):
    injector = BertramEmbeddingInjector(make_model(), bert_tokenizer, make_vectors("kumquat"))
    injector.add(make_vectors("quokka"), "customer")
    injector.save_pretrained(tmp_path)
    (tmp_path / "word_packs" / "notes").mkdir()  # not ours
    injector.remove_pack("customer")
    assert list(save_and_load(injector, tmp_path).packs) == ["default"]
    assert sorted(path.name for path in (tmp_path / "word_packs").iterdir()) == ["default", "notes"]


class OwnClassifier(BertForSequenceClassification):
    pass


def test_models_of_a_class_of_ones_own_are_injected_by_hand(bert_tokenizer, tmp_path):
    injector = BertramEmbeddingInjector(OwnClassifier(make_model().config), bert_tokenizer, make_vectors("kumquat"))
    injector.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="OwnClassifier is no class of Transformers"):
        BertramEmbeddingInjector.from_pretrained(tmp_path)
    loaded = inject_saved(str(tmp_path), OwnClassifier.from_pretrained(tmp_path), bert_tokenizer)
    assert list(loaded.packs["default"]) == ["kumquat"]


@pytest.mark.parametrize("name", ["../../victim", "/victim"])
def test_names_of_packs_that_are_no_names_delete_nothing(bert_tokenizer, tmp_path, name):
    folder, victim = tmp_path / "folder", tmp_path / "victim"
    victim.mkdir()
    folder.mkdir()
    name = str(victim) if name.startswith("/") else name
    (folder / "injector.json").write_text(json.dumps(SETTINGS | {"packs": [name]}), encoding="utf-8")
    injector = BertramEmbeddingInjector(make_model(), bert_tokenizer, make_vectors("kumquat"))
    with pytest.raises(ValueError, match="A pack's name is letters"):
        injector.save_pretrained(folder)
    assert victim.is_dir()
    assert [path.name for path in folder.iterdir()] == ["injector.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "injector.json must hold JSON; it cannot be read"),
        ("[]", "injector.json must hold a JSON object; got list"),
        (json.dumps({"mode": "slash"}), "expected model_class, packs, train_vectors, freeze_embeddings; got none"),
        (
            json.dumps(SETTINGS | {"mode": "dash"}),
            "injector.json: mode must be one of replace, slash, auto; got 'dash'",
        ),
        (
            json.dumps(SETTINGS | {"packs": "default"}),
            "injector.json: Expected a list of names as packs; got 'default'",
        ),
        (json.dumps(SETTINGS | {"packs": [1]}), r"Expected a list of names as packs; got \[1\]"),
        (json.dumps(SETTINGS | {"model_class": 3}), "Expected a name as model_class"),
        (json.dumps(SETTINGS | {"train_vectors": "no"}), "true or false as the last three"),
    ],
)
def test_damaged_settings_are_named(tmp_path, content, message):
    (tmp_path / "injector.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        BertramEmbeddingInjector.from_pretrained(tmp_path)


def test_settings_of_before_fine_tuned_was_known_are_read(tmp_path):
    (tmp_path / "injector.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    assert InjectorSettings.load(tmp_path) == InjectorSettings(**SETTINGS, fine_tuned=False)


def test_saving_does_not_push_half_of_it(bert_tokenizer, tmp_path):
    injector = BertramEmbeddingInjector(make_model(), bert_tokenizer, make_vectors("kumquat"))
    with pytest.raises(ValueError, match=r"without its packs\. Use injector\.push_to_hub"):
        injector.save_pretrained(tmp_path / "folder", push_to_hub=True)
    assert not (tmp_path / "folder").exists()


def test_a_missing_folder_is_not_looked_for_on_the_hub(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere\. Check the path"):
        BertramEmbeddingInjector.from_pretrained(tmp_path / "nowhere")
