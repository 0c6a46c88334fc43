"""Words cut as if their tokenizer did not know them."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tiny_tokenizers import LETTERS, make_tokenizers
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from bertram_hf.words.unknown import UnknownSplitter

TOKENIZERS = make_tokenizers()
SPLITTERS = {family: UnknownSplitter(tokenizer) for family, tokenizer in TOKENIZERS.items()}


def read(splitter, pieces):
    return [splitter.reader.read(piece) for piece in pieces]


@pytest.mark.parametrize("family", TOKENIZERS)
@pytest.mark.parametrize("word", ["king", "old"])
def test_the_own_token_is_left_out(family, word):
    splitter = SPLITTERS[family]
    assert len(splitter.reader.split([word])[0]) == 1
    for hard in (True, False):
        pieces = splitter.split(word, hard=hard)
        texts = read(splitter, pieces)
        assert len(pieces) > 1
        assert "".join(texts).replace("·", "") == word
        assert word not in [text.removeprefix("·") for text in texts]


@pytest.mark.parametrize("family", TOKENIZERS)
@given(word=st.text(LETTERS, min_size=2, max_size=12))
def test_a_word_of_several_pieces_is_cut_as_the_tokenizer_cuts_it(family, word):
    splitter = SPLITTERS[family]
    (natural,) = splitter.reader.split([word])
    unknown = TOKENIZERS[family].unk_token_id in natural
    if len(natural) > 1 and not unknown and not splitter._spelled.get(word):
        assert splitter.split(word, hard=False) == natural


@pytest.mark.parametrize("family", TOKENIZERS)
def test_random_cuts_differ_and_never_have_the_own_token(family):
    splitter = SPLITTERS[family]
    cuts = [splitter.split("king", hard=True, random=Random(seed)) for seed in range(60)]
    assert cuts == [splitter.split("king", hard=True, random=Random(seed)) for seed in range(60)]
    for cut in cuts:
        if cut is not None:
            texts = read(splitter, cut)
            assert "".join(texts).replace("·", "") == "king"
            assert "king" not in [text.removeprefix("·") for text in texts]


def test_random_cuts_are_many():
    tokens = ["[UNK]", *LETTERS, *(f"##{a}" for a in LETTERS), "ki", "##in", "##ng", "##ing", "##kin", "kin", "king"]
    wordpiece = models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]")
    letters = {letter: i for i, letter in enumerate(LETTERS)}
    merges = [("k", "i"), ("n", "g"), ("ki", "n"), ("kin", "g")]
    bpe = models.BPE(letters | {"".join(pair): 26 + i for i, pair in enumerate(merges)}, merges)
    unigram = models.Unigram(
        [("<unk>", 0.0), *((a, -5.0) for a in LETTERS), ("ki", -6.0), ("ng", -6.0), ("in", -6.0)], 0
    )
    for model in (wordpiece, bpe, unigram):
        splitter = UnknownSplitter(PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model)))
        cuts = {tuple(splitter.split("king", hard=True, random=Random(seed)) or ()) for seed in range(100)} - {()}
        assert len(cuts) > 2
        assert tuple(splitter.split("king", hard=True)) in cuts


def test_a_hard_cut_has_no_token_of_the_family():
    letters = [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
    words = ["academic", "academics", "academ", "##ic", "##ics", "##s", "[UNK]", "ac", "##ade", "##mic"]
    model = models.WordPiece({token: i for i, token in enumerate([*letters, *words])}, unk_token="[UNK]")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(model), unk_token="[UNK]")
    splitter = UnknownSplitter(tokenizer)
    assert read(splitter, splitter.split("academics", hard=False)) == ["academic", "·s"]
    hard = read(splitter, splitter.split("academics", hard=True))
    assert not {"academic", "academics"} & set(hard)
    assert "".join(hard).replace("·", "") == "academics"
    assert splitter.split("académic", hard=True) is None  # a letter that has no token


def test_other_tokenizers_are_refused():
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))
    with pytest.raises(ValueError, match=r"of type WordPiece, BPE, Unigram; got .*WordLevel"):
        UnknownSplitter(tokenizer)
