import argparse
import json
import logging
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from support.tiny_models import FAMILIES
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

from bertram_hf import BertramEmbeddingInjector, WordVectors
from bertram_hf.cli import wnlampro as command
from bertram_hf.evaluation.cloze import encode_clozes, predict_clozes, read_prediction
from bertram_hf.evaluation.wnlampro import (
    BANDS,
    RELATIONS,
    AnnotatedWord,
    WnlamproEntry,
    drop_frequent_corruptions,
    fill_patterns,
    parse_entry,
    read_wnlampro,
    write_wnlampro,
)
from bertram_hf.evaluation.wnlampro_scoring import evaluate_wnlampro, paired_t_test, score_entry, score_wnlampro
from bertram_hf.words.pieces import PieceReader

DATA = Path(__file__).parents[1] / "data" / "wnlampro"
MINI = DATA / "mini.txt"
LINE = "e1\ttest\tlime (n,3.81,57)\thypernym\tfruit (n,4.84,9310)\ttree (n,4.85,8000)"
GOLDEN_BANDS = {"count0-10": "rare", "count10-100": "medium", "count100--1": "frequent"}


@pytest.fixture(scope="module")
def golden():
    return json.loads((DATA / "golden.json").read_text(encoding="utf-8"))


@pytest.fixture
def make_masked_lm(bert_tokenizer, roberta_tokenizer):
    def make(family="bert"):
        tokenizer = bert_tokenizer if family == "bert" else roberta_tokenizer
        torch.manual_seed(0)
        config = AutoConfig.for_model(family, **FAMILIES[family], vocab_size=len(tokenizer) + 3)
        model = AutoModelForMaskedLM.from_config(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
        return model, tokenizer

    return make


def make_entry(word, relation="hypernym", count=5, targets=("fruit", "tree"), entry_id=None):
    words = tuple(AnnotatedWord(target, "n", 5.0, 1000) for target in targets)
    return WnlamproEntry(
        entry_id or f"{relation} {word}", "test", AnnotatedWord(word, "n", 1.0, count), relation, words
    )


# --- file format


def test_entries_are_read_as_written(tmp_path):
    entry = parse_entry(LINE)
    assert entry.keyword == AnnotatedWord("lime", "n", 3.81, 57)
    assert (entry.id, entry.split, entry.relation, entry.band) == ("e1", "test", "hypernym", "medium")
    assert [target.word for target in entry.targets] == ["fruit", "tree"]
    entries = read_wnlampro(MINI, keep_frequent_corruptions=True)
    assert len(entries) == 60
    write_wnlampro(entries, tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes() == MINI.read_bytes()


def test_frequent_corruptions_are_left_out_and_counted(caplog, golden):
    caplog.set_level(logging.INFO)
    entries = read_wnlampro(MINI)
    assert [entry.id for entry in entries] == golden["subsets"]["all|None"]["ids"]
    assert "12 misspellings that occur 10 times or more are left out" in caplog.text
    assert all(entry.band == "rare" for entry in entries if entry.relation == "corruption")
    assert drop_frequent_corruptions(read_wnlampro(MINI, keep_frequent_corruptions=True)) == entries
    assert {entry.split for entry in read_wnlampro(MINI, "dev")} == {"dev"}


def test_words_may_hold_spaces_and_brackets(tmp_path):
    entry = make_entry("new (york) \u2028 city")
    write_wnlampro([entry], tmp_path / "probe.txt")
    assert read_wnlampro(tmp_path / "probe.txt") == [entry]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("e1\ttest\tlime (n,3.81,57)\thypernym", r"at least 5 columns .*; got 4\. Separate them with tabs"),
        ("e1 test lime (n,3.81,57)", "at least 5 columns"),
        (LINE.replace("test", "train"), "dev or test in the second column; got 'train'"),
        (LINE.replace("hypernym", "synonym"), "one of antonym, .* in the fourth column; got 'synonym'"),
        (LINE.replace("(n,3.81,57)", ""), "word \\(pos,zipf,count\\); got 'lime '"),
        (LINE.replace("3.81", "much"), r"got 'lime \(n,much,57\)'"),
        (LINE.replace("3.81", "nan"), r"got 'lime \(n,nan,57\)'"),
        (LINE.replace("57", "-1"), r"got 'lime \(n,3.81,-1\)'"),
        (LINE + "\t", "got ''"),
        ("\t" + LINE.partition("\t")[2], "an id in the first column; it is empty"),
        (LINE.replace("e1", "e0"), "Each id may stand once; 'e0' stands more often"),
    ],
)
def test_errors_name_the_line(tmp_path, line, message):
    path = tmp_path / "probe.txt"
    path.write_text(f"{LINE.replace('e1', 'e0')}\n\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"Line 3 of .*probe.txt: .*{message}"):
        read_wnlampro(path)


def test_what_cannot_be_read_again_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="Expected columns without tabs"):
        write_wnlampro([make_entry("a\tb")], tmp_path / "probe.txt")
    with pytest.raises(ValueError, match="'hypernym lime' cannot be written: Expected at least 5 columns"):
        write_wnlampro([make_entry("lime", targets=())], tmp_path / "probe.txt")
    assert not (tmp_path / "probe.txt").exists()
    with pytest.raises(ValueError, match="split must be dev or test"):
        read_wnlampro(MINI, "train")


def test_patterns_are_the_released_ones(golden):
    for relation in RELATIONS:
        for word, patterns in golden["patterns"][relation].items():
            assert fill_patterns(word, relation) == [pattern.replace("<W>", word) for pattern in patterns]
    assert fill_patterns("[MASK]", "cohyponym", mask_token="<mask>")[0] == "[MASK] and <mask>"


# --- scores


def test_scores_of_entries_equal_the_released_ones(golden):
    entries = {entry.id: entry for entry in read_wnlampro(MINI, keep_frequent_corruptions=True)}
    for expected in golden["entries"]:
        score = score_entry(entries[expected["id"]], expected["predictions"], precision_at=(1, 3, 10, 100))
        assert score.reciprocal_rank == expected["reciprocal_rank"]
        assert {str(k): value for k, value in score.precision_at.items()} == expected["precision"]


def test_scores_of_subsets_equal_the_released_ones(golden, caplog):
    predictions = {entry["id"]: entry["predictions"] for entry in golden["entries"]}
    for split in (None, "dev", "test"):
        scores = score_wnlampro(read_wnlampro(MINI, split), predictions, precision_at=(3, 10, 100))
        subsets = {f"all|{split}": scores.overall}
        for name, band in GOLDEN_BANDS.items():
            subsets[f"{name}|{split}"] = scores.bands[band]
            for relation in RELATIONS:
                subsets[f"{relation}|{name}|{split}"] = scores.bands_and_relations[band][relation]
        for name, score in subsets.items():
            expected = golden["subsets"][name]
            # Up to rounding: Python 3.12 and later sum more precisely than the Python that made these numbers.
            assert (-1 if score.mrr is None else score.mrr) == pytest.approx(expected["mrr"], abs=1e-12)
            precision = {str(k): -1 if value is None else value for k, value in score.precision_at.items()}
            assert precision == pytest.approx(expected["precision_at"], abs=1e-12)
            assert score.num_entries == len(set(expected["ids"]) - set(golden["missing_prediction_ids"]))
    assert "3 of 48 entries have no predictions and take no part" in caplog.text
    assert list(scores.bands) == list(BANDS)


def test_ids_must_differ():
    with pytest.raises(ValueError, match="2 entries share ids"):
        score_wnlampro([make_entry("lime")] * 2, {})


def test_comparison_is_the_paired_t_test():
    pytest.importorskip("scipy")
    first = {str(i): (i * 7 % 10) / 10 for i in range(20)}
    second = {key: value * 0.8 for key, value in reversed(first.items())}
    test = paired_t_test(first, second)
    differences = torch.tensor([first[key] - second[key] for key in first], dtype=torch.float64)
    assert test.mean_difference == pytest.approx(differences.mean().item())
    assert test.statistic == pytest.approx((differences.mean() / (differences.std() / 20**0.5)).item())
    assert 0 < test.p_value < 0.05
    assert paired_t_test(second, first).p_value == pytest.approx(test.p_value)
    assert paired_t_test(first, first).p_value == 1
    with pytest.raises(ValueError, match="Expected the same entries of both systems; 1 are of one only"):
        paired_t_test(first, first | {"x": 1.0})
    with pytest.raises(ValueError, match="at least two entries for a test; got 1"):
        paired_t_test({"x": 1.0}, {"x": 0.5})


# --- predictions


def predict_naively(model, tokenizer, text, number):
    """One text at a time, straight from the description."""
    ids = tokenizer(text)["input_ids"]
    if "Ġ" in str(tokenizer.tokenize(" a")):  # RoBERTa: both sides of the mask alone, with a space before them
        left, right = (tokenizer.tokenize(f" {side.strip()}") if side else [] for side in text.split("<mask>"))
        ids = tokenizer.convert_tokens_to_ids(["<s>", *left, "<mask>", *right, "</s>"])
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0, ids.index(tokenizer.mask_token_id)]
    tokens = {token_id: token for token, token_id in tokenizer.get_vocab().items()}
    return [tokens.get(i, "").replace("Ġ", "").lower() for i in logits.argsort(descending=True)[:number].tolist()]


def test_roberta_sees_a_space_before_both_sides_of_the_mask(make_masked_lm):
    model, tokenizer = make_masked_lm("roberta")
    ids = encode_clozes(model, tokenizer, ["the tree is a <mask>", "<mask> is it"], PieceReader(tokenizer))
    first, second = map(tokenizer.convert_ids_to_tokens, ids)
    assert (first[-4:], second[:2]) == (["Ġa", "<mask>", "Ġ.", "</s>"], ["<s>", "<mask>"])


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
@pytest.mark.parametrize("max_tokens", [1, 40, None])
def test_batched_predictions_equal_those_of_single_texts(make_masked_lm, family, max_tokens):
    model, tokenizer = make_masked_lm(family)
    mask = tokenizer.mask_token
    texts = [pattern for word in ("lime", "old tower", "an") for r in RELATIONS for pattern in fill_patterns(word, r)]
    texts = [text.replace("[MASK]", mask) for text in texts]
    tokenizer.padding_side = "left"  # which must not matter
    try:
        model.train()
        batched = predict_clozes(model, tokenizer, texts, num_predictions=20, max_tokens_per_batch=max_tokens)
        assert model.training
    finally:
        tokenizer.padding_side = "right"
    model.eval()
    for text, words in zip(texts, batched, strict=True):
        ended = text if text.endswith((".", "?")) else f"{text}."
        assert words == predict_naively(model, tokenizer, ended, 20)


def test_predictions_are_words_without_marks(bert_tokenizer, roberta_tokenizer):
    reader = PieceReader(roberta_tokenizer)
    token_id = next(i for i, token in reader.tokens.items() if token.startswith("Ġ") and token[1:].isalpha())
    assert read_prediction(reader, token_id) == reader.tokens[token_id][1:].lower()
    reader = PieceReader(bert_tokenizer)
    token_id = next(i for i, token in reader.tokens.items() if token.startswith("##"))
    assert read_prediction(reader, token_id).startswith("##")


def test_clozes_need_one_gap_and_room(make_masked_lm, bert_tokenizer):
    model, tokenizer = make_masked_lm()
    assert predict_clozes(model, tokenizer, []) == []
    for text, number in (("no gap", 0), ("[MASK] [MASK]", 2)):
        with pytest.raises(ValueError, match=rf"Expected \[MASK\] once in each text; found it {number} times"):
            predict_clozes(model, tokenizer, [text])
    with pytest.raises(ValueError, match="Expected at most 64 tokens, which the model can read; got "):
        predict_clozes(model, tokenizer, ["x" * 99 + " [MASK]"])
    with pytest.raises(ValueError, match="num_predictions must be at least 1"):
        predict_clozes(model, tokenizer, [], num_predictions=0)
    encoder = AutoModel.from_config(model.config)
    with pytest.raises(ValueError, match="BertModel gives none"):
        predict_clozes(encoder, tokenizer, ["a [MASK]"])
    assert len(predict_clozes(model, tokenizer, ["\ud800 \x00 [SEP] [MASK]"], num_predictions=9999)[0]) == 326


def test_roberta_reads_up_to_its_last_position(make_masked_lm):
    model, tokenizer = make_masked_lm("roberta")
    mask = tokenizer.mask_token
    longest = mask + " a" * (64 - 4) + "."  # beside the mask and the full stop, a token at each end
    assert len(predict_clozes(model, tokenizer, [longest])) == 1
    with pytest.raises(ValueError, match="at most 64 tokens, which the model can read; got 65"):
        predict_clozes(model, tokenizer, [f"a {longest}"])


def test_evaluation_scores_the_predictions(make_masked_lm):
    model, tokenizer = make_masked_lm()
    entries = read_wnlampro(MINI)
    scores = evaluate_wnlampro(model, tokenizer, entries, precision_at=(1, 3, 200))
    predictions = {
        entry.id: [
            predict_naively(model, tokenizer, text if text.endswith((".", "?")) else f"{text}.", 200)
            for text in fill_patterns(entry.keyword.word, entry.relation)
        ]
        for entry in entries
    }
    expected = score_wnlampro(entries, predictions, precision_at=(1, 3, 200))
    assert scores == expected
    assert scores.num_injected is None
    assert 0 < scores.overall.mrr < 1
    without = evaluate_wnlampro(model, tokenizer, entries, precision_at=())
    assert without.reciprocal_ranks == scores.reciprocal_ranks
    assert without.overall.precision_at == {}
    assert json.loads(json.dumps(scores.to_dict()))["bands"]["rare"]["num_entries"] == 14


def test_injected_keywords_change_the_answers_and_are_counted(make_masked_lm, caplog):
    model, tokenizer = make_masked_lm()
    entries = [make_entry("kumquat"), make_entry("quokka", "cohyponym"), make_entry("tower", count=500)]
    alone = evaluate_wnlampro(model, tokenizer, entries)
    vector = model.get_input_embeddings().weight.detach()[tokenizer.convert_tokens_to_ids("bridge")]
    injector = BertramEmbeddingInjector(model, tokenizer, {"kumquat": vector, "quokka": vector}, mode="replace")
    scores = evaluate_wnlampro(injector, injector.tokenizer, entries)
    assert scores.num_injected == 2
    assert scores.bands["frequent"] == alone.bands["frequent"]
    assert not caplog.text
    assert scores.bands["rare"] != alone.bands["rare"]
    # The vector of a token is as good as the token.
    renamed = [make_entry("bridge"), make_entry("bridge", "cohyponym"), make_entry("tower", count=500)]
    same = evaluate_wnlampro(injector, injector.tokenizer, renamed)
    assert list(same.reciprocal_ranks.values()) == pytest.approx(list(scores.reciprocal_ranks.values()))
    injector.add({"kind": vector}, "more")
    evaluate_wnlampro(injector, injector.tokenizer, entries)
    assert "Words of the patterns have injected vectors, too: kind." in caplog.text


def test_bad_entries_are_told(make_masked_lm):
    model, tokenizer = make_masked_lm()
    with pytest.raises(ValueError, match="Expected entries to evaluate; got none"):
        evaluate_wnlampro(model, tokenizer, [])
    with pytest.raises(ValueError, match=r"entry 'x' has '\[MASK\]' in 'a\[MASK\]'. Leave it out"):
        evaluate_wnlampro(model, tokenizer, [make_entry("a[MASK]", entry_id="x")])


# --- command


def run_command(*arguments):
    parser = argparse.ArgumentParser()
    command.add_command(parser.add_subparsers())
    parsed = parser.parse_args(["wnlampro", *map(str, arguments)])
    parsed.run(parsed)


def test_command_evaluates_with_and_without_vectors(make_masked_lm, tmp_path, capsys):
    pytest.importorskip("scipy")
    model, tokenizer = make_masked_lm()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    rows = model.get_input_embeddings().weight.detach()[[50, 60]]
    WordVectors(["city", "bridge"], rows).save_pretrained(tmp_path / "vectors")
    options = ["evaluate", "--model", tmp_path / "model", "--probe", MINI]
    capsys.readouterr()
    run_command(*options, "--json", "--split", "test")
    result = json.loads(capsys.readouterr().out)
    expected = evaluate_wnlampro(model, tokenizer, read_wnlampro(MINI, "test"))
    assert result["model"] == json.loads(json.dumps(expected.to_dict()))
    assert (result["num_left_out"], result["tests"]) == (3, None)
    run_command(*options, "--vectors", tmp_path / "vectors", "--mode", "slash")
    out = capsys.readouterr().out
    assert "with vectors (slash): 48 entries, 3 keywords injected\n" in out
    for band in BANDS:
        assert f"{band}: MRR differs by " in out
    assert "Note: 12 misspellings that occur 10 times or more are left out, as released." in out
    run_command(*options, "--vectors", tmp_path / "vectors", "--json")
    result = json.loads(capsys.readouterr().out)
    assert result["with vectors (replace)"]["num_injected"] == 3
    entries = read_wnlampro(MINI)
    assert list(result["tests"]) == list(BANDS)
    for band, test in result["tests"].items():
        ids = [entry.id for entry in entries if entry.band == band]
        ranks = [
            {entry_id: result[name]["reciprocal_ranks"][entry_id] for entry_id in ids}
            for name in ("with vectors (replace)", "model")
        ]
        assert test == json.loads(json.dumps(asdict(paired_t_test(*ranks))))


def test_band_of_one_entry_is_not_tested():
    pytest.importorskip("scipy")
    entries = [make_entry("lime"), make_entry("kumquat"), make_entry("tower", count=500)]
    first, second = ({entry.id: value * (i + 1) for i, entry in enumerate(entries)} for value in (0.1, 0.2))
    assert list(command.compare_bands(entries, first, second)) == ["rare"]
