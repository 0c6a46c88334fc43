import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from datasets import Dataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tiny_models import make_sentencepiece_tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
)

from bertram_hf import align_word_labels, find_answer_tokens, ignore_injected_labels
from bertram_hf.injection import tokenizer as module
from bertram_hf.injection.tokenizer import splice_tokenizer
from bertram_hf.injection.word_index import WordIndex

WORDS = ["kumquat", "resigntaion", "myocardial infarction", "covid-19", "C++", "infarction", "東京", "😀"]
FIRST_ID = 1000


@pytest.fixture(params=["bert", "roberta"])
def plain(request):
    return copy.deepcopy(request.getfixturevalue(f"{request.param}_tokenizer"))


@pytest.fixture(scope="module")
def gapless_pieces():
    """A tokenizer with a piece that holds the end of one word and the beginning of the next."""
    return make_sentencepiece_tokenizer(["桔味", *"我金桔味道的"])


def splice(tokenizer, mode="replace", words=WORDS):
    index = WordIndex(ignore_case="[MASK]" in tokenizer.all_special_tokens)
    for row, word in enumerate(words):
        index.add(word, row)
    return splice_tokenizer(tokenizer, index, list(words), FIRST_ID, mode)


def rows(encoding):
    return [i - FIRST_ID for i in encoding["input_ids"] if i >= FIRST_ID]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a kumquat, a tree", [0]),
        ("kumquat", [0]),
        ("no kumquats here", []),
        ("kumquat-like and kumquat's (kumquat)", [0, 0, 0]),
        ("a myocardial infarction and an infarction", [2, 5]),
        ("a myocardial\n  infarction", [2]),
        ("the covid-19 year, covid-1", [3]),
        ("in C++.", [4]),
        ("東京 tower 😀 😀", [6, 7, 7]),
        ("私は東京に住む", [6]),  # no spaces between words
        ("東方京都", []),
        ("我的kumquat很好", [0]),
        ("", []),
        ("kumquat kumquat", [0, 0]),
    ],
)
def test_words_are_found_where_a_reader_sees_them(plain, text, expected):
    assert rows(splice(plain)(text)) == expected
    assert rows(splice(plain, "slash")(text)) == expected


def test_what_stands_beside_a_word_without_spaces_keeps_its_tokens(bert_tokenizer):
    text = "的kumquat的東京的"
    encoding = splice(bert_tokenizer)(text, return_offsets_mapping=True)
    assert [text[start:end] for start, end in encoding["offset_mapping"]][1:-1] == ["的", "kumquat", "的", "東京", "的"]
    assert rows(encoding) == [0, 6]
    assert len(encoding["input_ids"]) == 7


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("きんかんとみかん", ["きんかん", "みかん"], ["きんかん", "と", "みかん"]),
        ("ฉันชอบส้มจี๊ดและกล้วย", ["ส้มจี๊ด", "กล้วย"], ["ฉันชอบ", "ส้มจี๊ด", "และ", "กล้วย"]),
        ("きんかんkumquat", ["きんかん", "kumquat"], ["きんかん", "kumquat"]),
        ("みかんきんかん と みかん", ["きんかん", "みかん"], ["みかん", "きんかん", "と", "みかん"]),
    ],
)
def test_words_that_share_a_token_are_all_spliced(bert_tokenizer, text, words, expected):
    plain = bert_tokenizer(text)["input_ids"]
    replaced = splice(bert_tokenizer, words=words)(text, return_offsets_mapping=True)
    assert [text[start:end] for start, end in replaced["offset_mapping"]][1:-1] == expected
    assert [words[row] for row in rows(replaced)] == [word for word in expected if word in words]
    slashed = splice(bert_tokenizer, "slash", words=words)(text)["input_ids"]
    slash = bert_tokenizer.convert_tokens_to_ids("/")
    assert [i for i in slashed if i < FIRST_ID and i != slash] == plain
    assert [i for i in slashed if i >= FIRST_ID] == [i for i in replaced["input_ids"] if i >= FIRST_ID]
    assert all(slashed[i - 1] == slash for i in range(len(slashed)) if slashed[i] >= FIRST_ID)


def test_what_two_words_share_is_not_doubled(gapless_pieces):
    words = ["金桔", "味道"]
    tokenizer = splice(gapless_pieces, words=words)
    encoding = tokenizer("我金桔味道的")
    assert encoding.tokens() == ["▁", "我", "金桔", "味道", "的"]
    assert rows(encoding) == [0, 1]


def test_case_follows_the_tokenizer(bert_tokenizer, roberta_tokenizer):
    assert rows(splice(bert_tokenizer)("A KUMQUAT")) == [0]
    assert rows(splice(roberta_tokenizer)("A KUMQUAT")) == []


def test_a_word_inside_a_special_token_is_left_alone(bert_tokenizer):
    tokenizer = splice(bert_tokenizer, words=["mask", "sep"])
    assert tokenizer("a [MASK] tree [SEP]")["input_ids"] == bert_tokenizer("a [MASK] tree [SEP]")["input_ids"]
    assert rows(tokenizer("a mask tree")) == [0]


def test_replace_and_slash_have_the_tokens_of_the_paper(bert_tokenizer):
    text = "the kumquat, old"
    pieces = bert_tokenizer.tokenize("kumquat")
    assert splice(bert_tokenizer)(text).tokens() == ["[CLS]", "the", "kumquat", ",", "old", "[SEP]"]
    slash = ["[CLS]", "the", *pieces, "/", "kumquat", ",", "old", "[SEP]"]
    assert splice(bert_tokenizer, "slash")(text).tokens() == slash


def test_offsets_and_words_point_to_the_text(plain):
    text = "a tree and a kumquat, old"
    for mode in ("replace", "slash"):
        encoding = splice(plain, mode)(text, return_offsets_mapping=True)
        start, end = encoding["offset_mapping"][encoding["input_ids"].index(FIRST_ID)]
        assert text[start:end] == "kumquat"
        token = encoding.char_to_token(text.index("kumquat"))
        assert encoding.token_to_chars(token).start == start
        plain_encoding = plain(text, return_offsets_mapping=True)
        word = plain_encoding.char_to_word(text.index("kumquat"))
        assert encoding.char_to_word(text.index("kumquat")) == word
        assert tuple(encoding.word_to_chars(word))[1] == end
        assert encoding.word_to_tokens(word).start in (token - 1, token)  # "Ġ", the space before it, has no character
        assert encoding.token_to_word(encoding["input_ids"].index(FIRST_ID)) == word
        assert [w for w in encoding.word_ids() if w != word] == [w for w in plain_encoding.word_ids() if w != word]


def test_pairs_have_the_types_and_special_tokens_of_the_tokenizer(plain):
    first, second = "a kumquat tree", "the old resigntaion"
    tokenizer = splice(plain)
    encoding = tokenizer(first, second, return_special_tokens_mask=True, return_token_type_ids=True)
    # The same texts with words that are one token each.
    single = plain(first.replace("kumquat", "old"), second.replace("resigntaion", "tree"), return_token_type_ids=True)
    masked = tokenizer.get_special_tokens_mask(single["input_ids"], already_has_special_tokens=True)
    if len(single["input_ids"]) == len(encoding["input_ids"]):
        assert encoding["token_type_ids"] == single["token_type_ids"]
        assert encoding["special_tokens_mask"] == masked
        assert encoding.sequence_ids() == single.sequence_ids()
    assert rows(encoding) == [0, 1]
    assert encoding["input_ids"][0] == single["input_ids"][0]
    assert encoding["input_ids"][-1] == single["input_ids"][-1]


@pytest.mark.parametrize("mode", ["replace", "slash"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_truncation_never_cuts_a_word_and_never_exceeds_the_limit(plain, mode, side):
    tokenizer = splice(plain, mode)
    tokenizer.truncation_side = side
    text = "the kumquat tree resigntaion old kumquat"
    full = tokenizer(text)["input_ids"]
    longest = max(len(plain.tokenize(f" {word}")) for word in ("kumquat", "resigntaion")) + 2
    for max_length in range(3, len(full) + 2):
        ids = tokenizer(text, truncation=True, max_length=max_length)["input_ids"]
        assert len(ids) <= max_length
        body = ids[1:-1]
        kept = full[1:-1][: len(body)] if side == "right" else full[1:-1][len(full) - 2 - len(body) :]
        if max_length - 2 >= longest:
            assert body == kept
            if mode == "slash":
                slash = tokenizer._tokenizer.slash[0]
                assert all(body[i - 1] == slash for i, token in enumerate(body) if token >= FIRST_ID)


@pytest.mark.parametrize("mode", ["replace", "slash"])
def test_overflow_windows_cover_the_text(plain, mode):
    tokenizer = splice(plain, mode)
    text = "the kumquat tree and the resigntaion of the old kumquat in the garden near the river " * 4
    windows = tokenizer(
        text, truncation=True, max_length=24, stride=6, return_overflowing_tokens=True, return_offsets_mapping=True
    )
    assert len(windows["input_ids"]) > 3
    assert set(windows["overflow_to_sample_mapping"]) == {0}
    covered = set()
    for offsets in windows["offset_mapping"]:
        covered |= {i for start, end in offsets for i in range(start, end)}
    assert {i for i, character in enumerate(text) if not character.isspace()} <= covered
    assert sum(rows({"input_ids": ids}).count(0) for ids in windows["input_ids"]) >= 8


def test_texts_without_a_word_are_as_before_even_in_a_mixed_batch(plain):
    tokenizer = splice(plain, "slash")
    texts = ["a tree", "a kumquat", "", "the old garden, near the river"]
    settings = {"truncation": True, "max_length": 12, "return_offsets_mapping": True}
    mixed, alone = tokenizer(texts, **settings), plain(texts, **settings)
    for key in alone:
        for row in (0, 2, 3):
            assert mixed[key][row] == alone[key][row]
    padded = tokenizer(texts, padding=True, return_tensors="pt")
    assert padded["input_ids"].shape == padded["attention_mask"].shape
    assert padded["attention_mask"].sum(dim=1).tolist() == [len(ids) for ids in tokenizer(texts)["input_ids"]]
    fixed = tokenizer(texts, padding="max_length", max_length=30, pad_to_multiple_of=8)
    assert {len(ids) for ids in fixed["input_ids"]} == {32}


def test_pre_split_words_keep_their_indices(plain):
    words = ["the", "kumquat", "of", "myocardial", "infarction", "x-kumquat,"]
    for mode, of_term in (("replace", 3), ("slash", 4)):  # the first word of the term, or the one before the slash
        encoding = splice(plain, mode)(words, is_split_into_words=True)
        assert rows(encoding) == [0, 2, 0]
        of_vector = [w for w, i in zip(encoding.word_ids(), encoding["input_ids"], strict=True) if i >= FIRST_ID]
        assert of_vector == [1, of_term, 5]
        of_all = [word for word in encoding.word_ids() if word is not None]
        assert of_all == sorted(of_all)
    batch = splice(plain)([words, ["a", "tree"]], is_split_into_words=True, padding=True)
    assert len({len(ids) for ids in batch["input_ids"]}) == 1


def test_all_windows_of_long_texts_have_one_length(plain):
    text = "the old myocardial infarction and kumquat " * 8
    for max_length in range(12, 24):
        options = {"padding": True, "truncation": True, "max_length": max_length, "return_overflowing_tokens": True}
        encoding = splice(plain, "slash")([text, "a tree"], **options)
        assert len(encoding["input_ids"]) > 3
        assert len({len(ids) for ids in encoding["input_ids"]}) == 1


def test_slash_and_vector_of_a_term_have_no_label(plain):
    encoding = splice(plain, "slash")(["myocardial", "infarction"], is_split_into_words=True)
    aligned = align_word_labels(encoding, [1, 2])
    assert [label for label in aligned if label != -100] == [1, 2]
    assert aligned[-3:] == [-100] * 3


def test_threads_get_what_one_thread_gets(plain):
    tokenizer = splice(plain)
    texts = ["a kumquat " * number for number in (1, 30)] + ["a tree " * number for number in (1, 30)]
    options = {"padding": True, "truncation": True, "max_length": 16}
    expected = [tokenizer([text, "short"], **options)["input_ids"] for text in texts]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda text: tokenizer([text, "short"], **options)["input_ids"], texts * 50)
        assert list(found) == expected * 50


def test_words_of_an_encoding_have_ids_again(plain):
    tokenizer = splice(plain)
    text = "a kumquat and C++"
    assert tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) == tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.convert_tokens_to_ids("no-such-token") == tokenizer.unk_token_id


def test_new_tokens_are_refused(plain):
    tokenizer = splice(plain)
    with pytest.raises(ValueError, match=r"would get the ids of injected words: '<user>'\. Add them to tokenizer and"):
        tokenizer.add_tokens(["<user>"])
    with pytest.raises(ValueError, match="then inject"):
        tokenizer.add_special_tokens({"additional_special_tokens": ["<user>"]})
    number = len(tokenizer)
    tokenizer.add_tokens([tokenizer.mask_token])  # is there
    assert len(tokenizer) == number


def test_word_labels_follow_the_words(plain):
    words, labels = ["the", "kumquat", "tree"], [0, 5, 2]
    for mode in ("replace", "slash"):
        encoding = splice(plain, mode)(words, is_split_into_words=True)
        aligned = align_word_labels(encoding, labels)
        assert [label for label in aligned if label != -100] == labels
        everywhere = align_word_labels(encoding, labels, label_all_tokens=True)
        assert everywhere[encoding["input_ids"].index(FIRST_ID)] == 5
        assert everywhere[0] == everywhere[-1] == -100
    with pytest.raises(ValueError, match="more than 2 words"):
        align_word_labels(encoding, labels[:2])


def test_answers_are_found_in_the_tokens(plain):
    question, context = "what tree", "the old kumquat tree in the garden"
    start = context.index("kumquat tree")
    for mode in ("replace", "slash"):
        tokenizer = splice(plain, mode)
        encoding = tokenizer(question, context)
        first, last = find_answer_tokens(encoding, start, start + len("kumquat tree"))
        assert encoding.token_to_chars(first).start == start
        assert encoding.token_to_chars(last).end == start + len("kumquat tree")
        windows = tokenizer(
            question, context, truncation="only_second", max_length=16, stride=2, return_overflowing_tokens=True
        )
        found = [find_answer_tokens(windows, 0, 3, batch_index=i) for i in range(len(windows["input_ids"]))]
        assert found[0] != (0, 0)
    with pytest.raises(ValueError, match="at least one character"):
        find_answer_tokens(encoding, 3, 3)


def test_collators_and_datasets_take_the_tokenizer(plain):
    tokenizer = splice(plain, "slash")
    texts = ["a kumquat tree", "the old garden", "resigntaion"]
    dataset = Dataset.from_dict({"text": texts, "label": [0, 1, 0]})
    encoded = dataset.map(lambda batch: tokenizer(batch["text"]), batched=True, remove_columns=["text"])
    assert encoded["input_ids"][:] == tokenizer(texts)["input_ids"]
    features = [{k: v for k, v in row.items() if k != "label"} for row in encoded]
    padded = DataCollatorWithPadding(tokenizer)(features)
    assert padded["input_ids"].shape == padded["attention_mask"].shape
    for row in features:
        row["labels"] = [1] * len(row["input_ids"])
    assert (DataCollatorForTokenClassification(tokenizer)(features)["labels"] == -100).any()
    torch.manual_seed(0)
    plain_features = [{"input_ids": row["input_ids"]} for row in encoded] * 20
    masked = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.5)(plain_features)
    assert masked["input_ids"].max() < FIRST_ID + len(WORDS)
    labels = ignore_injected_labels(masked["labels"], FIRST_ID)
    assert labels.max() < FIRST_ID
    assert (masked["labels"] >= FIRST_ID).any()


def test_tokens_and_text_come_back(plain):
    tokenizer = splice(plain)
    ids = tokenizer("the kumquat tree")["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "the kumquat tree"
    assert tokenizer.convert_ids_to_tokens(FIRST_ID + 2) == "myocardial infarction"
    assert len(tokenizer) == len(plain)


def test_the_tokenizer_can_be_pickled_and_does_not_become_a_plain_one_when_it_is_saved(plain, tmp_path):
    tokenizer = splice(plain, "slash")
    text = "a kumquat tree"
    assert pickle.loads(pickle.dumps(tokenizer))(text) == tokenizer(text)
    tokenizer.save_pretrained(tmp_path)
    assert type(tokenizer) is type(plain)
    with pytest.raises(ValueError, match=r"holds no injector: .* Save the whole with injector\.save_pretrained"):
        AutoTokenizer.from_pretrained(tmp_path)


def test_the_given_tokenizer_is_left_alone(plain):
    before = plain("a kumquat", truncation=True, max_length=6)["input_ids"]
    splice(plain, "slash")("a kumquat", padding="max_length", max_length=40)
    assert plain("a kumquat", truncation=True, max_length=6)["input_ids"] == before


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60), pieces=st.lists(st.sampled_from([*WORDS, "tree", ",", "é", "\x00"]), max_size=6))
def test_any_text_is_spliced_without_loss(bert_tokenizer, roberta_tokenizer, text, pieces):
    text = f"{text} {' '.join(pieces)}"
    for plain_tokenizer in (bert_tokenizer, roberta_tokenizer):
        plain_ids = plain_tokenizer(text)["input_ids"]
        slash = splice(plain_tokenizer, "slash")(text)["input_ids"]
        slash_id = splice(plain_tokenizer, "slash")._tokenizer.slash[0]
        # Slash only adds: without each added pair the plain tokens remain.
        kept = [
            i
            for i, following in zip(slash, [*slash[1:], 0], strict=True)
            if i < FIRST_ID and not (i == slash_id and following >= FIRST_ID)
        ]
        assert kept == plain_ids
        replaced = splice(plain_tokenizer)(text)
        assert rows(replaced) == rows({"input_ids": slash})


def test_the_tokenizer_is_asked_once_where_special_tokens_stand(plain, monkeypatch):
    tokenizer = splice(plain)
    calls = []
    read = module.read_templates
    monkeypatch.setattr(module, "read_templates", lambda *arguments: calls.append(arguments) or read(*arguments))
    for _ in range(3):
        tokenizer(["a kumquat", "kumquat tree", "the old town"])
    assert len(calls) == 1
    tokenizer("a kumquat", "a tree")
    tokenizer("a kumquat", add_special_tokens=False)
    assert len(calls) == 3


@pytest.mark.parametrize("strategy", ["only_first", "only_second", "longest_first"])
def test_a_length_of_the_special_tokens_leaves_no_text(plain, strategy):
    length = plain.num_special_tokens_to_add(pair=True)
    pair = ("an old kumquat", "the resigntaion")
    encoding = splice(plain)(*pair, truncation=strategy, max_length=length, padding=True)
    assert encoding["input_ids"] == plain(*pair, truncation=strategy, max_length=length)["input_ids"]
    assert len(encoding["input_ids"]) == length


def test_a_pair_that_one_text_alone_cannot_shorten_is_refused(plain):
    length = plain.num_special_tokens_to_add(pair=True) + 1
    with pytest.raises(ValueError, match=r"must bring the pair to 1 tokens, but the other text has \d+\. Use 'longest"):
        splice(plain)("a kumquat", "the old tree", truncation="only_first", max_length=length)


def test_windows_of_both_texts_of_a_pair_are_combined(bert_tokenizer):
    pair = ("kumquat tree old", "garden kumquat old")
    options = {"truncation": "longest_first", "max_length": 7, "return_overflowing_tokens": True}
    windows = splice(bert_tokenizer)(*pair, **options)
    tokens = [" ".join(windows.tokens(row)[1:-1]) for row in range(len(windows["input_ids"]))]
    assert tokens == [
        "kumquat tree [SEP] garden kumquat",
        "old [SEP] garden kumquat",
        "old [SEP] old",
        "kumquat tree [SEP] old",
    ]


def test_what_a_piece_holds_beyond_a_pre_split_term_is_kept():
    tokenizer = splice(make_sentencepiece_tokenizer(["g,", *"redhin,"]), words=["red herring"])
    encoding = tokenizer(["red", "herring,"], is_split_into_words=True, return_offsets_mapping=True)
    assert encoding.tokens() == ["red herring", "▁", ","]
    assert encoding.word_ids() == [0, 1, 1]
    assert encoding["offset_mapping"][-1] == (7, 8)


def test_a_vector_behind_a_pre_split_term_has_the_offsets_of_its_last_word(plain):
    words = ["a", "myocardial", "infarction"]
    encoding = splice(plain, "slash")(words, is_split_into_words=True, return_offsets_mapping=True)
    vector = encoding["input_ids"].index(FIRST_ID + 2)
    assert encoding.word_ids()[vector] == 2
    assert encoding["offset_mapping"][vector] == (0, len("infarction"))


def test_special_tokens_follow_a_changed_post_processor(bert_tokenizer):
    tokenizer = splice(bert_tokenizer)
    assert tokenizer("a kumquat").tokens() == ["[CLS]", "a", "kumquat", "[SEP]"]
    post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", bert_tokenizer.cls_token_id)])
    tokenizer._tokenizer.post_processor = post_processor
    assert tokenizer("a kumquat").tokens() == ["[CLS]", "a", "kumquat"]
    tokenizer._tokenizer.post_processor.single = "$A [CLS]"
    assert tokenizer("a kumquat").tokens() == ["a", "kumquat", "[CLS]"]
    assert tokenizer("a tree").tokens() == ["a", "tree", "[CLS]"]
    assert tokenizer("A tree, a kumquat").tokens() == ["a", "tree", ",", "a", "kumquat", "[CLS]"]
    tokenizer._tokenizer.normalizer.lowercase = False
    assert tokenizer("A kumquat").tokens()[0] == tokenizer("A tree").tokens()[0] != "a"
