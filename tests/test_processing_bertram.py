import copy
import logging

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import AutoProcessor, PreTrainedTokenizerFast

from bertram_hf import BertramProcessor, FormTokenizer, WordError


@pytest.fixture(scope="session")
def metaspace_tokenizer():
    """A tokenizer of the SentencePiece kind, as XLM-R, ALBERT and DeBERTa have."""
    pieces = [
        "<s>",
        "</s>",
        "<unk>",
        "<pad>",
        "<mask>",
        "▁",
        "▁a",
        "▁the",
        "▁tree",
        "▁garden",
        ",",
        ".",
        "s",
        "▁:",
        '▁"',
    ]
    letters = [chr(code) for code in range(97, 123)]
    backend = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces + letters], unk_id=2))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        cls_token="<s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token=AddedToken("<mask>", lstrip=True),
    )


def tokens_of(processor, word, context):
    (encoded,) = processor.encode([word], [[context]])
    return processor.tokenizer.convert_ids_to_tokens(encoded.input_ids[0]), encoded.mask_positions[0]


@pytest.mark.parametrize("kind", ["bert", "roberta", "metaspace"])
@pytest.mark.parametrize(
    "context", ["kumquat", "the kumquat tree", "the kumquat, a kumquat.", "kumquat garden", "a garden,kumquat tree"]
)
def test_text_is_tokenised_as_the_tokenizer_does_with_its_mask(request, kind, context):
    tokenizer = copy.deepcopy(request.getfixturevalue(f"{kind}_tokenizer"))
    if kind == "roberta":  # as the tokenizer files of real RoBERTa models say; the plain vocabulary cannot
        tokenizer.add_special_tokens({"mask_token": AddedToken("<mask>", lstrip=True)})
    processor = BertramProcessor(tokenizer)
    expected = tokenizer(context.replace("kumquat", tokenizer.mask_token), add_special_tokens=False)["input_ids"]
    (encoded,) = processor.encode(["kumquat"], [[context]])
    assert encoded.input_ids == [[tokenizer.cls_token_id, *expected, tokenizer.sep_token_id]]
    assert encoded.mask_positions == [1 + expected.index(tokenizer.mask_token_id)]


def test_prefixes_are_those_of_the_paper(bert_tokenizer, roberta_tokenizer):
    assert tokens_of(BertramProcessor(bert_tokenizer, prefix="colon"), "quokka", "a quokka") == (
        ["[CLS]", "[SEP]", ":", "a", "[MASK]", "[SEP]"],
        4,
    )
    assert tokens_of(BertramProcessor(roberta_tokenizer, prefix="quotes"), "quokka", " a quokka") == (
        ["<s>", 'Ġ"', "</s>", 'Ġ"', ":", "Ġa", "<mask>", "</s>"],
        6,
    )


def test_case_follows_the_tokenizer(bert_tokenizer, roberta_tokenizer):
    assert BertramProcessor(bert_tokenizer).encode(["Kumquat"], [["a kumquat"]])[0].used == [0]
    assert BertramProcessor(roberta_tokenizer).encode(["Kumquat"], [["a kumquat"]])[0].used == []
    form = FormTokenizer.from_words(["kumquat"], min_count=1)
    assert BertramProcessor(bert_tokenizer, form=form).encode_form("Kumquat") == form(["kumquat"])[0]
    assert BertramProcessor(roberta_tokenizer, form=form).encode_form("Kumquat") == form(["Kumquat"])[0]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_special_tokens_in_user_text_are_text(request, kind):
    tokenizer = request.getfixturevalue(f"{kind}_tokenizer")
    processor = BertramProcessor(tokenizer, prefix="colon")
    literal = f"{tokenizer.mask_token} {tokenizer.sep_token} and {tokenizer.pad_token}{tokenizer.cls_token}"
    (encoded,) = processor.encode(["kumquat"], [[f"{literal} a kumquat here {tokenizer.mask_token}", literal]])
    assert encoded.dropped == {1: "word not found"}
    (ids,) = encoded.input_ids
    assert ids[3:-1].count(tokenizer.mask_token_id) == 1
    assert ids.index(tokenizer.mask_token_id) == encoded.mask_positions[0]
    assert not {tokenizer.sep_token_id, tokenizer.cls_token_id, tokenizer.pad_token_id} & set(ids[3:-1])


def test_every_occurrence_is_masked_and_the_first_is_read(bert_tokenizer):
    tokens, position = tokens_of(BertramProcessor(bert_tokenizer), "quokka", "the quokka and the QUOKKA.")
    assert tokens == ["[CLS]", "the", "[MASK]", "and", "the", "[MASK]", ".", "[SEP]"]
    assert position == 2


def test_a_long_context_keeps_the_word_in_the_middle(bert_tokenizer):
    processor = BertramProcessor(bert_tokenizer, max_length=14, prefix="colon")
    tokens, position = tokens_of(processor, "quokka", "the " * 500 + "quokka" + " tree" * 500)
    assert len(tokens) == 13
    assert tokens[position] == "[MASK]"
    assert tokens[3:-1] == ["the"] * 4 + ["[MASK]"] + ["tree"] * 4


def test_dropped_contexts_are_counted_in_a_warning(bert_tokenizer, caplog):
    with caplog.at_level(logging.WARNING):
        batch = BertramProcessor(bert_tokenizer)(["quokka"], [["a quokka", "a tree", ""]])
    assert batch["num_contexts"].tolist() == [1]
    assert "2 contexts do not hold their word" in caplog.text


def test_batches_are_padded_on_the_right(make_pair):
    _, processor = make_pair("add")
    processor.tokenizer.padding_side = "left"
    batch = processor(["kumquat", "q"], [["a kumquat in the garden", "kumquat"], []])
    processor.tokenizer.padding_side = "right"
    assert batch["num_contexts"].tolist() == [2, 0]
    assert batch["attention_mask"].sum(dim=1).tolist() == [9, 5]
    assert torch.equal(batch["attention_mask"].sort(dim=1, descending=True).values, batch["attention_mask"])
    assert batch["form_ids"].shape[0] == 2


@pytest.mark.parametrize(
    ("words", "contexts", "error", "message"),
    [
        ([""], [[]], WordError, "at least one visible character"),
        ([" \t"], [[]], WordError, "at least one visible character"),
        ([5], [[]], TypeError, "must be a string; got int"),
        (["a\ud800"], [[]], WordError, "surrogate"),
        (["a"], ["a text"], TypeError, r"Put a single context in a list"),
        (["a"], [[None]], TypeError, "Context 0 of 'a' must be a string; got NoneType"),
        (["a"], [None], TypeError, "must be a list of strings; got NoneType"),
        (["a", "b"], [["a"]], ValueError, "2 words and 1 lists"),
    ],
)
def test_bad_input_is_named(bert_tokenizer, words, contexts, error, message):
    with pytest.raises(error, match=message):
        BertramProcessor(bert_tokenizer)(words, contexts)


def test_odd_text_only_changes_its_own_word(bert_tokenizer, roberta_tokenizer):
    odd = {
        "x" * 10_000: ["y " + "x" * 10_000],
        "bell\x07": ["a bell\x07 rings", "nul \x00 bell\x07"],
        "😀": ["so 😀!"],
        "שלום": ["אמר שלום לכולם"],
        "kumquat": ["lone \ud83d surrogate kumquat", "", "kumquat " + "a" * 1_000_000, "b " * 300_000 + "kumquat"],
        "tree": ["the tree"],
    }
    for tokenizer in (bert_tokenizer, roberta_tokenizer):
        processor = BertramProcessor(tokenizer, form=FormTokenizer.from_words(odd, min_count=1))
        encoded = processor.encode(list(odd), list(odd.values()))
        assert [len(entry.used) for entry in encoded] == [1, 2, 1, 1, 3, 1]
        assert encoded[-1] == processor.encode(["tree"], [["the tree"]])[0]
        assert all(len(ids) <= 96 for entry in encoded for ids in entry.input_ids)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(word=st.text(min_size=1, max_size=20), pieces=st.lists(st.text(max_size=20), max_size=4), data=st.data())
def test_any_text_gives_a_valid_encoding_or_a_named_error(bert_tokenizer, roberta_tokenizer, word, pieces, data):
    context = word.join(pieces)
    tokenizer = data.draw(st.sampled_from([bert_tokenizer, roberta_tokenizer]))
    match = data.draw(st.sampled_from(["word", "whitespace"]))
    prefix = data.draw(st.sampled_from(["none", "colon", "quotes"]))
    processor = BertramProcessor(tokenizer, match=match, prefix=prefix, max_length=12)
    if match == "word" and not word.strip():
        with pytest.raises(WordError, match="visible character"):
            processor.encode([word], [[context]])
        return
    try:
        (encoded,) = processor.encode([word], [[context, "unrelated"]])
    except WordError:
        if match == "word":
            raise
        return
    assert sorted([*encoded.used, *encoded.dropped]) == [0, 1]
    for ids, position in zip(encoded.input_ids, encoded.mask_positions, strict=True):
        assert len(ids) <= 12
        assert ids[position] == tokenizer.mask_token_id
        assert ids[0] == tokenizer.cls_token_id
        assert ids[-1] == tokenizer.sep_token_id


def test_whitespace_matching_fails_where_the_released_code_does(bert_tokenizer):
    processor = BertramProcessor(bert_tokenizer, match="whitespace", max_length=24)
    with pytest.raises(IndexError, match="None of the 2 contexts of 'quokka'"):
        processor.encode(["quokka"], [["quokka, there", "Quokka"]])
    with pytest.raises(ValueError, match="longer than 21 tokens"):
        processor.encode(["quokka"], [["a quokka", "the " * 30]])
    with pytest.raises(IndexError, match="white space"):
        processor.encode(["new york"], [["in new york"]])


def test_settings_are_checked(bert_tokenizer):
    with pytest.raises(ValueError, match="match must be one of word, whitespace; got 'fuzzy'"):
        BertramProcessor(bert_tokenizer, match="fuzzy")
    with pytest.raises(ValueError, match="prefix must be one of"):
        BertramProcessor(bert_tokenizer, prefix="dash")
    with pytest.raises(ValueError, match="max_length must be above 7"):
        BertramProcessor(bert_tokenizer, prefix="quotes", max_length=7)
    with pytest.raises(ValueError, match="give form_words"):
        BertramProcessor.from_encoder(bert_tokenizer, mode="add")


def test_a_tokenizer_without_mask_is_refused():
    backend = Tokenizer(models.WordLevel({"a": 0, "<unk>": 1}, unk_token="<unk>"))
    with pytest.raises(ValueError, match="has no mask token"):
        BertramProcessor(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>"))


def test_saved_processor_is_the_same(make_pair, tmp_path):
    _, processor = make_pair("add-quotes", "roberta", match="whitespace", max_length=30)
    processor.separator = ":"
    processor.save_pretrained(tmp_path)
    loaded = AutoProcessor.from_pretrained(tmp_path)
    assert isinstance(loaded, BertramProcessor)
    for name in ("max_length", "prefix", "match", "separator"):
        assert getattr(loaded, name) == getattr(processor, name)
    assert loaded.form.vocab == processor.form.vocab
    contexts = [["a kumquat , in the garden", "<mask> kumquat"]]
    assert loaded.encode(["kumquat"], contexts) == processor.encode(["kumquat"], contexts)


def test_saving_leaves_the_tokenizer_as_it_was(bert_tokenizer, tmp_path):
    BertramProcessor(bert_tokenizer).save_pretrained(tmp_path / "processor")
    bert_tokenizer.save_pretrained(tmp_path / "tokenizer")
    assert "BertramProcessor" not in (tmp_path / "tokenizer" / "tokenizer_config.json").read_text()
