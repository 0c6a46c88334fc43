import pytest
import yaml
from support.tiny_evaluation import change_evaluation, read_rows, read_section, write_evaluation

pytest.importorskip("datatrove")
pytest.importorskip("matplotlib")

from bertram_hf.cli import main
from bertram_hf.reproduction.natural import NaturalBenchmark
from bertram_hf.reproduction.recipe import EvaluationRecipe
from bertram_hf.reproduction.resources import Resources

TEXTS = [
    ("the sour kumquat is a fruit", "fruit"),
    ("a kumquat on the old tree", "fruit"),
    ("the lemon of the garden", "fruit"),
    ("a small quokka near the river", "animal"),
    ("the quokka and the dog", "animal"),
    ("a horse of the king", "animal"),
]
SYSTEMS = [
    {"name": "plain", "model": "plain"},
    {"name": "BERTRAM", "model": "bertram-shallow"},
    {"name": "BERTRAM, slash", "model": "bertram-shallow", "mode": "slash"},
]


def write_texts(path, texts):
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in texts))
    return str(path)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("natural")
    train, test = (write_texts(folder / f"{name}.tsv", TEXTS) for name in ("train", "test"))
    fields = {
        "systems": SYSTEMS,
        "recovery": None,
        "similarity": None,
        "natural": [{"name": "Things", "inputs": [train], "test_inputs": [test]}],
    }
    return change_evaluation(write_evaluation(folder), folder / "natural.yaml", fields)


def make_benchmark(path, **changes):
    recipe = EvaluationRecipe.load(path)
    task = recipe.natural[0].__class__(**vars(recipe.natural[0]) | changes)
    return NaturalBenchmark(Resources(recipe, show_progress=False), task)


def test_rare_words_of_training_texts_are_injected_with_these_as_contexts(recipe):
    contexts = make_benchmark(recipe).contexts
    assert set(contexts) == {"kumquat", "quokka"}
    assert contexts["kumquat"] == ["the sour kumquat is a fruit", "a kumquat on the old tree"]
    with pytest.raises(ValueError, match="in 9 or more of the 6 training texts of Things; there are none"):
        _ = make_benchmark(recipe, min_texts=9).contexts


def test_half_of_the_texts_is_held_out_if_no_test_files_are_given(recipe):
    train, test = make_benchmark(recipe, test_inputs=[]).parts
    assert (len(train), len(test)) == (3, 3)
    assert not set(train["text"][:]) & set(test["text"][:])
    assert [len(part) for part in make_benchmark(recipe, max_texts=4).parts] == [4, 4]


def test_command_writes_a_row_for_each_system_and_a_table(recipe):
    main(["reproduce", str(recipe), "--only", "natural Things"])
    output = recipe.parent / "results"
    rows = read_rows(output / "natural-things.jsonl")
    assert set(rows) == {"plain-seed-0", *(f"bertram{mode}-seed-{seed}" for mode in ("", "-slash") for seed in (0, 1))}
    assert rows["bertram-seed-0"]["touched"]["num_texts"] == 4
    assert rows["plain-seed-0"]["score"]["gain"] == 0
    section = read_section(output, "natural Things")
    assert "6 texts to learn from, 6 to classify" in section
    assert "| plain | " in section
    assert "| BERTRAM, slash | " in section
    before = (output / "natural-things.jsonl").read_bytes()
    main(["reproduce", str(recipe)])
    assert (output / "natural-things.jsonl").read_bytes() == before


def test_names_of_sets_must_differ(recipe, tmp_path):
    content = yaml.safe_load(recipe.read_text())
    path = change_evaluation(recipe, tmp_path / "twice.yaml", {"natural": content["natural"] * 2})
    with pytest.raises(ValueError, match="natural: expected names that differ"):
        EvaluationRecipe.load(path)
