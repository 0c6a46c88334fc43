import json

import pytest

pytest.importorskip("datatrove")

from bertram_hf.cli.main import main

WORDS = ["kumquat", "quokka", "numbat"]


@pytest.fixture
def folder(make_pair, make_encoder, bert_tokenizer, tmp_path, monkeypatch):
    """A folder with an encoder, a BERTRAM model for it, and texts."""
    monkeypatch.chdir(tmp_path)
    model, processor = make_pair()
    model.save_pretrained("bertram")
    processor.save_pretrained("bertram")
    make_encoder("bert").save_pretrained("encoder")
    bert_tokenizer.save_pretrained("encoder")
    lines = [f"The old {WORDS[i % 3]} of the town {i}. The small tree and the {WORDS[i % 3]}." for i in range(12)]
    (tmp_path / "texts.txt").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def run(*arguments):
    return main(["adapt", "texts.txt", "--model", "encoder", "--output", "out", "--device", "cpu", *arguments])


def test_adapt_writes_a_model_and_a_report_and_says_whether_it_helps(folder, capsys):
    (folder / "words.txt").write_text("old town\n")
    (folder / "glossary.csv").write_text("term,definition\nzorilla,a small animal\npangolin,\n")
    assert run("--bertram", "bertram", "--words", "words.txt", "--glossary", "glossary.csv") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Not judged")
    assert "1 row of glossary.csv could not be used" in printed
    report = json.loads((folder / "out" / "report.json").read_text())
    injected = {row["word"] for row in report["words"] if row["injected"]}
    assert {"kumquat", "quokka", "numbat", "zorilla"} <= injected
    assert "old town" in {row["word"] for row in report["words"]}
    assert "kumquat" in (folder / "out" / "report.html").read_text()


def test_adapt_prints_json_for_scripts(folder, capsys):
    assert run("--bertram", "bertram", "--json", "--no-inflections", "--min-count", "1") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"]["helps"] is None
    assert report["texts"]["num_injected_words"] >= len(WORDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bertram", "./nothing"], "There is no folder ./nothing"),
        (["--bertram", "encoder"], "Expected a BERTRAM model in encoder"),
        (["--bertram", "bertram", "--device", "tpu9"], "Expected a device that is here"),
        (["--bertram", "bertram", "--text-column", "text", "--min-count", "0"], "min_count must be at least 1"),
        (["--bertram", "bertram", "--glossary", "texts.txt"], "glossary|columns|Expected"),
    ],
)
def test_bad_arguments_get_a_clear_error(folder, capsys, arguments, message):
    assert run(*arguments) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("bertram: error: ")
    assert any(part in printed for part in message.split("|"))
    assert not (folder / "out").exists()


def test_other_files_are_not_overwritten(folder, capsys):
    (folder / "out").mkdir()
    (folder / "out" / "mine.txt").write_text("mine")
    assert run("--bertram", "bertram") == 1
    assert "holds other files, which would be lost" in capsys.readouterr().err
    assert (folder / "out" / "mine.txt").read_text() == "mine"
    (folder / "out" / "mine.txt").unlink()
    for _ in range(2):
        assert run("--bertram", "bertram") == 0  # into an empty folder, and once more in place of the first result


def test_an_empty_folder_is_refused(folder, capsys):
    (folder / "empty").mkdir()
    assert main(["adapt", "empty", "--model", "encoder", "--output", "out", "--bertram", "bertram"]) == 1
    assert "matches nothing" in capsys.readouterr().err
