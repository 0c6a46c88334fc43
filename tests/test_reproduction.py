import json
import random
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from linked_wordnet import write_linked_wordnet
from tiny_models import FAMILIES
from tiny_training import HELDOUT, make_sentences, write_encoder, write_recipe

pytest.importorskip("datatrove")
pytest.importorskip("matplotlib")

from datasets import Dataset
from PIL import Image
from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForSequenceClassification

from bertram_hf import WordVectors, figures
from bertram_hf.cli import main
from bertram_hf.context_curves import write_curves
from bertram_hf.evaluated_systems import EvaluatedSystem
from bertram_hf.evaluation_recipe import EvaluationRecipe
from bertram_hf.figures import Point, draw_lines
from bertram_hf.paired_scores import sign_test
from bertram_hf.rarified_evaluation import evaluate_rarified, predict_labels
from bertram_hf.rarified_tables import RarifiedAnswers, write_accuracies
from bertram_hf.reproduction import Reproduction
from bertram_hf.result_rows import ResultRows, file_name, fingerprint
from bertram_hf.wnlampro import parse_entry
from bertram_hf.wnlampro_task import WnlamproEvaluation, average_ranks, compare_ranks

PAIRS = "river\tkumquat\t7.0\nforest\tQuokka\t2.5\nlake\tzebra\t4.0\nvalley\tkumquat\t6.0\ntown\tquokka\t1.0\n"
SYSTEMS = [
    {"name": "mean of pieces", "model": "pieces"},
    {"name": "Mimick", "model": "mimick"},
    {"name": "A La Carte", "model": "a-la-carte"},
    {"name": "BERTRAM-shallow", "model": "bertram-shallow"},
    {"name": "BERTRAM-shallow, slash", "model": "bertram-shallow", "mode": "slash"},
]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """An evaluation recipe with a small corpus, a training recipe and rated pairs."""
    folder = tmp_path_factory.mktemp("reproduction")
    encoder = write_encoder(folder / "encoder")
    training = write_recipe(folder, encoder)
    sentences = [*make_sentences(), *(f"the old {word} near the river" for word in HELDOUT)]
    (folder / "contexts.txt").write_text("\n".join(sentences) + "\n")
    (folder / "pairs.txt").write_text(PAIRS)
    corpus = {"inputs": [str(folder / "contexts.txt")], "max_contexts": 8}
    content = {
        "encoder": str(encoder),
        "output": str(folder / "results"),
        "work": str(folder / "work"),
        "training": str(training),
        "seeds": [0, 1],
        "systems": SYSTEMS,
        "recovery": {
            "words": str(folder / "heldout.txt"),
            "corpus": corpus,
            "num_contexts": [0, 1, 4],
            "num_draws": 2,
        },
        "similarity": {"pairs": str(folder / "pairs.txt"), "corpus": corpus, "num_contexts": [1, 4], "num_draws": 2},
    }
    path = folder / "evaluation.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def read_rows(folder):
    return {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def test_every_system_is_evaluated_and_a_second_run_computes_nothing(recipe, capsys):
    assert main(["reproduce", str(recipe)]) == 0
    results = recipe.parent / "results"
    assert capsys.readouterr().out == f"Results: {results}\n"
    recovery, similarity = (read_rows(results / name) for name in ("recovery", "similarity"))
    seeds = [f"{system}-seed-{seed}.json" for system in ("a-la-carte", "bertram-shallow", "mimick") for seed in (0, 1)]
    assert list(recovery) == seeds
    assert list(similarity) == sorted([*seeds, "mean-of-pieces-seed-0.json"])
    for name, rows in (("recovery", recovery), ("similarity", similarity)):
        for row in rows.values():
            options = f"--only {name} --system {shlex.quote(row['system'])} --seed {row['seed']}"
            assert row["command"] == f"bertram reproduce {recipe} {options}"
            assert set(row["versions"]) == {"bertram-hf", "torch", "transformers", "python"}
    assert [score["contexts"] for score in recovery["bertram-shallow-seed-0.json"]["scores"]] == [0, 1, 4]
    assert [score["contexts"] for score in recovery["a-la-carte-seed-0.json"]["scores"]] == [1, 4]
    assert [score["contexts"] for score in recovery["mimick-seed-0.json"]["scores"]] == [0]
    assert recovery["bertram-shallow-seed-0.json"]["scores"] != recovery["bertram-shallow-seed-1.json"]["scores"]
    assert similarity["mimick-seed-0.json"]["scores"][0]["num_pairs"] == 5
    for name in ("recovery", "similarity"):
        table = (results / f"{name}.md").read_text()
        assert "| BERTRAM-shallow | 0, 1 |" in table
        assert "slash" not in table  # the vectors are the same
        assert f"Command: `bertram reproduce {recipe} --only {name}`" in table
        assert "| system | seeds | 0 | 1 | 4 |" in table
        assert re.search(r"\| Mimick \| 0, 1 \| [^|]+\d\] \|  \|  \|", table)  # reads no contexts
        assert "reads no contexts has one score" in table
        with Image.open(results / f"{name}.png") as image:
            assert min(image.size) > 300
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    times = {path: path.stat().st_mtime_ns for path in results.rglob("*.json")}
    # Results are enough: elsewhere, without anything that was made on the way, nothing is trained.
    assert main(["reproduce", str(recipe), "--set", f"work={recipe.parent / 'elsewhere'}"]) == 0
    assert not (recipe.parent / "elsewhere").exists()
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*.json")} == times
    assert main(["reproduce", str(recipe)]) == 0
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before
    # A choice restricts what is computed, not what is shown.
    one = ["reproduce", str(recipe), "--system", "Mimick", "--seed", "1"]
    assert main(one) == 0
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before
    (results / "similarity" / "a-la-carte-seed-1.json").unlink()
    (results / "similarity" / "mimick-seed-1.json").unlink()
    assert main([*one, "--only", "similarity"]) == 0
    assert not (results / "similarity" / "a-la-carte-seed-1.json").exists()
    table = (results / "similarity.md").read_text()
    assert "| A La Carte | 0 |" in table
    assert "| Mimick | 0, 1 |" in table


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
    path = tmp_path / "evaluation.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(recipe.read_text()) | fields))
    arguments = ["reproduce", str(path), "--only", "Tiny News", "--seed", "0"]
    folder = tmp_path / "results" / "rarified"
    assert main([*arguments, "--system", "tiny BERT"]) == 0
    assert list(json.loads((folder / "tiny-news.json").read_text())["subsets"]["All"]) == ["tiny BERT"]
    assert main(arguments) == 0
    rows = read_rows(folder / "tiny-news")
    assert rows["a-la-carte-seed-0.json"]["command"] == (
        f"bertram reproduce {path} --only 'Tiny News' --system 'A La Carte' --seed 0"
    )
    assert len(rows) == 8
    sizes = {len(row["correct"]) for row in rows.values()}
    assert len(sizes) == 1
    assert sizes.pop() > 20
    plain = rows["tiny-bert-seed-0.json"]
    assert plain["accuracy"]["All"] == plain["accuracy"]["Msp"] == plain["correct"].count("1") / len(plain["correct"])
    assert plain["accuracy"]["WN"] is None
    outside, inside = rows["a-la-carte-seed-0.json"], rows["a-la-carte-indomain-seed-0.json"]
    assert outside["words_without_vector"] > inside["words_without_vector"] == 0  # they occur in the test set only
    table = (folder / "tiny-news.md").read_text()
    assert "| tiny BERT |" in table
    assert "| p against tiny BERT |" in table
    assert "means over seeds 0 (" in table
    assert f"Command: `bertram reproduce {path} --only 'Tiny News'`" in table
    result = json.loads((folder / "tiny-news.json").read_text())
    assert result["command"] == f"bertram reproduce {path} --only 'Tiny News'"
    assert result["seeds"] == [0]
    compared = result["subsets"]
    assert set(compared) == {"All", "Msp", "WN"}
    assert list(result["p_values"]["All"]) == list(compared["All"])
    by_count = json.loads((folder / "tiny-news-by-count.json").read_text())
    assert (by_count["command"], by_count["seeds"]) == (result["command"], [0])
    assert by_count["gain_by_band"]["ranges"] == ["[0, 125)", "[125, 250)", "[250, 500)", "[500, inf)"]
    assert by_count["gain_by_band"]["num_texts"] == [len(plain["correct"]), 0, 0, 0]
    assert by_count["accuracy_below"]["num_texts"][-1] == len(plain["correct"])
    assert f"| model | [0, 125) ({len(plain['correct'])}) |" in table
    # Each misspelling has the vector of its word, so that every answer is that to the original text.
    assert set(rows["bound-seed-0.json"]["correct"]) == {"1"}
    assert "| bound | 100.0 | 100.0 |" in (folder / "tiny-news.md").read_text()
    assert "bound" not in compared["All"]
    for name in ("tiny-news-by-count.png", "tiny-news-gain.png"):
        with Image.open(folder / name) as image:
            assert min(image.size) > 300
    (texts,) = read_rows(folder / "tiny-news" / "texts").values()
    assert texts["rarification"]["num_rarified"] == len(plain["correct"]) == len(texts["originals"])
    before = {path: path.stat().st_mtime_ns for path in (folder / "tiny-news").rglob("*.json")}
    elsewhere = ["--set", f"work={tmp_path / 'elsewhere'}"]
    assert main([*arguments, *elsewhere]) == 0
    assert not (tmp_path / "elsewhere").exists()
    assert {path: path.stat().st_mtime_ns for path in (folder / "tiny-news").rglob("*.json")} == before
    # One system of another seed is computed, but the table stays that of the seed that has them all.
    assert main(["reproduce", str(path), "--only", "Tiny News", "--system", "tiny BERT", "--seed", "1"]) == 0
    assert (folder / "tiny-news.md").read_text() == table
    assert len(read_rows(folder / "tiny-news")) == 9
    plain_path = folder / "tiny-news" / "tiny-bert-seed-0.json"
    plain_path.write_text(json.dumps(plain | {"texts": "of another set"}))
    capsys.readouterr()
    assert main(arguments) == 1
    assert "seed 0, are of different rarified sets of Tiny News" in capsys.readouterr().err


PROBE = """a\ttest\tkumquat (n,2.10,3)\thypernym\triver (n,5.00,900)
b\ttest\tquokka (n,1.90,5)\tcohyponym\tlake (n,4.80,700)\ttown (n,5.10,800)
c\ttest\tzebra (n,3.20,4)\thypernym\tforest (n,4.90,600)
d\ttest\tgarden (n,4.50,50)\tcohyponym\tvalley (n,4.10,500)
e\ttest\tbridge (n,4.60,20)\thypernym\ttower (n,4.40,300)
f\tdev\tquokka (n,1.90,5)\thypernym\tking (n,5.00,300)
g\ttest\tking (n,5.00,300)\thypernym\ttown (n,5.10,800)
"""


def test_masked_language_model_is_trained_and_asked_with_every_system(recipe, tmp_path, capsys):
    (tmp_path / "probe.txt").write_text(PROBE)
    fields = {
        "output": str(tmp_path / "results"),
        "work": str(tmp_path / "work"),
        "wnlampro": {
            "texts": [str(recipe.parent / "contexts.txt")],
            "max_steps": 4,
            "probe": str(tmp_path / "probe.txt"),
        },
        "corpora": [{"inputs": [str(recipe.parent / "contexts.txt")], "max_contexts": 8}],
        "systems": [
            {"name": "tiny BERT", "model": "plain"},
            {"name": "mean of pieces", "model": "pieces"},
            {"name": "pieces, slash", "model": "pieces", "mode": "slash"},
            {"name": "indomain", "model": "pieces", "indomain": True},
        ],
    }
    path = tmp_path / "evaluation.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(recipe.read_text()) | fields))
    assert main(["reproduce", str(path), "--only", "wnlampro"]) == 0
    rows = read_rows(tmp_path / "results" / "wnlampro")
    assert list(rows) == ["mean-of-pieces-seed-0.json", "pieces-slash-seed-0.json", "tiny-bert-seed-0.json"]
    assert all(list(row["reciprocal_ranks"]) == list("abcde") for row in rows.values())  # neither dev nor frequent
    assert rows["tiny-bert-seed-0.json"]["num_injected"] is None
    assert rows["mean-of-pieces-seed-0.json"]["num_injected"] == 5
    heads = [row["head"] for row in rows.values()]
    assert heads[0] == heads[1] == heads[2]
    assert heads[0]["perplexity"] > 1
    result = json.loads((tmp_path / "results" / "wnlampro.json").read_text())
    assert result["command"] == f"bertram reproduce {path} --only wnlampro"
    assert result["seeds"] == {"tiny BERT": [0], "mean of pieces": [0], "pieces, slash": [0]}
    assert result["head"] == heads[0]
    compared = result["bands"]
    for band, ids in (("rare", "abc"), ("medium", "de")):
        ranks = rows["tiny-bert-seed-0.json"]["reciprocal_ranks"]
        assert compared[band]["tiny BERT"]["mrr"] == pytest.approx(sum(ranks[entry_id] for entry_id in ids) / len(ids))
        assert sum(entry["is_best"] for entry in compared[band].values()) >= 1
    table = (tmp_path / "results" / "wnlampro.md").read_text()
    columns = "rare (3) MRR | rare P@1 | rare P@10 | medium (2) MRR | medium P@1 | medium P@10"
    assert f"| model | seeds | {columns} |" in table
    assert "| tiny BERT | 0 |" in table
    assert main(["reproduce", str(path), "--only", "wnlampro", "--system", "tiny BERT"]) == 0
    assert (tmp_path / "results" / "wnlampro.md").read_text() == table
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "results" / "wnlampro").iterdir()}
    elsewhere = ["--set", f"work={tmp_path / 'elsewhere'}"]
    assert main(["reproduce", str(path), "--only", "wnlampro", *elsewhere]) == 0
    assert not (tmp_path / "elsewhere").exists()
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "results" / "wnlampro").iterdir()} == before

    # A head of other steps stands beside the first one, and its rows are not compared with those of the first.
    assert main(["reproduce", str(path), "--only", "wnlampro", "--set", "wnlampro.max_steps=5"]) == 0
    changed = read_rows(tmp_path / "results" / "wnlampro")["tiny-bert-seed-0.json"]
    assert changed["head"]["weights"] != heads[0]["weights"]
    (tmp_path / "results" / "wnlampro" / "tiny-bert-seed-0.json").write_text(json.dumps(changed | {"head": heads[0]}))
    capsys.readouterr()
    assert main(["reproduce", str(path), "--only", "wnlampro", "--set", "wnlampro.max_steps=5"]) == 1
    assert "are of different masked language models: tiny BERT, seed 0 (perplexity" in capsys.readouterr().err

    other = tmp_path / "other"
    shutil.copytree(tmp_path / "work" / "wnlampro" / "masked-lm-4-steps", other)
    model = AutoModelForMaskedLM.from_pretrained(other)
    model.get_input_embeddings().weight.data += 0.1
    model.save_pretrained(other)
    arguments = ["reproduce", str(path), "--only", "wnlampro", "--set", f"wnlampro.model={other}"]
    capsys.readouterr()
    assert main([*arguments, "--set", "wnlampro.texts=[]"]) == 1
    assert "expected the input embeddings of" in capsys.readouterr().err


def test_probe_is_built_from_wordnet_and_the_corpora(recipe, tmp_path):
    pytest.importorskip("wordfreq")
    sentences = ["the dog and the horse near the old tree", "a warm day and a cold night"]
    lines = [f"{sentence} {number}" for number in range(120) for sentence in sentences]
    (tmp_path / "text.txt").write_text("\n".join([*lines, *["one quokka in the garden with a dog"] * 3]) + "\n")
    write_linked_wordnet(tmp_path / "wordnet")
    fields = {
        "output": str(tmp_path / "results"),
        "work": str(tmp_path / "work"),
        "wnlampro": {"texts": [str(tmp_path / "text.txt")], "max_steps": 2, "wordnet": str(tmp_path / "wordnet")},
        "corpora": [{"inputs": [str(tmp_path / "text.txt")]}],
        "systems": [{"name": "plain", "model": "plain"}],
    }
    path = tmp_path / "evaluation.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(recipe.read_text()) | fields))
    assert main(["reproduce", str(path), "--only", "wnlampro"]) == 0
    (built,) = read_rows(tmp_path / "results" / "wnlampro" / "probe").values()
    entries = [parse_entry(line) for line in built["entries"]]
    assert any(entry.keyword.word == "quokka" and entry.relation == "cohyponym" for entry in entries)
    asked = [entry.id for entry in entries if entry.split == "test" and entry.band != "frequent"]
    (row,) = read_rows(tmp_path / "results" / "wnlampro").values()
    assert set(row["reciprocal_ranks"]) == set(asked)
    assert built["command"] == f"bertram reproduce {path} --only wnlampro"
    shutil.copytree(tmp_path / "wordnet", tmp_path / "another")
    changed = {"wnlampro": fields["wnlampro"] | {"wordnet": str(tmp_path / "another")}}
    run = Reproduction(EvaluationRecipe.load(path, changed), show_progress=False)
    assert WnlamproEvaluation(run, run.recipe.wnlampro).entries
    (rebuilt,) = read_rows(tmp_path / "results" / "wnlampro" / "probe").values()
    assert rebuilt["fingerprint"] != built["fingerprint"]


def test_ranks_are_averaged_over_seeds_and_compared_by_entry():
    rows = [{"reciprocal_ranks": {"a": 1.0, "b": 0.5}}, {"reciprocal_ranks": {"a": 0.5, "b": 0.25}}]
    assert average_ranks(rows) == {"a": 0.75, "b": 0.375}
    ranks = {"x": {"a": 0.75, "b": 0.375}, "y": {"a": 0.75, "b": 0.375}, "z": {"a": 0.1, "b": 0.1}}
    compared = compare_ranks(ranks, ["a", "b"])
    assert compared["x"] == compared["y"] == {"mrr": 0.5625, "is_best": True, "p_value": 1.0}
    assert not compared["z"]["is_best"]
    assert compare_ranks(ranks, ["a"]) == {}


def test_one_row_can_be_made_alone(recipe, tmp_path):
    arguments = ["reproduce", str(recipe), "--only", "similarity", "--system", "Mimick", "--seed", "1"]
    assert main([*arguments, "--set", f"output={tmp_path}"]) == 0
    (row,) = read_rows(tmp_path / "similarity").values()
    assert (row["system"], row["seed"]) == ("Mimick", 1)
    options = "--only similarity --system Mimick --seed 1"
    assert row["command"] == f"bertram reproduce {recipe} --set output={tmp_path} {options}"
    assert not (tmp_path / "recovery").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "speed"], r"There is no task 'speed' in the recipe\. Tasks: recovery, similarity\."),
        (
            ["--only", "similarity", "--set", "similarity=null"],
            r"no task 'similarity' in the recipe\. Tasks: recovery\.",
        ),
        (["--system", "Word2Vec"], "There is no system 'Word2Vec' in the recipe. Systems: mean of pieces, Mimick"),
        (["--set", "training=null"], "Mimick is a preset, which a training recipe must train; got none"),
        (["--set", "seeds=[]"], "expected at least one of each"),
        (["--set", "rarified=[{name: a}]"], "corpora: needed for contexts and counts of rare words; got none"),
        (["--set", "wnlampro={max_steps: 3}"], "expected a masked language model, or texts to train one"),
        (["--set", "wnlampro={model: a, bands: [scarce]}"], "expected some of rare, medium, frequent"),
        (["--set", "similarity.number=3"], "there is no field similarity.number. Fields: pairs, corpus"),
        (["--set", "systems=[{name: a, model: pieces}, {name: a, model: pieces}]"], "a stands more often"),
        (["--set", "systems=[{name: a, model: pieces, mode: add}]"], "mode must be replace or slash; got 'add'"),
        (["--set", "systems=[{name: a}]"], r"systems\[0\] needs the fields model"),
    ],
)
def test_bad_recipe_is_refused(recipe, capsys, options, message):
    assert main(["reproduce", str(recipe), *options]) == 1
    printed = capsys.readouterr().err
    assert re.search(message, printed), printed


def test_row_is_made_anew_if_what_it_depends_on_has_changed(tmp_path):
    rows = ResultRows(tmp_path)
    values = iter([1, 2, 3])
    assert rows.make("a", 0, {"draws": 1}, lambda: {"value": next(values)})["value"] == 1
    assert rows.make("a", 0, {"draws": 1}, lambda: {"value": next(values)})["value"] == 1
    assert rows.make("a", 0, {"draws": 2}, lambda: {"value": next(values)})["value"] == 2
    assert rows.make("a", 1, {"draws": 2}, lambda: {"value": next(values)})["value"] == 3
    assert rows.find("a", 1, {"draws": 2})["value"] == 3
    assert rows.find("a", 1, {"draws": 3}) is None
    assert rows.find("b", 1, {"draws": 2}) is None
    assert file_name("../a b/C") == "a-b-c"


def test_row_names_the_command_that_makes_it_alone(tmp_path):
    rows = ResultRows(tmp_path, command="bertram reproduce r.yaml --only similarity")
    row = rows.make("A La Carte", 3, {}, lambda: {"precision_at": {10: 0.5}})
    assert row["command"] == "bertram reproduce r.yaml --only similarity --system 'A La Carte' --seed 3"
    assert row == rows.find("A La Carte", 3, {})  # as the file holds it
    assert rows.make("texts", 0, {}, dict, options=[])["command"] == "bertram reproduce r.yaml --only similarity"
    assert ResultRows(tmp_path / "other").make("a", 0, {}, dict)["command"] is None


def test_fingerprint_of_rows_does_not_change():
    assert fingerprint({"task": {"draws": 4, "new": None}, "model": "a"}) == "27cb0a6bd8b8400beff62728f3279ba7"


def test_figure_without_scores_is_refused(tmp_path):
    labels = {"x_label": "contexts", "y_label": "score", "title": "none"}
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_lines(tmp_path / "a.png", {"empty": []}, **labels)
    draw_lines(tmp_path / "a.png", {"one": [Point(1, 0.5)], "empty": []}, **labels, zero_line=True)
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_zero_contexts_stand_left_of_one(tmp_path, monkeypatch):
    drawn = figures._new_figure()
    monkeypatch.setattr(figures, "_new_figure", lambda: drawn)
    row = {"seed": 2, "scores": [{"contexts": 0, "mrr": 0.1, "mrr_low": 0.0, "mrr_high": 0.2}]}
    scores = [{"contexts": number, "mrr": 0.3, "mrr_low": 0.2, "mrr_high": 0.4} for number in (1, 4)]
    write_curves(
        tmp_path / "recovery",
        {"context": [{"seed": 0, "scores": scores}], "form": [row]},
        "mrr",
        systems=["context", "form"],
        title="Recovery",
        y_label="mean reciprocal rank",
        command="bertram",
    )
    axes = drawn[1]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1", "4"]
    assert list(axes.get_xticks()) == [0.5, 1, 4]
    assert [list(line.get_xdata()) for line in axes.lines] == [[1, 4], [0.5, 1, 4]]
    table = (tmp_path / "recovery.md").read_text()
    assert "| system | seeds | 0 | 1 | 4 |" in table
    assert "| form | 2 | 0.100 [0.000, 0.200] |  |  |" in table


def test_accuracies_of_several_seeds_are_pooled_by_text(tmp_path):
    systems = [EvaluatedSystem("plain", "plain"), EvaluatedSystem("new", "a"), EvaluatedSystem("bound", "original")]
    draw = np.random.default_rng(0)
    answers = {}
    for seed, number in ((3, 40), (5, 60)):
        correct = {"plain": draw.random(number) < 0.3, "new": draw.random(number) < 0.8, "bound": np.ones(number, bool)}
        kinds = np.arange(number) % 4
        subsets = {"All": kinds >= 0, "Msp": kinds == 0, "WN": kinds > 0}
        counts = [[index % 10, 0] if index % 2 else [index % 10] for index in range(number)]
        answers[seed] = RarifiedAnswers(correct, subsets, counts, [f"text {index}" for index in range(number)])
    write_accuracies(tmp_path / "set", "Set", systems, answers, max_count=10, command="bertram")
    result = json.loads((tmp_path / "set.json").read_text())
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
    table = (tmp_path / "set.md").read_text()
    assert "means over seeds 3, 5 (mean" in table
    assert "| model | All (50) | Msp (12) | WN (38) | p against plain |" in table
    assert re.search(rf"\| new \| .* \| {p_value:.2g} \|", table)
    assert "| bound | 100.0 | 100.0 | 100.0 |  |" in table
    by_count = json.loads((tmp_path / "set-by-count.json").read_text())
    gains = by_count["gain_by_band"]
    assert gains["ranges"] == ["[0, 1)", "[1, 4)", "[4, inf)"]
    assert gains["num_texts"] == [10, 10, 30]  # of even indices, the others have words of two bands
    chosen = [(index, seed) for seed in answers.values() for index in range(len(seed.counts)) if index % 10 == 2]
    gain = np.mean([int(seed.correct["new"][index]) - int(seed.correct["plain"][index]) for index, seed in chosen])
    assert gains["scores"]["new"][1] == pytest.approx(gain)
    assert by_count["accuracy_below"]["ranges"] == ["< 1", "< 2", "< 4", "< 8", "< 16"]
    assert by_count["accuracy_below"]["num_texts"][-1] == 100
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
    injected = evaluate_rarified(
        model, bert_tokenizer, Dataset.from_dict(columns), WordVectors(["kumquat"], vector), max_length=64
    )
    renamed = [[text.replace("kumquat", "bridge") for text in side] for side in (texts, pairs)]
    assert injected.tolist() == (predict_labels(model, bert_tokenizer, *renamed, max_length=64) == labels).tolist()


def test_trained_models_serve_all_tasks(recipe):
    run = Reproduction(EvaluationRecipe.load(recipe), systems=["BERTRAM-shallow"], seeds=[0], show_progress=False)
    ((system, seed),) = run.runs()
    assert (system.name, seed) == ("BERTRAM-shallow", 0)
    model = run.model_of(system, seed)
    assert model.endswith("seed-0/bertram-shallow")
    assert json.loads(
        (recipe.parent / "work" / "training" / "seed-0" / "bertram-shallow" / "training.json").read_text()
    )
    assert run.describe_model(system, 0) != run.describe_model(system, 1)
    longer = EvaluationRecipe.load(recipe, {"training": str(write_longer(recipe))})
    assert Reproduction(longer, systems=["BERTRAM-shallow"]).describe_model(system, 0) != run.describe_model(system, 0)


def write_longer(recipe):
    """Writes a training recipe of more epochs."""
    content = yaml.safe_load(recipe.read_text())
    training = yaml.safe_load(Path(content["training"]).read_text())
    training["form"]["trainer"]["num_train_epochs"] = 7
    path = recipe.parent / "longer.yaml"
    path.write_text(yaml.safe_dump(training))
    return path
