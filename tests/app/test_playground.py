import json
from zipfile import ZipFile

import pytest
import torch
from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForSequenceClassification

from bertram_hf import WordVectors
from bertram_hf.app.playground import MAX_LINE, MAX_LINES, MAX_WORD, MAX_WORDS, Playground, remember, zip_words


@pytest.fixture
def parts(make_pair):
    model, processor = make_pair()
    return model, processor, model.encoder


@pytest.fixture
def playground(parts):
    return Playground(*parts)


def test_a_word_is_induced_from_sentences_and_a_definition(playground):
    report, vectors = playground.induce(" kumquat ", "a small kumquat\n\nthe old kumquat", "a tree")
    assert vectors.words == ["kumquat"]
    assert [use.text for use in sorted(report.contexts, key=lambda use: use.index)] == [
        "a small kumquat",
        "the old kumquat",
        "kumquat : a tree",
    ]
    assert report.neighbours_after


def test_texts_are_searched_with_words_and_without(playground):
    texts = "a small tree\nthe old town\na kumquat"
    plain, injected = playground.search("kumquat", texts, {})
    assert injected is None
    assert sorted(found.text for found in plain) == sorted(texts.splitlines())
    _, vectors = playground.induce("kumquat", "a small kumquat", "")
    again, injected = playground.search("kumquat", texts, {"kumquat": vectors})
    assert again == plain
    assert injected != plain


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda page: page.induce("", "a kumquat", ""), "Type a word"),
        (lambda page: page.induce("k" * (MAX_WORD + 1), "", ""), "word is too long"),
        (lambda page: page.induce("kumquat", "a " * MAX_LINE, ""), "sentences are too long"),
        (lambda page: page.induce("kumquat", "a\n" * (MAX_LINES + 1), ""), "sentences are too long"),
        (lambda page: page.induce("kumquat", "x" * 10_000_000, ""), "sentences are too long"),
        (lambda page: page.induce("kumquat", "", "x" * 10_000_000), "definition is too long"),
        (lambda page: page.search("kumquat", "one text", {}), "two or more texts"),
        (lambda page: page.search("", "a\nb", {}), "Type a query"),
    ],
)
def test_what_is_missing_or_too_long_is_told(playground, call, match):
    with pytest.raises(ValueError, match=match):
        call(playground)


@pytest.mark.parametrize("word", ["../../etc/passwd", "<script>alert(1)</script>", "\x00\x1b[31m", "[MASK]", "\ud800"])
def test_text_from_outside_is_text(playground, word):
    try:
        report, vectors = playground.induce(word, f"a {word} tree", f"{word}")
    except ValueError:
        return  # no word
    assert "<script" not in report._repr_html_()
    with ZipFile(zip_words({word: vectors})) as archive:
        assert all(name.startswith("my-words/") and ".." not in name for name in archive.namelist())


def test_visitors_words_are_bounded_and_can_be_taken_home(tmp_path):
    words = {}
    for number in range(MAX_WORDS + 5):
        words = remember(words, WordVectors([f"word{number}"], torch.full((1, 4), float(number))))
    assert len(words) == MAX_WORDS
    assert list(words)[-1] == f"word{MAX_WORDS + 4}"
    with ZipFile(zip_words(words)) as archive:
        archive.extractall(tmp_path)
    assert WordVectors.from_pretrained(tmp_path / "my-words").words == list(words)
    with pytest.raises(ValueError, match="no word yet"):
        zip_words({})


@pytest.mark.parametrize("auto_class", [AutoModelForMaskedLM, AutoModelForSequenceClassification])
def test_a_model_is_asked_with_words_and_without(parts, tmp_path, auto_class):
    model, processor, encoder = parts
    head = auto_class.from_config(encoder.config).eval()
    with torch.no_grad():
        head.get_input_embeddings().weight.copy_(encoder.get_input_embeddings().weight)
    head.save_pretrained(tmp_path)
    processor.tokenizer.save_pretrained(tmp_path)
    playground = Playground(model, processor, encoder, str(tmp_path))
    _, vectors = playground.induce("kumquat", "a small kumquat", "")
    mask = "[MASK]" if playground.task == "fill-mask" else "tree"
    plain, injected = playground.ask(f"the kumquat {mask}", {"kumquat": vectors})
    assert plain != injected
    assert playground.ask(f"the kumquat {mask}", {})[1] == plain
    if playground.task == "fill-mask":
        with pytest.raises(ValueError, match=r"one \[MASK\]"):
            playground.ask("no mask", {})


def test_a_model_of_another_kind_is_refused(parts, tmp_path):
    AutoConfig.for_model("bert", architectures=["BertModel"]).save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["BertModel"]
    with pytest.raises(ValueError, match="is a BertModel"):
        Playground(*parts, str(tmp_path))
