import shutil
from pathlib import Path

import pytest

pytest.importorskip("datatrove")
pytest.importorskip("matplotlib")

from bertram_hf.reproduction import rarified, resources, runner, wnlampro
from bertram_hf.reproduction.recipe import EvaluationRecipe
from bertram_hf.reproduction.rows import read_jsonl
from bertram_hf.reproduction.runner import Reproduction
from bertram_hf.utils.files import read_json

ROOT = Path(__file__).parents[2]
RECIPE = "examples/recipes/evaluation-all-MiniLM-L6-v2.yaml"
STORED = ROOT / "results" / "all-MiniLM-L6-v2"
ENCODER_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6c"  # SHA-256 of all-MiniLM-L6-v2's model.safetensors
# Not every task has a row of every system for every seed.
SEEDS = {"recovery": 0, "misspellings": 0, "similarity": 0, "wnlampro": 1, "rarified": 1}


def test_tables_are_made_anew_from_the_stored_rows_without_model_or_data(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    original = resources.name_model
    for module in (rarified, resources, runner, wnlampro):
        monkeypatch.setattr(
            module, "name_model", lambda name: ENCODER_WEIGHTS if name == "all-MiniLM-L6-v2" else original(name)
        )
    output = tmp_path / STORED.name
    shutil.copytree(STORED, output)
    for name in ("README.md", "summary.json"):
        (output / name).unlink()
    recipe = EvaluationRecipe.load(RECIPE, {"output": str(output), "work": str(tmp_path / "work")})
    for task, seed in SEEDS.items():
        Reproduction(recipe, seeds=[seed], command=f"bertram reproduce {RECIPE}", show_progress=False).run([task])
    assert (output / "README.md").read_text() == (STORED / "README.md").read_text()
    assert list(read_json(output / "summary.json")) == list(read_json(STORED / "summary.json"))
    for path in STORED.glob("*.jsonl*"):
        assert read_jsonl(output / path.name) == read_jsonl(path)
