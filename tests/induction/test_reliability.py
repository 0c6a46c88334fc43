"""How far vectors can be trusted."""

import pytest
import torch

from bertram_hf import BertramConfig, WordVectors, induce_vectors, report_word
from bertram_hf.evaluation.reliability import fit_reliability
from bertram_hf.induction import ContextDraws, mean_piece_vectors
from bertram_hf.induction.reliability import NUM_SIGNS, read_signs
from bertram_hf.injection import InjectionPolicy

CONTEXTS = {
    "kumquat": ["a kumquat here", "the old kumquat", "kumquat and tree", "no kumquat", "one kumquat more"],
    "qualm": ["a qualm"],
    "quackish": [],
}


def cosine(model, left, right):
    mean = model.get_input_embeddings().weight.detach().mean(dim=0)
    return torch.cosine_similarity(left - mean, right - mean, dim=0)


def encode(model, processor):
    """Returns what the signs are read from."""
    batch = processor(list(CONTEXTS), list(CONTEXTS.values()))
    with torch.no_grad():
        outputs = model(**batch)
    return outputs.form_embeddings, outputs.context_embeddings, batch["num_contexts"], outputs.word_embeddings


@pytest.mark.parametrize("mode", ["add", "pieces"])
def test_signs_are_the_agreement_of_two_halves_and_with_the_spelling(make_pair, mode):
    model, processor = make_pair(mode, max_length=64)
    readings = encode(model, processor)
    signs = read_signs(model, *readings)
    assert signs.shape == (3, NUM_SIGNS)
    assert signs[:, 0].tolist() == [1, 1, 1]
    assert signs[:, 2].tolist() == [1, 0, 0]
    torch.testing.assert_close(signs[:, 1], torch.log2(1 + torch.tensor([5.0, 1.0, 0.0])))
    texts = CONTEXTS["kumquat"]
    even, odd, alone, whole = (
        induce_vectors(model, processor, {"kumquat": chosen})["kumquat"]
        for chosen in (texts[::2], texts[1::2], [], texts)
    )
    torch.testing.assert_close(signs[0, 3], cosine(model, even, odd), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(signs[0, 4], cosine(model, alone, whole), atol=1e-5, rtol=1e-4)
    assert signs[1:, 3].tolist() == [0, 0]
    torch.testing.assert_close(signs[2, 4], torch.tensor(1.0))


def test_a_model_without_spelling_has_signs_too(make_pair):
    model, processor = make_pair("context", max_length=64)
    batch = processor(["kumquat"], [CONTEXTS["kumquat"]])
    with torch.no_grad():
        outputs = model(**batch)
    signs = read_signs(model, None, outputs.context_embeddings, batch["num_contexts"], outputs.word_embeddings)
    assert signs[0, 4] == 0
    assert signs[0, 3] != 0


def test_vectors_carry_their_reliability(make_pair, make_encoder, bert_tokenizer, tmp_path):
    model, processor = make_pair("add", max_length=64)
    assert induce_vectors(model, processor, CONTEXTS).reliability == {}  # nobody has told the model
    model.config.reliability = [0.1, 0.2, 0.0, 0.1, 0.05]
    vectors = induce_vectors(model, processor, CONTEXTS)
    signs = read_signs(model, *encode(model, processor))
    expected = (signs @ torch.tensor(model.config.reliability)).clamp(0, 1)
    assert list(vectors.reliability) == list(CONTEXTS)
    assert list(vectors.reliability.values()) == pytest.approx(expected.tolist(), abs=1e-3)
    vectors.save_pretrained(tmp_path)
    assert WordVectors.from_pretrained(tmp_path).reliability == vectors.reliability
    assert vectors.select(["qualm"]).reliability == {"qualm": vectors.reliability["qualm"]}
    assert WordVectors.join([vectors.select([word]) for word in vectors]).reliability == vectors.reliability
    report = report_word("kumquat", vectors, make_encoder("bert"), bert_tokenizer)
    assert report.reliability == vectors.reliability["kumquat"]
    assert f"{report.reliability:.2f}, the cosine that it may have" in str(report)


def test_vectors_carry_their_agreement_with_what_the_pieces_say(make_pair, tmp_path):
    assert induce_vectors(*make_pair("add", max_length=64), CONTEXTS).agreement == {}  # it does not read pieces
    model, processor = make_pair("pieces", max_length=64)
    vectors, alone = (induce_vectors(model, processor, each) for each in (CONTEXTS, {word: [] for word in CONTEXTS}))
    mean = model.get_input_embeddings().weight.detach().mean(dim=0)
    expected = torch.cosine_similarity(vectors.embeddings - mean, alone.embeddings - mean)
    assert list(vectors.agreement.values()) == pytest.approx(expected.tolist(), abs=1e-3)
    assert list(vectors.agreement) == vectors.words
    assert set(alone.agreement.values()) == {1.0}
    vectors.save_pretrained(tmp_path)
    assert WordVectors.from_pretrained(tmp_path).agreement == vectors.agreement
    assert vectors.select(["qualm"]).agreement == {"qualm": vectors.agreement["qualm"]}
    assert vectors.misleading == {word: True for word, value in vectors.agreement.items() if value < 0.6}
    model.config.misleading_agreement = 1.0
    most = induce_vectors(model, processor, CONTEXTS)
    assert most.replacing() == {word for word, value in most.agreement.items() if value < 1}
    assert most.replacing()
    most.save_pretrained(tmp_path)
    assert WordVectors.from_pretrained(tmp_path).replacing() == most.replacing()
    model.config.misleading_agreement = None
    assert induce_vectors(model, processor, CONTEXTS).misleading == {}
    draws = ContextDraws(model, processor, CONTEXTS, max_contexts=16)
    assert draws.induce_words(16).agreement == pytest.approx(vectors.agreement, abs=1e-3)


def test_a_policy_leaves_out_what_is_not_reliable(bert_tokenizer):
    vectors = WordVectors(
        ["kumquat", "quokka", "hte", "zebra"],
        torch.ones(4, 3),
        look_alikes={"hte": {"the": 0.9}},
        reliability={"kumquat": 0.6, "quokka": 0.2, "hte": 0.1},
    )
    selected, reasons = InjectionPolicy(min_reliability=0.3).select(vectors, bert_tokenizer)
    assert selected.words == ["kumquat", "hte", "zebra"]  # of a misspelling and where nothing is known, none is asked
    assert reasons == {"quokka": "reliability 0.20, below 0.3"}
    assert InjectionPolicy().select(vectors, bert_tokenizer)[0].words == vectors.words


def test_reliability_is_the_expected_cosine(make_pair, make_encoder, bert_tokenizer):
    model, processor = make_pair("add", max_length=64)
    words = ["tree", "town", "house", "garden", "old", "small"]
    contexts = {word: [f"the {word} and {other}" for other in words] for word in words}
    targets = mean_piece_vectors(make_encoder("bert"), bert_tokenizer, words)
    coefficients = fit_reliability(model, processor, contexts, targets, num_contexts=[0, 1, 2, 4])
    assert len(coefficients) == NUM_SIGNS
    model.config.reliability = coefficients
    # Least squares: the estimates have the mean of what they estimate, up to the small penalty and rounding.
    estimates, found = [], []
    mean = model.get_input_embeddings().weight.detach().mean(dim=0)
    for number in (0, 1, 2, 4):
        vectors = induce_vectors(model, processor, {word: texts[:number] for word, texts in contexts.items()})
        readings = processor(words, [contexts[word][:number] for word in words])
        with torch.no_grad():
            outputs = model(**readings)
        empty = torch.zeros(0, model.config.context_size)
        context_embeddings = outputs.context_embeddings if number else empty
        signs = read_signs(
            model, outputs.form_embeddings, context_embeddings, readings["num_contexts"], outputs.word_embeddings
        )
        estimates += (signs @ torch.tensor(coefficients)).tolist()
        found += torch.cosine_similarity(vectors.embeddings - mean, targets.embeddings - mean).tolist()
    assert sum(estimates) / len(estimates) == pytest.approx(sum(found) / len(found), abs=0.08)


def test_coefficients_are_checked():
    with pytest.raises(ValueError, match="reliability must be five numbers"):
        BertramConfig(reliability=[0.5])
    with pytest.raises(ValueError, match="the model must read contexts"):
        BertramConfig(mode="form", reliability=[0.5] * 5)
