"""Sentence embeddings with injected vectors, and words that look for their definitions by them."""

import numpy as np
import pytest
import torch
from support.reference_sentences import embed_one, rank_definitions

from bertram_hf import WordVectors
from bertram_hf.evaluation import DefinitionRetrieval, SentenceEmbedder, bootstrap_interval
from bertram_hf.induction import ContextDraws

MODES = ["replace", "slash", "auto"]
TEXTS = ["the old kumquat near the river", "a tree", "kumquat", "a small quokka and a kumquat", "the river", "a tree"]
OWN = {
    "kumquat": ["a small fruit of the garden", "the old tree"],
    "quokka": ["a small dog near the river"],
    "zebra": ["a horse of the field", "the kumquat and the horse"],
}
OTHERS = ["the king and the queen", "a dark forest", "the bread and the salt", "a small fruit of the garden"]
CONTEXTS = {
    "kumquat": ["she peeled a kumquat", "the kumquat tree", "an old kumquat", "a red kumquat"],
    "quokka": ["the small quokka", "a quokka near the river", "an old quokka"],
    "zebra": ["the zebra and the horse", "a black zebra"],
}


@pytest.fixture
def vectors():
    generator = torch.Generator().manual_seed(3)
    embeddings = torch.randn(3, 32, generator=generator) * 0.5
    return WordVectors(list(OWN), embeddings, look_alikes={"quokka": {"dog": 0.9}})


@pytest.fixture
def make_embedder(make_encoder, bert_tokenizer):
    return lambda **options: SentenceEmbedder(make_encoder(), bert_tokenizer, show_progress=False, **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("max_tokens", [1, 24, 4096])
def test_batches_equal_single_texts_with_vectors_put_in_by_hand(make_embedder, vectors, mode, max_tokens):
    embedder = make_embedder(max_tokens_per_batch=max_tokens)
    for given in (None, vectors):
        expected = [embed_one(embedder.encoder, embedder.tokenizer, text, given, mode) for text in TEXTS]
        torch.testing.assert_close(embedder.embed(TEXTS, given, mode), torch.stack(expected), atol=1e-5, rtol=1e-4)


def test_long_texts_are_cut(make_embedder):
    text = "the old tree " * 4
    cut, whole = make_embedder(max_length=5).embed([text, "the old tree"]), make_embedder().embed([text])
    torch.testing.assert_close(cut[0], cut[1])
    assert not torch.allclose(cut[:1], whole)


def test_a_text_without_an_injected_word_is_embedded_once(make_embedder, vectors):
    embedder = make_embedder()
    sizes = []
    embedder.encoder.register_forward_pre_hook(
        lambda module, args, kwargs: sizes.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    plain = embedder.embed(TEXTS)
    assert sum(sizes) == 5  # one stands twice
    sizes.clear()
    injected = embedder.embed(TEXTS, vectors, "slash")
    assert sum(sizes) == 3
    has_word = torch.tensor([True, False, True, True, False, False])
    assert torch.equal(injected[~has_word], plain[~has_word])
    assert (injected[has_word] != plain[has_word]).any(dim=1).all()
    sizes.clear()
    assert torch.equal(embedder.embed(TEXTS), plain)
    assert torch.equal(embedder.embed(TEXTS, WordVectors([], torch.empty(0, 32))), plain)
    assert embedder.embed([]).shape == (0, 32)
    assert sizes == []


def test_the_encoder_is_left_as_it_was(make_embedder, vectors):
    embedder = make_embedder()
    table = embedder.encoder.get_input_embeddings()
    embedder.encoder.train()
    embedder.embed(TEXTS, vectors)
    assert embedder.encoder.get_input_embeddings() is table
    assert embedder.encoder.training
    with pytest.raises(ValueError, match="1 of 1 words cannot be injected"):
        embedder.embed(TEXTS, WordVectors(["[MASK]"], torch.ones(1, 32)))
    assert embedder.encoder.get_input_embeddings() is table


def test_long_texts_are_cut_and_broken_encoders_are_refused(make_embedder, vectors):
    embedder = make_embedder()
    long = "the river " * 80
    assert torch.equal(embedder.embed([long]), embedder.embed([long + "kumquat"], vectors))
    with torch.no_grad():
        embedder.encoder.get_input_embeddings().weight.fill_(float("nan"))
    with pytest.raises(ValueError, match="NaN or infinity"):
        embedder.embed(["a king"])


@pytest.mark.parametrize("mode", MODES)
def test_ranks_equal_those_of_plain_loops(make_embedder, vectors, mode):
    embedder = make_embedder()
    retrieval = DefinitionRetrieval(embedder, OWN, OTHERS)
    assert len(retrieval.texts) == 8  # one text is an own one and another
    parts = embedder.encoder, embedder.tokenizer, OWN, OTHERS
    np.testing.assert_allclose(retrieval.plain, rank_definitions(*parts))
    np.testing.assert_allclose(retrieval.rank(vectors, mode), rank_definitions(*parts, vectors, mode))


def test_the_best_own_definition_counts_and_equal_ones_do_not_stand_before(make_embedder):
    retrieval = DefinitionRetrieval(make_embedder(), {"kumquat": ["kumquat", "a dark forest"]}, ["the king"])
    assert retrieval.plain.tolist() == [1.0]
    shared = DefinitionRetrieval(make_embedder(), {"kumquat": ["kumquat"], "quokka": ["kumquat"]}, ["quokka"])
    assert shared.plain.tolist() == [1.0, 0.5]


def test_scores_are_means_with_paired_intervals(make_embedder):
    retrieval = DefinitionRetrieval(make_embedder(), OWN, OTHERS)
    drawn = np.array([[1.0, 0.5, 0.25], [0.5, 0.5, 0.25]])
    score = retrieval.score(drawn, contexts=4)
    means = np.array([0.75, 0.5, 0.25])
    assert (score.contexts, score.num_words, score.mrr) == (4, 3, 0.5)
    assert (score.mrr_low, score.mrr_high) == bootstrap_interval(3, lambda items: means[items].mean())
    gains = means - retrieval.plain
    assert score.gain == pytest.approx(gains.mean())
    assert (score.gain_low, score.gain_high) == bootstrap_interval(3, lambda items: gains[items].mean())
    some = retrieval.score(drawn, contexts=4, words=["zebra", "kumquat"])
    assert (some.mrr, some.num_words) == (0.5, 2)
    assert some.gain == pytest.approx(gains[[0, 2]].mean())
    plain = retrieval.score(retrieval.plain[None], contexts=0)
    assert (plain.gain, plain.gain_low, plain.gain_high) == (0, 0, 0)


@pytest.mark.parametrize("mode", MODES)
def test_drawn_vectors_are_scored_and_draws_averaged(make_pair, mode):
    model, processor = make_pair("add")
    embedder = SentenceEmbedder(model.encoder, processor.tokenizer, show_progress=False)
    retrieval = DefinitionRetrieval(embedder, OWN, OTHERS)

    def new_draws():
        return ContextDraws(model, processor, CONTEXTS, max_contexts=4, show_progress=False)

    scores = retrieval.evaluate(new_draws().induce_words, mode=mode, num_contexts=[0, 1, 2], num_draws=2)
    draws = new_draws()
    for number, score in zip([0, 1, 2], scores, strict=True):
        drawn = [draws.induce_words(number) for _ in range(2 if number else 1)]
        parts = model.encoder, processor.tokenizer, OWN, OTHERS
        expected = np.mean([rank_definitions(*parts, vectors, mode) for vectors in drawn])
        assert score.mrr == pytest.approx(expected)
        assert score.gain == pytest.approx(expected - np.mean(rank_definitions(*parts)))
        assert score.mrr_low <= score.mrr <= score.mrr_high


def test_words_without_definitions_are_refused(make_embedder):
    with pytest.raises(ValueError, match="got no words"):
        DefinitionRetrieval(make_embedder(), {}, OTHERS)
    with pytest.raises(ValueError, match="'quokka' has none"):
        DefinitionRetrieval(make_embedder(), {"kumquat": ["a fruit"], "quokka": []}, OTHERS)
