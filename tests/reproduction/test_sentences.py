import json
import re

import pytest
import yaml
from support.tiny_evaluation import change_evaluation, read_rows, read_section, write_evaluation

pytest.importorskip("datatrove")
pytest.importorskip("matplotlib")

from bertram_hf.cli import main
from bertram_hf.reproduction.recipe import EvaluationRecipe
from bertram_hf.reproduction.resources import Resources
from bertram_hf.reproduction.sentences import (
    DefinitionBenchmark,
    TermBenchmark,
    draw_others,
    draw_words,
    find_broken_words,
    keep_usable,
)

DEFINITIONS = {
    "Kumquat": ["a small fruit of the garden", "the old tree", "a tree of kumquats"],
    "quokka": ["a small dog near the river"],
    "quokkas": ["more than one small dog"],
    "zebra": ["a zebra near the river", "a horse of the field", " "],
    "zebu": ["a cow"],
    "new kumquat": ["a new fruit"],
    "xylem9": ["a wall of the tree"],
    "yzyzyz": ["a loud bird"],  # without contexts
    "river": ["a long water", "many rivers"],
    "castle": ["a large house of the king"],
    "lemon": ["a small fruit of the garden"],
}
EXTRA = {"kumquat": ["The old  tree!", "bright and sour"], "Quokka": [" ", "small and warm"], "lemon": ["a fruit"]}
TERMS = "old kumquat\tLemon\t7.5\nQuokka\tdog\t6\nzebra\tthe horse\t5\nriver\tquxquux\t1\nriver\tlake\t6\n"
SYSTEMS = [
    {"name": "plain", "model": "plain"},
    {"name": "mean of pieces", "model": "pieces"},
    {"name": "A La Carte", "model": "a-la-carte"},
    {"name": "BERTRAM", "model": "bertram-shallow"},
    {"name": "BERTRAM, slash", "model": "bertram-shallow", "mode": "slash"},
    {"name": "BERTRAM, slash, indomain", "model": "bertram-shallow", "mode": "slash", "indomain": True},
]


def write_lines(path, definitions):
    lines = [json.dumps({"word": word, "definitions": texts}) for word, texts in definitions.items()]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sentences")
    path = write_evaluation(folder)
    corpus = yaml.safe_load(path.read_text())["similarity"]["corpus"] | {"options": {"unit": "line"}}
    (folder / "terms.txt").write_text(TERMS)
    fields = {
        "systems": SYSTEMS,
        "recovery": None,
        "similarity": None,
        "definitions": {
            "definitions": write_lines(folder / "definitions.jsonl", DEFINITIONS),
            "extra_definitions": write_lines(folder / "extra.jsonl", EXTRA),
            "corpus": corpus,
            "num_words": 5,
            "num_definitions": 6,
            "num_contexts": [1, 4],
            "num_draws": 2,
            "min_contexts": 4,
        },
        "terms": {
            "pairs": str(folder / "terms.txt"),
            "corpora": [corpus],
            "num_contexts": [1, 4],
            "num_draws": 2,
        },
    }
    return change_evaluation(path, folder / "sentences.yaml", fields)


def test_every_system_is_scored_in_its_mode_and_a_second_run_computes_nothing(recipe, capsys, caplog):
    assert main(["reproduce", str(recipe)]) == 0
    results = recipe.parent / "results"
    assert "definitions: 5 words were asked for; only 3 fit." in caplog.text
    definitions, terms = (read_rows(results / f"{name}.jsonl") for name in ("definitions", "terms"))
    seeds = [f"{name}-seed-{seed}" for name in ("a-la-carte", "bertram", "bertram-slash") for seed in (0, 1)]
    for rows in (definitions, terms):
        assert sorted(rows) == sorted([*seeds, "mean-of-pieces-seed-0", "plain-seed-0"])
        assert [score["contexts"] for score in rows["plain-seed-0"]["scores"]] == [0]
        assert [score["contexts"] for score in rows["mean-of-pieces-seed-0"]["scores"]] == [0]
        for name in seeds:
            assert [score["contexts"] for score in rows[name]["scores"]] == [1, 4]
        assert rows["bertram-seed-0"]["scores"] != rows["bertram-slash-seed-0"]["scores"]
        plain = rows["plain-seed-0"]["scores"][0]
        assert (plain["gain"], plain["gain_low"], plain["gain_high"]) == (0, 0, 0)
        key = "mrr" if "mrr" in plain else "spearman"
        for row in rows.values():
            for score in row["scores"]:
                assert score["gain"] == pytest.approx(score[key] - plain[key], abs=2e-4)
    row = definitions["bertram-seed-0"]
    assert (row["num_words"], row["num_words_asked"], row["num_definitions"], row["num_left_plain"]) == (3, 5, 6, 0)
    assert row["extra_scores"]["definition"]["num_words"] == 2
    assert definitions["plain-seed-0"]["extra_scores"]["definition"]["gain"] == 0
    row = terms["bertram-seed-0"]
    assert (row["num_pairs"], row["num_words"], row["num_without_contexts"], row["num_left_plain"]) == (5, 4, 1, 0)
    assert terms["a-la-carte-seed-0"]["num_left_plain"] == 1
    table = read_section(results, "definitions")
    assert "## Definitions of 3 rare words among 6" in table
    assert "5 words were asked for; 3 fit." in table
    assert "is the only context; 2 words." in table
    assert "| system | seeds | 0 | 1 | 4 | definition |" in table
    assert re.search(r"\| BERTRAM, slash \| 0, 1 \|  \| [+-]0\.\d+ \[[+-]", table)
    assert "indomain" not in table
    table = read_section(results, "terms")
    assert "## Similarity of terms, 5 pairs" in table
    assert "1 of 4 rare words have no contexts" in table
    for name in ("definitions", "terms"):
        assert (results / f"{name}.png").stat().st_size > 1000
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    assert main(["reproduce", str(recipe), "--set", f"work={recipe.parent / 'elsewhere'}"]) == 0
    assert not (recipe.parent / "elsewhere").exists()
    assert main(["reproduce", str(recipe)]) == 0
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before


@pytest.fixture
def resources(recipe):
    return Resources(EvaluationRecipe.load(recipe), systems=["plain"], show_progress=False)


def test_words_and_definitions_are_those_that_fit(resources):
    benchmark = DefinitionBenchmark(resources, resources.recipe.definitions)
    assert benchmark.definitions["kumquat"] == ["a small fruit of the garden", "the old tree"]
    assert benchmark.definitions["zebra"] == ["a horse of the field"]
    assert benchmark.definitions["river"] == ["a long water"]
    assert list(benchmark.contexts) == ["kumquat", "quokka", "zebra"]
    assert all(len(texts) >= 4 for texts in benchmark.contexts.values())
    own = {"a small fruit of the garden", "the old tree", "a small dog near the river", "a horse of the field"}
    assert set(benchmark.retrieval.texts[:4]) == own
    assert len(benchmark.retrieval.texts) == 6
    assert "more than one small dog" not in benchmark.retrieval.texts  # of the family of a word
    # Not the definition that is searched, word for word.
    assert benchmark.extra == {"kumquat": ["bright and sour"], "quokka": ["small and warm"]}
    terms = TermBenchmark(resources, resources.recipe.terms)
    assert list(terms.contexts) == ["kumquat", "quokka", "quxquux", "zebra"]
    assert terms.contexts["quxquux"] == []


def test_modes_share_vectors_and_a_row_made_alone_is_the_same(recipe, tmp_path, monkeypatch):
    load = EvaluationRecipe.load(recipe, {"work": str(tmp_path)})
    resources = Resources(load, systems=["BERTRAM", "BERTRAM, slash"], seeds=[0], show_progress=False)
    replace, slash = resources.systems
    for kind, task in ((DefinitionBenchmark, load.definitions), (TermBenchmark, load.terms)):
        together, alone = kind(resources, task), kind(resources, task)
        together.evaluate(replace, 0)
        with monkeypatch.context() as patched:
            patched.setattr(resources, "vectors_of", None)  # the model is not loaded again
            shared = together.evaluate(slash, 0)
        assert shared == alone.evaluate(slash, 0)


def test_fewer_words_are_some_of_more_and_none_of_one_family():
    words = [f"word{letter}{other}x" for letter in "abcdefgh" for other in "jkm"]
    few, many = (draw_words(words, number, seed=0) for number in (5, 12))
    assert set(few) < set(many)
    assert many == sorted(many) == draw_words(words[::-1], 12, seed=0)
    assert many != draw_words(words, 12, seed=1)
    assert len(draw_words(["carburettor", "carburettors", "quokka"], 3, seed=0)) == 2
    definitions = {word: [f"about {word}"] for word in words}
    own = {word: definitions[word] for word in few}
    drawn = draw_others(definitions, own, 4, seed=0)
    assert len(drawn) == 4
    assert set(drawn).isdisjoint(text for texts in own.values() for text in texts)
    assert set(drawn) < set(draw_others(definitions, own, 9, seed=0))
    assert draw_others(definitions, own, -3, seed=0) == []


def test_words_that_the_tokenizer_cannot_tell_apart_count_once(resources):
    assert find_broken_words(["zebra", "river", "quokka-like", "Kumquat"], resources.tokenizer) == ["Kumquat", "zebra"]
    assert keep_usable(["kumquat", "Kumquat", "[MASK]", "zebra"], resources) == ["kumquat", "zebra"]


def test_bad_input_is_refused(recipe, tmp_path, capsys):
    def message(*changes, task="definitions", system="plain"):
        options = [part for change in changes for part in ("--set", change)]
        places = ["--set", f"output={tmp_path / 'results'}", "--set", f"work={tmp_path / 'work'}"]
        assert main(["reproduce", str(recipe), "--only", task, "--system", system, *options, *places]) == 1
        return capsys.readouterr().err

    path = tmp_path / "bad.jsonl"
    path.write_text('{"word": "kumquat", "definitions": ["a fruit"]}\n{"word": "quokka"}\n')
    assert f"Line 2 of {path} must look like" in message(f"definitions.definitions={path}")
    write_lines(path, {"kumquat": ["of kumquats"], "quokka": []})
    assert "definitions that hold no word of their own family; found none" in message(f"definitions.definitions={path}")
    write_lines(path, {"river": ["a long water"]})
    assert "expected words of several pieces, letters only; none of the 1" in message(f"definitions.definitions={path}")
    assert "at least 500 contexts in the corpus; none of 6 words" in message("definitions.min_contexts=500")
    assert "there are none but those that are searched" in message(f"definitions.extra_definitions={path}")
    assert "at least 1 word and 2 definitions; got num_words=0" in message("definitions.num_words=0")
    assert "got num_contexts=[] and num_draws=2" in message("terms.num_contexts=[]")
    assert "expected a corpus, or corpora" in message("terms.corpora=[]")
    path.write_text("river\tlake\t1\nriver\ttree\n")
    assert f"{path}, line 2: expected two terms and a rating" in message(f"terms.pairs={path}", task="terms")
    path.write_text("river\tlake\t1\nriver\ttree\t2\n")
    assert "3 terms have none, so that nothing would be" in message(
        f"terms.pairs={path}", task="terms", system="mean of pieces"
    )


def test_a_system_that_reads_contexts_only_needs_some(recipe, tmp_path, capsys):
    changes = [f"output={tmp_path / 'results'}", "terms.num_contexts=[0]"]
    options = [part for change in changes for part in ("--set", change)]
    assert main(["reproduce", str(recipe), "--only", "terms", "--system", "A La Carte", "--seed", "0", *options]) == 1
    assert "expected a number above 0, as the model reads contexts only; got [0]" in capsys.readouterr().err
