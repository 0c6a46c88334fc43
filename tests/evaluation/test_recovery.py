import pytest
import torch

from bertram_hf import induce_vectors
from bertram_hf.evaluation import recovery as word_recovery
from bertram_hf.evaluation.recovery import evaluate_recovery, rank_targets, score_recovery
from bertram_hf.induction.draws import ContextDraws
from bertram_hf.induction.word_vectors import WordVectors
from bertram_hf.processing_look_alikes import LookAlikes

CONTEXTS = {
    "kumquat": ["she peeled a kumquat", "the kumquat tree", "an old kumquat"],
    "qualm": ["a small qualm", "the qualm of the king"],
}


@pytest.fixture
def vectors():
    generator = torch.Generator().manual_seed(0)
    vocabulary = torch.randn(40, 8, generator=generator) + 0.3
    induced = vocabulary[:12] + 0.9 * torch.randn(12, 8, generator=generator)
    return induced, vocabulary[:12], vocabulary


@pytest.mark.parametrize("max_scores", [1, 100, 1 << 26])
def test_ranks_equal_a_naive_loop(vectors, monkeypatch, max_scores):
    monkeypatch.setattr(word_recovery, "MAX_SCORES", max_scores)
    induced, true, vocabulary = vectors
    ranks, cosines = rank_targets(induced, true, vocabulary)
    mean = vocabulary.double().mean(dim=0)
    for row in range(len(induced)):
        all_cosines = [
            torch.cosine_similarity(induced[row] - mean, other - mean, dim=0).item() for other in vocabulary.double()
        ]
        assert cosines[row].item() == pytest.approx(all_cosines[row], abs=1e-5)
        assert ranks[row] == 1 + sum(c > all_cosines[row] for i, c in enumerate(all_cosines) if i != row)
    assert ranks.max() > 1


def test_vectors_that_are_no_numbers_are_not_ranked(vectors):
    induced, true, vocabulary = vectors
    induced[3, 2] = torch.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        rank_targets(induced, true, vocabulary)


def test_perfect_vectors_are_ranked_first(vectors):
    _, true, vocabulary = vectors
    score = score_recovery(true.clone(), true, vocabulary, contexts=4)
    assert (score.contexts, score.mrr, score.median_rank) == (4, 1.0, 1.0)
    assert score.cosine == pytest.approx(1.0)
    assert score.norm_ratio == 1.0


def test_score_is_the_mean_of_reciprocal_ranks(vectors):
    induced, true, vocabulary = vectors
    ranks, cosines = rank_targets(induced, true, vocabulary)
    score = score_recovery(induced, true, vocabulary, contexts=1)
    assert score.mrr == pytest.approx(sum(1 / rank.item() for rank in ranks) / len(ranks))
    ordered = sorted(ranks.tolist())
    assert score.median_rank == (ordered[5] + ordered[6]) / 2
    assert score.cosine == pytest.approx(cosines.mean().item())
    assert score_recovery(3 * induced, true, vocabulary, contexts=1).norm_ratio == pytest.approx(3 * score.norm_ratio)


def evaluate(pair, targets, **settings):
    model, processor = pair
    table = model.get_input_embeddings().weight
    return evaluate_recovery(
        model,
        processor,
        CONTEXTS,
        targets,
        vocabulary=table,
        show_progress=False,
        **{"num_contexts": (0, 1, 8)} | settings,
    )


def test_evaluation_equals_induction_and_ranks(make_pair):
    model, processor = pair = make_pair("add")
    table = model.get_input_embeddings().weight.detach()
    targets = WordVectors(list(CONTEXTS), table[[100, 200]])
    scores = evaluate(pair, targets)
    assert [score.contexts for score in scores] == [0, 1, 8]
    for contexts, score in ({word: [] for word in CONTEXTS}, scores[0]), (CONTEXTS, scores[2]):
        induced = induce_vectors(model, processor, contexts, show_progress=False).embeddings
        expected = score_recovery(induced, targets.embeddings, table, contexts=score.contexts)
        assert score.mrr == pytest.approx(expected.mrr)
        assert score.cosine == pytest.approx(expected.cosine, abs=1e-5)


def test_draws_are_averaged_and_depend_on_the_seed_only(make_pair):
    pair = make_pair("shallow")
    targets = WordVectors(list(CONTEXTS), pair[0].get_input_embeddings().weight.detach()[[100, 200]])
    one, again, other = (evaluate(pair, targets, num_contexts=(1,), seed=seed)[0] for seed in (0, 0, 3))
    assert one == again
    assert one != other
    averaged = evaluate(pair, targets, num_contexts=(1,), num_draws=3)[0]
    assert averaged != one
    whole, many = (evaluate(pair, targets, num_contexts=(8,), num_draws=n)[0] for n in (1, 3))
    assert many.cosine == pytest.approx(whole.cosine, abs=1e-5)  # all contexts, in another order


def test_context_model_is_not_scored_without_contexts(make_pair):
    pair = make_pair("context")
    targets = WordVectors(list(CONTEXTS), pair[0].get_input_embeddings().weight.detach()[[100, 200]])
    assert [score.contexts for score in evaluate(pair, targets)] == [1, 8]


def test_word_is_not_found_by_another_of_its_family(make_pair):
    model, processor = make_pair("add", look_alikes=True)
    table = model.get_input_embeddings().weight.detach()
    with torch.no_grad():
        model.look_alike_mixture.error_log_odds.fill_(50.0)
    words = ["castle", "castles", "cattle"]
    processor.look_alikes = LookAlikes(words, [11, 12, 13])
    targets = WordVectors(["castle"], table[[12]])  # as if the plural's embedding were meant
    options = {"vocabulary": table, "num_contexts": [0]}
    (score,) = evaluate_recovery(model, processor, {"castle": []}, targets, **options)
    assert score.mrr < 1
    assert len(processor.look_alikes) == 3  # the caller's processor stays as it is
    processor.look_alikes = LookAlikes(["cattle"], [12])  # of another family, it is found
    (score,) = evaluate_recovery(model, processor, {"castle": []}, targets, **options)
    assert score.mrr == 1


def test_word_whose_contexts_cannot_be_used_counts_as_without(make_pair, caplog):
    model, processor = make_pair("add", match="whitespace")
    contexts = {"kumquat": ["she peeled a kumquat"], "qualm": ["a (qualm) here"]}  # the released code does not find it
    draws = ContextDraws(model, processor, contexts, max_contexts=4)
    assert draws.num_contexts.tolist() == [1, 0]
    assert "1 of 2 words have no context that can be used" in caplog.text
    alone = induce_vectors(model, processor, {"qualm": []}, show_progress=False)
    assert torch.allclose(draws.induce(4)[1], alone["qualm"], atol=1e-6)
