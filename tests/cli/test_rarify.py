import argparse
import json
import re

import pytest
import torch
from datasets import ClassLabel, Dataset, Features, Value, load_from_disk
from support.tiny_models import FAMILIES
from support.tiny_wordnet import write_tiny_wordnet
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedConfig

from bertram_hf.cli import rarify
from bertram_hf.rarification.wordnet import open_wordnet

WORDS = ["gold", "field", "town", "rabbit", "horse", "apple", "castle", "bird"]


@pytest.fixture
def folder(bert_tokenizer, tmp_path, monkeypatch):
    """A folder with an encoder, a classifier that goes by "gold", texts, substitutes and counts."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    config = AutoConfig.for_model("bert", **FAMILIES["bert"] | {"vocab_size": 641})
    config.id2label, config.label2id = {0: "poor", 1: "rich"}, {"poor": 0, "rich": 1}
    AutoModelForSequenceClassification.from_config(config).save_pretrained("model")
    bert_tokenizer.save_pretrained("model")
    rows = [(f"the {WORDS[i % 8]} of the {WORDS[i * 3 % 7]}", "rich" if i % 8 == 0 else "poor") for i in range(60)]
    lines = "".join(f"{text}\t{label}\n" for text, label in rows)
    (tmp_path / "texts.tsv").write_text("text\tlabel\n" + lines, encoding="utf-8")
    lines = "".join(f"{word}\t{word}ium\n" for word in WORDS)
    (tmp_path / "substitutions.tsv").write_text(lines, encoding="utf-8")
    (tmp_path / "counts.tsv").write_text("goldium\t100\nGolx\t60\ngolx\t39\n", encoding="utf-8")
    return tmp_path


def run(*arguments):
    parser = argparse.ArgumentParser()
    rarify.add_command(parser.add_subparsers())
    parsed = parser.parse_args(["rarify", "model", "texts.tsv", "--output", "out", "--max-length", "24", *arguments])
    parsed.run(parsed)


TRAIN = ("--train", "--training-arguments", '{"num_train_epochs": 1, "use_cpu": true, "learning_rate": 0.01}')


def test_a_trained_classifier_is_used_as_it_is(folder, capsys):
    run("--substitutions", "substitutions.tsv", "--json")
    summary = json.loads(capsys.readouterr().out)
    assert summary == json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["num_candidates"] == summary["texts"] == 60
    test = load_from_disk(folder / "out" / "test")
    assert len(test) == summary["num_rarified"]
    assert test.features["label"].names == ["poor", "rich"]
    assert not (folder / "out" / "baseline").exists()


def test_a_finished_baseline_is_not_trained_again(folder, capsys, monkeypatch):
    run("--substitutions", "substitutions.tsv", "--json", *TRAIN)
    first = json.loads(capsys.readouterr().out)
    assert first["training_texts"] == 20
    assert first["num_candidates"] == 40
    trained = AutoModelForSequenceClassification.from_pretrained(folder / "out" / "baseline")
    assert trained.config.label2id == {"poor": 0, "rich": 1}
    monkeypatch.setattr("bertram_hf.rarification.baseline.train_baseline", None)
    run("--substitutions", "substitutions.tsv", "--json", *TRAIN)
    assert json.loads(capsys.readouterr().out) == first
    with pytest.raises(ValueError, match=r"was trained; max_length changed\. Give another --output"):
        run("--substitutions", "substitutions.tsv", *TRAIN, "--max-length", "23")


def test_misspellings_are_rare_words_of_the_texts(folder, capsys):
    (folder / "misspelt.tsv").write_text("gold\tgoldium\ngold\tgolx\nkumquat\tkumkuat\n", encoding="utf-8")
    run("--misspellings", "misspelt.tsv", "--counts", "counts.tsv", "--misspelling-share", "1", "--limit", "50")
    lines = (folder / "out" / "substitutions.tsv").read_text(encoding="utf-8").splitlines()
    assert lines == ["word\tsubstitute\tkind", "gold\tgolx\tmisspelling"]
    assert "candidates to out" in capsys.readouterr().out


def test_words_become_rare_synonyms_of_wordnet(folder, capsys, monkeypatch):
    pytest.importorskip("nltk", reason="WordNet is read with NLTK")
    pytest.importorskip("lemminflect", reason="synonyms are inflected with LemmInflect")
    (folder / "wordnet").mkdir()
    wordnet = open_wordnet(write_tiny_wordnet(folder / "wordnet"))
    monkeypatch.setattr("bertram_hf.rarification.synonyms.open_wordnet", lambda: wordnet)
    text = (folder / "texts.tsv").read_text(encoding="utf-8").replace("gold", "laundry").replace("town", "vineyards")
    (folder / "texts.tsv").write_text(text, encoding="utf-8")
    (folder / "counts.tsv").write_text("wash\t100\nWashing\t99\nwashing\t1\nwashables\t99\n", encoding="utf-8")
    run("--wordnet", "--counts", "counts.tsv", "--json")
    summary = json.loads(capsys.readouterr().out)
    lines = (folder / "out" / "substitutions.tsv").read_text(encoding="utf-8").splitlines()
    assert sorted(lines[1:]) == ["laundry\twashables\twordnet", "vineyards\tvineries\twordnet"]
    assert summary["substitutions"] == {"wordnet": 2}
    replaced = re.compile(r"laundry|vineyards")
    expected = [row for row in text.splitlines()[1:] if replaced.search(row)]
    assert summary["num_candidates"] == len(expected)
    for row in load_from_disk(folder / "out" / "test"):
        assert "washables" in row["text"] or "vineries" in row["text"]


def test_substitutes_that_the_model_knows_are_kept_if_asked_for(folder, capsys):
    (folder / "misspelt.tsv").write_text("gold\ttown\ngold\tgolx\n", encoding="utf-8")
    options = ("--misspellings", "misspelt.tsv", "--counts", "counts.tsv", "--json")
    kinds = []
    for more in ((), ("--keep-known",)):
        run(*options, *more)
        kinds.append(json.loads(capsys.readouterr().out)["substitutions"])
    assert kinds == [{"misspelling": 1}, {"misspelling": 2}]


def test_wrong_input_is_named(folder):
    with pytest.raises(ValueError, match="Expected substitutes; got none"):
        run()
    with pytest.raises(ValueError, match="Expected --counts with --wordnet"):
        run("--wordnet")
    with pytest.raises(ValueError, match="Expected a column 'sentence'"):
        run("--substitutions", "substitutions.tsv", "--text-column", "sentence")
    (folder / "counts.tsv").write_text("gold\t5\nsilver 6\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"counts\.tsv, line 2: expected a word, a tab and its count; got 'silver 6'"):
        run("--misspellings", "substitutions.tsv", "--counts", "counts.tsv")
    (folder / "texts.tsv").write_text("text\tlabel\na\told\nb\tnew\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match="Expected labels among the model's, poor, rich, or class numbers; got new, old"
    ):
        run("--substitutions", "substitutions.tsv")
    (folder / "texts.tsv").write_text("text\tlabel\na\told\n", encoding="utf-8")
    with pytest.raises(ValueError, match="Expected several labels in column 'label'"):
        run("--substitutions", "substitutions.tsv")


def test_numbers_are_the_models_numbers(folder, capsys):
    text = (folder / "texts.tsv").read_text(encoding="utf-8").replace("rich", "1").replace("poor", "0")
    (folder / "texts.tsv").write_text(text, encoding="utf-8")
    run("--substitutions", "substitutions.tsv", "--json")
    assert json.loads(capsys.readouterr().out)["num_candidates"] == 60


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (("Rich", "POOR"), [0, 1]),  # by name, in whatever case
        (("LABEL_0", "LABEL_1"), [1, 0]),  # by number, as the dataset has them
        (("wealthy", "needy"), None),
    ],
)
def test_classes_of_a_hub_dataset_are_matched_by_name(classes, expected):
    features = Features({"text": Value("string"), "label": ClassLabel(names=["poor", "rich"])})
    texts = Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features)
    config = PreTrainedConfig(id2label=dict(enumerate(classes)), label2id={name: i for i, name in enumerate(classes)})
    arguments = argparse.Namespace(label_column="label", dataset=["news"])
    if expected is None:
        with pytest.raises(ValueError, match="Expected labels among the model's, wealthy, needy"):
            rarify.match_labels(texts, config, arguments)
    else:
        assert rarify.match_labels(texts, config, arguments)["label"][:] == expected
