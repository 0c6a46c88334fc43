"""Mode pieces: the encoder reads the word's own pieces where the word stands."""

import pytest
import torch
from support import reference_pieces

from bertram_hf import BertramConfig, BertramModel, BertramProcessor, induce_vectors
from bertram_hf.induction import add_definitions
from bertram_hf.modeling_context import hide_pieces

WORDS = {
    "kumquat": [("She peeled a", "."), ("A sour", " and another sour fruit")],
    "qualm": [("", " is the word")],
    "quackish": [],
}
HIDDEN = 20  # a token that stands in none of the texts
FAMILIES = ("bert", "electra", "roberta", "mpnet")


@pytest.fixture
def make_pieces(make_pair):
    def make(family="bert", **fields):
        return make_pair("pieces", family, **{"context_weighting": "scored", "context_layers": "all"} | fields)

    return make


def texts(words=WORDS):
    return {word: [f"{before} {word}{after}".strip() for before, after in contexts] for word, contexts in words.items()}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"context_layers": "last", "context_weighting": "uniform"},
        {"second_map": True, "form_strength": 3},
        {"piece_strength": 2, "hidden_token_id": HIDDEN},
        {"piece_strength": 2, "hidden_token_id": HIDDEN, "agreement_threshold": 0.1, "agreement_slope": 2},
        {"piece_strength": 2, "hidden_token_id": HIDDEN, "agreement_threshold": 0.3, "output_norm": 3.0},
        {"piece_strength": 2.5, "hidden_token_id": HIDDEN, "output_norm": 3.0, "second_map": True, "form_strength": 3},
    ],
)
def test_vectors_equal_the_naive_reading(make_pieces, family, fields):
    model, processor = make_pieces(family, max_length=64, **fields)
    induced = induce_vectors(model, processor, texts())
    with torch.no_grad():
        for word, contexts in WORDS.items():
            expected = reference_pieces.induce(model, processor, word, contexts)
            torch.testing.assert_close(induced[word], expected, atol=2e-5, rtol=1e-4)
    outputs = model(**processor(list(WORDS), list(texts().values())))
    torch.testing.assert_close(outputs.word_embeddings, induced.embeddings, atol=2e-5, rtol=1e-4)


def test_every_later_occurrence_is_written_in_pieces(make_pieces):
    _, processor = make_pieces(max_length=64)
    (encoded,) = processor.encode(["kumquat"], [["a kumquat is a kumquat"]])
    pieces = encoded.pieces
    tokens = processor.tokenizer.convert_ids_to_tokens(encoded.input_ids[0])
    written = processor.tokenizer.convert_ids_to_tokens(pieces)
    assert len(pieces) > 1
    assert tokens.count("[MASK]") == 1
    start = tokens.index("[MASK]") - 1 - len(pieces)
    assert tokens[start : start + len(pieces) + 2] == [*written, "/", "[MASK]"]
    assert tokens[-1 - len(pieces) : -1] == written
    assert processor(["kumquat"], [["a kumquat"]])["num_pieces"].tolist() == [len(pieces)]


@pytest.mark.parametrize("side", ["left", "right", "both"])
def test_a_long_context_is_cut_around_the_word(make_pieces, side):
    model, processor = make_pieces(max_length=24)
    filler = "the word " * 40
    text = (filler if side != "right" else "") + "kumquat" + (" " + filler if side != "left" else "")
    (encoded,) = processor.encode(["kumquat"], [[text]])
    (ids,), (position,) = encoded.input_ids, encoded.mask_positions
    assert len(ids) <= 24
    assert ids[position - 1 - len(encoded.pieces) : position - 1] == encoded.pieces
    assert ids[position] == processor.tokenizer.mask_token_id
    assert torch.isfinite(induce_vectors(model, processor, {"kumquat": [text]}).embeddings).all()


def test_a_word_of_very_many_pieces_fits(make_pieces):
    model, processor = make_pieces(max_length=24)
    word = "kumquat" * 30
    vectors = induce_vectors(model, processor, {word: [f"the {word} is"], "qualm": []})
    assert torch.isfinite(vectors.embeddings).all()
    assert len(processor.encode_form(word)) <= 24


def test_batches_do_not_change_vectors(make_pieces):
    model, processor = make_pieces(max_length=64)
    together = induce_vectors(model, processor, texts())
    for word, contexts in texts().items():
        alone = induce_vectors(model, processor, {word: contexts}, max_tokens_per_batch=1)
        torch.testing.assert_close(alone[word], together[word], atol=1e-5, rtol=1e-4)


def test_words_can_be_cut_as_if_unknown(make_pieces):
    model, processor = make_pieces(max_length=64)
    changed = processor.with_pieces({"kumquat": processor.encode_pieces("qualm")})
    assert changed.encode_pieces("kumquat") == processor.encode_pieces("qualm") != processor.encode_pieces("kumquat")
    assert changed.encode_form("kumquat") == processor.encode_form("qualm")
    swapped = induce_vectors(model, changed, {"kumquat": ["a kumquat"]})["kumquat"]
    torch.testing.assert_close(swapped, induce_vectors(model, processor, {"qualm": ["a qualm"]})["qualm"])


def test_checkpoints_keep_the_mode(make_pieces, tmp_path):
    model, processor = make_pieces(max_length=64, freeze_encoder=False)
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    loaded, loaded_processor = BertramModel.from_pretrained(tmp_path), BertramProcessor.from_pretrained(tmp_path)
    assert loaded_processor.pieces
    assert not loaded_processor.with_pieces({})._pieces_of
    expected = induce_vectors(model, processor, texts()).embeddings
    torch.testing.assert_close(induce_vectors(loaded, loaded_processor, texts()).embeddings, expected)


def test_layers_are_trained_and_input_embeddings_are_not(make_pieces):
    model, processor = make_pieces(max_length=64, freeze_encoder=False)
    model.train()
    assert not model.encoder.training  # no dropout
    outputs = model(**processor(list(WORDS), list(texts().values())), labels=torch.zeros(3, 32))
    outputs.loss.backward()
    assert model.get_input_embeddings().weight.grad is None
    layer = model.encoder.encoder.layer[0]
    assert layer.intermediate.dense.weight.grad.abs().sum() > 0
    assert model.context_attention.score.weight.grad.abs().sum() > 0
    frozen, _ = make_pieces()
    assert not any(parameter.requires_grad for parameter in frozen.encoder.parameters())


def test_a_processor_of_another_mode_is_refused(make_pieces, make_pair):
    model, processor = make_pieces()
    other, other_processor = make_pair("context")
    with pytest.raises(ValueError, match="reads the pieces of words, but the processor does not write them"):
        induce_vectors(model, other_processor, texts())
    with pytest.raises(ValueError, match="does not read the pieces of words, but the processor writes them"):
        induce_vectors(other, processor, texts())
    batch = processor(["kumquat"], [["a kumquat"]])
    batch.pop("num_pieces")
    with pytest.raises(ValueError, match="needs num_pieces"):
        model(**batch)
    with pytest.raises(ValueError, match="max_length at least 16"):
        BertramProcessor(processor.tokenizer, max_length=8, pieces=True)
    with pytest.raises(ValueError, match="bag of words"):
        BertramConfig(mode="pieces", context_encoder="bag-of-words")


@pytest.mark.parametrize("mode", ["add", "context", "pieces"])
def test_definitions_are_contexts(make_pair, mode):
    model, processor = make_pair(mode, max_length=64)
    definitions = {"kumquat": ["a sour fruit"], "qualm": ["a doubt"]}
    induced = induce_vectors(model, processor, {"kumquat": ["a kumquat"]}, definitions=definitions)
    written = {"kumquat": ["a kumquat", "kumquat : a sour fruit"], "qualm": ["qualm : a doubt"]}
    assert add_definitions({"kumquat": ["a kumquat"]}, definitions) == written
    assert induced.used_contexts == {"kumquat": [0, 1], "qualm": [0]}
    torch.testing.assert_close(induced.embeddings, induce_vectors(model, processor, written).embeddings)
    with pytest.raises(TypeError, match="Expected a list of definitions for 'kumquat'"):
        induce_vectors(model, processor, {}, definitions={"kumquat": "a sour fruit"})


def test_form_strength_says_nothing_without_a_second_map(make_pieces):
    with pytest.raises(ValueError, match="pieces with second_map; got 3"):
        make_pieces(form_strength=3)


def test_pieces_are_hidden_in_every_context_of_a_batch(make_pieces):
    _, processor = make_pieces(max_length=64)
    batch = processor(list(WORDS), list(texts().values()))
    names = ("input_ids", "attention_mask", "mask_positions", "num_pieces")
    hidden = hide_pieces(*(batch[name] for name in names), HIDDEN)
    rows = zip(*(each[name].tolist() for each in (batch, hidden) for name in names), strict=True)
    for ids, mask, place, number, hidden_ids, hidden_mask, hidden_place, hidden_number in rows:
        first, length = place - 1 - number, sum(mask)
        assert number > 1
        assert hidden_ids[: sum(hidden_mask)] == [*ids[:first], HIDDEN, *ids[first + number : length]]
        assert hidden_mask == sorted(hidden_mask, reverse=True)
        assert (ids[place], hidden_number) == (hidden_ids[hidden_place], 1)


def test_the_more_contexts_the_less_pieces_count(make_pieces):
    model, processor = make_pieces(max_length=64, piece_strength=2, hidden_token_id=HIDDEN)
    contexts = {"kumquat": ["a kumquat", "the kumquat tree", "an old kumquat"] * 100}
    mixed = induce_vectors(model, processor, contexts)["kumquat"]
    hidden = induce_vectors(model, processor.with_pieces({"kumquat": [HIDDEN]}), contexts)["kumquat"]
    shown_model, _ = make_pieces(max_length=64)
    shown_model.load_state_dict(model.state_dict())
    shown = induce_vectors(shown_model, processor, contexts)["kumquat"]
    assert (mixed - hidden).norm() < 0.02 * (shown - hidden).norm()
    alone = [induce_vectors(each, processor, {"kumquat": []})["kumquat"] for each in (model, shown_model)]
    assert torch.equal(*alone)


def test_pieces_count_less_if_they_disagree_with_the_contexts(make_pieces):
    fields = {"max_length": 64, "piece_strength": 0.01, "hidden_token_id": HIDDEN}
    vectors = {}
    for threshold in (None, -2.0, 2.0):  # the cosine lies between
        model, processor = make_pieces(**fields, agreement_threshold=threshold)
        vectors[threshold] = induce_vectors(model, processor, {"kumquat": ["a kumquat tree"]})["kumquat"]
    shown_model, _ = make_pieces(max_length=64)
    shown = induce_vectors(shown_model, processor, {"kumquat": ["a kumquat tree"]})["kumquat"]
    torch.testing.assert_close(vectors[2.0], vectors[None])  # pieces never agree so well
    torch.testing.assert_close(vectors[-2.0], shown)


def test_hiding_pieces_needs_a_token_and_the_mode(make_pieces):
    for fields in ({}, {"hidden_token_id": HIDDEN, "mode": "add"}, {"hidden_token_id": HIDDEN, "piece_strength": 0}):
        with pytest.raises(ValueError, match="piece_strength must be positive, and needs hidden_token_id"):
            BertramConfig(**{"mode": "pieces", "piece_strength": 2} | fields)
    with pytest.raises(ValueError, match="agreement_threshold needs piece_strength"):
        BertramConfig(mode="pieces", agreement_threshold=0.1)
    with pytest.raises(ValueError, match="agreement_slope must be positive; got 0"):
        BertramConfig(mode="pieces", agreement_slope=0)
