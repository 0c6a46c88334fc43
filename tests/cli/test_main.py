import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support.tiny_models import ORIGINAL
from transformers.utils import logging as transformers_logging

from bertram_hf import BertramModel, BertramProcessor, WordVectors, induce_vectors
from bertram_hf.cli.main import COMMANDS, build_parser, main
from bertram_hf.cli.push import check_folder
from bertram_hf.corpus import read_missing_words
from bertram_hf.utils.imports import EXTRAS


@pytest.fixture
def model_folder(tmp_path, capsys):
    assert (
        main(["convert-original", str(ORIGINAL / "ckpt" / "bert-add-ipnull"), str(tmp_path / "model"), "--json"]) == 0
    )
    summary = json.loads(capsys.readouterr().out)
    assert (summary["mode"], summary["prefix"], len(summary["notes"])) == ("add", "none", 1)
    return str(tmp_path / "model")


def test_conversion_tells_what_is_special(tmp_path, capsys):
    assert main(["convert-original", str(ORIGINAL / "ckpt" / "bert-add-ipnull"), str(tmp_path / "model")]) == 0
    out = capsys.readouterr().out
    assert "Wrote a BERTRAM of mode 'add'" in out
    assert "Note: The model's mode is 'add', but its input processor was saved with mode None" in out


def test_induce_writes_vectors(model_folder, tmp_path, capsys):
    lines = [{"word": "kumquat", "contexts": ["a kumquat", "none"]}, {"word": "kumquat", "contexts": ["kumquat tree"]}]
    (tmp_path / "words.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\n", encoding="utf-8")
    assert main(["induce", model_folder, str(tmp_path / "words.jsonl"), str(tmp_path / "out"), "--json"]) == 0
    summary = {"words": 1, "failed": {}, "dropped_contexts": 1, "misspellings": {}, "words_without_contexts": []}
    summary |= {"words_without_sentence": 0}
    assert json.loads(capsys.readouterr().out) == summary
    assert WordVectors.from_pretrained(tmp_path / "out").used_contexts == {"kumquat": [0, 2]}
    text = str(tmp_path / "vectors.txt")
    assert main(["induce", model_folder, str(tmp_path / "words.jsonl"), text, "--word2vec"]) == 0
    assert "Wrote 1 vectors" in capsys.readouterr().out
    assert (tmp_path / "vectors.txt").read_text().startswith("1 32\nkumquat ")


def test_induce_reads_a_corpus_and_names_words_without_contexts(model_folder, tmp_path, capsys):
    (tmp_path / "a.txt").write_text("She peeled a kumquat today.\nThe kumquat tree is old.\n")
    (tmp_path / "words.txt").write_text("kumquat\n")
    corpus = str(tmp_path / "corpus")
    options = ["--words", str(tmp_path / "words.txt"), "--lower-case", "--unit", "line", "--json"]
    assert main(["corpus", str(tmp_path / "a.txt"), corpus, *options]) == 0
    assert main(["induce", model_folder, corpus, str(tmp_path / "out"), "--max-contexts", "1"]) == 0
    assert WordVectors.from_pretrained(tmp_path / "out").used_contexts == {"kumquat": [0]}
    assert not (tmp_path / "out.parts").exists()
    (tmp_path / "words.jsonl").write_text('{"word": "kumquat", "contexts": []}\n')
    capsys.readouterr()
    assert main(["induce", model_folder, str(tmp_path / "words.jsonl"), str(tmp_path / "out")]) == 0
    assert "From their spelling alone, which says little: 'kumquat'." in capsys.readouterr().out


def test_induce_takes_definitions_beside_or_in_place_of_contexts(tmp_path, model_folder):
    lines = [
        {"word": "kumquat", "contexts": ["a kumquat", "the kumquat"], "definitions": ["a small tree"]},
        {"word": "qualm", "definitions": ["the old town", "a house"]},
    ]
    path = tmp_path / "words.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert main(["induce", model_folder, str(path), str(tmp_path / "out"), "--max-contexts", "1"]) == 0
    vectors = WordVectors.from_pretrained(tmp_path / "out")
    assert vectors.used_contexts == {"kumquat": [0, 1], "qualm": [0, 1]}
    expected = {
        "kumquat": ["a kumquat", "kumquat : a small tree"],
        "qualm": ["qualm : the old town", "qualm : a house"],
    }
    model, processor = BertramModel.from_pretrained(model_folder), BertramProcessor.from_pretrained(model_folder)
    torch.testing.assert_close(vectors.embeddings, induce_vectors(model, processor, expected).embeddings)


def test_induce_of_a_slim_model_takes_the_encoder(model_folder, tmp_path, capsys):
    model = BertramModel.from_pretrained(model_folder)
    model.encoder.save_pretrained(tmp_path / "encoder")
    model.config.encoder_name_or_path = str(tmp_path / "nowhere")
    model.save_pretrained(model_folder, include_encoder=False)
    (tmp_path / "words.jsonl").write_text('{"word": "kumquat", "contexts": ["a kumquat"]}\n')
    arguments = [str(tmp_path / "words.jsonl"), str(tmp_path / "out")]
    capsys.readouterr()
    assert main(["induce", model_folder, *arguments]) == 1
    assert "This checkpoint is slim" in (err := capsys.readouterr().err)
    assert "--encoder" in err
    assert main(["induce", model_folder, *arguments, "--encoder", str(tmp_path / "encoder")]) == 0
    assert main(["induce", str(tmp_path / "encoder"), *arguments]) == 1
    assert "is a bert model. Give the folder of the BERTRAM model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"word": "kumquat", "contexts": "a kumquat"}\n', "contexts must be a list of texts; got 'a kumquat'"),
        ("\n", "Expected words with contexts in"),
    ],
)
def test_induce_refuses_other_input(model_folder, tmp_path, capsys, content, message):
    (tmp_path / "words.jsonl").write_text(content)
    assert main(["induce", model_folder, str(tmp_path / "words.jsonl"), str(tmp_path / "out")]) == 1
    assert message in capsys.readouterr().err


def test_errors_are_one_line_and_exit_with_one(model_folder, tmp_path, capsys):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"word": "a"}\n')
    assert main(["induce", model_folder, str(bad), str(tmp_path / "out")]) == 1
    assert "Line 1 of" in capsys.readouterr().err
    assert main(["convert-original", str(tmp_path), str(tmp_path / "out")]) == 1
    assert "has no pytorch_model.bin" in capsys.readouterr().err
    bad.write_text('{"word": "two words", "contexts": ["x"]}\n')
    assert main(["induce", model_folder, str(bad), str(tmp_path / "out")]) == 1
    assert "cannot have a vector" in capsys.readouterr().err
    assert main(["induce", model_folder, str(bad), str(tmp_path / "out"), "--skip-errors"]) == 0
    assert "No vector for 'two words'" in capsys.readouterr().out


def read_example(command, capsys, monkeypatch):
    """Returns the arguments of the example that --help shows."""
    monkeypatch.setenv("COLUMNS", "1000")  # so that no name is broken at a hyphen
    with pytest.raises(SystemExit):
        main([command, "--help"])
    words = shlex.split(capsys.readouterr().out.partition("Example: ")[2])
    assert words[0] == "bertram"
    return words[1:]


@pytest.mark.parametrize("module", COMMANDS)
def test_help_shows_an_example_that_parses(module, capsys, monkeypatch):
    command = module.__name__.rpartition(".")[2].replace("_", "-")
    example = read_example(command, capsys, monkeypatch)
    assert example[0] == command
    assert callable(build_parser().parse_args(example).run)


def test_example_of_card_runs(model_folder, tmp_path, capsys, monkeypatch):
    (tmp_path / "model").rename(tmp_path / "my-bertram")
    monkeypatch.chdir(tmp_path)
    example = read_example("card", capsys, monkeypatch)
    assert main(example) == 0
    assert capsys.readouterr().out == "Wrote my-bertram/README.md\n"
    card = (tmp_path / "my-bertram" / "README.md").read_text(encoding="utf-8")
    assert "license: apache-2.0" in card
    assert 'from_pretrained("user/my-bertram")' in card
    assert main(example) == 1
    error = "Expected no README.md in my-bertram; there is one. Pass overwrite=True (--force) to replace it."
    assert capsys.readouterr().err == f"bertram: error: {error}\n"
    assert main([*example, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"card": "my-bertram/README.md"}


def test_example_of_push_is_the_one_that_is_tested_against_a_hub(capsys, monkeypatch):
    assert read_example("push", capsys, monkeypatch) == ["push", "my-bertram", "user/my-bertram", "--private"]


def test_damaged_files_and_full_disks_are_one_line(model_folder, tmp_path, capsys, monkeypatch):
    vectors = tmp_path / "vectors.safetensors"
    vectors.write_bytes(b"\x08\0\0\0\0\0\0\0no json")
    monkeypatch.setattr("bertram_hf.cli.card.run", lambda arguments: load_file(vectors))
    assert main(["card", model_folder]) == 1
    err = capsys.readouterr().err
    assert err.startswith("bertram: error: Could not read or write a .safetensors file: Error while deserializing")
    assert "If the disk is full, make room; if the file is damaged, delete it" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ModuleNotFoundError(name="nltk.corpus"),
            'This needs nltk, which is missing. Run: pip install "bertram-hf[eval',
        ),
        (ModuleNotFoundError(name="nlpaug"), "This needs nlpaug, which is missing. Run: pip install nlpaug\n"),
        (ImportError("Run: pip install codespell"), "Run: pip install codespell\n"),
    ],
)
def test_missing_packages_are_one_line(error, message, capsys, monkeypatch):
    def fail(arguments):
        raise error

    monkeypatch.setattr("bertram_hf.cli.card.run", fail)
    assert main(["card", "folder"]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"bertram: error: {message}")
    assert err.count("\n") == 1


def test_errors_of_this_package_are_not_taken_for_missing_ones(monkeypatch):
    def fail(arguments):
        raise ModuleNotFoundError(name="bertram_hf.no_such_module")

    monkeypatch.setattr("bertram_hf.cli.card.run", fail)
    with pytest.raises(ModuleNotFoundError):
        main(["card", "folder"])


def test_extras_are_those_of_the_package():
    tomllib = pytest.importorskip("tomllib", reason="part of Python from 3.11 on")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    modules = {"pyyaml": "yaml", "scikit-learn": "sklearn", "sentence-transformers": "sentence_transformers"}
    expected = {}
    for extra, requirements in project["optional-dependencies"].items():
        for name in (re.split(r"[\[>]", requirement)[0] for requirement in requirements):
            if extra not in ("dev", "docs") and name != "bertram-hf":
                expected[modules.get(name, name)] = extra
    assert expected == EXTRAS


@pytest.mark.parametrize("command", ["induce", "corpus", "approximate"])
def test_files_that_are_not_utf8_are_named(command, model_folder, tmp_path, capsys):
    words, output = tmp_path / "words.txt", str(tmp_path / "out")
    words.write_bytes("café\n".encode("latin-1"))
    text = tmp_path / "a.txt"
    text.write_text("a kumquat is here\n")
    arguments = {
        "induce": [model_folder, str(words), output],
        "corpus": [str(text), output, "--lower-case", "--words", str(words)],
        "approximate": ["no-encoder", str(words), output],
    }
    capsys.readouterr()
    assert main([command, *arguments[command]]) == 1
    err = capsys.readouterr().err
    assert f"Expected UTF-8 text in {words}; got 'utf-8' codec can't decode byte 0xe9" in err
    assert err.endswith("Convert it (iconv -f ENCODING -t UTF-8).\n")


def test_induce_for_scripts_shows_no_progress_bar(model_folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bertram_hf.utils.progress.SECONDS_BEFORE_PROGRESS", 0)
    (tmp_path / "words.jsonl").write_text('{"word": "kumquat", "contexts": ["a kumquat"]}\n', encoding="utf-8")
    arguments = ["induce", model_folder, str(tmp_path / "words.jsonl"), str(tmp_path / "out")]
    transformers_logging.enable_progress_bar()
    capsys.readouterr()
    assert main(arguments) == 0
    assert "%|" in capsys.readouterr().err
    assert main([*arguments, "--json"]) == 0
    transformers_logging.enable_progress_bar()
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out)["words"] == 1


@pytest.mark.parametrize("command", [["card"], ["push", "user/x"]])
def test_folders_that_are_not_ours_are_refused(command, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "clip").mkdir()
    (tmp_path / "clip" / "processor_config.json").write_text('{"processor_class": "CLIPProcessor"}')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    for name, found in {
        "empty": "none of these files. Give what save_pretrained or a bertram command wrote",
        "missing": "no such folder.",
        "bert": "config.json of a bert model.",
        "clip": "processor_config.json of a CLIPProcessor.",
        "broken": "config.json must hold JSON; it cannot be read",
    }.items():
        assert main([command[0], str(tmp_path / name), *command[1:]]) == 1
        err = capsys.readouterr().err
        assert found in err
        assert err.count("\n") == 1


def test_push_refuses_what_others_could_not_load(model_folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)  # nothing may be uploaded here

    def push(folder, *options):
        capsys.readouterr()  # progress bars of saving
        assert main(["push", str(folder), "user/x", *options]) == 1
        captured = capsys.readouterr()
        assert (captured.out, captured.err.count("\n")) == ("", 1)
        return captured.err.removeprefix("bertram: error: ").rstrip("\n")

    no_login = "Expected a login to the Hugging Face Hub; found none. Run `hf auth login`, or set HF_TOKEN."
    assert push(model_folder) == no_login

    model = BertramModel.from_pretrained(model_folder)
    model.save_pretrained(tmp_path / "alone")
    alone = push(tmp_path / "alone")
    assert "processor_config.json, tokenizer_config.json, form_vocab.json is missing. Save the processor too" in alone
    (tmp_path / "alone" / "model.safetensors").unlink()
    assert "model*.safetensors is missing. Save the model again" in push(tmp_path / "alone")

    model.config.encoder_name_or_path = str(tmp_path / "my-encoder")
    model.save_pretrained(model_folder, include_encoder=False)
    slim = push(model_folder)
    assert "is a slim model, so its encoder must be on the Hub for others to load it" in slim
    assert f"config.json names the local folder {tmp_path}" in slim
    assert slim.endswith("or pass --allow-local-encoder.")
    assert push(model_folder, "--allow-local-encoder") == no_login
    model.config.encoder_name_or_path = None
    model.save_pretrained(model_folder, include_encoder=False)
    assert "config.json names none." in push(model_folder)
    model.config.encoder_name_or_path = "user/my-encoder"
    model.save_pretrained(model_folder, include_encoder=False)
    assert push(model_folder) == no_login


def test_push_tells_which_paths_would_be_seen(model_folder, tmp_path):
    folder = Path(model_folder)
    assert len(check_folder(folder)) == 1  # no README.md
    (folder / "training.json").write_text('{"command": "bertram train /data/recipe.yaml"}')
    config = json.loads((folder / "config.json").read_text()) | {"encoder_name_or_path": str(tmp_path / "bert")}
    (folder / "config.json").write_text(json.dumps(config))
    notes = check_folder(folder)
    assert notes[0] == "training.json has paths of this machine, which everybody can read then."
    assert (
        notes[1] == f"config.json names the folder of the encoder, {tmp_path / 'bert'}, which everybody can read then."
    )


def test_ctrl_c_is_one_line_and_exits_with_130(tmp_path):
    code = "import sys, bertram_hf.cli.card as card; from bertram_hf.cli.main import main\n"
    code += "import time; card.run = lambda arguments: (print('runs', flush=True), time.sleep(60))\n"
    code += "sys.exit(main(['card', 'x']))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=-1, stderr=-1, text=True)
    assert process.stdout.readline() == "runs\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate()[1] == "bertram: interrupted\n"
    assert process.returncode == 130


def write_words(tmp_path, *words, contexts=("a kumquat",)):
    lines = [json.dumps({"word": word, "contexts": list(contexts)}) for word in words]
    (tmp_path / "words.jsonl").write_text("\n".join(lines) + "\n")
    return str(tmp_path / "words.jsonl")


def test_two_processes_with_one_output_end_well_or_with_a_clear_message(make_pair, tmp_path):
    for item in make_pair("add"):
        item.save_pretrained(tmp_path / "model")
    write_words(tmp_path, *(f"kumquat{number}" for number in range(300)))
    command = [sys.executable, "-m", "bertram_hf.cli", "induce", "model", "words.jsonl", "out", "--json"]
    command += ["--words-per-part", "1"]
    processes = [subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True) for _ in range(2)]
    errors = {process.communicate()[1]: process.returncode for process in processes}
    assert 0 in errors.values()
    for error, code in errors.items():
        assert (code, error) == (0, "") or (code == 1 and "another one is writing it" in error), error
    assert len(WordVectors.from_pretrained(tmp_path / "out")) == 300
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "out", "words.jsonl"]


def test_induce_takes_a_list_of_words_and_says_how_to_load_them(model_folder, tmp_path, capsys):
    (tmp_path / "words.txt").write_text("kumquat\n\n quokka \nkumquat\n", encoding="utf-8")
    output = str(tmp_path / "out")
    capsys.readouterr()
    assert main(["induce", model_folder, str(tmp_path / "words.txt"), output]) == 0
    captured = capsys.readouterr()
    vectors = WordVectors.from_pretrained(output)
    assert vectors.words == ["kumquat", "quokka"]
    assert vectors.used_contexts == {"kumquat": [], "quokka": []}
    assert f'Load them: vectors = WordVectors.from_pretrained("{output}")' in captured.out
    assert "Use them: injector = BertramEmbeddingInjector(model, tokenizer, vectors)" in captured.out
    assert captured.err == ""
    # JSON lines are read as such whatever the file's name is.
    (tmp_path / "lines.txt").write_text('{"word": "kumquat", "contexts": ["a kumquat"]}\n')
    assert main(["induce", model_folder, str(tmp_path / "lines.txt"), output]) == 0
    assert WordVectors.from_pretrained(output).used_contexts == {"kumquat": [0]}


def build_small_corpus(tmp_path, case="--lower-case"):
    (tmp_path / "a.txt").write_text("She peeled a kumquat today.\nThe kumquat tree is old.\n")
    (tmp_path / "words.txt").write_text("kumquat\nnever seen\nkumqat\n")
    words = ["--words", str(tmp_path / "words.txt"), "--unit", "line", "--json"]
    assert main(["corpus", str(tmp_path / "a.txt"), str(tmp_path / "corpus"), case, *words]) == 0
    return str(tmp_path / "corpus")


@pytest.mark.parametrize("mode", ["add", "context"])
def test_words_without_a_sentence_do_not_vanish(make_pair, tmp_path, capsys, mode):
    for item in make_pair(mode):
        item.save_pretrained(tmp_path / "model")
    corpus = build_small_corpus(tmp_path)
    summary = json.loads(capsys.readouterr().out)
    assert (summary["num_missing_words"], summary["missing_words"]) == (2, ["kumqat", "never seen"])
    assert read_missing_words(corpus) == ["kumqat", "never seen"]
    assert main(["induce", str(tmp_path / "model"), corpus, str(tmp_path / "out"), "--json"]) == 0
    captured = capsys.readouterr()
    assert "Generating" not in captured.err
    assert "Loading" not in captured.err
    summary, vectors = json.loads(captured.out), WordVectors.from_pretrained(tmp_path / "out")
    assert summary["words_without_sentence"] == 2
    if mode == "add":
        assert vectors.words == ["kumquat", "kumqat", "never seen"]
        assert vectors.failed == {}
    else:
        assert vectors.words == ["kumquat"]
        assert vectors.failed.keys() == {"kumqat", "never seen"}
        assert "has no sentence for it" in summary["failed"]["kumqat"]


def test_a_corpus_without_any_sentence_is_induced_from_spelling(model_folder, tmp_path):
    (tmp_path / "a.txt").write_text("She peeled a lemon today.\n")
    (tmp_path / "words.txt").write_text("quokka\n")
    corpus = str(tmp_path / "corpus")
    options = ["--lower-case", "--words", str(tmp_path / "words.txt"), "--json"]
    assert main(["corpus", str(tmp_path / "a.txt"), corpus, *options]) == 0
    assert main(["induce", model_folder, corpus, str(tmp_path / "out"), "--json"]) == 0
    assert WordVectors.from_pretrained(tmp_path / "out").words == ["quokka"]


@pytest.mark.parametrize(("mode", "code"), [("add", 1), ("form", 0)])
def test_a_corpus_of_the_other_case_is_refused_unless_sentences_are_not_read(make_pair, tmp_path, capsys, mode, code):
    for item in make_pair(mode):
        item.save_pretrained(tmp_path / "model")
    corpus = build_small_corpus(tmp_path, case="--keep-case")
    capsys.readouterr()
    assert main(["induce", str(tmp_path / "model"), corpus, str(tmp_path / "out")]) == code
    err = capsys.readouterr().err
    if code:
        assert "was built without --lower-case; this encoder reads words in lower case, so sentences would be" in err
        assert err.endswith("Build it anew: bertram corpus ... --encoder ENCODER\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"word": "a", "text": ["x"]}', "there is no contexts, only word, text."),
        ('{"contexts": ["x"]}', "there is no word, only contexts."),
        ('{"word": 3, "contexts": []}', "word must be a text; got 3."),
        ('{"word": "a", "contexts": [3]}', "contexts must be a list of texts; got [3]."),
        ('{"word": "a", "contexts": [', "it is no JSON: "),
        ("[" * 100_000, "it is no JSON: "),
        ('"kumquat"', "got 'kumquat'."),
    ],
)
def test_damaged_json_lines_are_one_line(model_folder, tmp_path, capsys, content, message):
    (tmp_path / "words.jsonl").write_text('{"word": "a", "contexts": []}\n\n' + content + "\n")
    capsys.readouterr()
    assert main(["induce", model_folder, str(tmp_path / "words.jsonl"), str(tmp_path / "out")]) == 1
    err = capsys.readouterr().err
    assert 'words.jsonl must look like {"word": "kumquat", "contexts": ["..."]}; ' in err
    assert "Line 3 of" in err
    assert message in err
    assert err.count("\n") == 1


def test_contexts_that_were_not_used_are_told_once(model_folder, tmp_path, capsys, caplog):
    words = write_words(tmp_path, "kumquat", "kumquats", contexts=["a kumquat", "two kumquats", "nothing"])
    capsys.readouterr()
    options = ["--words-per-part", "1"]
    assert main(["induce", model_folder, words, str(tmp_path / "out"), *options]) == 0
    out = capsys.readouterr().out
    assert out.count("4 contexts were not used (word not found): 'kumquat' (2), 'kumquats' (2).") == 1
    assert [record.getMessage()[:21] for record in caplog.records] == ["The model's mode 'add'"[:21]]  # once, too


def test_a_device_that_is_not_here_is_one_line(model_folder, tmp_path, capsys):
    words = write_words(tmp_path, "kumquat")
    capsys.readouterr()
    assert main(["induce", model_folder, words, str(tmp_path / "out"), "--device", "cuda:99"]) == 1
    assert "Expected a device that is here, cpu" in capsys.readouterr().err


@pytest.mark.parametrize("content", ['{"format": 1}', '{"format": 1, "words": 3}', "{", "[" * 100_000])
def test_a_card_of_damaged_vectors_is_one_line(tmp_path, capsys, content):
    WordVectors.from_dict({"kumquat": [1.0]}).save_pretrained(tmp_path)
    (tmp_path / "word_vectors.json").write_text(content)
    assert main(["card", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert "word_vectors.json" in err
    assert err.count("\n") == 1
