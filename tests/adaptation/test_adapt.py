import json
import os
import random
import subprocess
import sys

import pytest

pytest.importorskip("datatrove")

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from transformers import AutoModel, AutoTokenizer

import bertram_hf  # noqa: F401 (the Auto classes learn of injected models)
from bertram_hf.adaptation import adapt
from bertram_hf.adaptation.inflections import choose_leaders
from bertram_hf.adaptation.run import AdaptationRun

KNOWN = ["the", "small", "tree", "old", "town", "house", "garden", "water", "river", "man", "day", "time"]
RARE = ["kumquat", "kumquats", "quokka", "numbat", "zorilla"]


def write_texts(path, *, number=150, seed=0):
    """Writes rows with a title and a text, in which words that the tiny tokenizer breaks up occur."""
    draw = random.Random(seed)
    with path.open("w") as file:
        for index in range(number):
            word = RARE[index % len(RARE)]
            sentences = [" ".join([*draw.choices(KNOWN, k=7), word, *draw.choices(KNOWN, k=3)]) + "." for _ in range(3)]
            row = {"title": f"{word} and {draw.choice(KNOWN)} {index}", "text": " ".join(sentences)}
            file.write(json.dumps(row) + "\n")
    return path


@pytest.fixture
def folders(make_pair, make_encoder, bert_tokenizer, tmp_path):
    """Returns the folders of a tiny encoder, of a sentence-transformers model with it, and of a tiny BERTRAM."""
    model, processor = make_pair()
    model.save_pretrained(tmp_path / "bertram")
    processor.save_pretrained(tmp_path / "bertram")
    make_encoder("bert").save_pretrained(tmp_path / "encoder")
    bert_tokenizer.save_pretrained(tmp_path / "encoder")
    whole = SentenceTransformer(
        modules=[Transformer(str(tmp_path / "encoder")), Pooling(32), Normalize()], device="cpu"
    )
    whole.save_pretrained(str(tmp_path / "st"))
    return tmp_path


def adapt_quietly(folders, texts, output, **options):
    settings = {"bertram": folders / "bertram", "device": "cpu", "max_contexts": 4, "show_progress": False}
    return adapt(texts, str(folders / "st"), folders / output, **settings | options)


def test_a_sentence_transformer_learns_the_words_of_texts(folders):
    texts = write_texts(folders / "texts.jsonl")
    adapted = adapt_quietly(folders, texts, "out", title_column="title", num_documents=100, compare=True)
    names = [gain.name for gain in adapted.verdict.simpler]
    assert names[0] == "mean of the pieces in place of the word"
    assert "new tokens, untrained" in names
    plain = {gain.plain for gain in adapted.verdict.simpler if "repeat" not in gain.name}
    assert plain == {adapted.verdict.tried[0].plain}
    assert adapted.verdict.final is not None
    assert adapted.report["texts"]["num_rare_words"] >= len(RARE)
    model, plain = (SentenceTransformer(str(folders / name), trust_remote_code=True) for name in ("out", "st"))
    untouched, touched = "the small tree", "the small kumquat"
    assert (model.encode([untouched]) == plain.encode([untouched])).all()
    if adapted.verdict.way is not None:
        assert set(RARE) <= set(adapted.vectors.words)
        assert (model.encode([touched]) != plain.encode([touched])).any()
    counts = adapted.report["texts"]
    assert counts["num_texts"] == 150
    known = (folders / "out" / "known_words.txt").read_text().split()
    assert set(RARE) <= set(known)
    assert set(known) & set(KNOWN)
    assert counts["num_touched_texts"] == (150 if adapted.verdict.way else 0)
    assert not (folders / "out.work").exists()
    for row in adapted.report["words"]:
        assert all((row["same_as"] or row["word"]) in sentence["text"] for sentence in row["sentences"])
    assert any(row["sentences"] for row in adapted.report["words"])


def test_a_plain_encoder_is_saved_for_the_auto_classes(folders):
    texts = write_texts(folders / "texts.jsonl", number=20)
    adapted = adapt(
        texts, str(folders / "encoder"), folders / "out", bertram=folders / "bertram", device="cpu", show_progress=False
    )
    assert adapted.verdict.helps is None  # too few queries to tell
    assert torch.equal(adapted.vectors["kumquat"], adapted.vectors["kumquats"])
    model, tokenizer = AutoModel.from_pretrained(folders / "out"), AutoTokenizer.from_pretrained(folders / "out")
    assert model(**tokenizer(["a kumquat"], return_tensors="pt")).last_hidden_state.isfinite().all()
    assert tokenizer.tokenize("kumquat") != AutoTokenizer.from_pretrained(folders / "encoder").tokenize("kumquat")


def test_a_run_that_is_killed_goes_on_and_gives_the_same(folders, monkeypatch):
    texts = write_texts(folders / "texts.jsonl")
    whole = adapt_quietly(folders, texts, "whole", num_documents=60)
    with monkeypatch.context() as patch:
        patch.setattr(AdaptationRun, "judge", lambda self, **options: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            adapt_quietly(folders, texts, "killed", num_documents=60)
    assert (folders / "killed.work").exists()
    assert not (folders / "killed").exists()
    again = adapt_quietly(folders, texts, "killed", num_documents=60, num_workers=2)
    assert torch.equal(whole.vectors.embeddings, again.vectors.embeddings)
    assert whole.report["verdict"] == again.report["verdict"]
    for path in sorted((folders / "whole").rglob("*.safetensors")):
        assert path.read_bytes() == (folders / "killed" / path.relative_to(folders / "whole")).read_bytes()


def test_two_processes_give_the_same_as_one(folders):
    texts = write_texts(folders / "texts.jsonl")
    alone = adapt_quietly(folders, texts, "alone", num_documents=60)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone"]
    command += ["-m", "bertram_hf.cli", "adapt", "texts.jsonl", "--model", "st", "--output", "out"]
    command += ["--bertram", "bertram"]
    command += ["--max-contexts", "4", "--documents", "60", "--device", "cpu", "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folders, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)  # printed by one of them
    assert report["verdict"]["helps"] == alone.report["verdict"]["helps"]
    words = {row["word"]: row["after"] for row in json.loads((folders / "out/report.json").read_text())["words"]}
    assert words == {row["word"]: row["after"] for row in alone.report["words"]}


def test_datasets_are_texts_too(folders):
    rows = [json.loads(line) for line in write_texts(folders / "texts.jsonl").read_text().splitlines()]
    from_file = adapt_quietly(folders, folders / "texts.jsonl", "a", num_documents=60)
    from_rows = adapt_quietly(folders, Dataset.from_list(rows), "b", num_documents=60)
    assert torch.equal(from_file.vectors.embeddings, from_rows.vectors.embeddings)


def test_glossary_aliases_and_words_get_vectors_and_bad_rows_are_told(folders):
    texts = write_texts(folders / "texts.jsonl", number=20)
    (folders / "glossary.csv").write_text("term,definition\nold pangolin,a small animal\nquokka,\ntree,a plant\n")
    (folders / "aliases.csv").write_text("short,long\nqkk,quokka\n")
    adapted = adapt_quietly(
        folders,
        texts,
        "out",
        words=["small house", "[MASK]"],
        glossary=folders / "glossary.csv",
        aliases=folders / "aliases.csv",
    )
    assert {"old pangolin", "small house", "qkk"} <= set(adapted.vectors.words)
    assert "tree" not in adapted.vectors  # the model has a token for it
    notes = " ".join(adapted.report["notes"])
    assert "1 row of glossary.csv could not be used" in notes
    assert "special token" in notes


def test_spellings_of_a_term_share_their_definitions(folders):
    texts = write_texts(folders / "texts.jsonl", number=20)
    glossary = {"Pangolin": ["a small animal"], "pangolin": ["it lives in a tree"], "quokka": []}
    adapted = adapt_quietly(folders, texts, "out", glossary=glossary)
    (row,) = [row for row in adapted.report["words"] if row["word"] == "pangolin"]
    assert row["definitions"] == ["a small animal", "it lives in a tree"]
    assert row["injected"]


def test_texts_without_rare_words_are_refused(folders):
    texts = folders / "texts.txt"
    texts.write_text("the small tree and the old town\n" * 30)
    with pytest.raises(ValueError, match="breaks into pieces and that occur at least 2 times"):
        adapt_quietly(folders, texts, "out")


def test_an_encoder_without_a_checkpoint_is_told_what_to_do(folders):
    with pytest.raises(ValueError, match=r"Expected a BERTRAM checkpoint for .*bertram train recipe\.yaml"):
        adapt_quietly(folders, write_texts(folders / "texts.jsonl", number=5), "out", bertram=None)


def test_the_most_frequent_form_leads_unless_another_is_defined():
    counts = {"stent": 2, "stents": 5, "quokka": 3}
    assert choose_leaders(counts, {}) == {"stent": "stents"}
    assert choose_leaders(counts, {"stent"}) == {"stents": "stent"}
    assert choose_leaders(counts, {"stent", "stents"}) == {}


def test_an_empty_folder_is_named(folders):
    (folders / "empty").mkdir()
    with pytest.raises((OSError, ValueError), match="empty"):
        adapt_quietly(folders, folders / "empty", "out")
    assert not (folders / "out").exists()


def test_one_text_gives_vectors_that_nobody_can_judge(folders):
    texts = folders / "text.txt"
    texts.write_text("The small kumquat is in the garden. The old kumquat is in the town.\n")
    adapted = adapt_quietly(folders, texts, "out")
    assert adapted.vectors.words == ["kumquat"]
    assert adapted.verdict.headline.startswith("Not judged")


def test_texts_of_rare_words_only(folders):
    texts = folders / "texts.txt"
    texts.write_text("Kumquat quokka numbat zorilla.\n\n" * 50)
    adapted = adapt_quietly(folders, texts, "out")
    assert {"kumquat", "quokka", "numbat", "zorilla"} <= set(adapted.vectors.words)


def test_a_long_term_and_a_word_that_has_a_token_get_what_was_asked_for(folders):
    term = " ".join(["the old", *["small"] * 47, "tree"])
    texts = write_texts(folders / "texts.jsonl", number=20)
    rows = [{"title": "a title here", "text": f"We saw {term} by the river. It was {term} again."}]
    with texts.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    adapted = adapt_quietly(folders, texts, "out", words=[term, "garden"])
    assert {term, "garden"} <= {row["word"] for row in adapted.report["words"]}


def test_a_language_without_a_known_word(folders):
    texts = folders / "texts.txt"
    texts.write_text("Der schnelle Fuchs springt über den faulen Hund. Ein Fuchs ist schnell.\n\n" * 30)
    adapted = adapt_quietly(folders, texts, "out")
    assert {"fuchs", "schnelle"} <= set(adapted.vectors.words)
