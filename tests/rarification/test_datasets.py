import json

import pytest

from bertram_hf.rarification.datasets import load_labelled_texts


def read(path, **options):
    texts = load_labelled_texts([str(path)], **options)
    names = texts.features["label"].names
    return [(row["text"], names[row["label"]]) for row in texts]


def test_cells_are_text_as_they_stand(tmp_path):
    rows = [("NA", "pos"), ("007", "neg"), ("null", "n/a"), ('a "quoted" text', "None")]
    path = tmp_path / "texts.tsv"
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    assert read(path) == rows
    path = tmp_path / "texts.csv"
    path.write_bytes(b'text,label\r\n"a, b",1\r\n007,0\r\n')
    assert read(path) == [("a, b", "1"), ("007", "0")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("texts.tsv", "text\tlabel\na\tpos\nb\n"),
        ("texts.tsv", "text\tlabel\na\tpos\nb \r c\tpos\n"),
        ("texts.csv", "text,label\na,pos\nb,\n"),
        ("texts.jsonl", "".join(json.dumps(row) + "\n" for row in ({"text": "a", "label": "x"}, {"text": "b"}))),
    ],
)
def test_row_without_a_label_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content, newline="")
    # Before 3.1, pandas repeats a row that "\r " cuts in two.
    count = r"\d+" if "\r" in content else "1"
    with pytest.raises(ValueError, match=rf"Expected a label in every row; {count} have none .* the first is row 2\."):
        read(tmp_path / name)


def test_several_files_and_patterns(tmp_path):
    for number in (1, 2):
        (tmp_path / f"{number}.tsv").write_text(f"text\tlabel\ntext {number}\tl{number}\n")
    expected = [("text 1", "l1"), ("text 2", "l2")]
    assert read(tmp_path / "*.tsv") == expected
    assert len(read(tmp_path / "*.tsv", max_texts=1)) == 1
