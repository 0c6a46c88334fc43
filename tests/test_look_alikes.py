import json
import random

import numpy as np
import pytest
import torch
from support.tiny_training import HELDOUT, NOUNS, prepare_stage
from transformers import AutoModel, AutoProcessor

from bertram_hf import BertramConfig, WordVectors, induce_vectors, report_word
from bertram_hf.cli import main
from bertram_hf.configuration_bertram import NUM_ERROR_TYPES, NUM_LENGTHS, TWO_ERRORS
from bertram_hf.induction.draws import ContextDraws
from bertram_hf.modeling_look_alikes import HALF_EVIDENCE, UNLIKELY, LookAlikeMixture
from bertram_hf.processing_look_alikes import (
    DOUBLED,
    EXTRA,
    HALVED,
    MAX_LOOK_ALIKES,
    MISSING,
    SWAPPED,
    VOWEL,
    WRONG,
    LookAlikes,
    error_type,
)
from bertram_hf.training.look_alikes import fit_look_alikes, misspell, misspell_words
from bertram_hf.training.recipe import LookAlikeSettings

WORDS = ["kumquat", "umquat", "quat", "lemon", "melon", "castle"]
CONTEXTS = {
    "kumquot": ["a kumquot is a fruit", "she ate the kumquot and the lemon"],
    "lemn": ["a lemn is sour"],
    "zebra": [],
    "[MASK]": ["a [MASK] here"],
}


def naive_errors(first, second):
    """Optimal string alignment distance, from its definition."""

    def errors(i, j):
        if min(i, j) == 0:
            return max(i, j)
        ways = [
            errors(i - 1, j) + 1,
            errors(i, j - 1) + 1,
            errors(i - 1, j - 1) + (first[i - 1] != second[j - 1]),
        ]
        if i > 1 and j > 1 and first[i - 1] == second[j - 2] and first[i - 2] == second[j - 1]:
            ways.append(errors(i - 2, j - 2) + 1)
        return min(ways)

    return errors(len(first), len(second))


@pytest.fixture
def pair(make_pair):
    """A tiny model that mixes look-alikes in, with random weights, and its processor."""
    model, processor = make_pair("add", look_alikes=True)
    ids = processor.tokenizer.convert_tokens_to_ids(processor.tokenizer.tokenize("the red river lake bird house"))
    processor.look_alikes = LookAlikes(WORDS, ids)
    return model, processor


def test_found_are_the_words_within_so_many_errors():
    draw = random.Random(0)
    known = sorted({"".join(draw.choices("abc", k=draw.randint(2, 7))) for _ in range(60)})
    find = LookAlikes(known, list(range(100, 100 + len(known))))
    words = ["".join(draw.choices("abc", k=draw.randint(1, 8))) for _ in range(70)]
    token_ids, kinds = find(words)
    for word, tokens, word_kinds in zip(words, token_ids, kinds, strict=True):
        most = 0 if len(word) < 3 else 1 if len(word) < 6 else 2
        expected = [(naive_errors(word, other), 100 + i) for i, other in enumerate(known)]
        expected = sorted(entry for entry in expected if 0 < entry[0] <= most)[:MAX_LOOK_ALIKES]
        assert tokens[tokens > 0].tolist() == [token for _, token in expected]
        found = [divmod(kind - 1, NUM_LENGTHS) for kind in word_kinds[tokens > 0].tolist()]
        assert [errors == TWO_ERRORS for errors, _ in found] == [errors == 2 for errors, _ in expected]
        assert {length for _, length in found} <= {len(word) - 3}
        assert not word_kinds[tokens == 0].any()


@pytest.mark.parametrize(
    ("word", "known", "kind", "place"),
    [
        ("xlemon", "lemon", EXTRA, 0),
        ("lexmon", "lemon", EXTRA, 1),
        ("lemonx", "lemon", EXTRA, 2),
        ("lemmon", "lemon", DOUBLED, 1),
        ("foood", "food", DOUBLED, 1),
        ("lemonn", "lemon", DOUBLED, 2),
        ("emon", "lemon", MISSING, 0),
        ("lmon", "lemon", MISSING, 1),
        ("lemo", "lemon", MISSING, 2),
        ("ocurred", "occurred", HALVED, 1),
        ("fod", "food", HALVED, 1),
        ("xemon", "lemon", WRONG, 0),
        ("lexon", "lemon", WRONG, 1),
        ("lemox", "lemon", WRONG, 2),
        ("abc", "abd", WRONG, 2),
        ("leman", "lemon", VOWEL, 1),
        ("elmon", "lemon", SWAPPED, 0),
        ("lmeon", "lemon", SWAPPED, 1),
        ("lemno", "lemon", SWAPPED, 2),
    ],
)
def test_type_of_an_error(word, known, kind, place):
    assert naive_errors(word, known) == 1
    assert divmod(error_type(word, known), 3) == (kind, place)


def test_kinds_stay_in_their_range_for_words_of_any_length():
    long = "a" * 10_000
    _, kinds = LookAlikes([long, "abc"], [5, 6])([long + "b", long + "bb", "abd", "", "a b c"])
    assert kinds.max() == NUM_ERROR_TYPES * NUM_LENGTHS
    assert kinds[2, 0] == 1 + (3 * WRONG + 2) * NUM_LENGTHS
    assert not kinds[3:].any()


def test_more_frequent_words_come_first():
    token_ids, _ = LookAlikes(["lemon", "demon"], [9, 4])(["femon"])
    assert token_ids[0, :2].tolist() == [4, 9]


def test_as_many_tokens_as_words_are_needed():
    with pytest.raises(ValueError, match="each of 2 words; got 1"):
        LookAlikes(["lemon", "melon"], [1])


def naive_mixture(model, processor, word, contexts):
    """The mixed vector of one word, straight from the definition."""
    batch = processor([word], [contexts])
    tokens, kinds = (batch.pop(f"look_alike_{name}")[0].tolist() for name in ("ids", "kinds"))
    form = model.encode_forms(batch["form_ids"])
    embedded = torch.empty(0, model.config.context_size)
    if contexts:
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "mask_positions")}
        embedded = model.encode_contexts(**inputs, form_embeddings=form.expand(len(contexts), -1))
    vector = model.combine(form, embedded, batch["num_contexts"])[0][0]
    mixture, mean = model.look_alike_mixture, model.vocabulary_mean
    table = model.get_input_embeddings().weight
    share = len(contexts) / (len(contexts) + HALF_EVIDENCE)
    odds, mixed = 1.0, vector.clone()
    for token, kind in zip(tokens, kinds, strict=True):
        if kind:
            cosine = torch.cosine_similarity(vector - mean, table[token] - mean, dim=0)
            slope = mixture.agreement[0] + share * mixture.agreement[1]
            error, length = divmod(kind - 1, NUM_LENGTHS)
            log_odds = mixture.error_log_odds[error] + slope * cosine
            log_odds += mixture.length_log_odds[int(error == TWO_ERRORS), length]
            log_odds -= share * mixture.context_log_odds[0] + np.log(1 + token) * mixture.rarity_log_odds[0]
            odd = torch.exp(log_odds)
            odds, mixed = odds + odd, mixed + odd * table[token]
    return mixed / odds


@torch.no_grad()
def test_batched_vectors_equal_the_definition(pair):
    model, processor = pair
    words, contexts = list(CONTEXTS), list(CONTEXTS.values())
    outputs = model(**processor(words, contexts))
    expected = [naive_mixture(model, processor, word, texts) for word, texts in CONTEXTS.items()]
    torch.testing.assert_close(outputs.word_embeddings, torch.stack(expected), atol=1e-5, rtol=1e-5)
    assert outputs.look_alike_weights.sum(dim=1)[:2].gt(0).all()
    assert outputs.look_alike_weights[2:].eq(0).all()
    induced = induce_vectors(model, processor, CONTEXTS, show_progress=False)
    torch.testing.assert_close(induced.embeddings, torch.stack(expected), atol=1e-5, rtol=1e-5)
    shares = outputs.look_alike_weights[1].tolist()
    lemon = shares[0]  # nearer than melon, which is two errors away from a word too short for that
    assert induced.look_alikes["lemn"] == {"lemon": pytest.approx(lemon, abs=1e-4)}
    assert "zebra" not in induced.look_alikes
    draws = ContextDraws(model, processor, CONTEXTS, max_contexts=4, show_progress=False)
    torch.testing.assert_close(draws.induce(4), torch.stack(expected), atol=1e-5, rtol=1e-5)
    drawn = draws.induce_words(4)
    assert drawn.misspellings() == induced.misspellings()
    assert drawn.look_alikes.keys() == induced.look_alikes.keys()


@torch.no_grad()
def test_known_words_are_no_misspellings_and_mixing_can_be_switched_off(pair):
    model, processor = pair
    contexts = {"kumquat": ["a kumquat"], "lemn": ["a lemn"]}
    assert processor.look_alikes(["kumquat"])[1].any()  # "umquat", by its letters
    induced = induce_vectors(model, processor, contexts)
    assert set(induced.look_alikes) == {"lemn"}
    alone = induce_vectors(model, processor, contexts, look_alikes=False)
    assert alone.look_alikes == {}
    torch.testing.assert_close(alone["kumquat"], induced["kumquat"])
    assert not torch.allclose(alone["lemn"], induced["lemn"], atol=1e-3)


def test_a_word_without_look_alikes_keeps_its_vector(pair, make_pair):
    model, processor = pair
    contexts = {"zebra": ["a zebra runs"], "quokka": []}
    mixed = induce_vectors(model, processor, contexts, show_progress=False)
    plain, plain_processor = make_pair("add")
    plain.load_state_dict(model.state_dict(), strict=False)
    assert torch.equal(
        mixed.embeddings, induce_vectors(plain, plain_processor, contexts, show_progress=False).embeddings
    )


@torch.no_grad()
def test_an_untrained_mixture_changes_next_to_nothing(pair):
    model, processor = pair
    model.look_alike_mixture = LookAlikeMixture()
    assert model(**processor("kumquot")).look_alike_weights.max() < 2 * np.exp(UNLIKELY)


@torch.no_grad()
def test_a_sure_look_alike_gives_its_own_embedding_at_the_usual_length(make_pair, pair):
    model, _ = make_pair("add", look_alikes=True, output_norm=2.0)
    processor = pair[1]
    model.look_alike_mixture.error_log_odds.fill_(50.0)
    vector = model(**processor("lemonn")).word_embeddings[0] - model.vocabulary_mean
    token = int(processor.look_alikes.token_ids[processor.look_alikes.words.index("lemon")])
    meant = model.get_input_embeddings().weight[token] - model.vocabulary_mean
    assert torch.cosine_similarity(vector, meant, dim=0) > 0.999
    assert vector.norm().item() == pytest.approx(2.0, rel=1e-4)


def test_reloaded_equals_saved(pair, tmp_path):
    model, processor = pair
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    loaded, loaded_processor = AutoModel.from_pretrained(tmp_path), AutoProcessor.from_pretrained(tmp_path)
    assert loaded_processor.look_alikes.words == processor.look_alikes.words
    before = induce_vectors(model, processor, CONTEXTS, show_progress=False)
    after = induce_vectors(loaded, loaded_processor, CONTEXTS, show_progress=False)
    torch.testing.assert_close(before.embeddings, after.embeddings)


def test_a_processor_without_look_alikes_leaves_none_behind(pair, make_pair, tmp_path):
    pair[1].save_pretrained(tmp_path)
    make_pair("context")[1].save_pretrained(tmp_path)
    loaded = AutoProcessor.from_pretrained(tmp_path)
    assert loaded.look_alikes is None
    assert loaded.form is None


def test_model_and_processor_must_agree(pair, make_pair):
    model, processor = pair
    plain, plain_processor = make_pair("add")
    with pytest.raises(ValueError, match="has weights for look-alikes, but the processor knows no words"):
        induce_vectors(model, plain_processor, CONTEXTS)
    with pytest.raises(ValueError, match="has no weights for look-alikes, but the processor knows words"):
        induce_vectors(plain, processor, CONTEXTS)
    with pytest.raises(ValueError, match="needs look_alike_ids and look_alike_kinds"):
        model(**plain_processor("lemonn"))
    with pytest.raises(ValueError, match="look_alikes needs the encoder's embeddings"):
        BertramConfig(mode="form", look_alikes=True)


def test_a_misspelling_is_one_error_away_or_the_same():
    draw = random.Random(0)
    for _ in range(200):
        assert naive_errors("kumquat", misspell("kumquat", "aeiou", draw)) <= 1


def test_half_of_the_errors_are_those_that_people_make():
    draw = random.Random(0)
    kinds = [error_type(attempt, "mississippi") // 3 for attempt in misspell_many("mississippi", 800, draw)]
    shares = [kinds.count(kind) / len(kinds) for kind in (DOUBLED, EXTRA, HALVED, MISSING, VOWEL, WRONG, SWAPPED)]
    assert shares == pytest.approx([1 / 8, 1 / 8, 1 / 8, 1 / 8, 1 / 8, 1 / 8, 1 / 4], abs=0.1)


def misspell_many(word, number, draw):
    """Returns misspellings that are not the word itself."""
    return [attempt for attempt in (misspell(word, "kvz", draw) for _ in range(number)) if attempt != word]


def test_words_are_left_out():
    find = LookAlikes(["castle", "castles", "lemon"], [3, 5, 4]).without({"castle", "castles"})
    assert (find.words, find.token_ids.tolist()) == (["lemon"], [4])


def test_misspelt_words_are_new_and_the_same_each_time():
    words = ["lemon", "melon", "castle", "aa"]
    misspelt = misspell_words(words, set(words), two_errors_share=0.5, seed=1)
    assert misspelt == misspell_words(words, set(words), two_errors_share=0.5, seed=1)
    assert not set(misspelt) & set(words)
    assert misspell_words(["bb"], {"bb", "b", "bbb"}, two_errors_share=0.0, seed=0) == [None]


@pytest.mark.parametrize("mode", ["add", "shallow"])
def test_fitted_mixture_finds_the_words_that_are_meant(mode, tmp_path):
    stage = prepare_stage(tmp_path, mode=mode, num_words=48)
    model, processor, inputs = stage["model"], stage["processor"], stage["inputs"]
    known = list(inputs.contexts.words)
    processor.look_alikes = LookAlikes(known, processor.tokenizer.convert_tokens_to_ids(known))
    settings = LookAlikeSettings(max_contexts=2, misspelt_share=0.5)
    occurrences = np.arange(len(known)) * 10
    mixing, loss = fit_look_alikes(model, processor, inputs, occurrences, settings)
    assert loss < np.log(2)  # that of knowing nothing but the shares
    again, same = fit_look_alikes(model, processor, inputs, occurrences, settings)
    assert same == loss
    assert torch.equal(again.look_alike_mixture.error_log_odds, mixing.look_alike_mixture.error_log_odds)
    misspelt = [word[1] + word[0] + word[2:] for word in known if len(word) == 6]
    with torch.no_grad():
        weights = mixing(**processor(misspelt)).look_alike_weights
    assert len(misspelt) > 5
    assert weights[:, 0].min() > 0.5
    for name, value in model.state_dict().items():
        assert torch.equal(value, mixing.state_dict()[name])


def test_without_known_words_nothing_can_be_learnt(tmp_path):
    stage = prepare_stage(tmp_path, mode="add")
    stage["processor"].look_alikes = LookAlikes([], [])
    with pytest.raises(ValueError, match="needs training words of one token"):
        fit_look_alikes(stage["model"], stage["processor"], stage["inputs"], np.ones(24), LookAlikeSettings())


@pytest.mark.parametrize("field", ["misspelt_share", "two_errors_share"])
def test_shares_lie_between_nothing_and_all(field):
    with pytest.raises(ValueError, match=rf"{field} must lie in \[0, 1\]; got 1.5"):
        LookAlikeSettings(**{field: 1.5})


def test_words_of_the_tests_are_of_one_piece(bert_tokenizer):
    assert all(len(bert_tokenizer.tokenize(word)) == 1 for word in [*NOUNS, *HELDOUT])


def test_report_and_saved_vectors_name_the_look_alikes(pair, tmp_path):
    model, processor = pair
    vectors = induce_vectors(model, processor, CONTEXTS, show_progress=False)
    vectors.save_pretrained(tmp_path)
    loaded = WordVectors.from_pretrained(tmp_path)
    assert loaded.look_alikes == vectors.look_alikes
    assert set(loaded.select(["zebra", "lemn"]).look_alikes) == {"lemn"}
    share = vectors.look_alikes["lemn"]["lemon"]
    report = report_word("lemn", loaded, model.encoder, processor.tokenizer)
    assert f"misspelling  of lemon ({share:.0%})?" in str(report)
    assert "misspelling" not in str(report_word("zebra", loaded, model.encoder, processor.tokenizer))


def test_command_tells_what_it_took_for_misspellings(pair, tmp_path, capsys):
    model, processor = pair
    with torch.no_grad():
        model.look_alike_mixture.error_log_odds[:TWO_ERRORS] = 50.0
    model.save_pretrained(tmp_path / "model")
    processor.save_pretrained(tmp_path / "model")
    lines = [json.dumps({"word": word, "contexts": texts}) for word, texts in CONTEXTS.items()]
    (tmp_path / "words.jsonl").write_text("\n".join(lines))
    command = ["induce", str(tmp_path / "model"), str(tmp_path / "words.jsonl"), str(tmp_path / "out")]
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["misspellings"] == {"kumquot": "kumquat", "lemn": "lemon"}
    assert main(command) == 0
    assert "Taken for misspellings: 'kumquot' (kumquat), 'lemn' (lemon)." in capsys.readouterr().out
