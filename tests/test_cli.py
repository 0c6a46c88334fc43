import json

import pytest
from tiny_models import ORIGINAL

from bertram_hf import WordVectors
from bertram_hf.cli import main


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
    assert json.loads(capsys.readouterr().out) == {"words": 1, "failed": {}, "dropped_contexts": 1}
    assert WordVectors.from_pretrained(tmp_path / "out").used_contexts == {"kumquat": [0, 2]}
    text = str(tmp_path / "vectors.txt")
    assert main(["induce", model_folder, str(tmp_path / "words.jsonl"), text, "--word2vec"]) == 0
    assert "Wrote 1 vectors" in capsys.readouterr().out
    assert (tmp_path / "vectors.txt").read_text().startswith("1 32\nkumquat ")


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


def test_help_shows_an_example(capsys):
    for command in ("convert-original", "induce"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert "Example: bertram" in capsys.readouterr().out
