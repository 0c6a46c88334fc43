"""Tests of the scripts in `examples`."""

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
