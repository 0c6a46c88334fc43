import csv
import dataclasses
import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, disable_progress_bars, load_dataset
from hypothesis import given
from hypothesis import strategies as st
from support.tiny_corpus import QUIET, contexts_of, read_output, write_corpus
from support.tiny_models import ORIGINAL
from transformers import AutoProcessor

from bertram_hf.cli.main import build_parser
from bertram_hf.corpus.build import (
    CorpusSummary,
    build_corpus,
    load_contexts,
    load_counts,
    read_counts,
    read_missing_words,
)
from bertram_hf.corpus.sentences import split_sentences
from bertram_hf.processing_words import normalize_text
from bertram_hf.words.scanning import counting_pattern
from bertram_hf.words.splitting import split_words

pytest.importorskip("datatrove")

from bertram_hf.corpus.sampling import mix_keys, sampling_key


@pytest.fixture(autouse=True)
def datasets_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "datasets-cache"))
    disable_progress_bars()


def key_of(sentence, word, seed):
    hashes = (np.array([sampling_key(text, seed)], np.uint64) for text in (sentence, word))
    return int(mix_keys(*hashes)[0])


def test_counts_are_those_of_split_words(tmp_path):
    texts = write_corpus(tmp_path / "in")
    build_corpus(tmp_path / "in", tmp_path / "out", min_count=1, **QUIET)
    expected = Counter(w for text in texts for w in split_words(text.lower()) if any(map(str.isalpha, w)))
    counts = load_counts(tmp_path / "out")
    assert dict(zip(counts["word"], counts["count"], strict=True)) == expected
    assert read_counts([tmp_path / "out"] * 2) == Counter({word: 2 * count for word, count in expected.items()})
    assert expected["pear"] > 0
    assert "don" not in expected


@pytest.mark.parametrize("lower_case", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_sample_is_the_smallest_keys_of_all_sentences(tmp_path, lower_case, seed):
    texts = write_corpus(tmp_path / "in", seed=seed)
    summary = build_corpus(
        tmp_path / "in", tmp_path / "out", lower_case=lower_case, min_count=1, max_contexts=7, seed=seed,
        show_progress=False,
    )  # fmt: skip
    sentences = [sentence for text in texts for sentence in split_sentences(text, "line")]
    samples = contexts_of(tmp_path / "out")
    assert set(samples) >= {"kumquat", "covid-19", "café"}
    for word in ("kumquat", "covid-19", "café", "naïve", "york"):
        keys = {}
        for sentence in sentences:
            tokens = re.findall(r"covid-19|don't|\w+", sentence.lower() if lower_case else sentence)
            if 4 <= len(tokens) <= 50 and word in tokens:
                keys[sentence] = key_of(sentence, word, seed)
        whole = [context for context in samples.get(word, []) if context in keys]
        assert len(samples.get(word, [])) <= 7
        assert whole == sorted(keys, key=keys.get)[: len(whole)]  # windows of long sentences may stand between them
    usable = [s for s in sentences if len(re.findall(r"covid-19|don't|\w+", s)) >= 4]
    assert summary.num_duplicate_sentences == len(usable) - len(set(usable)) > 0
    assert summary.num_short_sentences == len(sentences) - len(usable) > 0
    assert summary.num_cut_sentences > 0


def test_processor_finds_the_word_in_every_sentence(tmp_path):
    processor = AutoProcessor.from_pretrained(converted_model(tmp_path))
    write_corpus(tmp_path / "in")
    (tmp_path / "in" / "marks.txt").write_text("I ❤\ufe0fkumquat a lot. We see \u0301lemon İstanbul here daily.\n")
    given = ["42", "New York", "C++", "well-known", "COVID-19", "kumquat", "don't", "never", "İstanbul", "_pear_"]
    summary = build_corpus(tmp_path / "in", tmp_path / "out", words=given, **QUIET)
    samples = contexts_of(tmp_path / "out")
    words = {"42", "new york", "c++", "well-known", "covid-19", "kumquat", "don't", "_pear_", "i̇stanbul"}
    assert set(samples) == words
    assert "never" in summary.missing_words
    for word, contexts in samples.items():
        assert None not in processor.locate(word, contexts), word
        assert len(set(contexts)) == len(contexts) <= 64
        assert all(len(list(split_words(context))) <= 50 for context in contexts)
    build_corpus(tmp_path / "in", tmp_path / "all", min_count=1, **QUIET)
    for word, contexts in contexts_of(tmp_path / "all").items():
        assert None not in processor.locate(word, contexts), word


def converted_model(tmp_path):
    from bertram_hf.cli import main

    main(["convert-original", str(ORIGINAL / "ckpt" / "bert-add-ipnull"), str(tmp_path / "model"), "--json"])
    processor = AutoProcessor.from_pretrained(tmp_path / "model")
    processor.match = "word"
    processor.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_long_sentence_becomes_a_window_around_the_word(tmp_path):
    words = [f"w{i}x" for i in range(200)]
    words[100] = "kumquat"
    (tmp_path / "a.txt").write_text(" ".join(words) + "\n")
    build_corpus(tmp_path / "a.txt", tmp_path / "out", words=["kumquat", "w0x", "w199x"], **QUIET)
    samples = contexts_of(tmp_path / "out")
    assert samples["kumquat"] == [" ".join(words[75:125])]
    assert samples["w0x"] == [" ".join(words[:50])]
    assert samples["w199x"] == [" ".join(words[150:])]


@given(st.text(st.sampled_from("aN't-19_ é\u0301\u0939\u093f’İ金ペท\u0e35"), max_size=30))
def test_tokens_hold_the_words_of_split_words(text):
    text = normalize_text(text)
    tokens = counting_pattern(text).findall(text)
    assert [word for token in tokens for word in split_words(token)] == list(split_words(text))


def test_all_formats_give_the_same(tmp_path):
    texts = write_corpus(tmp_path / "in")
    lines = [line for text in texts for line in text.split("\n")]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    pq.write_table(pa.table({"text": lines}), tmp_path / "a.parquet")
    with gzip.open(tmp_path / "a.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    dataset = Dataset.from_dict({"text": lines})
    streamed = load_dataset("json", data_files=str(tmp_path / "a.jsonl"), split="train", streaming=True)
    inputs = [tmp_path / "in", tmp_path / "a.jsonl", tmp_path / "a.parquet", tmp_path / "a.txt.gz", dataset, streamed]
    results = []
    for number, source in enumerate([*inputs, dataset.to_iterable_dataset(num_shards=3)]):
        build_corpus(source, tmp_path / f"out{number}", min_count=5, **QUIET)
        output = read_output(tmp_path / f"out{number}")
        results.append({name: content for name, content in output.items() if name != "corpus.json"})
    assert all(result == results[0] for result in results)


def test_bad_files_are_told(tmp_path):
    (tmp_path / "a.bin").write_bytes(os.urandom(10_000))
    with pytest.raises(ValueError, match=r"Expected UTF-8 text in .*a\.bin; it is binary"):
        build_corpus(tmp_path / "a.bin", tmp_path / "out", **QUIET)
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(ValueError, match="there is none in the inputs"):
        build_corpus(tmp_path / "empty.txt", tmp_path / "out", **QUIET)
    with pytest.raises(FileNotFoundError, match="matches nothing"):
        build_corpus(tmp_path / "*.none", tmp_path / "out", **QUIET)
    (tmp_path / "few.txt").write_text("a kumquat here\n")
    with pytest.raises(ValueError, match="No word occurs min_count=100 times; the most frequent one occurs 1 times"):
        build_corpus(tmp_path / "few.txt", tmp_path / "out", **QUIET)
    (tmp_path / "a.jsonl").write_text('{"body": "x"}\n')
    with pytest.raises(ValueError, match=r"None of 1 rows has text in the column 'text'; there are the columns 'body'"):
        build_corpus(tmp_path / "a.jsonl", tmp_path / "out", **QUIET)
    (tmp_path / "mixed.jsonl").write_text('{"body": "x"}\n{"text": ["y"]}\n{"text": "one kumquat is here"}\n')
    summary = build_corpus(tmp_path / "mixed.jsonl", tmp_path / "mixed", words=["kumquat"], **QUIET)
    assert (summary.num_documents, summary.num_empty_documents, summary.num_invalid_lines) == (3, 1, 1)
    assert load_contexts(tmp_path / "mixed")["contexts"][:] == [["one kumquat is here"]]
    (tmp_path / "a.xml").write_text("<x>y</x>\n")
    with pytest.raises(ValueError, match=r"Expected text, JSONL, CSV, TSV or Parquet; .*a\.xml is a \.xml file"):
        build_corpus(tmp_path / "a.xml", tmp_path / "out", **QUIET)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(os.urandom(100).hex().encode())[:-20])
    with pytest.raises(ValueError, match="ends too early"):
        build_corpus(tmp_path / "a.txt.gz", tmp_path / "out", **QUIET)
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        build_corpus(tmp_path / "a.parquet", tmp_path / "out", **QUIET)
    with pytest.raises(ValueError, match="max_contexts must be at least 1; got 0"):
        build_corpus(tmp_path / "few.txt", tmp_path / "out", max_contexts=0, **QUIET)
    with pytest.raises(TypeError, match="Put a single word in a list"):
        build_corpus(tmp_path / "few.txt", tmp_path / "out", words="kumquat", **QUIET)
    with pytest.raises(ValueError, match=r"has no corpus\.json"):
        load_contexts(tmp_path)


def test_what_is_left_out_is_counted(tmp_path):
    lines = [b"a good kumquat is here"] * 50 + [b"a bad \xff kumquat is here", b"a kumquat \x00 is not text"]
    (tmp_path / "a.txt").write_bytes(b"\n".join(lines[:40] * 100 + lines) + b"\n" + b"kumquat " * 400_000 + b"\n")
    (tmp_path / "b.jsonl").write_text(
        '{"text": "my kumquat is a fruit"}\nnot json\n{"text": null}\n{"text": "\\ud800"}\n'
    )
    summary = build_corpus([tmp_path / "a.txt", tmp_path / "b.jsonl"], tmp_path / "out", words=["kumquat"], **QUIET)
    assert summary.num_invalid_lines == 4
    assert summary.num_long_lines == 1
    assert summary.num_empty_documents == 1
    assert summary.num_documents == 4
    assert summary.num_duplicate_sentences >= 4049
    assert set(contexts_of(tmp_path / "out")["kumquat"]) >= {"a good kumquat is here", "my kumquat is a fruit"}


def test_long_lines_are_cut_alike_in_all_formats(tmp_path):
    long = " ".join("kumquat" if i % 1000 == 0 else f"w{i}é" for i in range(400_000))
    lines = ["a kumquat is here", long, "and another kumquat is there"]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    pq.write_table(pa.table({"text": lines}), tmp_path / "a.parquet")
    dataset = Dataset.from_dict({"text": lines})
    results = []
    for number, source in enumerate([tmp_path / "a.txt", tmp_path / "a.jsonl", tmp_path / "a.parquet", dataset]):
        options = {"words": ["kumquat"], "unit": "line", "num_parts": 1, **QUIET}
        summary = dataclasses.asdict(build_corpus(source, tmp_path / f"out{number}", **options))
        assert summary.pop("num_documents") == (1 if number == 0 else 3)
        summary.pop("fingerprint")
        tables = {name: file for name, file in read_output(tmp_path / f"out{number}").items() if name != "corpus.json"}
        results.append((summary, tables))
    assert results[0][0]["num_long_lines"] == 1
    assert results[0][0]["num_cut_sentences"] == results[0][0]["num_contexts"] - 2 == 4  # blocks of the long line
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize(("name", "num_megabytes"), [("a.txt", 100), ("a.jsonl", 20), ("a.parquet", 20)])
def test_very_long_line_needs_little_memory(tmp_path, name, num_megabytes):
    if name == "a.txt":
        (tmp_path / name).write_bytes(b"x" * (num_megabytes * 1_000_000) + b"\na kumquat is here\n")
    else:
        texts = ["pear plum " * (num_megabytes * 100_000), "a kumquat is here"]
        (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    code = (
        "import resource, sys; from bertram_hf.corpus import build_corpus; import bertram_hf.corpus.steps\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "s = build_corpus(sys.argv[1], sys.argv[2], lower_case=True, words=['kumquat'], show_progress=False)\n"
        "print(s.num_long_lines, s.num_words, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / name), str(tmp_path / "out")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    num_long_lines, num_words, megabytes = map(int, output.split())
    assert (num_long_lines, num_words) == (1, 1)
    assert megabytes < 250


def test_only_the_most_frequent_words_are_taken_if_so_many_are_asked_for(tmp_path):
    (tmp_path / "a.txt").write_text("the kumquat saw the lemon here\nthe lemon saw the lemon there\n")
    build_corpus(tmp_path / "a.txt", tmp_path / "out", min_count=1, max_words=2, **QUIET)
    assert set(contexts_of(tmp_path / "out")) == {"the", "lemon"}


def run_command(arguments):
    parsed = build_parser().parse_args(["corpus", *map(str, arguments)])
    parsed.run(parsed)


def test_command_writes_a_corpus_and_tells_what_is_missing(tmp_path, capsys):
    write_corpus(tmp_path / "in")
    (tmp_path / "words.txt").write_text("kumquat\nNew York\nnever\n")
    files = sorted((tmp_path / "in").glob("*.txt"))
    run_command([*files, tmp_path / "out", "--lower-case", "--words", tmp_path / "words.txt", "--json"])
    summary = json.loads(capsys.readouterr().out)
    assert summary == dataclasses.asdict(CorpusSummary.load(tmp_path / "out"))
    assert (summary["num_words"], summary["missing_words"]) == (2, ["never"])
    run_command([tmp_path / "in", tmp_path / "out2", "--keep-case", "--min-count", "5"])
    captured = capsys.readouterr()
    assert "Wrote" in captured.out
    assert "datatrove" not in captured.err
    with pytest.raises(ValueError, match="got neither"):
        run_command([tmp_path / "out3", "--keep-case"])


TEXTS = ["A kumquat is here, and a lemon.", 'He said "kumquat", and left.', "", "NA", "one kumquat\nand another line"]


def write_table(path, texts, delimiter=","):
    with open_compressed(path) as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerows([("id", "text"), *enumerate(texts)])


def open_compressed(path):
    return gzip.open(path, "wt", encoding="utf-8") if path.suffix == ".gz" else path.open("w", encoding="utf-8")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.CSV"])
def test_csv_is_read_as_jsonl_is(tmp_path, name):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    write_table(tmp_path / name, TEXTS)
    results = []
    for number, source in enumerate(["a.jsonl", name]):
        summary = build_corpus(tmp_path / source, tmp_path / f"out{number}", words=["kumquat"], num_parts=1, **QUIET)
        files = {name: file for name, file in read_output(tmp_path / f"out{number}").items() if name != "corpus.json"}
        results.append((dataclasses.asdict(summary) | {"fingerprint": ""}, files))
    assert results[0] == results[1]
    assert results[0][0]["num_documents"] == 5


def test_quotes_in_tsv_are_text(tmp_path):
    (tmp_path / "a.tsv").write_text('id\ttext\n1\t"A kumquat is here\n2\tno "kumquat" is there\n')
    summary = build_corpus(tmp_path / "a.tsv", tmp_path / "out", words=["kumquat"], **QUIET)
    assert set(contexts_of(tmp_path / "out")["kumquat"]) == {'"A kumquat is here', 'no "kumquat" is there'}
    assert summary.num_invalid_lines == 0


def test_bad_rows_of_csv_are_counted(tmp_path):
    rows = [b"id,text", b"1,a kumquat is here", b"2,one,too many", b"3,not \xff UTF-8 kumquat", b"4", b"5,"]
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(rows) + b"\r\n" + b"6,my kumquat is good\r\n")
    summary = build_corpus(tmp_path / "a.csv", tmp_path / "out", words=["kumquat"], **QUIET)
    assert (summary.num_invalid_lines, summary.num_empty_documents, summary.num_documents) == (3, 1, 4)
    assert set(contexts_of(tmp_path / "out")["kumquat"]) == {"a kumquat is here", "my kumquat is good"}


def test_long_csv_is_read_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr("bertram_hf.corpus.readers.TABLE_BLOCK_SIZE", 4096)
    write_table(tmp_path / "a.csv", [f'kumquat number "{i}" is\nhere' for i in range(2000)])
    summary = build_corpus(tmp_path / "a.csv", tmp_path / "out", words=["kumquat"], unit="paragraph", **QUIET)
    assert (summary.num_documents, summary.num_sentences, summary.num_invalid_lines) == (2000, 2000, 0)
    write_table(tmp_path / "b.csv", ["kumquat " * 2000])
    with pytest.raises(ValueError, match=r"b\.csv cannot be read as CSV"):
        build_corpus(tmp_path / "b.csv", tmp_path / "out", words=["kumquat"], **QUIET)


@pytest.mark.parametrize(("content", "columns"), [("x,y", r"\['x', 'y'\]"), ("", r"\[\]"), ("x;y", r"\['x;y'\]")])
def test_csv_without_the_column_names_those_that_there_are(tmp_path, content, columns):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(ValueError, match=rf"a\.csv has no column 'text', only {columns}\. Set text_column"):
        build_corpus(tmp_path / "a.csv", tmp_path / "out", **QUIET)


def test_inputs_without_a_word_are_an_error_even_if_words_are_given(tmp_path):
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(ValueError, match="Expected text with words; there is none in the inputs"):
        build_corpus(tmp_path / "empty.txt", tmp_path / "out", words=["kumquat"], **QUIET)
    (tmp_path / "numbers.txt").write_text("in 42 42 42 42\n42 42 42 42\n")
    assert build_corpus(tmp_path / "numbers.txt", tmp_path / "out", words=["42"], **QUIET).num_words == 1


def test_only_given_words_are_kept_as_missing(tmp_path):
    (tmp_path / "a.txt").write_text("kumquat lemon\nkumquat fig\na lemon is a fruit\n")
    given = [f"missing {number}" for number in range(150)]
    summary = build_corpus(tmp_path / "a.txt", tmp_path / "out", words=given, min_count=1, unit="line", **QUIET)
    assert summary.num_missing_words > 150  # "kumquat" stands in sentences that are too short
    assert read_missing_words(tmp_path / "out") == sorted(given)
    build_corpus(tmp_path / "a.txt", tmp_path / "out", words=["lemon"], unit="line", **QUIET)
    assert read_missing_words(tmp_path / "out") == []


def test_a_damaged_summary_is_one_clear_error(tmp_path):
    (tmp_path / "a.txt").write_text("a lemon is a fruit\n")
    build_corpus(tmp_path / "a.txt", tmp_path / "out", words=["lemon"], **QUIET)
    path = tmp_path / "out" / "corpus.json"
    content = json.loads(path.read_text())
    content.pop("num_words")
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"corpus\.json has no num_words\. Build the corpus anew"):
        load_contexts(tmp_path / "out")
    with pytest.raises(ValueError, match=r"There is no folder .*nowhere"):
        load_contexts(tmp_path / "nowhere")


def test_two_spellings_of_one_word_may_be_asked_for(tmp_path):
    (tmp_path / "text.txt").write_text("We take the value of σ here. It is not the σ of before.", encoding="utf-8")
    build_corpus(str(tmp_path / "text.txt"), tmp_path / "out", lower_case=True, words=["ς", "σ"], show_progress=False)
    ((word, count, sentences),) = (
        (row["word"], row["count"], row["contexts"]) for row in load_contexts(tmp_path / "out")
    )
    assert (word, count, len(sentences)) == ("ς", 2, 2)
