import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from support.tiny_evaluation import read_rows, read_section, write_evaluation

pytest.importorskip("datatrove")
pytest.importorskip("matplotlib")

from PIL import Image

from bertram_hf.cli import main
from bertram_hf.reproduction import figures as figures
from bertram_hf.reproduction.curves import draw_curves
from bertram_hf.reproduction.figures import Point, draw_lines
from bertram_hf.reproduction.recipe import EvaluationRecipe
from bertram_hf.reproduction.resources import Resources
from bertram_hf.reproduction.rows import ResultRows, file_name, fingerprint, read_jsonl, write_jsonl
from bertram_hf.reproduction.runner import Report


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    return write_evaluation(tmp_path_factory.mktemp("evaluation"))


def test_every_system_is_evaluated_and_a_second_run_computes_nothing(recipe, capsys):
    assert main(["reproduce", str(recipe)]) == 0
    results = recipe.parent / "results"
    assert capsys.readouterr().out == f"Results: {results}\n"
    recovery, similarity = (read_rows(results / f"{name}.jsonl") for name in ("recovery", "similarity"))
    seeds = [f"{system}-seed-{seed}" for system in ("a-la-carte", "bertram-shallow", "mimick") for seed in (0, 1)]
    assert list(recovery) == seeds
    assert sorted(similarity) == sorted([*seeds, "mean-of-pieces-seed-0"])
    for name, rows in (("recovery", recovery), ("similarity", similarity)):
        for row in rows.values():
            options = f"--only {name} --system {shlex.quote(row['system'])} --seed {row['seed']}"
            assert row["command"] == f"bertram reproduce {recipe} {options}"
            assert set(row["versions"]) == {"bertram-hf", "torch", "transformers", "python"}
    assert [score["contexts"] for score in recovery["bertram-shallow-seed-0"]["scores"]] == [0, 1, 4]
    assert [score["contexts"] for score in recovery["a-la-carte-seed-0"]["scores"]] == [1, 4]
    assert [score["contexts"] for score in recovery["mimick-seed-0"]["scores"]] == [0]
    assert recovery["bertram-shallow-seed-0"]["scores"] != recovery["bertram-shallow-seed-1"]["scores"]
    assert similarity["mimick-seed-0"]["scores"][0]["num_pairs"] == 5
    for name in ("recovery", "similarity"):
        table = read_section(results, name)
        assert "| BERTRAM-shallow | 0, 1 |" in table
        assert "slash" not in table  # the vectors are the same
        assert f"Command: `bertram reproduce {recipe} --only {name}`" in table
        assert "| system | seeds | 0 | 1 | 4 |" in table
        assert re.search(r"\| Mimick \| 0, 1 \| [^|]+\d\] \|  \|  \|", table)  # reads no contexts
        assert "reads no contexts has one score" in table
        with Image.open(results / f"{name}.png") as image:
            assert min(image.size) > 300
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    # Results are enough: elsewhere, without anything that was made on the way, nothing is trained.
    assert main(["reproduce", str(recipe), "--set", f"work={recipe.parent / 'elsewhere'}"]) == 0
    assert not (recipe.parent / "elsewhere").exists()
    assert main(["reproduce", str(recipe)]) == 0
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before
    # A choice restricts what is computed, not what is shown.
    one = ["reproduce", str(recipe), "--system", "Mimick", "--seed", "1"]
    assert main(one) == 0
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before
    for name in ("a-la-carte-seed-1", "mimick-seed-1"):
        (recipe.parent / "work" / "rows" / "similarity" / f"{name}.json").unlink()
        del similarity[name]
    write_jsonl(results / "similarity.jsonl", similarity.values())
    assert main([*one, "--only", "similarity"]) == 0
    assert set(read_rows(results / "similarity.jsonl")) == {*similarity, "mimick-seed-1"}
    table = read_section(results, "similarity")
    assert "| A La Carte | 0 |" in table
    assert "| Mimick | 0, 1 |" in table


def test_one_row_can_be_made_alone(recipe, tmp_path):
    arguments = ["reproduce", str(recipe), "--only", "similarity", "--system", "Mimick", "--seed", "1"]
    changes = ["--set", f"output={tmp_path}", "--set", f"work={tmp_path / 'work'}"]
    assert main([*arguments, *changes]) == 0
    (row,) = read_rows(tmp_path / "similarity.jsonl").values()
    assert (row["system"], row["seed"]) == ("Mimick", 1)
    options = "--only similarity --system Mimick --seed 1"
    assert row["command"] == f"bertram reproduce {recipe} {shlex.join(changes)} {options}"
    assert not (tmp_path / "recovery.jsonl").exists()


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
        (["--set", "systems=[{name: a, model: pieces}, {name: a, model: pieces}]"], "got 'a' and 'a'"),
        (["--set", "systems=[{name: BERT, model: pieces}, {name: BERT+, model: pieces}]"], "got 'BERT' and 'BERT\\+'"),
        (
            ["--set", "systems=[{name: a, model: pieces, mode: add}]"],
            r"mode: expected one of .*'auto'; got 'add'",
        ),
        (["--set", "systems=[{name: Texts, model: pieces}]"], "got 'texts' and 'Texts'"),
        (["--set", "systems=[{name: a}]"], r"systems\[0\] needs the fields model"),
    ],
)
def test_bad_recipe_is_refused(recipe, capsys, options, message):
    assert main(["reproduce", str(recipe), *options]) == 1
    printed = capsys.readouterr().err
    assert re.search(message, printed), printed


def test_words_that_may_be_trained_on_or_have_no_embedding_are_refused(recipe, tmp_path, capsys):
    (tmp_path / "words.txt").write_text("river\ncastle\n")
    options = ["--only", "recovery", "--set", f"recovery.words={tmp_path / 'words.txt'}"]
    assert main(["reproduce", str(recipe), *options, "--set", f"output={tmp_path}"]) == 1
    assert "1 of 2 may be trained on, such as 'river'" in capsys.readouterr().err
    (tmp_path / "words.txt").write_text("kumquat\ncastle\n")
    assert main(["reproduce", str(recipe), *options, "--set", f"output={tmp_path}"]) == 1
    assert "expected words of one piece, whose embeddings are known; 1 of 2 have" in capsys.readouterr().err


def test_task_without_chosen_systems_is_left_out(recipe, tmp_path, caplog):
    assert main(["reproduce", str(recipe), "--system", "mean of pieces", "--set", f"output={tmp_path}"]) == 0
    assert "None of the chosen systems takes part in recovery" in caplog.text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "similarity.jsonl", "similarity.png"]


def test_row_is_made_anew_if_what_it_depends_on_has_changed(tmp_path):
    rows = ResultRows(tmp_path, tmp_path / "rows.jsonl")
    values = iter([1, 2, 3])
    assert rows.make("a", 0, {"draws": 1}, lambda: {"value": next(values)})["value"] == 1
    assert rows.make("a", 0, {"draws": 1}, lambda: {"value": next(values)})["value"] == 1
    assert rows.make("a", 0, {"draws": 2}, lambda: {"value": next(values)})["value"] == 2
    assert rows.make("a", 1, {"draws": 2}, lambda: {"value": next(values)})["value"] == 3
    assert rows.find("a", 1, {"draws": 2})["value"] == 3
    assert rows.find("a", 1, {"draws": 3}) is None
    assert rows.find("b", 1, {"draws": 2}) is None
    assert file_name("../a b/C") == "a-b-c"


def test_row_is_made_anew_if_a_file_has_changed(tmp_path):
    words, folder = tmp_path / "words.txt", tmp_path / "texts"
    words.write_text("kumquat")
    folder.mkdir()
    (folder / "a.txt").write_text("a kumquat")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    inputs = [str(folder / "*.txt")]
    rows = ResultRows(tmp_path / "rows", tmp_path / "rows.jsonl")
    depends_on = {"words": str(words), "inputs": inputs, "model": str(tmp_path / "model"), "seed": 0}
    row = rows.make("a", 0, depends_on, dict)
    assert list(row["files"]) == [str(folder / "*.txt"), str(words)]
    assert rows.find("a", 0, depends_on) == row
    words.write_text("kumquats")
    assert rows.find("a", 0, depends_on) is None
    words.unlink()
    assert rows.find("a", 0, depends_on) == row  # what is not here cannot be another
    (folder / "b.txt").write_text("another")
    assert rows.find("a", 0, depends_on) is None


def test_row_names_the_command_that_makes_it_alone(tmp_path):
    rows = ResultRows(tmp_path, tmp_path / "rows.jsonl", command="bertram reproduce r.yaml --only similarity")
    row = rows.make("A La Carte", 3, {}, lambda: {"precision_at": {10: 0.5}})
    assert row["command"] == "bertram reproduce r.yaml --only similarity --system 'A La Carte' --seed 3"
    assert row == rows.find("A La Carte", 3, {})  # as the file holds it
    assert rows.make("texts", 0, {}, dict, options=[])["command"] == "bertram reproduce r.yaml --only similarity"
    assert ResultRows(tmp_path / "other", tmp_path / "other.jsonl").make("a", 0, {}, dict)["command"] is None


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_published_rows_are_found_without_the_work_folder(tmp_path, name):
    rows = ResultRows(tmp_path / "work", tmp_path / name)
    made = [rows.make(system, seed, {"draws": 1}, dict) for system, seed in (("b", 1), ("a", 10), ("a", 2))]
    rows.publish()
    content = (tmp_path / name).read_bytes()
    assert [(row["system"], row["seed"]) for row in read_jsonl(tmp_path / name)] == [("a", 2), ("a", 10), ("b", 1)]
    elsewhere = ResultRows(tmp_path / "elsewhere", tmp_path / name)
    assert elsewhere.find("b", 1, {"draws": 1}) == made[0]
    assert elsewhere.find("b", 1, {"draws": 2}) is None
    elsewhere.publish()
    assert (tmp_path / name).read_bytes() == content
    changed = elsewhere.make("b", 1, {"draws": 2}, dict)
    elsewhere.publish()
    # A row that is out of date here does not replace a newer one.
    rows = ResultRows(tmp_path / "work", tmp_path / name)
    assert rows.find("b", 1, {"draws": 2}) == changed
    rows.publish()
    assert read_jsonl(tmp_path / name)[-1] == changed
    assert len(read_jsonl(tmp_path / name)) == 3


def test_damaged_published_file_is_named(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"system": "a", "seed": 0}\n{"system')
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 2: expected JSON; .* Delete the file and run again"):
        ResultRows(tmp_path, tmp_path / "rows.jsonl").find("a", 0, {})


def test_section_is_replaced_and_others_stay(tmp_path):
    report = Report(tmp_path, "Results", ["recovery", "SST-2"])
    report.write("SST-2", "## Rarified\n\nfirst", {"seeds": [0]})
    report.write("older", "## Older")
    report.write("recovery", "## Recovery")
    report.write("SST-2", "## Rarified\n\nsecond\n", {"seeds": [1]})
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("# Results\n")
    assert re.findall("^## .*", text, re.MULTILINE) == ["## Recovery", "## Rarified", "## Older"]
    assert "second\n\n<!-- task: older -->" in text
    assert "first" not in text
    assert json.loads((tmp_path / "summary.json").read_text()) == {"SST-2": {"seeds": [1]}}


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
    table = draw_curves(
        tmp_path / "recovery.png",
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
    assert "| system | seeds | 0 | 1 | 4 |" in table
    assert "| form | 2 | 0.100 [0.000, 0.200] |  |  |" in table


def test_trained_models_serve_all_tasks(recipe):
    run = Resources(EvaluationRecipe.load(recipe), systems=["BERTRAM-shallow"], seeds=[0], show_progress=False)
    ((system, seed),) = run.runs()
    assert (system.name, seed) == ("BERTRAM-shallow", 0)
    model = run.model_of(system, seed)
    assert model.endswith("seed-0/bertram-shallow")
    assert json.loads(
        (recipe.parent / "work" / "training" / "seed-0" / "bertram-shallow" / "training.json").read_text()
    )
    assert run.describe_model(system, 0) != run.describe_model(system, 1)
    longer = EvaluationRecipe.load(recipe, {"training": str(write_longer(recipe))})
    assert Resources(longer, systems=["BERTRAM-shallow"]).describe_model(system, 0) != run.describe_model(system, 0)


def write_longer(recipe):
    """Writes a training recipe of more epochs."""
    content = yaml.safe_load(recipe.read_text())
    training = yaml.safe_load(Path(content["training"]).read_text())
    training["form"]["trainer"]["num_train_epochs"] = 7
    path = recipe.parent / "longer.yaml"
    path.write_text(yaml.safe_dump(training))
    return path
