import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertram_hf.processing_context import truncation_span
from bertram_hf.processing_words import WholeWord, WordPattern


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


def test_a_match_at_a_position_is_one_of_all_matches():
    whole_word = WholeWord("C++")
    text = "C++, XC++ and C++"
    spans = [match.span() for match in whole_word.find_all(text)]
    assert spans == [(0, 3), (14, 17)]
    for position in range(len(text)):
        match = whole_word.match_at(text, position)
        assert (match is not None) == (position in (0, 14))
    assert WholeWord("桔的").match_at("金桔的味道", 1).span() == (1, 3)
    assert WholeWord("नम").match_at("नमस्ते", 0) is None
    assert WholeWord("कि").match_at("कि ताब", 0).span() == (0, 2)
    assert WholeWord("क").match_at("कि", 0) is None  # a mark follows, which \w does not hold
