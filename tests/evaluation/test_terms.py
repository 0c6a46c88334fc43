import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from support.reference_sentences import correlate_terms

from bertram_hf import WordVectors
from bertram_hf.evaluation import SentenceEmbedder, TermSimilarity, bootstrap_interval, read_rated_terms
from bertram_hf.evaluation.terms import RatedTerms, mean_spearman
from bertram_hf.induction import ContextDraws

PAIRS = [
    RatedTerms("old kumquat", "Fruit", 870.5),
    RatedTerms("Kumquat", "the quokka", 100),
    RatedTerms("dog", "quokka", 700),
    RatedTerms("river", "lake", 650),
    RatedTerms("king", "small zebra", 100),
    RatedTerms("zebra", "horse", 800),
]
CONTEXTS = {
    "kumquat": ["she peeled a kumquat", "the kumquat tree", "an old kumquat"],
    "quokka": ["the small quokka", "a quokka near the river"],
    "zebra": [],
}


@pytest.fixture
def vectors():
    generator = torch.Generator().manual_seed(3)
    embeddings = torch.randn(3, 32, generator=generator) * 0.5
    return WordVectors(list(CONTEXTS), embeddings, look_alikes={"quokka": {"dog": 0.9}})


@pytest.fixture
def similarity(make_encoder, bert_tokenizer):
    return TermSimilarity(SentenceEmbedder(make_encoder(), bert_tokenizer, show_progress=False), PAIRS)


def test_terms_are_read_as_written_and_bad_lines_named(tmp_path):
    path = tmp_path / "terms.txt"
    path.write_text("Renal  failure\tKidney Failure\t1517.5\n\naspirin\tAdvil\t-1\n", encoding="utf-8")
    assert read_rated_terms(path) == [
        RatedTerms("Renal failure", "Kidney Failure", 1517.5),
        RatedTerms("aspirin", "Advil", -1.0),
    ]
    for text, message in (
        ("renal failure kidney failure 3\n", "line 1: expected two terms and a rating with tabs between; got 'renal"),
        ("a\tb\t1\na\tb\t1\t2\n", "line 2: expected two terms and a rating"),
        ("a\tb\thigh\n", "line 1: expected two terms"),
        ("a\t \t1\n", "line 1: a word is empty"),
        ("", "holds no pairs. Expected two terms and a rating on each line"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            read_rated_terms(path)


@pytest.mark.parametrize("mode", ["replace", "slash", "auto"])
def test_scores_equal_those_of_plain_loops(similarity, vectors, mode):
    parts = similarity.embedder.encoder, similarity.embedder.tokenizer, PAIRS
    drawn = similarity.compare(vectors, mode)[None]
    score = similarity.score(drawn, contexts=4)
    expected, plain = correlate_terms(*parts, vectors, mode), correlate_terms(*parts)
    assert score.spearman == pytest.approx(expected)
    assert score.gain == pytest.approx(expected - plain)
    assert (score.contexts, score.num_pairs) == (4, 6)


def test_intervals_are_over_pairs_and_paired(similarity):
    drawn = np.random.default_rng(0).normal(size=(3, len(PAIRS)))
    ratings, plain = np.array([pair.rating for pair in PAIRS]), similarity.plain

    def spearman(items):
        with np.testing.suppress_warnings() as ignored:
            ignored.filter(Warning)
            return np.mean([spearmanr(ratings[items], row[items]).statistic for row in drawn])

    def gain(items):
        with np.testing.suppress_warnings() as ignored:
            ignored.filter(Warning)
            return spearman(items) - spearmanr(ratings[items], plain[items]).statistic

    score = similarity.score(drawn, contexts=1)
    assert (score.spearman_low, score.spearman_high) == pytest.approx(bootstrap_interval(len(PAIRS), spearman))
    assert (score.gain_low, score.gain_high) == pytest.approx(bootstrap_interval(len(PAIRS), gain))
    unchanged = similarity.score(plain[None], contexts=0)
    assert (unchanged.gain, unchanged.gain_low, unchanged.gain_high) == (0, 0, 0)


def test_rank_correlation_is_that_of_scipy_and_nan_without_order():
    random = np.random.default_rng(1)
    ratings, drawn = random.integers(5, size=40), random.integers(7, size=(3, 40)).astype(float)
    expected = np.mean([spearmanr(ratings, row).statistic for row in drawn])
    assert mean_spearman(ratings, drawn) == pytest.approx(expected)
    assert np.isnan(mean_spearman(np.ones(3), drawn[:, :3]))


def test_a_word_without_contexts_has_the_vector_of_its_spelling_or_none(make_pair):
    for mode, has_vector in (("add", True), ("context", False)):
        model, processor = make_pair(mode)
        draws = ContextDraws(model, processor, CONTEXTS, max_contexts=4, show_progress=False)
        vectors = draws.induce_words(2)
        assert ("zebra" in vectors) == has_vector
        assert list(vectors.failed) == ([] if has_vector else ["zebra"])
        assert vectors.words[:2] == ["kumquat", "quokka"]
        assert vectors.embedding_fingerprint == model.embedding_fingerprint()
        embedder = SentenceEmbedder(model.encoder, processor.tokenizer, show_progress=False)
        similarity = TermSimilarity(embedder, PAIRS)
        scores = similarity.evaluate(draws.induce_words, mode="slash", num_contexts=[1, 4], num_draws=2)
        assert [score.contexts for score in scores] == [1, 4]
        is_plain = similarity.compare(vectors, "replace") == similarity.plain
        assert is_plain.tolist() == [False, False, False, True, not has_vector, not has_vector]


def test_draws_are_the_vectors_of_the_same_choices(make_pair):
    model, processor = make_pair("add")
    first, second = (
        ContextDraws(model, processor, CONTEXTS, max_contexts=4, seed=5, show_progress=False) for _ in range(2)
    )
    model.config.reliability = [0.5, 0.1, 0.0, 0.0, 0.0]
    for number in (0, 1, 2):
        vectors = first.induce_words(number)
        assert torch.equal(vectors.embeddings, second.induce(number))
        assert vectors.reliability["zebra"] == 0.5
        assert vectors.reliability["kumquat"] == pytest.approx(0.5 + 0.1 * np.log2(1 + number), abs=1e-4)


def test_equal_ratings_are_refused(similarity):
    equal = [RatedTerms("a", "b", 1.0), RatedTerms("a", "c", 1.0)]
    with pytest.raises(ValueError, match="Expected pairs with different ratings; 2 pairs have 1"):
        TermSimilarity(similarity.embedder, equal)
