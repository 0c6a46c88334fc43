import resource

import pytest
import torch

from bertram_hf import WordError, induce_vectors
from bertram_hf.induction.batching import length_sorted_batches
from bertram_hf.processing_words import WordPattern

CONTEXTS = {
    "kumquat": ["she peeled a kumquat, and then the kumquat was gone", "kumquat", "no such fruit"],
    "quokka": [],
    "Aquatic": ["the aquatic animal", "an Aquatic plant in the river near the old town and the church", ""],
    "myocardial infarction": ["after a myocardial infarction the old man"],
    "resigntaion": [f"the resigntaion of the {word} king" for word in ("old", "young", "new", "first", "last")],
}


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
@pytest.mark.parametrize("mode", ["form", "shallow", "replace", "add", "add-quotes"])
@pytest.mark.parametrize("max_tokens", [1, 30, 10_000])
def test_batched_equals_one_by_one(make_pair, mode, family, max_tokens):
    model, processor = make_pair(mode, family)
    together = induce_vectors(model, processor, CONTEXTS, max_tokens_per_batch=max_tokens)
    assert together.words == list(CONTEXTS)
    for word, contexts in CONTEXTS.items():
        alone = induce_vectors(model, processor, {word: contexts})
        torch.testing.assert_close(together[word], alone[word], atol=1e-5, rtol=1e-5)
        if mode != "form":
            torch.testing.assert_close(
                together.context_weights[word], alone.context_weights[word], atol=1e-5, rtol=1e-5
            )


def test_result_equals_the_model_and_does_not_depend_on_windows(make_pair, monkeypatch):
    model, processor = make_pair("add")
    with torch.no_grad():
        expected = model(**processor(list(CONTEXTS), list(CONTEXTS.values())))
    for window in (1, 2, 3, 1000):
        monkeypatch.setattr("bertram_hf.induction.batching.CONTEXTS_PER_WINDOW", window)
        vectors = induce_vectors(model, processor, CONTEXTS)
        torch.testing.assert_close(vectors.embeddings, expected.word_embeddings, atol=1e-5, rtol=1e-5)
        weights = torch.cat([vectors.context_weights[word] for word in vectors])
        torch.testing.assert_close(weights, expected.context_weights, atol=1e-5, rtol=1e-5)


def test_half_precision_of_the_encoder_changes_little_and_only_that_call(make_pair):
    model, processor = make_pair("add")
    own, half = (induce_vectors(model, processor, CONTEXTS, dtype=dtype).embeddings for dtype in (None, "bfloat16"))
    assert not torch.equal(own, half)
    torch.testing.assert_close(own, half, atol=0.05, rtol=0.05)
    assert torch.equal(induce_vectors(model, processor, CONTEXTS).embeddings, own)
    model.encoder_dtype = torch.bfloat16
    assert torch.equal(induce_vectors(model, processor, CONTEXTS).embeddings, half)
    assert torch.equal(induce_vectors(model, processor, CONTEXTS, dtype="float32").embeddings, own)


def test_used_and_dropped_contexts_are_told(make_pair):
    vectors = induce_vectors(*make_pair("add"), CONTEXTS)
    assert vectors.used_contexts["kumquat"] == [0, 1]
    assert vectors.dropped_contexts == {"kumquat": {2: "word not found"}, "Aquatic": {2: "word not found"}}
    assert len(vectors.context_weights["kumquat"]) == 2
    form = induce_vectors(*make_pair("form"), {"kumquat": ["a kumquat"]})
    assert form.dropped_contexts == {"kumquat": {0: "the model reads the form only"}}


def test_words_that_stand_in_none_of_their_contexts_are_named_and_single_contexts_are_not(make_pair, caplog):
    pair = make_pair("add")
    induce_vectors(*pair, {"kumquat": ["a kumquat", "nothing"], "quokka": []})
    assert caplog.text == ""
    induce_vectors(*pair, {"kumquat": ["a kumquat"], "quokka": ["nothing"], "zebra": ["a zebra"]})
    assert "1 words stand in none of their contexts, such as 'quokka'" in caplog.text


def test_words_that_cannot_have_a_vector_raise_before_anything_is_computed(make_pair, monkeypatch):
    model, processor = make_pair("context")
    monkeypatch.setattr(model, "encode_contexts", None)
    with pytest.raises(WordError, match="2 of 5 words cannot have a vector") as caught:
        induce_vectors(model, processor, CONTEXTS | {"quokka": ["nothing"], "Aquatic": []})
    assert "None of the 1 contexts of 'quokka' holds it" in str(caught.value)
    assert "'Aquatic' has no contexts" in str(caught.value)


def test_words_that_cannot_have_a_vector_can_be_skipped(make_pair):
    vectors = induce_vectors(*make_pair("context"), CONTEXTS | {" ": ["x"]}, errors="skip")
    assert vectors.words == [word for word in CONTEXTS if word != "quokka"]
    assert set(vectors.failed) == {"quokka", " "}
    with pytest.raises(KeyError, match="It failed: 'quokka' has no contexts"):
        vectors["quokka"]


def test_no_words_give_no_vectors(make_pair):
    for mode in ("add", "context", "form"):
        vectors = induce_vectors(*make_pair(mode), {})
        assert vectors.words == []
        assert vectors.embeddings.shape == (0, 32)


@pytest.mark.parametrize(
    ("contexts", "message"),
    [([("kumquat", [])], "mapping"), ({"kumquat": "a text"}, "in a list"), ({"kumquat": [3]}, "must be a string")],
)
def test_wrong_types_are_named(make_pair, contexts, message):
    with pytest.raises(TypeError, match=message):
        induce_vectors(*make_pair("add"), contexts)


def test_a_processor_that_does_not_fit_is_refused(make_pair, caplog):
    model, processor = make_pair("add")
    _, character_processor = make_pair("add", form_encoder="lstm")
    with pytest.raises(ValueError, match=r"embeddings for \d+ n-grams or characters"):
        induce_vectors(model, character_processor, CONTEXTS)
    with pytest.raises(ValueError, match="encoder has 64 positions"):
        induce_vectors(model, make_pair("add", max_length=65)[1], CONTEXTS)
    small = make_pair("context")[0]
    small.encoder.resize_token_embeddings(300)
    with pytest.raises(ValueError, match="300 embeddings"):
        induce_vectors(small, make_pair("context")[1], CONTEXTS)
    processor.prefix = "none"
    induce_vectors(model, processor, {"kumquat": ["a kumquat"]})
    assert "otherwise it is a mistake" in caplog.text


def test_training_mode_is_restored(make_pair):
    model, processor = make_pair("add", ngram_dropout=0.9)
    expected = induce_vectors(model, processor, CONTEXTS)
    model.train()
    assert torch.equal(induce_vectors(model, processor, CONTEXTS).embeddings, expected.embeddings)
    assert model.training


def test_a_hundred_thousand_contexts_are_exact_and_small(make_pair):
    model, processor = make_pair("add")
    base = CONTEXTS["resigntaion"]
    few = induce_vectors(model, processor, {"resigntaion": base})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many = induce_vectors(model, processor, {"resigntaion": base * 20_000})
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    # Every context 20,000 times: the weights are divided, the vector is the same.
    torch.testing.assert_close(many["resigntaion"], few["resigntaion"], atol=1e-4, rtol=1e-4)
    assert len(many.context_weights["resigntaion"]) == 100_000
    assert many.context_weights["resigntaion"].sum().item() == pytest.approx(1, abs=1e-3)
    assert grown < 300  # megabytes; all contexts in one batch would take gigabytes


def test_batches_keep_the_token_limit_and_lose_nothing():
    lengths = [5, 1, 9, 3, 3, 30, 2]
    batches = list(length_sorted_batches(lengths, 12))
    assert sorted(index for batch in batches for index in batch) == list(range(7))
    assert all(max(lengths[i] for i in batch) * len(batch) <= 12 for batch in batches if len(batch) > 1)


@pytest.mark.parametrize("mode", ["add", "context"])
def test_each_context_is_searched_once(mode, make_pair, monkeypatch):
    model, processor = make_pair(mode)
    searched = []
    split = WordPattern.split
    monkeypatch.setattr(WordPattern, "split", lambda self, text: (searched.append(text), split(self, text))[1])
    contexts = {"kumquat": ["a kumquat", "none", "one kumquat more"], "quat": ["the quat", "a quat"]}
    vectors = induce_vectors(model, processor, contexts)
    assert vectors.dropped_contexts == {"kumquat": {1: "word not found"}}
    first = ["a kumquat", "the quat"] if mode == "context" else []  # is there one at all?
    assert sorted(searched) == sorted([*first, *(text for texts in contexts.values() for text in texts)])
