import json
import random
import re

import numpy as np
import pytest
import torch
from support.tiny_evaluation import SYSTEMS, change_evaluation, read_rows, read_section, write_evaluation
from support.tiny_models import FAMILIES

pytest.importorskip("datatrove")
pytest.importorskip("matplotlib")

from datasets import Dataset
from PIL import Image
from transformers import AutoConfig, AutoModelForSequenceClassification

from bertram_hf import WordVectors
from bertram_hf.cli import main
from bertram_hf.corpus.contexts import CorpusSource
from bertram_hf.evaluation.rarified import evaluate_rarified, predict_labels
from bertram_hf.evaluation.statistics import sign_test
from bertram_hf.rarification.substitutions import Substitutions
from bertram_hf.reproduction.rarified import RarifiedBenchmark
from bertram_hf.reproduction.rarified_tables import RarifiedAnswers, report_accuracies
from bertram_hf.reproduction.recipe import EvaluatedSystem, EvaluationRecipe, RarifiedTask
from bertram_hf.reproduction.resources import Resources


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    return write_evaluation(tmp_path_factory.mktemp("evaluation"))


def test_rarified_set_is_classified_by_every_system(recipe, tmp_path, capsys):
    words = ["river", "forest", "lake", "valley", "town", "tower"]
    draw = random.Random(0)
    lines = ["text\tlabel"]
    for _ in range(240):
        first, second = draw.sample(words, 2)
        decisive = draw.choice(["king", "bread"])
        lines.append(f"the {first} and the {decisive} near the {second}\t{'court' if decisive == 'king' else 'food'}")
    (tmp_path / "texts.tsv").write_text("\n".join(lines) + "\n")
    (tmp_path / "misspellings.tsv").write_text("king\tkinng\nbread\tbreadd\n")
    task = {
        "name": "Tiny News",
        "inputs": [str(tmp_path / "texts.tsv")],
        "synonyms": False,
        "misspellings": [str(tmp_path / "misspellings.tsv")],
        "misspelling_share": 1.0,
        "max_count": 1000,
        "max_length": 32,
        "trainer": {"num_train_epochs": 20, "learning_rate": 3e-3, "use_cpu": True},
    }
    fields = {
        "output": str(tmp_path / "results"),
        "rarified": [task],
        "corpora": [{"inputs": [str(recipe.parent / "contexts.txt")], "min_count": 5, "max_contexts": 8}],
        "systems": [
            {"name": "tiny BERT", "model": "plain"},
            *SYSTEMS,
            {"name": "A La Carte, indomain", "model": "a-la-carte", "mode": "slash", "indomain": True},
            {"name": "bound", "model": "original"},
        ],
    }
    path = change_evaluation(recipe, tmp_path / "evaluation.yaml", fields)
    arguments = ["reproduce", str(path), "--only", "Tiny News", "--seed", "0"]
    results = tmp_path / "results"
    published, summary = results / "rarified-tiny-news.jsonl.gz", results / "summary.json"
    assert main([*arguments, "--system", "tiny BERT"]) == 0
    assert list(json.loads(summary.read_text())["Tiny News"]["subsets"]["All"]) == ["tiny BERT"]
    assert main([*arguments, "--system", "mean of pieces"]) == 0  # the table has all systems that have answered
    answered = json.loads(summary.read_text())["Tiny News"]["subsets"]["All"]
    assert list(answered) == ["tiny BERT", "mean of pieces"]
    assert main(arguments) == 0
    rows = read_rows(published)
    texts = rows.pop("texts-seed-0")
    assert rows["a-la-carte-seed-0"]["command"] == (
        f"bertram reproduce {path} --only 'Tiny News' --system 'A La Carte' --seed 0"
    )
    assert len(rows) == 8
    sizes = {len(row["correct"]) for row in rows.values()}
    assert len(sizes) == 1
    assert sizes.pop() > 20
    plain = rows["tiny-bert-seed-0"]
    assert plain["accuracy"]["All"] == plain["accuracy"]["Msp"] == plain["correct"].count("1") / len(plain["correct"])
    assert plain["accuracy"]["WN"] is None
    outside, inside = rows["a-la-carte-seed-0"], rows["a-la-carte-indomain-seed-0"]
    assert outside["words_without_vector"] > inside["words_without_vector"] == 0  # they occur in the test set only
    table = read_section(results, "Tiny News")
    assert "| tiny BERT |" in table
    assert "| p against tiny BERT |" in table
    assert "means over seeds 0 (" in table
    assert f"Command: `bertram reproduce {path} --only 'Tiny News'`" in table
    result = json.loads(summary.read_text())["Tiny News"]
    assert result["command"] == f"bertram reproduce {path} --only 'Tiny News'"
    assert result["seeds"] == [0]
    compared = result["subsets"]
    assert set(compared) == {"All", "Msp", "WN"}
    assert list(result["p_values"]["All"]) == list(compared["All"])
    assert result["gain_by_band"]["ranges"] == ["[0, 125)", "[125, 250)", "[250, 500)", "[500, inf)"]
    assert result["gain_by_band"]["num_texts"] == [len(plain["correct"]), 0, 0, 0]
    assert result["accuracy_below"]["num_texts"][-1] == len(plain["correct"])
    assert f"| model | [0, 125) ({len(plain['correct'])}) |" in table
    # Each misspelling has the vector of its word, so that every answer is that to the original text.
    assert set(rows["bound-seed-0"]["correct"]) == {"1"}
    assert "| bound | 100.0 | 100.0 |" in table
    assert "bound" not in compared["All"]
    for name in ("accuracy-by-count.png", "gain-by-count.png"):
        with Image.open(recipe.parent / "work" / "rarified" / "tiny-news" / name) as image:
            assert min(image.size) > 300
    assert texts["rarification"]["num_rarified"] == len(plain["correct"]) == len(texts["originals"])
    before = published.read_bytes()
    elsewhere = ["--set", f"work={tmp_path / 'elsewhere'}"]
    assert main([*arguments, *elsewhere]) == 0
    made = [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()]
    assert {path.suffix for path in made} == {".png"}  # drawn anew from the published rows
    assert published.read_bytes() == before
    # One system of another seed is computed, but the table stays that of the seed that has them all.
    assert main(["reproduce", str(path), "--only", "Tiny News", "--system", "tiny BERT", "--seed", "1"]) == 0
    assert read_section(results, "Tiny News") == table
    assert set(read_rows(published)) == {*rows, "texts-seed-0", "tiny-bert-seed-1", "texts-seed-1"}
    plain_path = recipe.parent / "work" / "rows" / "rarified-tiny-news" / "tiny-bert-seed-0.json"
    plain_path.write_text(json.dumps(plain | {"texts": "of another set"}))
    capsys.readouterr()
    assert main(arguments) == 1
    assert "seed 0, are of different rarified sets of Tiny News" in capsys.readouterr().err


def test_accuracies_of_several_seeds_are_pooled_by_text():
    systems = [EvaluatedSystem("plain", "plain"), EvaluatedSystem("new", "a"), EvaluatedSystem("bound", "original")]
    draw = np.random.default_rng(0)
    answers = {}
    for seed, number in ((3, 40), (5, 60)):
        correct = {"plain": draw.random(number) < 0.3, "new": draw.random(number) < 0.8, "bound": np.ones(number, bool)}
        kinds = np.arange(number) % 4
        subsets = {"All": kinds >= 0, "Msp": kinds == 0, "WN": kinds > 0}
        counts = [[index % 10, 0] if index % 2 else [index % 10] for index in range(number)]
        answers[seed] = RarifiedAnswers(correct, subsets, counts, [f"text {index}" for index in range(number)])
    report = report_accuracies("Set", systems, answers, max_count=10, command="bertram")
    result, table = report.summary, report.section
    assert (result["command"], result["seeds"]) == ("bertram", [3, 5])
    for subset in ("All", "Msp", "WN"):
        for name in ("plain", "new"):
            means = [seed.correct[name][seed.subsets[subset]].mean() for seed in answers.values()]
            assert result["subsets"][subset][name]["accuracy"] == pytest.approx(np.mean(means))
    wins = np.zeros(60)
    for seed in answers.values():
        wins[: len(seed.originals)] += seed.correct["new"].astype(int) - seed.correct["plain"]
    p_value = sign_test(wins)
    assert result["p_values"]["All"] == {"plain": {"new": p_value}, "new": {"plain": p_value}}
    assert "means over seeds 3, 5 (mean" in table
    assert "| model | All (50) | Msp (12) | WN (38) | p against plain |" in table
    assert re.search(rf"\| new \| .* \| {p_value:.2g} \|", table)
    assert "| bound | 100.0 | 100.0 | 100.0 |  |" in table
    gains = result["gain_by_band"]
    assert gains["ranges"] == ["[0, 1)", "[1, 4)", "[4, inf)"]
    assert gains["num_texts"] == [10, 10, 30]  # of even indices, the others have words of two bands
    chosen = [(index, seed) for seed in answers.values() for index in range(len(seed.counts)) if index % 10 == 2]
    gain = np.mean([int(seed.correct["new"][index]) - int(seed.correct["plain"][index]) for index, seed in chosen])
    assert gains["scores"]["new"][1] == pytest.approx(gain)
    assert result["accuracy_below"]["ranges"] == ["< 1", "< 2", "< 4", "< 8", "< 16"]
    assert result["accuracy_below"]["num_texts"][-1] == 100
    assert "| model | [0, 1) (10) | [1, 4) (10) | [4, inf) (30) |" in table


def test_pairs_of_texts_are_classified_as_one_at_a_time(bert_tokenizer):
    torch.manual_seed(0)
    config = AutoConfig.for_model("bert", **FAMILIES["bert"] | {"vocab_size": 641, "num_labels": 3})
    model = AutoModelForSequenceClassification.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    draw = random.Random(0)
    words = ["river", "kumquat", "forest", "king", "bread", "lake"]
    texts, pairs = ([" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(30)] for _ in range(2))
    expected = []
    for text, pair in zip(texts, pairs, strict=True):
        inputs = bert_tokenizer(text, pair, truncation=True, max_length=20, return_tensors="pt")
        expected.append(int(model(**inputs).logits.argmax()))
    assert len(set(expected)) > 1
    assert predict_labels(model, bert_tokenizer, texts, pairs, max_length=20).tolist() == expected
    assert predict_labels(model, bert_tokenizer, texts, max_length=20).tolist() != expected
    labels = [index % 3 for index in range(30)]
    columns = {"rarified_text": texts, "rarified_pair": pairs, "label": labels}
    is_right = evaluate_rarified(model, bert_tokenizer, Dataset.from_dict(columns), max_length=20)
    assert is_right.tolist() == [answer == label for answer, label in zip(expected, labels, strict=True)]
    # The vector of a token, given to the rare word, is as good as that token in both texts.
    embeddings = model.get_input_embeddings().weight.detach()
    vector = embeddings[[bert_tokenizer.convert_tokens_to_ids("bridge")]].clone()
    vectors = WordVectors(["kumquat"], vector)
    injected = evaluate_rarified(
        model, bert_tokenizer, Dataset.from_dict(columns), vectors, mode="replace", max_length=64
    )
    renamed = [[text.replace("kumquat", "bridge") for text in side] for side in (texts, pairs)]
    assert injected.tolist() == (predict_labels(model, bert_tokenizer, *renamed, max_length=64) == labels).tolist()


def test_capitalised_rare_word_of_a_cased_encoder_has_contexts(make_encoder, roberta_tokenizer, tmp_path):
    make_encoder("roberta").save_pretrained(tmp_path / "encoder")
    roberta_tokenizer.save_pretrained(tmp_path / "encoder")
    (tmp_path / "text.txt").write_text("Wash the washables here.\nALL THE WASHABLES ARE CLEAN TODAY.\n")
    fields = {"systems": [EvaluatedSystem("plain", "plain")], "output": str(tmp_path), "work": str(tmp_path / "work")}
    corpora = [CorpusSource(inputs=[str(tmp_path / "text.txt")], options={"unit": "line"})]
    recipe = EvaluationRecipe(encoder=str(tmp_path / "encoder"), corpora=corpora, **fields)
    evaluation = RarifiedBenchmark(Resources(recipe, show_progress=False), RarifiedTask("news"))
    evaluation.substitutions = Substitutions([("laundry", "washables", "wordnet")])
    replaced = [[{"substitute": word}] for word in ("washables", "Washables", "WASHABLES")]
    found = evaluation.contexts_for(Dataset.from_dict({"replaced": replaced}), indomain=False)
    assert found == {
        "washables": ["Wash the washables here."],
        "Washables": ["Wash the Washables here."],
        "WASHABLES": ["ALL THE WASHABLES ARE CLEAN TODAY."],
    }
