import re
import unicodedata

import pytest

from bertram_hf.injection.word_index import WordIndex, WordMatch, _Form


def make_index(*words, ignore_case=True):
    index = WordIndex(ignore_case=ignore_case)
    for row, word in enumerate(words):
        index.add(word, row)
    return index


def test_the_longest_and_leftmost_word_wins():
    index = WordIndex(ignore_case=False)
    for row, word in enumerate(["new york", "york", "new york city", "city hall"]):
        index.add(word, row)
    assert index.find("in new york city hall") == [WordMatch(3, 16, 2)]
    index.remove("new york city", 2)
    assert [match.row for match in index.find("in new york city hall")] == [0, 3]
    index.add("york", 9)
    assert index.find("york") == [WordMatch(0, 4, 9)]


def test_letters_that_grow_when_lower_cased_do_not_shift_matches():
    index = WordIndex(ignore_case=True)
    index.add("kumquat", 0)
    assert index.find("İİ Kumquat") == [WordMatch(3, 10, 0)]
    index.add("café", 1)
    assert [match.row for match in index.find("a cafe\u0301 and a café")] == [1, 1]


def test_hyphens_and_apostrophes_that_look_the_same_are_the_same():
    index = WordIndex(ignore_case=True)
    index.add("levi\u2019s", 2)
    assert [match.row for match in index.find("Levi's and levi\u2019s jeans")] == [2, 2]
    index.add("co-trimoxazole", 3)
    assert [match.row for match in index.find("Co\u2011trimoxazole, co-trimoxazole")] == [3, 3]
    assert index.key("co\u2010trimoxazole") == index.key("co-trimoxazole")


@pytest.mark.parametrize(("word", "text"), [("--", "a \u2010\u2011 b"), ("-", "a \u2010 b"), ("'", "a \u2019 b")])
def test_words_of_marks_alone_are_found_as_typographers_write_them(word, text):
    assert make_index(word).find(text) == [WordMatch(2, 2 + len(word), 0)]


@pytest.mark.parametrize("word", ["ΟΔΟΣ", "οδος", "οδοσ", "İstanbul", "I\u0307stanbul", "i\u0307stanbul", "Résumé"])
@pytest.mark.parametrize("before", ["", "İ ", "i\u0307 ", "Σ ", "e\u0301 "])
@pytest.mark.parametrize("after", ["", ".Α", " İ e\u0301"])
def test_a_word_is_found_in_every_case_whatever_stands_beside_it(word, before, after):
    index = make_index(word)
    for cased in (word, word.upper(), word.lower()):
        for form in ("NFC", "NFD"):
            spelling = unicodedata.normalize(form, cased)
            start = len(before)
            assert index.find(f"{before}{spelling}{after}") == [WordMatch(start, start + len(spelling), 0)]


def test_a_word_is_found_with_some_accents_composed_and_some_not():
    assert make_index("résumé").find("a re\u0301sumé") == [WordMatch(2, 9, 0)]
    assert make_index("❤").find("e\u0301 ❤\ufe0f") == [WordMatch(3, 4, 0)]


def test_case_counts_where_the_tokenizer_keeps_it():
    index = make_index("İzmir", ignore_case=False)
    assert [match.row for match in index.find("İzmir, I\u0307zmir")] == [0, 0]
    assert index.find("i\u0307zmir") == []


def test_many_terms_with_a_common_first_word_cost_no_pattern_and_few_comparisons(monkeypatch):
    index = make_index(*(f"acute {number}x leukemia" for number in range(1000)), "acute", "acute-phase")
    compared = []
    find_end = _Form.find_end
    monkeypatch.setattr(_Form, "find_end", lambda *arguments: compared.append(arguments) or find_end(*arguments))
    monkeypatch.setattr(re, "compile", lambda *arguments: pytest.fail("a pattern is compiled"))
    monkeypatch.setattr(re, "_compile", lambda *arguments: pytest.fail("a pattern is compiled"))
    text = "acute pain, acute 7x  leukemia, acute 7x, acute-phase"
    assert [match.row for match in index.find(text)] == [1000, 7, 1000, 1001]
    assert len(compared) <= 6


def test_removed_terms_are_not_found():
    index = make_index("acute myeloid leukemia", "acute pain")
    index.remove("Acute  pain", 1)
    assert index.find("acute pain, acute myeloid leukemia") == [WordMatch(12, 34, 0)]
    index.remove("acute myeloid leukemia", 0)
    assert index.find("acute pain, acute myeloid leukemia") == []
    assert index.rows == {}
