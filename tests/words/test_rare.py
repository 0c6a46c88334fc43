import json
import sys
import time
import unicodedata

import pytest
import torch
from datasets import Dataset, DatasetDict
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from support.tiny_models import make_sentencepiece_tokenizer

from bertram_hf import BertramEmbeddingInjector, InjectionPolicy, WordVectors, find_rare_words, induce_vectors
from bertram_hf.processing_words import WordPattern
from bertram_hf.utils.tables import format_columns
from bertram_hf.words.pieces import PieceReader
from bertram_hf.words.splitting import split_words

TEXTS = ["The Kumquat and the quokka.", "A kumquat, 12 kumquats and 3,5 quokkas!", "the the the and"]


@pytest.fixture(scope="session")
def sentencepiece_tokenizer():
    return make_sentencepiece_tokenizer(["▁kum", "quat", "東京", *"abcdefghijklmnopqrstuvwxyz"])


def test_words_of_text_that_was_split_before_stay_whole(bert_tokenizer):
    text = "我 喜欢 吃 四川火锅 และ ส้มจี๊ด"
    assert list(split_words(text, words_are_split=True)) == text.split()
    rare = find_rare_words([text], bert_tokenizer, min_length=2, words_are_split=True)
    assert {"四川火锅", "喜欢", "ส้มจี๊ด"} <= set(rare.words)
    assert list(split_words("喜欢 ok")) == ["喜", "欢", "ok"]


@pytest.mark.parametrize("text", ["他说don't的时候", "he said don't的"])
def test_negations_are_skipped_beside_other_scripts(text):
    assert not {"don", "t"} & set(split_words(text))


def test_an_ideographic_variation_belongs_to_its_character():
    text = "東京都葛\U000e0100飾区"
    assert "葛" not in split_words(text)
    assert list(WordPattern("葛", ignore_case=True).find_all(text)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("COVID-19, sars-cov-2 and IL-6", ["COVID-19", "sars-cov-2", "and", "IL-6"]),
        ("a well-known 20-year-old", ["a", "well", "known", "20", "year", "old"]),
        ("covid-19-like 1990-95 10-15m", ["covid-19", "like", "1990", "95", "10", "15m"]),
        ("kumquat's don't DIDN’T l'homme", ["kumquat", "s", "l", "homme"]),
        ("'quoted' (kumquat)_emphasis_ __ snake_case", ["quoted", "kumquat", "emphasis", "snake_case"]),
        ("हिन्दी शब्द", ["हिन्दी", "शब्द"]),
        ("我的iPhone很好。", ["我", "的", "iPhone", "很", "好"]),
        ("赤いペン", ["赤", "い", "ペン"]),
        ("ส้มจี๊ด 100฿", ["ส้", "ม", "จี๊", "ด", "100"]),
        ("cafe\u0301", ["café"]),
        ("bad \ud800 surrogate", ["bad", "surrogate"]),
        ("", []),
    ],
)
def test_words_are_cut_as_documented(text, words):
    assert list(split_words(text)) == words


@given(st.lists(st.sampled_from([*"ab1é- '’.\ud800", "q\u0301", "नि", "1\u0301", "金", "จี๊", "\u0e34"]), max_size=30))
def test_each_word_is_found_again_by_the_processors_matching(characters):
    text = "".join(characters)
    composed = unicodedata.normalize("NFC", text.replace("\ud800", "\ufffd"))
    for word in split_words(text):
        assert len(WordPattern(word, ignore_case=False).split(composed)) > 1


def test_long_chains_take_linear_time():
    start = time.perf_counter()
    assert len(list(split_words("a-" * 50_000 + "n" * 100_000 + "'" * 50_000))) == 50_001
    assert time.perf_counter() - start < 5


def test_counts_words_and_texts(bert_tokenizer):
    rare = find_rare_words(TEXTS, bert_tokenizer)
    found = {entry.word: (entry.count, entry.num_texts) for entry in rare}
    assert found == {"kumquat": (2, 2), "kumquats": (1, 1), "quokka": (1, 1), "quokkas": (1, 1)}
    assert rare.words == ["kumquat", "kumquats", "quokka", "quokkas"]  # by falling count, then by alphabet
    assert (rare.num_texts, rare.num_numbers) == (3, 3)
    assert rare.num_different_words == len({"the", "a", "and"}) + 4
    assert rare[0].pieces == ("k", "·u", "·m", "·q", "·u", "·a", "·t")
    assert len(rare) == 4
    assert rare[0] in rare


def test_case_counts_if_the_tokenizer_sees_it(roberta_tokenizer):
    assert {"Kumquat", "kumquat"} <= set(find_rare_words(TEXTS, roberta_tokenizer).words)


def test_criteria_are_combined(bert_tokenizer):
    assert find_rare_words(TEXTS, bert_tokenizer, max_count=1).words == ["kumquats", "quokka", "quokkas"]
    assert find_rare_words(TEXTS, bert_tokenizer, max_count=3, min_pieces=1).words == [
        "and", "kumquat", "kumquats", "quokka", "quokkas",
    ]  # fmt: skip
    assert find_rare_words(TEXTS, bert_tokenizer, min_pieces=8).words == ["kumquats"]
    assert "a" in find_rare_words(TEXTS, bert_tokenizer, max_count=1, min_pieces=1, min_length=1).words
    with pytest.raises(ValueError, match=r"what makes a word rare.*got max_count=None and min_pieces=1"):
        find_rare_words(TEXTS, bert_tokenizer, min_pieces=1)
    with pytest.raises(ValueError, match="min_pieces=0"):
        find_rare_words(TEXTS, bert_tokenizer, min_pieces=0, max_count=3)


def test_counts_of_a_larger_corpus_replace_those_of_the_texts(bert_tokenizer):
    rare = find_rare_words(TEXTS, bert_tokenizer, counts={"Quokka": 40, "quokka": 2, "kumquats": 999}, max_count=100)
    assert [(entry.word, entry.count) for entry in rare] == [("quokka", 42), ("kumquat", 0), ("quokkas", 0)]
    with pytest.raises(TypeError, match="must map words to numbers; got list"):
        find_rare_words(TEXTS, bert_tokenizer, counts=["quokka"])


def test_lists_generators_rows_and_datasets_give_the_same(bert_tokenizer):
    expected = find_rare_words(TEXTS, bert_tokenizer)
    dataset = Dataset.from_dict({"text": TEXTS, "other": [1, 2, 3]})
    halves = Dataset.from_dict({"first": TEXTS, "second": ["", "", ""]})
    for texts in ((text for text in TEXTS), [{"text": text} for text in TEXTS], dataset, dataset.to_iterable_dataset()):
        assert find_rare_words(texts, bert_tokenizer) == expected
    assert find_rare_words(halves, bert_tokenizer, text_column=["first", "second"]) == expected
    assert find_rare_words(halves, bert_tokenizer, text_column="second").words == []


def test_texts_are_read_once_and_one_at_a_time(bert_tokenizer):
    alive = []

    class Text(str):
        def __del__(self):
            alive.remove(id(self))

    def generate():
        for number in range(50):
            text = Text(f"the kumquat number {number}")
            alive.append(id(text))
            yield text
            del text
            assert len(alive) <= 2

    assert find_rare_words(generate(), bert_tokenizer).num_texts == 50


def test_empty_input_gives_an_empty_result(bert_tokenizer):
    for texts in ([], ["", " ", "12 ..."]):
        rare = find_rare_words(texts, bert_tokenizer)
        assert len(rare) == 0
        assert rare.to_list() == []
        assert str(rare).startswith("0 rare words")
        Console(quiet=True).print(rare)


def test_wrong_input_is_named(bert_tokenizer):
    with pytest.raises(TypeError, match=r"got one str. Put a text in a list"):
        find_rare_words("text", bert_tokenizer)
    with pytest.raises(TypeError, match=r"Text 1 must be a string; got NoneType: None"):
        find_rare_words(["a", None], bert_tokenizer)
    with pytest.raises(TypeError, match=r"DatasetDict with \['train'\]. Choose one"):
        find_rare_words(DatasetDict(train=Dataset.from_dict({"text": ["a"]})), bert_tokenizer)
    with pytest.raises(ValueError, match=r"no column 'text', only \['body'\]. Set text_column"):
        find_rare_words(Dataset.from_dict({"body": ["a"]}), bert_tokenizer)


def test_a_word_with_the_unknown_token_is_rare_in_one_piece(bert_tokenizer):
    assert find_rare_words(["the ΨΨΨ"], bert_tokenizer)[0].pieces == ("[UNK]",)


def test_pieces_are_readable(bert_tokenizer, roberta_tokenizer, sentencepiece_tokenizer):
    def pieces(tokenizer, word):
        reader = PieceReader(tokenizer)
        return [reader.read(piece) for piece in reader.split([word])[0]]

    assert pieces(bert_tokenizer, "kum") == ["k", "·u", "·m"]
    assert pieces(roberta_tokenizer, "café") == ["c", "·a", "·f", r"·\xc3", r"·\xa9"]
    assert pieces(roberta_tokenizer, "kum") == ["·k", "·um"]  # this tokenizer's space is a piece of its own
    assert pieces(sentencepiece_tokenizer, "kumquat") == ["kum", "·quat"]
    assert pieces(sentencepiece_tokenizer, "東京") == ["·東京"]
    assert pieces(sentencepiece_tokenizer, "Ψ") == ["<unk>"]


def test_many_words_are_split_as_one_by_one(roberta_tokenizer, monkeypatch):
    words = ["kumquat", "the", "café", "<mask>", "new york"]
    reader = PieceReader(roberta_tokenizer)
    expected = [reader.split([word])[0] for word in words]
    monkeypatch.setattr("bertram_hf.words.pieces.WORDS_PER_CALL", 2)
    assert reader.split(words) == expected
    assert reader.split([]) == []


def test_result_is_json(bert_tokenizer):
    rare = find_rare_words(TEXTS, bert_tokenizer)
    assert json.loads(json.dumps(rare.to_dict())) == rare.to_dict()
    assert rare.to_dict()["words"] == rare.to_list()
    assert rare.to_list()[2] == {
        "word": "quokka", "count": 1, "num_texts": 1, "pieces": ["q", "·u", "·o", "·k", "·k", "·a"],
    }  # fmt: skip


def test_table_shows_twenty_rows_and_how_many_more(bert_tokenizer, monkeypatch):
    words = [f"quokka{chr(97 + i)}" for i in range(23)]
    rare = find_rare_words([" ".join(words), "the ΨΨΨ"], bert_tokenizer)
    console = Console(width=100)
    with console.capture() as capture:
        console.print(rare)
    monkeypatch.setitem(sys.modules, "rich", None)  # as if it were not installed
    for table in (str(rare), capture.get()):
        assert "24 rare words of 25 different words in 2 texts" in table
        assert "... and 4 more" in table
        assert words[19] in table
        assert words[20] not in table
    assert len({line.index("q ·u") for line in str(rare).splitlines()[2:-1] if "q" in line}) == 1
    assert repr(rare).startswith("RareWords(24 words: quokkaa, ")


def test_unknown_token_is_no_markup(bert_tokenizer):
    console = Console(width=100)
    with console.capture() as capture:
        console.print(find_rare_words(["the ΨΨΨ"], bert_tokenizer))
    assert "[UNK]" in capture.get()


def test_columns_are_aligned_for_wide_characters():
    assert format_columns([("東京", "1"), ("e\u0301", "22")], right_aligned=[1]) == "東京   1\ne\u0301     22"


@pytest.fixture
def vectors(make_pair):
    contexts = {"kumquat": ["a kumquat", "nothing"], "the": ["the tree"], "quokka": [], "New  York": ["in New York"]}
    return induce_vectors(*make_pair("add"), contexts)


def test_policy_says_why_a_word_is_left_alone(vectors, bert_tokenizer):
    counts = {"The": 4000, "the": 1000, "New York": 101, "kumquat": 100}
    policy = InjectionPolicy(max_count=100, min_pieces=2, min_contexts=1)
    selected, reasons = policy.select(vectors, bert_tokenizer, counts)
    assert selected.words == ["kumquat"]
    assert reasons == {
        "the": "occurs 5000 times, more than 100",
        "New  York": "occurs 101 times, more than 100",
        "quokka": "0 contexts, fewer than 1",
    }
    assert InjectionPolicy(min_pieces=2).select(vectors, bert_tokenizer)[1] == {"the": "1 piece, fewer than 2"}
    assert InjectionPolicy(min_contexts=2).select(vectors, bert_tokenizer)[1]["kumquat"] == "1 context, fewer than 2"


def test_policy_keeps_what_is_known_of_the_selected_words(vectors, bert_tokenizer):
    selected, reasons = InjectionPolicy().select(vectors, bert_tokenizer)
    assert reasons == {}
    assert torch.equal(selected.embeddings, vectors.embeddings)
    selected, _ = InjectionPolicy(min_contexts=1, min_pieces=2).select(vectors, bert_tokenizer)
    assert torch.equal(selected["kumquat"], vectors["kumquat"])
    assert selected.embedding_fingerprint == vectors.embedding_fingerprint
    assert selected.dropped_contexts == vectors.dropped_contexts
    assert set(selected.context_weights) == set(selected.words)


def test_policy_asks_misspellings_for_no_contexts(vectors, bert_tokenizer):
    vectors.look_alikes["quokka"] = {"quota": 0.51, "quack": 0.1}
    assert vectors.misspellings() == {"quokka"}
    selected, reasons = InjectionPolicy(min_contexts=1).select(vectors, bert_tokenizer)
    assert "quokka" in selected
    assert reasons == {}
    vectors.look_alikes["quokka"]["quota"] = 0.5  # no more than half of it
    assert vectors.misspellings() == set()
    assert "quokka" in InjectionPolicy(min_contexts=1).select(vectors, bert_tokenizer)[1]


def test_policy_never_leaves_the_unknown_token(bert_tokenizer):
    unknown = WordVectors(["ΨΨΨ"], torch.ones(1, 3))
    assert InjectionPolicy(min_pieces=2).select(unknown, bert_tokenizer)[0].words == ["ΨΨΨ"]
    assert len(InjectionPolicy(min_contexts=1).select(unknown, bert_tokenizer)[0]) == 0


def test_policy_leaves_out_what_cannot_be_injected(bert_tokenizer, make_encoder):
    vectors = WordVectors(["kumquat", "[MASK]", "Kumquat"], torch.ones(3, 32))
    selected, reasons = InjectionPolicy().select(vectors, bert_tokenizer)
    assert list(reasons) == ["[MASK]", "Kumquat"]
    BertramEmbeddingInjector(make_encoder(), bert_tokenizer, selected)


def test_policy_by_count_needs_counts(vectors, bert_tokenizer):
    with pytest.raises(ValueError, match=r"max_count=100 needs to know.*pass counts"):
        InjectionPolicy(max_count=100).select(vectors, bert_tokenizer)
