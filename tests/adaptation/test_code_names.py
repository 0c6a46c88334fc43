import numpy as np
import pytest
import torch

from bertram_hf.adaptation.code_names import choose_known_words, invent_names, score_code_names
from bertram_hf.adaptation.documents import SearchPair
from bertram_hf.adaptation.retrieval import Retrieval
from bertram_hf.evaluation import SentenceEmbedder
from bertram_hf.words import PieceReader

WORDS = ["tree", "town", "house", "garden", "water", "river"]
PAIRS = [SearchPair(f"the old {word}", f"a {word} and a {word} of the {word} near the {word} again") for word in WORDS]
CONTEXTS = {word: [f"the {word} is small", f"a man has a {word}"] for word in WORDS}


@pytest.fixture
def retrieval(make_encoder, bert_tokenizer):
    return Retrieval(SentenceEmbedder(make_encoder("bert"), bert_tokenizer, show_progress=False), PAIRS)


def test_the_rarest_words_of_some_queries_are_chosen(retrieval):
    counts = {word: number for number, word in enumerate(WORDS)} | {"the": 99, "old": 50}
    chosen = choose_known_words(retrieval, counts, [*WORDS, "the", "old"], number=4)
    assert len(chosen) == 4
    assert all(own == [WORDS[row], "old", "the"] for row, own in chosen.items())
    assert choose_known_words(retrieval, counts, [*WORDS, "the", "old"], number=4) == chosen
    assert choose_known_words(retrieval, counts, [*WORDS, "the", "old"], number=4, seed=1) != chosen
    assert choose_known_words(retrieval, counts, ["kumquat"], number=4) == {}


def test_names_are_new_and_broken_up(bert_tokenizer):
    reader = PieceReader(bert_tokenizer)
    names = invent_names(WORDS, set(WORDS), reader)
    assert list(names) == WORDS
    assert len({*names.values(), *WORDS}) == 2 * len(WORDS)
    assert all(reader.breaks_up(pieces, 2) for pieces in reader.split(list(names.values())))


def test_scores_are_of_renamed_queries_only(retrieval, make_pair, bert_tokenizer):
    model, processor = make_pair("pieces", max_length=64)
    names = invent_names(WORDS, set(WORDS), PieceReader(bert_tokenizer))
    words = {row: [word] for row, word in enumerate(WORDS) if row != 2}
    scores = score_code_names(
        retrieval, model, processor, words, names, CONTEXTS, num_contexts=(1, 2), show_progress=False
    )
    rows = list(words)
    assert [score.contexts for score in scores] == [1, 2]
    renamed = [f"the old {names[word]}" if row != 2 else f"the old {word}" for row, word in enumerate(WORDS)]
    left_out = ["the old " if row != 2 else f"the old {word}" for row, word in enumerate(WORDS)]
    for score in scores:
        assert score.known == pytest.approx(retrieval.plain[rows].mean())
        assert score.renamed == pytest.approx(retrieval.rank(queries=renamed)[rows].mean())
        assert score.left_out == pytest.approx(retrieval.rank(queries=left_out)[rows].mean())
        lost = score.known - score.renamed
        assert score.won_back == pytest.approx((score.injected - score.renamed) / lost) if lost > 0 else True
    assert score_code_names(retrieval, model, processor, {}, names, CONTEXTS, show_progress=False) == []


def test_documents_without_the_sentences_that_repeat_a_word(make_encoder, bert_tokenizer):
    long = "the small man has an old house by the river ."
    pairs = [
        SearchPair("the tree", f"a tree is old . {long} the Tree ."),
        SearchPair("the town", "the town is small ."),
        SearchPair("the water", long),
    ]
    embedder = SentenceEmbedder(make_encoder("bert"), bert_tokenizer, show_progress=False)
    retrieval = Retrieval(embedder, pairs)
    found = retrieval.find_words(WORDS, ignore_case=True)
    shorter = retrieval.leave_out(found, ignore_case=True)
    assert shorter == {0: long, 1: None}
    ranks = retrieval.rank_shorter({0: long})
    np.testing.assert_array_equal(ranks[0], retrieval.plain)
    np.testing.assert_array_equal(ranks[1, 1:], retrieval.plain[1:])
    query, *documents = embedder.embed([pairs[0].query, long, pairs[1].document, pairs[2].document])
    similarities = torch.stack([query @ document for document in documents])
    assert ranks[1, 0] == 1 / (1 + int((similarities[1:] > similarities[0] + 1e-6).sum()))
