import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertram_hf.processing_context import truncation_span
from bertram_hf.processing_words import WordPattern, compose_text, fold_case, is_mark, normalize_text


def released_truncation(num_tokens, mask_index, budget):
    """The loop of the released code."""
    tokens = list(range(num_tokens))
    while len(tokens) > budget:
        tokens = tokens[1:] if tokens.index(mask_index) > (len(tokens) - 1) / 2 else tokens[:-1]
    return tokens


@given(st.data())
def test_truncation_equals_the_released_loop(data):
    num_tokens = data.draw(st.integers(1, 60))
    mask_index = data.draw(st.integers(0, num_tokens - 1))
    budget = data.draw(st.integers(1, 70))
    start, end = truncation_span(num_tokens, mask_index, budget)
    assert list(range(start, end)) == released_truncation(num_tokens, mask_index, budget)


@pytest.mark.parametrize(
    ("word", "text", "found"),
    [
        ("kumquat", "Kumquat, please", True),
        ("kumquat", "(kumquat)", True),
        ("kumquat", "kumquat's", True),
        ("kumquat", "kumquat-like", True),
        ("kumquat", "kumquats", False),
        ("kumquat", "kumquat_tree", False),
        ("kumquat", "", False),
        ("C++", "I write C++, and more", True),
        ("C++", "c++", True),
        ("levi's", "Levi\u2019s jeans", True),
        ("levi\u2019s", "levi's jeans", True),
        ("levi's", "levi s jeans", False),
        ("co-trimoxazole", "with co\u2011trimoxazole", True),
        ("co\u2010trimoxazole", "with co-trimoxazole", True),
        ("co-trimoxazole", "with co\u2013trimoxazole", False),  # a dash
        (".NET", "the .NET runtime", True),
        ("myocardial infarction", "a Myocardial\n infarction.", True),
        ("myocardial infarction", "myocardial and infarction", False),
        ("café", "the cafe\u0301 there", True),
        ("क", "किताब", False),
        ("किताब", "यह किताब है", True),
        ("東京", "東京 tower", True),
        ("金桔", "我喜欢金桔的味道", True),
        ("金桔", "黄金与桔子", False),
        ("きんかん", "庭のきんかんが実る", True),
        ("ペン", "赤いペンで書く", True),
        ("ペン", "ペンキを塗る", False),  # Katakana words are runs
        ("iPhone", "我的iPhone很好", True),
        ("iPhone", "我的iPhones很好", False),
        ("iPhone手机", "我的iPhone手机很好", True),
        ("ส้ม", "ฉันชอบส้มจี๊ด", True),
        ("จี", "ส้มจี๊ด", False),  # a tone mark follows
        ("iPhone", "ที่iPhone", True),
        ("😀", "so 😀 happy", True),
        ("ÜBER", "über alles", True),
        ("[MASK]", "a [MASK] there", True),
        ("a.c", "abc", False),
    ],
)
def test_words_are_found_as_a_reader_would(word, text, found):
    segments = WordPattern(word, ignore_case=True).split(unicodedata.normalize("NFC", text))
    assert (len(segments) > 1) is found


def test_case_counts_where_the_tokenizer_keeps_it():
    assert WordPattern("kumquat", ignore_case=False).split("Kumquat") == ["Kumquat"]


def test_a_term_that_overlaps_a_longer_word_is_still_found():
    assert WordPattern("a b a", ignore_case=False).split("xa b a b a") == ["xa b ", ""]


@pytest.mark.parametrize(
    ("word", "text", "spans"),
    [
        ("C++", "C++, XC++ and C++", [(0, 3), (14, 17)]),
        ("桔的", "金桔的味道", [(1, 3)]),
        ("नम", "नमस्ते", []),
        ("कि", "कि ताब", [(0, 2)]),
        ("क", "कि", []),  # a mark follows, which \w does not hold
        ("ab", "xab ab\u0301 a\u0301b ab", [(12, 14)]),
    ],
)
def test_words_are_found_with_boundaries_on_both_sides(word, text, spans):
    assert [match.span() for match in WordPattern(word, ignore_case=False).find_all(text)] == spans


@pytest.mark.parametrize("word", ["İstanbul", "I\u0307stanbul", "i\u0307stanbul", "ΟΔΟΣ", "οδος", "οδοσ"])
@pytest.mark.parametrize("before", ["", "İ ", "Σ ", "ß "])
def test_a_word_is_found_in_every_case_whatever_stands_before_it(word, before):
    for spelling in {word, word.upper(), word.lower(), fold_case(word)}:
        text = normalize_text(f"{before}{spelling}.")
        assert WordPattern(word, ignore_case=True).split(text) == [before, "."]


@given(st.text(st.sampled_from("AaΣσςİiıIßẞ\u0307éÉ. ")), st.text(st.sampled_from("AaΣσςİiıIßẞ\u0307éÉ. ")))
def test_case_folding_moves_no_character_and_looks_at_no_neighbour(first, second):
    assert fold_case(first + second) == fold_case(first) + fold_case(second)
    assert len(fold_case(first)) == len(first)
    assert fold_case(fold_case(first)) == fold_case(first) == fold_case(first.swapcase() if first.isascii() else first)


@given(st.text(st.sampled_from("eiaé\u0301\u0327\ufe0f\u0958한\u1112\u1161\u11ab 金❤")))
def test_composed_text_knows_where_its_characters_come_from(text):
    composed, origins = compose_text(text)
    assert composed == normalize_text(text)
    assert len(origins) == len(composed) + 1
    assert origins == sorted(origins)
    # Marks may change places, so that only what stands between two letters has a place of its own.
    letters = [i for i, character in enumerate(composed) if not is_mark(character)]
    for start, end in pairwise([*letters, len(composed)]):
        assert normalize_text(text[origins[start] : origins[end]]) == composed[start:end]
