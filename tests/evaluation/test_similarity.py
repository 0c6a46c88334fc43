import numpy as np
import pytest
import torch

from bertram_hf.evaluation.similarity import RatedPair, evaluate_similarity, read_rated_pairs
from bertram_hf.evaluation.statistics import bootstrap_interval
from bertram_hf.induction.draws import ContextDraws
from bertram_hf.induction.piece_vectors import mean_piece_vectors
from bertram_hf.induction.word_vectors import WordVectors
from bertram_hf.words.pieces import PieceReader

CONTEXTS = {
    "kumquat": ["she peeled a kumquat", "the kumquat tree", "an old kumquat"],
    "qualm": ["a small qualm", "the qualm of the king"],
}
PAIRS = [RatedPair("tree", "kumquat", 7.0), RatedPair("king", "qualm", 2.0), RatedPair("old", "kumquat", 5.0)]


def test_pairs_are_read_and_bad_lines_named(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("tree\tkumquat\t7.5\n\nking\tqualm\t1\n", encoding="utf-8")
    assert read_rated_pairs(path) == [RatedPair("tree", "kumquat", 7.5), RatedPair("king", "qualm", 1.0)]
    for text, message in (
        ("tree\tkumquat\n", "line 1: expected a word, a rare word and a rating"),
        ("tree\tkumquat\t1\nking\tqualm\tmuch\n", "line 2"),
        ("\tkumquat\t1\n", "line 1: a word is empty"),
        ("tree\tkumquat\tnan\n", "line 1: a word is empty or the rating is no number"),
        ("\n", "holds no pairs"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            read_rated_pairs(path)


def test_capitalised_words_are_those_of_an_uncased_model(make_pair, tmp_path):
    model, processor = make_pair("add")
    path = tmp_path / "pairs.txt"
    path.write_text("Tree\tKumquat\t7\nking\tqualm\t2\nold\tkumquat\t5\n", encoding="utf-8")
    pairs = read_rated_pairs(path, lower_case=True)
    assert pairs == PAIRS
    assert read_rated_pairs(path)[0] == RatedPair("Tree", "Kumquat", 7.0)
    contexts = {pair.rare_word: CONTEXTS[pair.rare_word] for pair in pairs}
    draws = ContextDraws(model, processor, contexts, max_contexts=4, show_progress=False)
    known = mean_piece_vectors(model.encoder, processor.tokenizer, [pair.word for pair in pairs])
    mean = model.get_input_embeddings().weight.detach().mean(0)
    (score,) = evaluate_similarity(
        pairs, known, draws.words, draws.induce, vocabulary_mean=mean, num_contexts=[1], num_draws=1
    )
    assert score.num_pairs == 3


def test_vectors_that_agree_with_people_score_one_and_opposite_ones_minus_one():
    generator = torch.Generator().manual_seed(0)
    anchors = torch.nn.functional.normalize(torch.randn(20, 64, generator=generator), dim=1)
    ratings = torch.linspace(-0.9, 0.9, 20)
    other = torch.nn.functional.normalize(torch.randn(20, 64, generator=generator), dim=1)
    other = torch.nn.functional.normalize(other - (other * anchors).sum(1, keepdim=True) * anchors, dim=1)
    vectors = ratings[:, None] * anchors + (1 - ratings**2).sqrt()[:, None] * other  # cosine to its anchor: the rating
    mean = torch.randn(64, generator=generator)
    words = [f"rare{i}" for i in range(20)]
    known = WordVectors([f"known{i}" for i in range(20)], anchors + mean)
    pairs = [RatedPair(f"known{i}", f"rare{i}", rating.item()) for i, rating in enumerate(ratings)]
    for sign in (1, -1):
        (score,) = evaluate_similarity(
            pairs, known, words, lambda number, sign=sign: sign * vectors + mean, vocabulary_mean=mean, num_contexts=[4]
        )
        assert score.spearman == pytest.approx(sign)
        assert (score.contexts, score.num_pairs) == (4, 20)
        assert score.spearman_low == pytest.approx(sign)
    with pytest.raises(KeyError, match="1 rare words have no vector, such as 'rare19'"):
        evaluate_similarity(pairs, known, words[:-1], lambda number: vectors, vocabulary_mean=mean)


def test_induced_vectors_are_scored_and_draws_averaged(make_pair):
    model, processor = make_pair("add")
    table = model.get_input_embeddings().weight.detach()
    known = mean_piece_vectors(model.encoder, processor.tokenizer, ["tree", "king", "old"])

    def evaluate(num_draws):
        draws = ContextDraws(model, processor, CONTEXTS, max_contexts=4, show_progress=False)
        return evaluate_similarity(
            PAIRS,
            known,
            draws.words,
            draws.induce,
            vocabulary_mean=table.mean(0),
            num_contexts=(1, 8),
            num_draws=num_draws,
        )

    assert evaluate(2) == evaluate(2)
    for score in evaluate(2):
        assert -1 <= score.spearman_low <= score.spearman <= score.spearman_high <= 1


def test_piece_vectors_are_means_of_embeddings(make_pair):
    model, processor = make_pair("add")
    words = ["kumquat", "tree", "qualm"]
    vectors = mean_piece_vectors(model.encoder, processor.tokenizer, words)
    table = model.get_input_embeddings().weight.detach()
    for word, ids in zip(words, PieceReader(processor.tokenizer).split(words), strict=True):
        torch.testing.assert_close(vectors[word], table[ids].mean(dim=0))
    assert vectors.embedding_fingerprint == model.embedding_fingerprint()
    assert len(mean_piece_vectors(model.encoder, processor.tokenizer, [])) == 0
    with pytest.raises(ValueError, match="no piece of 1 words"):
        mean_piece_vectors(model.encoder, processor.tokenizer, ["\u200b"])


def test_interval_holds_the_mean_and_narrows_with_more_items():
    values = np.random.default_rng(0).normal(size=900)
    few, many = (bootstrap_interval(n, lambda items, n=n: values[:n][items].mean()) for n in (30, 900))
    assert few[0] < values[:30].mean() < few[1]
    assert many[1] - many[0] < (few[1] - few[0]) / 3
    expected = 2 * 1.96 * values.std() / np.sqrt(900)
    assert many[1] - many[0] == pytest.approx(expected, rel=0.1)
    with pytest.raises(ValueError, match="at least one item"):
        bootstrap_interval(0, lambda items: 0.0)


def test_items_of_a_group_are_drawn_together():
    groups = np.repeat(np.arange(50), 20)
    values = np.random.default_rng(0).normal(size=50)[groups]  # 50 values, each 20 times
    widths = []
    for grouped in (None, groups):
        seen = []

        def mean(items, seen=seen):
            seen.append(items)
            return values[items].mean()

        low, high = bootstrap_interval(1000, mean, groups=grouped)
        widths.append(high - low)
    assert all(np.all(np.bincount(items, minlength=1000).reshape(50, 20).std(axis=1) == 0) for items in seen[:20])
    assert widths[1] == pytest.approx(np.sqrt(20) * widths[0], rel=0.2)
