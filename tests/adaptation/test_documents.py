import json

import pytest

pytest.importorskip("datatrove")

from datasets import Dataset

from bertram_hf.adaptation.documents import SearchPair, SharedText, draw_pairs
from bertram_hf.corpus.inputs import list_slices

LONG = "Then it was peeled, cut into small pieces, and eaten with sugar."


def rows(number):
    return [{"title": f"Fruit number {i}", "text": f"This is the fruit number {i}. {LONG}"} for i in range(number)]


def write_rows(path, content):
    path.write_text("".join(json.dumps(row) + "\n" for row in content))
    return str(path)


def test_queries_are_titles_or_first_sentences(tmp_path):
    source = list_slices(write_rows(tmp_path / "a.jsonl", rows(1)))
    (titled,) = draw_pairs(source, number=5, title_column="title")
    assert titled == SearchPair("Fruit number 0", f"This is the fruit number 0. {LONG}")
    (untitled,) = draw_pairs(source, number=5)
    assert untitled == SearchPair("This is the fruit number 0.", LONG)


def test_all_formats_give_the_same_pairs(tmp_path):
    dataset = Dataset.from_list(rows(30))
    dataset.to_parquet(tmp_path / "a.parquet")
    dataset.to_csv(tmp_path / "a.csv")
    expected = draw_pairs(dataset, number=10, title_column="title")
    assert len(expected) == 10
    paths = [tmp_path / "a.parquet", tmp_path / "a.csv", write_rows(tmp_path / "a.jsonl", rows(30)[::-1])]
    for path in paths:
        assert draw_pairs(list_slices(path), number=10, title_column="title") == expected


def test_lines_and_paragraphs_of_text_files_are_documents(tmp_path):
    (tmp_path / "lines.txt").write_text("".join(f"{row['text']}\n" for row in rows(4)))
    assert len(draw_pairs(list_slices(tmp_path / "lines.txt"), number=10)) == 4


def test_a_draw_is_a_sample_that_another_seed_changes(tmp_path):
    source = list_slices(write_rows(tmp_path / "a.jsonl", rows(200)))
    first, second, other = (draw_pairs(source, number=20, seed=seed) for seed in (0, 0, 1))
    assert first == second
    assert set(first) != set(other)
    assert set(draw_pairs(source, number=10)) <= set(first)


def test_texts_without_a_query_and_a_rest_are_left_out_and_equal_ones_stand_once(tmp_path):
    content = [
        *rows(1),
        *rows(1),
        {"title": "x", "text": LONG},
        {"title": "No text", "text": ""},
        {"title": 3, "text": "a"},
    ]
    pairs = draw_pairs(list_slices(write_rows(tmp_path / "a.jsonl", content)), number=10, title_column="title")
    assert [pair.query for pair in pairs] == ["Fruit number 0"]


def test_a_missing_column_is_named(tmp_path):
    Dataset.from_list(rows(2)).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"has no column 'name', only .* Set title_column"):
        draw_pairs(list_slices(tmp_path / "a.parquet"), number=10, title_column="name")


def test_sentences_of_documents_are_found_even_where_they_are_cut():
    shared = SharedText([f"It is sour. {LONG}"])
    assert shared.holds(LONG)
    assert shared.holds("peeled, cut into small pieces, and eaten with")
    assert shared.holds("It is sour.")
    assert not shared.holds("It is sour. It")
    assert not shared.holds("peeled, cut into small pieces, and eaten without")
    assert not shared.holds("is sou")
    assert not SharedText([]).holds(LONG)
