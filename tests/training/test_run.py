import errno
import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file
from support.tiny_training import (
    APPROXIMATE,
    HELDOUT,
    NOUNS,
    SEVERAL_PIECES,
    induce,
    make_sentences,
    read_training,
    write_encoder,
    write_recipe,
)
from transformers import AutoConfig, AutoModel, AutoProcessor
from transformers.utils import logging as transformers_logging

pytest.importorskip("datatrove")

from bertram_hf import BertramProcessor, induce_vectors
from bertram_hf.cli import main
from bertram_hf.corpus.build import build_corpus
from bertram_hf.induction.word_vectors import WordVectors
from bertram_hf.training.data import check_no_leak
from bertram_hf.training.recipe import Recipe
from bertram_hf.training.run import TrainingRun, train_recipe
from bertram_hf.training.stage import read_record
from bertram_hf.words.families import word_family

SYSTEMS = ["bertram-add", "bertram-shallow", "bertram-replace", "mimick", "a-la-carte", "attentive-mimicking"]
FORM_ONLY, CONTEXT_ONLY = ("mimick",), ("a-la-carte",)


@pytest.fixture(scope="module", autouse=True)
def quiet():
    transformers_logging.disable_progress_bar()
    yield
    transformers_logging.enable_progress_bar()


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def train_command(path, capsys=None, *options):
    assert main(["train", str(path), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out) if capsys else None


@pytest.fixture(scope="module")
def trained(tmp_path_factory, encoder_folder):
    """The recipe and the output of all systems, trained once."""
    path = write_recipe(tmp_path_factory.mktemp("trained"), encoder_folder, systems=SYSTEMS, targets=APPROXIMATE)
    train_command(path)
    return path, path.parent / "out"


def snapshot(output):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in output.rglob("*") if path.is_file()}


@pytest.mark.parametrize("system", SYSTEMS)
def test_trained_system_loads_and_induces(trained, encoder_folder, system):
    _, output = trained
    recorded = induce(output / system, HELDOUT)
    given = induce(output / system, HELDOUT, encoder=AutoModel.from_pretrained(encoder_folder))
    assert torch.equal(recorded, given)
    assert recorded.isfinite().all()
    assert not torch.allclose(recorded[0], recorded[1])
    assert not any(name.startswith("encoder.") for name in load_file(output / system / "model.safetensors"))


@pytest.mark.parametrize("system", SYSTEMS)
def test_record_of_training_is_complete(trained, system):
    path, output = trained
    record = read_training(output, system)
    assert record["command"] == f"bertram train {path}"
    assert record["recipe"]["seed"] == record["seed"] == 0
    numbers = [0] if system in FORM_ONLY else [1, 4] if system in CONTEXT_ONLY else [0, 1, 4]
    assert [score["contexts"] for score in record["evaluation"]["scores"]] == numbers
    for score in record["evaluation"]["scores"]:
        assert 0 < score["mrr"] <= 1
        assert 1 <= score["median_rank"] <= 324
        assert score["norm_ratio"] > 0
    assert record["evaluation"]["num_words"] == len(HELDOUT)
    sources = record["data"]["sources"]
    assert sources["vocabulary"] + sources["approximation"] == record["data"]["training_words"]
    assert len(record["stages"]) == (1 if system in FORM_ONLY + CONTEXT_ONLY else 3)
    for stage in record["stages"]:
        assert stage["epochs"] == 1
        assert stage["steps"] > 0
        assert stage["eval_loss"] > 0


def test_second_run_trains_nothing_and_changes_no_file(trained, capsys):
    path, output = trained
    before = snapshot(output)
    printed = train_command(path, capsys)
    after = snapshot(output)
    changed = [file for file in before.keys() | after.keys() if before.get(file) != after.get(file)]
    # The approximation is put together again from its finished batches.
    assert not [file for file in changed if "corpus" not in str(file) and "approximation" not in str(file)]
    assert list(printed) == SYSTEMS
    for system in SYSTEMS:
        assert printed[system]["scores"] == read_training(output, system)["evaluation"]["scores"]


def test_same_recipe_elsewhere_gives_the_same_models(trained, encoder_folder, tmp_path):
    _, output = trained
    path = write_recipe(tmp_path, encoder_folder, systems=["bertram-add", "mimick"], targets=APPROXIMATE)
    train_command(path)
    for system in ("bertram-add", "mimick"):
        file = f"{system}/model.safetensors"
        assert (tmp_path / "out" / file).read_bytes() == (output / file).read_bytes()


def test_held_out_words_and_their_families_are_never_targets(trained):
    path, _ = trained
    data = TrainingRun(Recipe.load(path), show_progress=False).data
    families = {word_family(word) for word in HELDOUT}
    assert data.heldout == HELDOUT
    assert not families & {word_family(word) for word in [*data.train, *data.development]}
    assert not {word_family(word) for word in data.train} & {word_family(word) for word in data.development}
    assert {"castles", "horses"} <= set(data.contexts)  # they are there to be left out
    everything = {*data.train, *data.development}
    assert {noun for noun in NOUNS if noun not in HELDOUT} <= everything


def test_words_of_several_pieces_are_targets_by_approximation(trained):
    path, output = trained
    data = TrainingRun(Recipe.load(path), show_progress=False).data
    assert set(SEVERAL_PIECES) <= {*data.train, *data.development}
    assert data.num_approximated == sum(word in data.train for word in SEVERAL_PIECES)
    assert read_training(output, "bertram-add")["data"]["sources"]["approximation"] == data.num_approximated
    table = TrainingRun(Recipe.load(path), show_progress=False).vocabulary
    river = AutoProcessor.from_pretrained(output / "bertram-add").tokenizer.convert_tokens_to_ids("river")
    assert torch.equal(data.targets["river"], table[river])
    assert data.targets["kumquat"].isfinite().all()


def test_leak_is_refused():
    check_no_leak(["river", "lake"], ["castle"])
    with pytest.raises(ValueError, match=r"1 training words .* 'castles' of 'castle'"):
        check_no_leak(["river", "castles"], ["castle"])


def test_frozen_form_part_of_add_is_that_of_the_form_stage(trained):
    _, output = trained
    form = load_file(output / "stages" / "form-ngram" / "model.safetensors")["form_encoder.embeddings.weight"]
    kept, changed = (
        load_file(output / system / "model.safetensors")["form_encoder.embeddings.weight"]
        for system in ("bertram-add", "bertram-shallow")
    )
    assert torch.equal(kept, form)
    assert not torch.equal(changed, form)


def test_ridge_start_with_form_folds_form_strength_and_output_norm(encoder_folder, tmp_path, capsys):
    path = write_recipe(
        tmp_path,
        encoder_folder,
        systems=["bertram-add", "bertram-replace"],
        context=None,
        combined={
            "words_per_batch": 16,
            "min_contexts": 1,
            "max_contexts": 8,
            "ridge": 1.0,
            "trainer": {"num_train_epochs": 1, "learning_rate": 1e-4, "use_cpu": True},
        },
        combined_for={"bertram-replace": {"freeze_form": True}},
        form_folds=2,
        model={"form_strength": 2.0, "output_norm": "vocabulary", "context_layers": "all"},
        dtype="float16",
    )
    printed = train_command(path, capsys)
    output = tmp_path / "out"
    assert sorted(stage.name for stage in (output / "stages").iterdir()) == [
        "bertram-add",
        "bertram-replace",
        "form-ngram",
        "form-ngram-without-fold-0",
        "form-ngram-without-fold-1",
    ]
    table = AutoModel.from_pretrained(encoder_folder).get_input_embeddings().weight.detach()
    for system in printed:
        norm = AutoConfig.from_pretrained(output / system).output_norm
        distances = (induce(output / system, [*HELDOUT, "kumquat"]) - table.mean(dim=0)).norm(dim=1)
        torch.testing.assert_close(distances, torch.full((4,), norm), atol=2e-2, rtol=1e-2)
        assert [stage["stage"] for stage in read_training(output, system)["stages"]] == ["form-ngram", system]
    run = TrainingRun(Recipe.load(path), show_progress=False)
    folds = {word: run.fold_of(word) for word in run.data.train}
    assert set(folds.values()) == {0, 1}
    assert all(run.fold_of(f"{word}s") == fold for word, fold in folds.items() if word_family(word) == word)
    before = snapshot(output / "stages")
    assert train_command(path, capsys) == printed
    assert snapshot(output / "stages") == before
    # What is left of a stage that was killed before its first checkpoint.
    stage = output / "stages" / "bertram-add"
    weights = (stage / "model.safetensors").read_bytes()
    fingerprint = json.loads((stage / "stage.json").read_text())["fingerprint"]
    shutil.rmtree(stage)
    stage.mkdir()
    (stage / "stage.json").write_text(json.dumps({"fingerprint": fingerprint}))
    assert train_command(path, capsys) == printed
    assert (stage / "model.safetensors").read_bytes() == weights


def test_runs_with_one_folder_of_features_encode_once(encoder_folder, tmp_path):
    path = write_recipe(tmp_path, encoder_folder, systems=["bertram-shallow"], features=str(tmp_path / "features"))
    recipe = Recipe.load(path)
    train_recipe(recipe, show_progress=False)
    before = snapshot(tmp_path / "features")
    assert len(before) == 6  # training and development words: features, what is done, and what they depend on
    source = {"inputs": [str(tmp_path / "corpus.txt")], "min_count": 5, "max_contexts": 8, "options": {"seed": 0}}
    changes = {"output": str(tmp_path / "other"), "corpora": [source]}
    other = Recipe.load(path, changes | {"combined": {"trainer": {"learning_rate": 0.1}}})
    train_recipe(other, show_progress=False)
    assert snapshot(tmp_path / "features") == before


def test_systems_share_the_stages_that_are_the_same_for_them(trained):
    _, output = trained
    stages = {stage["stage"]: stage for system in SYSTEMS for stage in read_training(output, system)["stages"]}
    for system in SYSTEMS:  # none has been trained anew for another system
        for stage in read_training(output, system)["stages"]:
            assert stage == stages[stage["stage"]]


def test_ridge_start_without_cache_is_refused(encoder_folder, tmp_path):
    path = write_recipe(tmp_path, encoder_folder, context=None, combined={"words_per_batch": 8, "ridge": 1.0})
    with pytest.raises(ValueError, match="needs cached features"):
        train_recipe(Recipe.load(path, {"combined": {"cache": False}}), show_progress=False)


def test_change_of_the_recipe_is_trained_and_the_rest_is_kept(encoder_folder, tmp_path, capsys):
    path = write_recipe(tmp_path, encoder_folder, systems=["bertram-shallow"])
    first = train_command(path, capsys)
    stages = tmp_path / "out" / "stages"
    before = snapshot(stages)
    second = train_command(path, capsys, "--set", "combined.trainer.learning_rate=0.01")
    changed = {file.parent.name for file, content in snapshot(stages).items() if before.get(file) != content}
    assert changed == {"bertram-shallow"}
    assert second != first
    assert read_training(tmp_path / "out", "bertram-shallow")["command"].endswith(
        "--set combined.trainer.learning_rate=0.01"
    )


@pytest.mark.parametrize(
    ("sentences", "fields", "message"),
    [
        (["- - -", "1 2 3"], {}, "No word is left to train on"),
        (make_sentences(20), {"corpora": {"min_count": 10_000}}, "No word is left to train on"),
    ],
)
def test_corpus_without_target_words_is_refused(encoder_folder, tmp_path, capsys, sentences, fields, message):
    path = write_recipe(tmp_path, encoder_folder, sentences)
    content = Recipe.load(path)
    corpora = [{"inputs": content.corpora[0].inputs, "min_count": fields.get("corpora", {}).get("min_count", 1)}]
    with pytest.raises(ValueError, match=message):
        train_recipe(Recipe.load(path, {"corpora": corpora}), show_progress=False)
    shutil.rmtree(tmp_path / "out")


def test_saving_and_scoring_in_another_way_is_done_anew_without_training(trained, tmp_path, capsys):
    path, output = trained
    shutil.copytree(output, tmp_path / "out")
    before = snapshot(tmp_path / "out" / "stages")
    options = ["--set", f"output={tmp_path / 'out'}", "--set", "systems=[bertram-shallow]"]
    train_command(path, capsys, *options, "--set", "dtype=float16", "--set", "heldout.num_contexts=[0, 2]")
    assert snapshot(tmp_path / "out" / "stages") == before
    weights = load_file(tmp_path / "out" / "bertram-shallow" / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float16}
    scores = read_training(tmp_path / "out", "bertram-shallow")["evaluation"]["scores"]
    assert [score["contexts"] for score in scores] == [0, 2]


def test_full_disk_leaves_the_system_that_was_there(trained, tmp_path, capsys, monkeypatch):
    path, output = trained
    shutil.copytree(output, tmp_path / "out")
    before = snapshot(tmp_path / "out" / "mimick")

    def fill_the_disk(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    options = ["--set", f"output={tmp_path / 'out'}", "--set", "systems=[mimick]", "--set", "dtype=float16"]
    with monkeypatch.context() as patch:
        patch.setattr(BertramProcessor, "save_pretrained", fill_the_disk)
        assert main(["train", str(path), *options]) == 1
    assert "No space left" in capsys.readouterr().err
    assert snapshot(tmp_path / "out" / "mimick") == before
    train_command(path, capsys, *options)
    assert not (tmp_path / "out" / "mimick.unfinished").exists()
    assert snapshot(tmp_path / "out" / "mimick").keys() == before.keys()


def test_more_text_of_the_same_words_is_trained_on(encoder_folder, tmp_path):
    fingerprints = []
    for times in (1, 9):  # a word stands in an epoch once for every 100 occurrences
        path = write_recipe(tmp_path, encoder_folder, make_sentences() * times, systems=["mimick"])
        train_command(path)
        fingerprints.append(read_record(tmp_path / "out" / "stages" / "form-lstm")["fingerprint"])
    assert fingerprints[0] != fingerprints[1]


def test_targets_may_be_given(trained, encoder_folder, tmp_path, capsys):
    _, output = trained
    settings = {"approximate": False, "vectors": [str(output / "approximation")]}
    path = write_recipe(tmp_path, encoder_folder, systems=["mimick"], targets=settings)
    data = TrainingRun(Recipe.load(path), show_progress=False).data
    given = WordVectors.from_pretrained(output / "approximation")
    assert set(SEVERAL_PIECES) <= {*data.train, *data.development}
    for word in SEVERAL_PIECES:
        assert torch.equal(data.targets[word], given[word])
    assert not (tmp_path / "out" / "approximation").exists()
    WordVectors(given.words, given.embeddings, "another").save_pretrained(tmp_path / "other")
    assert main(["train", str(path), "--set", f"targets.vectors=[{tmp_path / 'other'}]"]) == 1
    assert "holds vectors for embeddings another, the encoder has" in capsys.readouterr().err


def test_corpus_in_another_case_is_refused(encoder_folder, tmp_path, capsys):
    path = write_recipe(tmp_path, encoder_folder)
    build_corpus(str(tmp_path / "corpus.txt"), tmp_path / "cased", lower_case=False, min_count=5, show_progress=False)
    assert main(["train", str(path), "--set", f"corpora=[{{folder: {tmp_path / 'cased'}}}]"]) == 1
    assert "was built without --lower-case; this encoder reads words in lower case" in capsys.readouterr().err
    assert main(["train", str(path), "--set", f"heldout.corpus={{folder: {tmp_path / 'cased'}}}"]) == 1
    assert "was built without --lower-case; this encoder reads words in lower case" in capsys.readouterr().err


def test_last_stage_teaches_which_words_are_misspellings(tmp_path, encoder_folder, capsys):
    path = write_recipe(tmp_path, encoder_folder, look_alikes={"num_words": 30, "max_contexts": 2}, form_folds=2)
    folder = tmp_path / "out" / "bertram-add"
    train_command(path, capsys)
    model = AutoModel.from_pretrained(folder, encoder=str(encoder_folder))
    processor = AutoProcessor.from_pretrained(folder)
    assert model.config.look_alikes
    assert {"river", "mountain"} <= set(processor.look_alikes.words)
    assert set(HELDOUT) <= set(processor.look_alikes.words)  # which were not learnt from
    assert not set(SEVERAL_PIECES) & set(processor.look_alikes.words)
    assert [stage["stage"] for stage in read_training(tmp_path / "out", "bertram-add")["stages"]][-1] == (
        "bertram-add-look-alikes"
    )
    vectors = induce_vectors(model, processor, {"mountian": []}, show_progress=False)
    assert list(vectors.look_alikes["mountian"]) == ["mountain"]
    before = (folder / "model.safetensors").stat().st_mtime_ns
    train_command(path, capsys)
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    train_command(path, capsys, "--set", "look_alikes=null")  # nothing is left of them
    assert AutoProcessor.from_pretrained(folder).look_alikes is None
    assert not AutoModel.from_pretrained(folder, encoder=str(encoder_folder)).config.look_alikes
