import pytest
import torch

from bertram_hf import induce_vectors
from bertram_hf.induction import draws as draws_module
from bertram_hf.induction.draws import ContextDraws

CONTEXTS = {
    "kumquat": ["she peeled a kumquat", "the kumquat was gone", "a kumquat tree"],
    "quokka": [],
    "zebra": ["the zebra ran to the river"],
    "resigntaion": [],
}


@pytest.mark.parametrize("mode", ["form", "add", "pieces"])
def test_all_contexts_give_what_induction_gives_whatever_the_blocks(make_pair, monkeypatch, mode):
    model, processor = make_pair(mode)
    expected = induce_vectors(model, processor, CONTEXTS, show_progress=False, warn=False)
    for block in (1, 3, 64):
        monkeypatch.setattr(draws_module, "WORDS_PER_BLOCK", block)
        draws = ContextDraws(model, processor, CONTEXTS, max_contexts=8, show_progress=False)
        found = draws.induce_words(8)
        assert found.words == expected.words
        torch.testing.assert_close(found.embeddings, expected.embeddings, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(draws.induce(8).cpu(), expected.embeddings, atol=1e-5, rtol=1e-5)
        assert found.agreement == pytest.approx(expected.agreement, abs=1e-3)


def test_the_same_seed_draws_the_same(make_pair, monkeypatch):
    pair = make_pair("add")
    first = ContextDraws(*pair, CONTEXTS, max_contexts=3, seed=1, show_progress=False).induce(1)
    monkeypatch.setattr(draws_module, "WORDS_PER_BLOCK", 1)
    again = ContextDraws(*pair, CONTEXTS, max_contexts=3, seed=1, show_progress=False).induce(1)
    torch.testing.assert_close(first, again, atol=1e-6, rtol=1e-6)


def test_words_without_contexts_have_no_vector_of_a_model_that_reads_nothing_else(make_pair):
    draws = ContextDraws(*make_pair("context"), CONTEXTS, max_contexts=3, show_progress=False)
    vectors = draws.induce_words(2)
    assert vectors.words == ["kumquat", "zebra"]
    assert set(vectors.failed) == {"quokka", "resigntaion"}
    assert list(draws.induce_words(0)) == []
