import subprocess
import sys

import pytest
import yaml

from bertram_hf.cli.options import read_changes
from bertram_hf.training.recipe import LossSettings, Recipe
from bertram_hf.training.run import train_recipe

SMALLEST = {"encoder": "bert-base-uncased", "output": "out", "corpora": [{"inputs": ["a.txt"]}]}


def make(**fields):
    return Recipe.from_dict(SMALLEST | fields)


def write(folder, content):
    path = folder / "recipe.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_defaults_are_the_numbers_of_the_paper():
    recipe = make()
    assert [stage.trainer["num_train_epochs"] for stage in (recipe.context, recipe.form, recipe.combined)] == [5, 20, 3]
    assert [stage.trainer["learning_rate"] for stage in (recipe.context, recipe.form, recipe.combined)] == [
        5e-5,
        0.01,
        5e-5,
    ]
    for stage in (recipe.context, recipe.combined):
        assert (stage.contexts_per_batch, stage.words_per_batch) == (48, None)
        assert (stage.min_contexts, stage.max_contexts) == (4, 32)
        assert stage.trainer["warmup_steps"] == 0.1
    assert (recipe.form.words_per_batch, recipe.form.contexts_per_batch) == (64, None)
    assert recipe.max_length == 96
    assert recipe.corpora[0].min_count == 100
    assert recipe.combined.loss == LossSettings(mse=1.0, cosine=0.0, contrastive=0.0)
    assert recipe.context.max_repetitions == 5
    assert recipe.form_min_count == 4
    assert (recipe.combined.ridge, recipe.form_folds, recipe.model) == (None, 0, {})


def test_stage_takes_what_it_does_not_say_from_the_paper():
    recipe = make(context={"trainer": {"num_train_epochs": 1}, "loss": {"cosine": 0.5}})
    assert recipe.context.trainer == make().context.trainer | {"num_train_epochs": 1}
    assert recipe.context.contexts_per_batch == 48
    assert recipe.context.loss == LossSettings(cosine=0.5)
    assert recipe.combined == make().combined
    assert recipe.form == make().form


def test_third_stage_of_a_preset_may_differ():
    recipe = make(
        combined={"max_contexts": 16},
        combined_for={"bertram-shallow": {"freeze_form": True, "trainer": {"learning_rate": "1e-3"}}},
    )
    shallow, add = recipe.combined_stage("bertram-shallow"), recipe.combined_stage("bertram-add")
    assert add == recipe.combined
    assert (shallow.freeze_form, shallow.max_contexts) == (True, 16)
    assert shallow.trainer == recipe.combined.trainer | {"learning_rate": 1e-3}


def test_numbers_that_yaml_takes_for_text_are_numbers(tmp_path):
    path = write(
        tmp_path,
        "encoder: bert\noutput: 3-out\ncorpora: [{inputs: [a.txt]}]\n"
        "combined: {ridge: 1e-3, loss: {cosine: 1e-2}, trainer: {learning_rate: 5e-5, optim: adamw_torch}}\n",
    )
    recipe = Recipe.load(path)
    assert recipe.combined.trainer["learning_rate"] == 5e-5
    assert recipe.combined.trainer["optim"] == "adamw_torch"
    assert recipe.combined.ridge == 1e-3
    assert recipe.combined.loss.cosine == 1e-2
    assert recipe.output == "3-out"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_length": "abc"}, "max_length: expected an integer; got 'abc'"),
        ({"form_folds": 2.5}, r"form_folds: expected an integer; got 2\.5"),
        ({"form_folds": True}, "form_folds: expected an integer; got True"),
        ({"combined": {"min_contexts": "four"}}, r"combined\.min_contexts: expected an integer; got 'four'"),
        ({"systems": "bertram-add"}, "systems: expected a list, such as .*; got 'bertram-add'"),
        ({"corpora": [{"inputs": "a.txt"}]}, r"corpora\[0\]\.inputs: expected a list, such as .*; got 'a.txt'"),
        ({"corpora": [{"inputs": ["a", 3]}]}, r"corpora\[0\]\.inputs\[1\]: expected text, .*; got 3"),
        ({"corpora": 3}, "corpora: expected a list, such as .*; got 3"),
        ({"heldout": {"num_contexts": [1, "two"]}}, r"heldout\.num_contexts\[1\]: expected an integer; got 'two'"),
        ({"heldout": {"corpus": {"min_count": None}}}, r"heldout\.corpus\.min_count: expected an integer; got None"),
        ({"description": 3}, "description: expected text, which YAML needs in quotes if .*; got 3"),
        ({"save_layers": "yes"}, "save_layers: expected true or false; got 'yes'"),
        ({"form": {"loss": {"mse": "much"}}}, r"form\.loss\.mse: expected a number; got 'much'"),
        ({"form": {"cache_dtype": "int8"}}, r"form\.cache_dtype: expected one of 'float16', 'float32'; got 'int8'"),
        ({"model": ["second_map"]}, r"model: expected fields with values; got \['second_map'\]"),
        ({"combined_for": {"bertram-add": 3}}, r"combined_for\.bertram-add: expected fields with values; got 3"),
        (
            {"combined_for": {"bertram-add": {"min_contexts": "four"}}},
            r"combined_for\.bertram-add\.min_contexts: expected an integer; got 'four'",
        ),
        ({"epochs": 3}, r"there is no field epochs\. Fields: encoder, output, corpora, systems"),
        ({"context": {"epochs": 3}}, r"there is no field context\.epochs\. Fields: contexts_per_batch"),
        ({"combined": {"loss": {"l1": 1}}}, r"there is no field combined\.loss\.l1\. Fields: mse, cosine"),
        ({"corpora": [{"inputs": ["a"]}, {"files": ["b"]}]}, r"there is no field corpora\[1\]\.files"),
        ({"combined_for": {"bertram-add": {"rigde": 1}}}, r"there is no field combined_for\.bertram-add\.rigde"),
        ({"systems": ["bertram-ad"]}, r"expected some of bertram-form, .*; got \['bertram-ad'\]"),
        ({"systems": []}, "systems: expected some of .*; got none"),
        ({"combined_for": {"bertram": {}}}, r"systems: expected some of .*; got \['bertram'\]"),
        ({"corpora": []}, "corpora: expected at least one corpus; got none"),
        ({"corpora": [{}]}, "a corpus is one of inputs, dataset and folder; got none"),
        ({"corpora": [{"inputs": ["a"], "folder": "b"}]}, "got inputs and folder"),
        ({"context": 5}, "context has fields of its own; got 5"),
        ({"dtype": "int8"}, "dtype must be float32 or float16; got 'int8'"),
        ({"form_folds": 1}, "form_folds must be 0 or at least 2; got 1"),
        ({"heldout": {"development_share": 1}}, r"development_share must lie in \[0, 1\)"),
        ({"context": None}, "context: bertram-add needs a first stage, or `ridge` in its third one; got null"),
        ({"context": None, "systems": ["a-la-carte"], "combined": {"ridge": 1}}, "context: a-la-carte needs"),
        ({"combined": {"loss": {"mse": -1}}}, "Expected weights of 0 or more"),
        (
            {"combined": {"cached_form_dropout": True, "cache": False}},
            "bertram-add has cache: false, where",
        ),
        ({"combined": {"cached_form_dropout": True}, "form_folds": 2}, "bertram-add has form_folds, where"),
    ],
)
def test_mistake_in_a_recipe_is_named(tmp_path, fields, message):
    with pytest.raises(ValueError, match=message):
        make(**fields)
    with pytest.raises(ValueError, match=rf"recipe\.yaml: .*{message}"):
        Recipe.load(write(tmp_path, SMALLEST | fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"combined": {"trainer": {"learning_rate": "abc"}}},
            r"combined\.trainer\.learning_rate: expected a number; got 'abc'",
        ),
        ({"form": {"trainer": {"learning_rate": True}}}, r"form\.trainer\.learning_rate: expected a number; got True"),
        ({"form": {"trainer": {"epochs": 3}}}, r"form\.trainer\.epochs: TrainingArguments has no such field"),
        (
            {"combined_for": {"bertram-add": {"trainer": {"epochs": 3}}}},
            r"combined_for\.bertram-add\.trainer\.epochs: TrainingArguments has no such field",
        ),
    ],
)
def test_mistake_in_what_the_trainer_is_given_is_named_before_the_run_starts(fields, message):
    with pytest.raises(ValueError, match=message):
        train_recipe(make(**fields))


def test_whole_numbers_are_integers_and_integers_stay_what_they_are():
    recipe = make(max_length="1e2", form_min_count=3.0, form={"ridge": 1}, description="2020")
    assert repr((recipe.max_length, recipe.form_min_count, recipe.form.ridge)) == "(100, 3, 1)"
    assert recipe.description == "2020"


def test_missing_fields_are_named():
    with pytest.raises(ValueError, match="a recipe needs the fields output and corpora"):
        Recipe.from_dict({"encoder": "bert"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("encoder: [a", "must be a YAML file"),
        ("just text", "must have fields such as encoder"),
        ("", "must have fields"),
    ],
)
def test_file_that_is_no_recipe_is_refused(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        Recipe.load(write(tmp_path, content))


def test_first_stage_may_be_left_out_where_it_is_not_needed():
    assert make(context=None, systems=["mimick"]).context is None
    assert make(context=None, combined={"ridge": 1}).context is None
    assert make(context=None, combined_for={"bertram-add": {"ridge": 1}}).combined_stage("bertram-add").ridge == 1


def test_changes_on_the_command_line_replace_fields(tmp_path):
    changes = read_changes(
        ["seed=1", "form.trainer.num_train_epochs=2", "form.trainer.learning_rate=1e-3", "systems=[mimick]"]
    )
    assert changes == {
        "seed": 1,
        "form": {"trainer": {"num_train_epochs": 2, "learning_rate": "1e-3"}},
        "systems": ["mimick"],
    }
    path = write(tmp_path, SMALLEST | {"seed": 5, "form": {"words_per_batch": 8, "trainer": {"num_train_epochs": 9}}})
    recipe = Recipe.load(path, changes)
    assert (recipe.seed, recipe.systems, recipe.form.words_per_batch) == (1, ["mimick"], 8)
    assert recipe.form.trainer["num_train_epochs"] == 2
    assert recipe.form.trainer["learning_rate"] == 1e-3
    assert Recipe.load(path, read_changes(["description=a=b", "context=null", "combined.ridge=1"])).description == "a=b"
    with pytest.raises(ValueError, match="--set takes FIELD=VALUE; got 'seed'"):
        read_changes(["seed"])
    with pytest.raises(ValueError, match="there is no field sed"):
        Recipe.load(path, read_changes(["sed=1"]))


def test_reading_a_recipe_loads_no_trainer():
    script = "import sys; from bertram_hf.training import Recipe; assert 'transformers.trainer' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
