import json
import shutil

import pytest
from support.linked_wordnet import write_linked_wordnet
from support.tiny_evaluation import change_evaluation, read_rows, read_section, write_evaluation

pytest.importorskip("datatrove")
pytest.importorskip("matplotlib")

from transformers import AutoModelForMaskedLM

from bertram_hf.cli import main
from bertram_hf.evaluation.wnlampro import parse_entry
from bertram_hf.reproduction.recipe import EvaluationRecipe
from bertram_hf.reproduction.resources import Resources
from bertram_hf.reproduction.wnlampro import WnlamproBenchmark, average_ranks, compare_ranks

PROBE = """a\ttest\tkumquat (n,2.10,3)\thypernym\triver (n,5.00,900)
b\ttest\tquokka (n,1.90,5)\tcohyponym\tlake (n,4.80,700)\ttown (n,5.10,800)
c\ttest\tzebra (n,3.20,4)\thypernym\tforest (n,4.90,600)
d\ttest\tgarden (n,4.50,50)\tcohyponym\tvalley (n,4.10,500)
e\ttest\tbridge (n,4.60,20)\thypernym\ttower (n,4.40,300)
f\tdev\tquokka (n,1.90,5)\thypernym\tking (n,5.00,300)
g\ttest\tking (n,5.00,300)\thypernym\ttown (n,5.10,800)
"""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    return write_evaluation(tmp_path_factory.mktemp("evaluation"))


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
    path = change_evaluation(recipe, tmp_path / "evaluation.yaml", fields)
    assert main(["reproduce", str(path), "--only", "wnlampro"]) == 0
    rows = read_rows(tmp_path / "results" / "wnlampro.jsonl.gz")
    assert list(rows) == ["mean-of-pieces-seed-0", "pieces-slash-seed-0", "tiny-bert-seed-0"]
    assert all(list(row["reciprocal_ranks"]) == list("abcde") for row in rows.values())  # neither dev nor frequent
    assert rows["tiny-bert-seed-0"]["num_injected"] is None
    assert rows["mean-of-pieces-seed-0"]["num_injected"] == 5
    heads = [row["head"] for row in rows.values()]
    assert heads[0] == heads[1] == heads[2]
    assert heads[0]["perplexity"] > 1
    result = json.loads((tmp_path / "results" / "summary.json").read_text())["wnlampro"]
    assert result["command"] == f"bertram reproduce {path} --only wnlampro"
    assert result["seeds"] == {"tiny BERT": [0], "mean of pieces": [0], "pieces, slash": [0]}
    assert result["head"] == heads[0]
    compared = result["bands"]
    for band, ids in (("rare", "abc"), ("medium", "de")):
        ranks = rows["tiny-bert-seed-0"]["reciprocal_ranks"]
        assert compared[band]["tiny BERT"]["mrr"] == pytest.approx(sum(ranks[entry_id] for entry_id in ids) / len(ids))
        assert sum(entry["is_best"] for entry in compared[band].values()) >= 1
    table = read_section(tmp_path / "results", "wnlampro")
    columns = "rare (3) MRR | rare P@1 | rare P@10 | medium (2) MRR | medium P@1 | medium P@10"
    assert f"| model | seeds | {columns} |" in table
    assert "| tiny BERT | 0 |" in table
    assert main(["reproduce", str(path), "--only", "wnlampro", "--system", "tiny BERT"]) == 0
    assert read_section(tmp_path / "results", "wnlampro") == table
    published = tmp_path / "results" / "wnlampro.jsonl.gz"
    before = published.read_bytes()
    elsewhere = ["--set", f"work={tmp_path / 'elsewhere'}"]
    assert main(["reproduce", str(path), "--only", "wnlampro", *elsewhere]) == 0
    assert not (tmp_path / "elsewhere").exists()
    assert published.read_bytes() == before

    # A head of other steps stands beside the first one, and its rows are not compared with those of the first.
    assert main(["reproduce", str(path), "--only", "wnlampro", "--set", "wnlampro.max_steps=5"]) == 0
    changed = read_rows(published)["tiny-bert-seed-0"]
    assert changed["head"]["weights"] != heads[0]["weights"]
    kept = tmp_path / "work" / "rows" / "wnlampro" / "tiny-bert-seed-0.json"
    kept.write_text(json.dumps(changed | {"head": heads[0]}))
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
    path = change_evaluation(recipe, tmp_path / "evaluation.yaml", fields)
    assert main(["reproduce", str(path), "--only", "wnlampro"]) == 0
    rows = read_rows(tmp_path / "results" / "wnlampro.jsonl.gz")
    row, built = rows["plain-seed-0"], rows["probe-seed-0"]
    entries = [parse_entry(line) for line in built["entries"]]
    assert any(entry.keyword.word == "quokka" and entry.relation == "cohyponym" for entry in entries)
    asked = [entry.id for entry in entries if entry.split == "test" and entry.band != "frequent"]
    assert set(row["reciprocal_ranks"]) == set(asked)
    assert built["command"] == f"bertram reproduce {path} --only wnlampro"
    shutil.copytree(tmp_path / "wordnet", tmp_path / "another")
    changed = {"wnlampro": fields["wnlampro"] | {"wordnet": str(tmp_path / "another")}}
    run = Resources(EvaluationRecipe.load(path, changed), show_progress=False)
    assert WnlamproBenchmark(run, run.recipe.wnlampro).entries
    rebuilt = json.loads((tmp_path / "work" / "rows" / "wnlampro" / "probe-seed-0.json").read_text())
    assert rebuilt["fingerprint"] != built["fingerprint"]


def test_ranks_are_averaged_over_seeds_and_compared_by_entry():
    rows = [{"reciprocal_ranks": {"a": 1.0, "b": 0.5}}, {"reciprocal_ranks": {"a": 0.5, "b": 0.25}}]
    assert average_ranks(rows) == {"a": 0.75, "b": 0.375}
    ranks = {"x": {"a": 0.75, "b": 0.375}, "y": {"a": 0.75, "b": 0.375}, "z": {"a": 0.1, "b": 0.1}}
    compared = compare_ranks(ranks, ["a", "b"])
    assert compared["x"] == compared["y"] == {"mrr": 0.5625, "is_best": True, "p_value": 1.0}
    assert not compared["z"]["is_best"]
    alone = compare_ranks(ranks, ["a"])  # too few for a test
    assert alone["z"] == {"mrr": 0.1, "is_best": False, "p_value": 1.0}
    assert compare_ranks(ranks, []) == {}
