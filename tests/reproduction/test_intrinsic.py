import pytest
import yaml
from support.tiny_evaluation import read_rows, read_section
from support.tiny_training import make_sentences, write_encoder, write_recipe

from bertram_hf.cli import main
from bertram_hf.rarification.misspellings import read_all_misspellings
from bertram_hf.rarification.substitutions import Substitutions
from bertram_hf.reproduction.intrinsic import choose_misspellings, misspell_contexts

PAIRS = "river\triiver\nriver\triverr\nforest\tforrest\nlake\triver\nkumquat\tkumqat\nmountain\tmountian\n"


@pytest.fixture
def lists(tmp_path):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    return read_all_misspellings([str(tmp_path / "pairs.tsv")])


def test_known_words_are_meant_and_misspellings_are_unknown(lists, bert_tokenizer):
    meant = choose_misspellings(lists, bert_tokenizer)
    assert sorted(meant.values()) == ["forest", "mountain", "river"]
    assert all(len(bert_tokenizer.tokenize(misspelling)) > 1 for misspelling in meant)
    assert meant == choose_misspellings(lists, bert_tokenizer)
    assert len(choose_misspellings(lists, bert_tokenizer, max_words=2)) == 2


def test_every_occurrence_is_misspelt_and_nothing_else():
    contexts = {"river": ["River, o river!", "rivers", "[MASK] riverside\x00"]}
    assert misspell_contexts({"rivr": "river"}, contexts) == {
        "rivr": ["rivr, o rivr!", "rivers", "[MASK] riverside\x00"]
    }


def test_every_system_is_scored_and_a_look_alike_is_found(tmp_path, lists):
    encoder = write_encoder(tmp_path / "encoder")
    training = write_recipe(tmp_path, encoder, look_alikes={"max_contexts": 2, "misspelt_share": 0.9})
    (tmp_path / "contexts.txt").write_text("\n".join(make_sentences()) + "\n")
    content = {
        "encoder": str(encoder),
        "output": str(tmp_path / "results"),
        "work": str(tmp_path / "work"),
        "training": str(training),
        "seeds": [0],
        "systems": [
            {"name": "mean of pieces", "model": "pieces"},
            {"name": "BERTRAM-add", "model": "bertram-add"},
            {"name": "A La Carte", "model": "a-la-carte"},
        ],
        "misspellings": {
            "sources": [str(tmp_path / "pairs.tsv")],
            "corpus": {"inputs": [str(tmp_path / "contexts.txt")], "max_contexts": 8},
            "num_contexts": [0, 1, 4],
        },
    }
    path = tmp_path / "evaluation.yaml"
    path.write_text(yaml.safe_dump(content))
    assert main(["reproduce", str(path)]) == 0
    rows = {row["system"]: row for row in read_rows(tmp_path / "results" / "misspellings.jsonl").values()}
    assert [score["contexts"] for score in rows["mean of pieces"]["scores"]] == [0]
    assert [score["contexts"] for score in rows["A La Carte"]["scores"]] == [1, 4]
    scores = rows["BERTRAM-add"]["scores"]
    assert [score["contexts"] for score in scores] == [0, 1, 4]
    assert rows["BERTRAM-add"]["num_words"] == 3
    assert scores[0]["mrr"] > 2 * rows["mean of pieces"]["scores"][0]["mrr"]
    assert "Recovery of 3 words from their misspellings" in read_section(tmp_path / "results", "misspellings")


def test_a_word_with_many_misspellings_counts_once(bert_tokenizer):
    known = Substitutions([("river", f"riv{letter}r", "misspelling") for letter in "abcd"])
    assert list(choose_misspellings([known], bert_tokenizer).values()) == ["river"]
    assert choose_misspellings([], bert_tokenizer) == {}
