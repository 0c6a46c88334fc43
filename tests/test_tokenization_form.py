import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertram_hf import FormTokenizer
from bertram_hf.tokenization_form import word_ngrams


def test_ngrams_and_vocabularies_equal_those_of_the_released_code(original_folder):
    golden = json.loads((original_folder / "ngrams.json").read_text(encoding="utf-8"))
    for row in golden["to_n_gram"]:
        assert word_ngrams(row["word"], row["nmin"], row["nmax"]) == row["ngrams"]
    for row in golden["vocab"]:
        lines = (original_folder / row["vocab_file"]).read_text(encoding="utf-8").splitlines()
        form = FormTokenizer.from_words(
            [line.split()[0] for line in lines],
            min_length=row["nmin"],
            max_length=row["nmax"],
            min_count=row["ngram_threshold"],
        )
        assert form.vocab == row["id2ngram"]
        for feature in row["features"]:
            assert form([feature["word"]]) == [feature["ngram_ids"]]


@pytest.mark.parametrize(("length", "number"), [(5, 52), (40, 52), (41, 53), (65, 77)])
def test_padding_of_ngrams_of_one_length(length, number):
    ngrams = word_ngrams("x" * length, 1, 1)
    assert (len(ngrams), ngrams[length + 1]) == (number, "</S>")
    assert set(ngrams[length + 2 :]) == {"PAD"}


def test_order_is_falling_count_then_first_occurrence():
    form = FormTokenizer.from_words(["abx", "aby", "zab"], min_length=2, max_length=3, min_count=2)
    assert form.vocab == ["UNK", "PAD", "ab", "<S>a", "<S>ab"]


def test_words_that_look_like_special_units_are_words():
    form = FormTokenizer.from_words(["UNK", "PAD", "UNKPAD"], min_count=1)
    assert form.vocab.count("UNK") == form.vocab.count("PAD") == 1
    assert len(form(["UNK"])[0]) == len(word_ngrams("UNK"))


@given(st.lists(st.text(max_size=12), max_size=8), st.text(max_size=30))
def test_every_word_has_ids_inside_the_vocabulary(words, word):
    for unit in ("ngram", "character"):
        form = FormTokenizer.from_words(words, unit=unit, min_count=1)
        (ids,) = form([word])
        assert ids
        assert all(0 <= i < len(form) for i in ids)


def test_saved_vocabulary_is_the_same(tmp_path):
    form = FormTokenizer.from_words(["a\u2028b", "café", "東京", "\x85x"], min_count=1, max_length=4)
    form.save(tmp_path / "form_vocab.json")
    loaded = FormTokenizer.from_file(tmp_path / "form_vocab.json")
    assert (loaded.vocab, loaded.unit, loaded.min_length, loaded.max_length) == (form.vocab, "ngram", 3, 4)


def test_a_foreign_vocabulary_is_refused():
    with pytest.raises(ValueError, match="starts with UNK, PAD"):
        FormTokenizer(["a", "b"])
