import numpy as np
import pytest
import torch

from bertram_hf import WordVectors
from bertram_hf.adaptation.documents import SearchPair
from bertram_hf.adaptation.retrieval import Gain, Retrieval, Trials
from bertram_hf.adaptation.verdict import MIN_QUERIES, Verdict, judge, list_ways
from bertram_hf.evaluation.embedding import reciprocal_ranks

WORDS = ["kumquat", "quokka"]


class BlurringEmbedder:
    """Embeds the n-th text as the n-th unit vector, blurred so much as the way of injection says."""

    def __init__(self, blur):
        self.blur = blur

    def embed(self, texts, vectors=None, mode="auto"):
        number = len(texts) // 2
        own = torch.eye(number)
        random = torch.rand(number, number, generator=torch.Generator().manual_seed(0))
        name = "plain" if vectors is None else mode if len(vectors) == len(WORDS) else "some"
        queries = own + self.blur[name] * random
        return torch.cat([queries, own])


def make_retrieval(blur, number=120):
    pairs = [SearchPair(f"the {WORDS[i % 2]} of {i}", f"document {i}") for i in range(number)]
    return Retrieval(BlurringEmbedder(blur), pairs)


def make_vectors():
    details = {"reliability": {"kumquat": 0.2, "quokka": 0.5}, "misleading": {"quokka": True}}
    return WordVectors(WORDS, torch.ones(2, 4), **details)


def judged(blur, number=120):
    trials = Trials(make_retrieval(blur, number), WORDS, ignore_case=True)
    return judge(trials, make_vectors(), {"kumquat": 2, "quokka": 9})


def test_ranks_count_the_nearer_documents_and_ties_do_not_count():
    queries, documents = torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([[0.6, 0.8], [0.6, 0.8]])
    own = torch.tensor([[0], [1]])
    assert reciprocal_ranks(queries, documents, own).tolist() == [1.0, 1.0]
    assert reciprocal_ranks(torch.eye(2), torch.tensor([[0.0, 1.0], [1.0, 0.0]]), own).tolist() == [0.5, 0.5]


def test_a_clear_gain_of_the_default_way_is_taken_at_once():
    verdict = judged({"plain": 3.0, "auto": 0.5, "some": 0.0, "replace": 0.0})
    assert verdict.helps
    assert (verdict.way.mode, len(verdict.tried)) == ("auto", 1)
    assert verdict.headline.startswith("It helps")
    assert verdict.final.num_queries == 120
    assert [gain.num_queries for gain in verdict.by_contexts] == [60, 60]
    assert sum(gain.num_queries for gain in verdict.by_reliability) == 120


def test_another_way_is_chosen_on_one_half_and_judged_on_the_other():
    verdict = judged({"plain": 1.5, "auto": 3.0, "some": 3.0, "replace": 0.1})
    assert verdict.helps
    assert verdict.way.mode == "replace"
    assert verdict.final.num_queries == 60
    assert len(verdict.tried) == len(list_ways(make_vectors(), {}))


def test_a_gain_where_texts_do_not_repeat_the_word_is_a_gain_unless_there_is_harm_elsewhere():
    up, down = Gain("x", 0.1, 0.2, 0.1, 0.05, 0.15, 99), Gain("x", 0.2, 0.1, -0.1, -0.15, -0.05, 99)
    even = Gain("x", 0.2, 0.2, 0.0, -0.1, 0.1, 99)
    way = list_ways(make_vectors(), {})[0]
    for final, unrepeated, is_gain in ((even, up, True), (up, None, True), (down, up, False), (up, down, False)):
        verdict = Verdict(is_gain, way, final=final, unrepeated=unrepeated)
        assert verdict.is_gain == is_gain
        assert verdict.headline.startswith("It helps") == is_gain
    verdict = Verdict(True, way, final=even, unrepeated=up)
    assert verdict.decisive is up
    assert verdict.headline.startswith("It helps where a text does not repeat the injected word of its query: mean")
    rows = verdict.to_dict()["retrieval"]["by_repetition"]
    assert [row["gain"] for row in rows] == [0.0, 0.1]


def test_nothing_is_injected_where_every_way_does_harm():
    verdict = judged({"plain": 0.5, "auto": 4.0, "some": 4.0, "replace": 4.0})
    assert verdict.helps is False
    assert verdict.way is None
    assert "nothing is injected" in verdict.headline
    assert verdict.to_dict()["mode"] == "nothing"


def test_no_difference_is_said_to_be_none():
    verdict = judged(dict.fromkeys(("plain", "auto", "some", "replace"), 1.0))
    assert verdict.helps is None
    assert verdict.way is not None
    assert verdict.headline.startswith("No clear effect")


def test_few_queries_tell_nothing():
    verdict = judged(dict.fromkeys(("plain", "auto", "some", "replace"), 1.0), number=MIN_QUERIES - 1)
    assert verdict.helps is None
    assert verdict.final is None
    assert verdict.headline.startswith("Not judged")


def test_careful_ways_inject_less():
    vectors = make_vectors()
    _, known, misled, replaced = list_ways(vectors, {"kumquat": 2, "quokka": 9})
    assert known.choose(vectors).words == misled.choose(vectors).words == ["quokka"]
    assert replaced.choose(vectors).words == WORDS


def test_gains_are_paired():
    plain = np.random.default_rng(0).random(200)
    gain = Gain.between("x", plain, plain + 0.01)
    assert gain.gain == pytest.approx(gain.gain_low) == pytest.approx(gain.gain_high) == pytest.approx(0.01)


def test_one_document_cannot_be_searched():
    with pytest.raises(ValueError, match="at least two documents"):
        Retrieval(BlurringEmbedder({}), [SearchPair("a b", "c")])
