import argparse

import pytest

from bertram_hf.cli.main import main
from bertram_hf.cli.options import check_device, loading, read_changes, read_options


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["seed"], "--set takes FIELD=VALUE; got 'seed'"),
        (["seed=["], r"--set seed=\[: the value must be YAML"),
        (["form=1", "form.trainer=2"], "--set form.trainer=2: 'form' is given a value by another --set"),
    ],
)
def test_bad_changes_are_told(changes, message):
    with pytest.raises(ValueError, match=message):
        read_changes(changes)


@pytest.mark.parametrize("text", ["{", "[1]", "3", "[" * 100_000])
def test_options_must_be_a_json_object(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected a JSON object"):
        read_options(text)
    assert read_options('{"time": "2:00:00"}') == {"time": "2:00:00"}


def test_bad_usage_exits_with_two(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["corpus", "a.txt", "out", "--lower-case", "--executor-options", "[1]"])
    assert caught.value.code == 2
    assert "expected a JSON object such as" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["cuda:99", "no-such-device", "hpu"])
def test_devices_that_are_not_here_are_told(name):
    with pytest.raises(ValueError, match=rf"Expected a device that is here, cpu.*; got '{name}' \(--device\)"):
        check_device(name)
    assert check_device("cpu") == "cpu"


def test_what_is_neither_a_folder_nor_on_the_hub_is_named():
    with pytest.raises(OSError, match="There is no folder my-bert, and the Hub did not help: not found"):  # noqa: SIM117
        with loading("my-bert", None):
            raise OSError("not\nfound")


@pytest.mark.parametrize(
    "arguments",
    [
        ["induce", "./nowhere", "words.txt", "out"],
        ["approximate", "./nowhere", "words.txt", "out"],
        ["corpus", "words.txt", "out", "--encoder", "./nowhere"],
        ["rarify", "./nowhere", "words.txt", "--output", "out"],
        ["masked-lm", "./nowhere", "--text", "words.txt", "--output", "out"],
        ["wnlampro", "evaluate", "--model", "./nowhere", "--probe", "probe.txt"],
        ["wnlampro", "evaluate", "--model", "x", "--probe", "probe.txt", "--vectors", "./nowhere"],
        ["wnlampro", "build", "--counts", "corpus", "--tokenizer", "./nowhere", "--output", "probe.txt"],
        ["wnlampro", "build", "--counts", "./nowhere", "--tokenizer", "bert", "--output", "probe.txt"],
        ["card", "./nowhere"],
        ["train", "recipe.yaml"],
    ],
    ids=" ".join,
)
def test_missing_folders_are_named_by_each_command(arguments, tmp_path, monkeypatch, capsys, bert_tokenizer):
    monkeypatch.chdir(tmp_path)
    bert_tokenizer.save_pretrained("bert")
    (tmp_path / "words.txt").write_text("kumquat\n")
    (tmp_path / "probe.txt").write_text("")
    (tmp_path / "recipe.yaml").write_text("encoder: ./nowhere\noutput: out\ncorpora: [{inputs: [words.txt]}]\n")
    assert main(arguments) == 1
    err = capsys.readouterr().err.replace("found in nowhere: no such folder", "There is no folder ./nowhere.")
    assert "There is no folder ./nowhere." in err
    assert err.count("\n") == 1
