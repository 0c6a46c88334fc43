import json
import re
import sys

import pytest
import torch
from rich.console import Console

from bertram_hf import WordVectors, embedding_fingerprint, induce_vectors
from bertram_hf.induction.report import report_word

CONTEXTS = ["a kumquat and the kumquat", "nothing of the kind", "She ate the Kumquat."]
EVIL = "<script>alert('x')</script>"


@pytest.fixture
def pair(make_pair):
    return make_pair("add")


@pytest.fixture
def encoder(make_encoder):
    return make_encoder()


@pytest.fixture
def vectors(pair):
    return induce_vectors(*pair, {"kumquat": CONTEXTS, "quokka": [], EVIL: [f"a {EVIL} in it & more", "none <b>x</b>"]})


def in_terminal(report, width=100):
    console = Console(width=width)
    with console.capture() as capture:
        console.print(report)
    return capture.get()


def test_neighbours_equal_a_plain_computation(vectors, encoder, bert_tokenizer):
    report = report_word("kumquat", vectors, encoder, bert_tokenizer, num_neighbours=5)
    table = encoder.get_input_embeddings().weight.detach()
    kept = [i for i in bert_tokenizer.get_vocab().values() if i >= 8]  # special and unused tokens come first
    mean = torch.stack([table[i] for i in kept]).mean(dim=0)

    def approx(cosine):
        return pytest.approx(cosine, abs=1e-5)

    def nearest(vector, left_out=()):
        cosines = {i: torch.cosine_similarity(table[i] - mean, vector - mean, dim=0).item() for i in kept}
        best = sorted((i for i in kept if i not in left_out), key=lambda i: -cosines[i])[:5]
        tokens = bert_tokenizer.convert_ids_to_tokens(best)
        return [(token.replace("##", "·"), approx(cosines[i])) for token, i in zip(tokens, best, strict=True)]

    pieces = bert_tokenizer("kumquat", add_special_tokens=False)["input_ids"]
    after = [(neighbour.token, neighbour.similarity) for neighbour in report.neighbours_after]
    before = [(neighbour.token, neighbour.similarity) for neighbour in report.neighbours_before]
    assert after == nearest(vectors["kumquat"])
    assert before == nearest(table[pieces].mean(dim=0), left_out=pieces)
    assert report.pieces == ["k", "·u", "·m", "·q", "·u", "·a", "·t"]


def test_the_vector_of_a_token_is_nearest_to_itself(encoder, bert_tokenizer):
    table = encoder.get_input_embeddings().weight.detach()
    token_id = bert_tokenizer.convert_tokens_to_ids("the")
    report = report_word("x", WordVectors(["x"], table[[token_id]]), encoder, bert_tokenizer)
    assert report.neighbours_after[0].token == "the"
    assert report.neighbours_after[0].similarity == pytest.approx(1)


def test_special_and_unused_tokens_and_rows_without_a_token_are_no_neighbours(encoder, bert_tokenizer):
    vectors = WordVectors(["x"], torch.randn(1, 32))
    report = report_word("x", vectors, encoder, bert_tokenizer, num_neighbours=10_000)
    tokens = [neighbour.token for neighbour in report.neighbours_after]
    left_out = {*bert_tokenizer.all_special_tokens, "[unused0]", "[unused1]", "[unused2]"}
    kept = bert_tokenizer.get_vocab().keys() - left_out
    assert sorted(tokens) == sorted(f"·{token[2:]}" if token.startswith("##") else token for token in kept)


def test_length_is_compared_with_the_vocabulary(encoder, bert_tokenizer):
    vectors = WordVectors(["long", "short"], torch.stack([torch.full((32,), 1e3), torch.full((32,), 1e-6)]))
    long, short = (report_word(word, vectors, encoder, bert_tokenizer) for word in vectors)
    assert long.norm_percentile == 100
    assert short.norm_percentile == 0
    assert short.norm < short.median_norm == long.median_norm < long.norm


def test_contexts_stand_by_falling_weight_then_the_dropped_ones(vectors, encoder, bert_tokenizer):
    report = report_word("kumquat", vectors, encoder, bert_tokenizer, contexts=CONTEXTS)
    weights = [context.weight for context in report.contexts[:2]]
    assert weights == sorted(vectors.context_weights["kumquat"].tolist(), reverse=True)
    assert {context.index for context in report.contexts[:2]} == {0, 2}
    assert all(context.text == CONTEXTS[context.index] for context in report.contexts)
    assert (report.contexts[2].index, report.contexts[2].dropped) == (1, "word not found")
    without = report_word("kumquat", vectors, encoder, bert_tokenizer)
    assert [context.text for context in without.contexts] == [None] * 3
    assert "text not given" in str(without)


def test_spelling_alone_agrees_fully_with_itself(pair, vectors, encoder, bert_tokenizer):
    model, processor = pair
    model.train()
    parts = {"bertram": model, "processor": processor}
    alone = report_word("quokka", vectors, encoder, bert_tokenizer, **parts)
    both = report_word("kumquat", vectors, encoder, bert_tokenizer, **parts)
    assert model.training
    assert alone.form_agreement == pytest.approx(1)
    assert -1 < both.form_agreement < 0.99
    assert alone.contexts == []
    assert report_word("kumquat", vectors, encoder, bert_tokenizer).form_agreement is None


def test_a_model_without_spelling_has_no_agreement(make_pair, encoder, bert_tokenizer):
    model, processor = make_pair("context")
    vectors = induce_vectors(model, processor, {"kumquat": CONTEXTS})
    report = report_word("kumquat", vectors, encoder, bert_tokenizer, bertram=model, processor=processor)
    assert report.form_agreement is None
    assert "spelling" not in str(report)


def test_byte_level_pieces_are_readable(make_pair, make_encoder, roberta_tokenizer):
    vectors = induce_vectors(*make_pair("add", "roberta"), {"kumquat": []})
    report = report_word("kumquat", vectors, make_encoder("roberta"), roberta_tokenizer, num_neighbours=700)
    assert report.pieces == ["·k", "·um", "·q", "·u", "·at"]
    assert "bottle" in [neighbour.token for neighbour in report.neighbours_after]
    assert "Ġ" not in str(report)


def test_report_is_json_and_prints_without_rich(vectors, encoder, bert_tokenizer, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    report = report_word("kumquat", vectors, encoder, bert_tokenizer, contexts=CONTEXTS)
    assert json.loads(json.dumps(report.to_dict())) == report.to_dict()
    assert repr(report) == "WordReport('kumquat', 2 of 3 contexts used)"
    assert "She ate the Kumquat." in str(report)
    assert "2 used, 1 dropped" in str(report)


def test_all_faces_tell_the_same(pair, vectors, encoder, bert_tokenizer):
    model, processor = pair
    report = report_word(
        "kumquat", vectors, encoder, bert_tokenizer, contexts=CONTEXTS, bertram=model, processor=processor
    )
    page, terminal, text = report._repr_html_(), in_terminal(report), str(report)
    assert max(map(len, terminal.splitlines())) <= 100
    for face in (page, terminal, text):
        for neighbour in report.neighbours_before + report.neighbours_after:
            assert f"{neighbour.similarity:.2f}" in face
        for expected in (f"{report.form_agreement:.2f}", "word not found", "2 used, 1 dropped", "nothing of the kind"):
            assert expected in face
    assert "She ate the <b>Kumquat</b>." in page


def test_text_from_outside_is_only_text(vectors, encoder, bert_tokenizer):
    contexts = [f"a {EVIL} in it & more", "none <b>x</b> [bold]y[/bold] \x1b[31mred\nline \ud800"]
    report = report_word(EVIL, vectors, encoder, bert_tokenizer, contexts=contexts)
    page = report._repr_html_()
    assert "<script" not in page
    assert "<b>x</b>" not in page
    assert "&lt;script&gt;" in page
    page.encode()
    for face in (in_terminal(report), str(report)):
        assert EVIL in face
        assert "[bold]y[/bold]" in face
        assert "\x1b[31m" not in face


def test_long_contexts_are_cut_around_the_word_and_many_are_counted(pair, encoder, bert_tokenizer):
    contexts = ["the tree and " * 50 + "kumquat" + " of the house" * 50] + ["a kumquat"] * 12 + ["x" * 500 + " kumquat"]
    vectors = induce_vectors(*pair, {"kumquat": contexts})
    report = report_word("kumquat", vectors, encoder, bert_tokenizer, contexts=contexts)
    assert len(report.to_dict()["contexts"]) == 14
    for face in (report._repr_html_(), in_terminal(report), str(report)):
        assert "... and 4 more" in face
    report.contexts.sort(key=lambda context: -len(context.text))
    long, unbroken = [line for line in str(report).splitlines() if "…" in line]
    assert "… the tree and the tree and kumquat of the house of the house …" in long
    assert "… " + "x" * 20 in unbroken
    assert "x kumquat" in unbroken or "… kumquat" in unbroken
    assert max(map(len, str(report).splitlines())) <= 100


def test_wrong_input_is_named(pair, vectors, encoder, make_encoder, bert_tokenizer, roberta_tokenizer):
    with pytest.raises(KeyError, match="no vector for 'wombat' among 3 words"):
        report_word("wombat", vectors, encoder, bert_tokenizer)
    with pytest.raises(ValueError, match="vectors have 32 dimensions, the model's input embeddings 16"):
        report_word("kumquat", vectors, make_encoder("electra"), bert_tokenizer)
    other = make_encoder(initializer_range=0.5)
    theirs, ours = embedding_fingerprint(other.get_input_embeddings().weight), vectors.embedding_fingerprint
    assert theirs != ours
    with pytest.raises(ValueError, match=re.escape(f"the input embeddings {ours}, the model has {theirs}")):
        report_word("kumquat", vectors, other, bert_tokenizer)
    unchecked = WordVectors(["kumquat"], torch.ones(1, 32))
    with pytest.raises(ValueError, match="'kumquat' the id 370, but the model has 300 embeddings"):
        report_word("kumquat", unchecked, make_encoder(vocab_size=300), roberta_tokenizer)
    with pytest.raises(ValueError, match="both bertram= and processor="):
        report_word("kumquat", vectors, encoder, bert_tokenizer, bertram=pair[0])
    with pytest.raises(ValueError, match="induced from 3 contexts; got 1"):
        report_word("kumquat", vectors, encoder, bert_tokenizer, contexts=CONTEXTS[:1])
    with pytest.raises(TypeError, match=r"got a dict. Pass contexts\['kumquat'\]"):
        report_word("kumquat", vectors, encoder, bert_tokenizer, contexts={"kumquat": CONTEXTS})
    with pytest.raises(TypeError, match="must be a list of strings"):
        report_word("kumquat", vectors, encoder, bert_tokenizer, contexts="a kumquat")
