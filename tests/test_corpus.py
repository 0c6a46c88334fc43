import dataclasses
import gzip
import json
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, disable_progress_bars, load_dataset
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import ORIGINAL
from transformers import AutoProcessor

from bertram_hf.cli import build_parser
from bertram_hf.corpus import CorpusSummary, build_corpus, load_contexts, load_counts, read_counts
from bertram_hf.corpus_inputs import list_pieces
from bertram_hf.corpus_settings import CorpusSettings
from bertram_hf.rare_words import split_words
from bertram_hf.sentences import split_sentences
from bertram_hf.word_matching import normalize_text
from bertram_hf.word_scanning import counting_pattern

pytest.importorskip("datatrove")

from bertram_hf.corpus_executors import plan_phases, slurm_executors
from bertram_hf.sentence_sampling import SentenceSampler, hash_text, mix_keys

WORDS = [
    "kumquat",
    "lemon",
    "Melon",
    "covid-19",
    "don't",
    "well-known",
    "_pear_",
    "42",
    "café",
    "naïve",
    "New",
    "York",
    "C++",
    "fig,",
    "grape.",
]
QUIET = {"show_progress": False, "lower_case": True}


def make_settings(**changes):
    settings = CorpusSettings("", True, "auto", "text", 1, None, 64, 4, 50, 0, 2)
    return dataclasses.replace(settings, **changes)


@pytest.fixture(autouse=True)
def datasets_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "datasets-cache"))
    disable_progress_bars()


def key_of(sentence, word, seed):
    hashes = (np.array([hash_text(text, seed)], np.uint64) for text in (sentence, word))
    return int(mix_keys(*hashes)[0])


def write_corpus(folder, *, num_files=4, num_lines=60, seed=0):
    """Writes files of sentences, some of them more than once, some too short or too long."""
    generator = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    texts = []
    for number in range(num_files):
        lines = []
        for _ in range(num_lines):
            words = generator.choices(WORDS, k=generator.choice([2, 4, 5, 6, 12, 70]))
            lines.append(" ".join(words) + generator.choice([".", "!", "? Yes."]))
        lines += lines[:10]
        texts.append("\n".join(lines))
        (folder / f"{number}.txt").write_text(texts[-1] + "\n", encoding="utf-8")
    return texts


def read_output(folder):
    """Returns all files of a corpus with their bytes."""
    folder = Path(folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def contexts_of(folder):
    return {row["word"]: row["contexts"] for row in load_contexts(folder)}


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
    assert set(samples) == {"42", "new york", "c++", "well-known", "covid-19", "kumquat", "don't", "_pear_"} | (
        {"i̇stanbul"} & set(samples)
    )
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


def test_samples_are_uniform_over_different_sentences_and_independent():
    sentences = [f"the kumquat number s{i} is here" for i in range(20)]
    drawn, both = Counter(), 0
    for seed in range(200):
        settings = make_settings(max_contexts=5, seed=seed, num_parts=1)
        writer = MemoryWriter()
        sampler = SentenceSampler(["kumquat", "number"], settings, writer)
        for sentence in sentences + sentences[:10] * 3:
            sampler.add(sentence)
        sampler.flush()
        samples = writer.texts_by_id()
        assert [len(set(texts)) for texts in samples.values()] == [5, 5]
        drawn.update(samples[0])
        both += len({*samples[0]} & {*samples[1]})
    expected = 200 * 5 / 20
    chi_square = sum((drawn[sentence] - expected) ** 2 / expected for sentence in sentences)
    assert chi_square < 43.8  # 99.9 % of 19 degrees of freedom
    assert 200 < both < 300  # 1.25 of 5 are common to two independent samples


class MemoryWriter:
    """Takes what the sampler would write to a file."""

    def __init__(self):
        self.batches = []

    def write(self, columns):
        self.batches.append(columns)

    def texts_by_id(self):
        samples = {}
        for ids, _, texts in self.batches:
            for row, text in zip(ids.to_pylist(), texts.to_pylist(), strict=True):
                samples.setdefault(row, []).append(text)
        return samples


def test_memory_of_the_sampler_is_bounded_by_the_samples(monkeypatch):
    monkeypatch.setattr("bertram_hf.sentence_sampling.BATCH_SIZE", 16)
    monkeypatch.setattr("bertram_hf.sentence_sampling.MAX_ROWS", 64)
    sentences = [f"the kumquat number s{i} is here" for i in range(2000)]
    samples, sizes = [], []
    for part in (sentences, sentences[::-1], sentences[:1]):
        writer = MemoryWriter()
        sampler = SentenceSampler(["kumquat", "number"], make_settings(max_contexts=5, num_parts=1), writer)
        for sentence in part:
            sampler.add(sentence)
        sampler.flush()
        samples.append(writer)
        sizes.append(len(sampler.kept[0]))
    assert sizes == [10, 10, 2]
    assert 10 < sum(len(batch[0]) for batch in samples[0].batches) < 400  # of 4,000 that were seen
    final = [smallest_texts(writer, 5) for writer in samples]
    assert final[0] == final[1]


def smallest_texts(writer, limit):
    rows = sorted((i, k, t) for ids, keys, texts in writer.batches for i, k, t in zip(ids, keys, texts, strict=True)
                  for i, k, t in [(i.as_py(), k.as_py(), t.as_py())])  # fmt: skip
    return {row: [text for i, _, text in rows if i == row][:limit] for row in {i for i, _, _ in rows}}


@given(st.text(st.sampled_from("aN't-19_ é\u0301\u0939\u093f’İ"), max_size=30))
def test_tokens_hold_the_words_of_split_words(text):
    text = normalize_text(text)
    tokens = counting_pattern(text).findall(text)
    assert [word for token in tokens for word in split_words(token)] == list(split_words(text))


def test_result_does_not_depend_on_workers_or_the_split_into_files(tmp_path, monkeypatch):
    texts = write_corpus(tmp_path / "in")
    build_corpus(tmp_path / "in", tmp_path / "one", min_count=5, num_parts=2, **QUIET)
    one = read_output(tmp_path / "one")
    monkeypatch.setattr("bertram_hf.corpus_inputs.PIECE_SIZE", 3000)
    assert len(list_pieces(tmp_path / "in")) > 8
    build_corpus(tmp_path / "in", tmp_path / "many", min_count=5, num_parts=2, num_workers=2, **QUIET)
    assert read_output(tmp_path / "many") == one
    (tmp_path / "joined.txt").write_text("\n".join(reversed(texts)) + "\n", encoding="utf-8")
    build_corpus(tmp_path / "joined.txt", tmp_path / "joined", min_count=5, num_parts=2, **QUIET)
    joined = read_output(tmp_path / "joined")
    assert {name: joined[name] for name in joined if name != "corpus.json"} == {
        name: one[name] for name in one if name != "corpus.json"
    }


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


def test_ray_cluster_with_two_workers_gives_the_same(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    write_corpus(tmp_path / "in", num_files=2)
    monkeypatch.setattr("bertram_hf.corpus_inputs.PIECE_SIZE", 20_000)
    build_corpus(tmp_path / "in", tmp_path / "local", min_count=5, num_parts=1, **QUIET)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        options = {"mem_per_cpu_gb": 0.5}
        build_corpus(
            tmp_path / "in", tmp_path / "ray", min_count=5, num_parts=1, executor="ray", num_workers=2,
            executor_options=options, **QUIET,
        )  # fmt: skip
    finally:
        ray.shutdown()
    assert read_output(tmp_path / "ray") == read_output(tmp_path / "local")


def test_slurm_jobs_can_be_made_and_pickled(tmp_path, monkeypatch):
    import dill

    write_corpus(tmp_path / "in")
    monkeypatch.setattr("bertram_hf.corpus_inputs.PIECE_SIZE", 3000)
    settings = make_settings(work=str(tmp_path / ".work"))
    phases = plan_phases(list_pieces(tmp_path / "in"), settings, {})
    executors = slurm_executors(phases, settings, num_workers=4, options={"partition": "cpu", "time": "1:00:00"})
    assert [executor.depends for executor in executors] == [None, *executors[:-1]]
    assert "--array=0-1%2" in executors[1].get_launch_file_contents(executors[1].get_sbatch_args(2), "run")
    assert len(dill.loads(dill.dumps(executors[2])).pipeline) == 2
    assert pickle.loads(pickle.dumps(settings)) == settings
    with pytest.raises(ValueError, match="needs executor_options"):
        build_corpus(tmp_path / "in", tmp_path / "out", executor="slurm", **QUIET)


def run_until_killed(num_files, folder, output):
    """Builds a corpus in a process that gets kill -9 before it finishes its n-th file. Returns whether it did."""
    child = os.fork()
    if child == 0:
        os.setsid()
        replace, calls = os.replace, iter(range(num_files))

        def replace_or_die(*paths):
            if next(calls, None) is None:
                os.killpg(0, signal.SIGKILL)
            replace(*paths)

        os.replace = replace_or_die
        build_corpus(folder, output, min_count=5, num_parts=2, **QUIET)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_killed_run_is_resumed_with_the_same_result(tmp_path, monkeypatch):
    write_corpus(tmp_path / "in", num_lines=20)
    monkeypatch.setattr("bertram_hf.corpus_inputs.PIECE_SIZE", 8000)
    build_corpus(tmp_path / "in", tmp_path / "whole", min_count=5, num_parts=2, **QUIET)
    whole = read_output(tmp_path / "whole")
    build_corpus(tmp_path / "in", tmp_path / "last", min_count=5, num_parts=2, seed=1, **QUIET)
    num_killed = 0
    for num_files in (0, 4, 8, 12, 16, *range(19, 40)):
        output = tmp_path / f"out{num_files}"
        shutil.copytree(tmp_path / "last", output)  # the result of other settings, which is to be replaced
        was_killed = run_until_killed(num_files, tmp_path / "in", output)
        num_killed += was_killed
        if was_killed:
            build_corpus(tmp_path / "in", output, min_count=5, num_parts=2, **QUIET)
        assert read_output(output) == whole
        if not was_killed:
            break
    assert num_killed > 10


def test_unfinished_work_of_other_settings_is_not_mixed_in(tmp_path, monkeypatch, caplog):
    write_corpus(tmp_path / "in")
    build_corpus(tmp_path / "in", tmp_path / "whole", min_count=5, seed=1, **QUIET)
    with monkeypatch.context() as patch:
        patch.setattr("bertram_hf.corpus_steps.MergeContexts.run", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build_corpus(tmp_path / "in", tmp_path / "out", min_count=5, seed=0, **QUIET)
    assert (tmp_path / "out" / ".work").is_dir()
    build_corpus(tmp_path / "in", tmp_path / "out", min_count=5, seed=1, **QUIET)
    assert "beginning anew" in caplog.text
    assert read_output(tmp_path / "out") == read_output(tmp_path / "whole")
    build_corpus(tmp_path / "in", tmp_path / "out", min_count=5, seed=1, **QUIET)
    assert "nothing to do" in caplog.text


DISK_FULL = """
import resource, sys
from bertram_hf.corpus import build_corpus
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    build_corpus(sys.argv[1], sys.argv[2], lower_case=True, words=["kumquat", "lemon"], max_contexts=5000, num_parts=1,
                 show_progress=False)
except OSError as error:
    print(error)
"""


def test_full_disk_leaves_the_earlier_output_intact(tmp_path):
    write_corpus(tmp_path / "in")
    build_corpus(tmp_path / "in", tmp_path / "out", min_count=5, **QUIET)
    before = read_output(tmp_path / "out")
    generator = random.Random(0)
    lines = [f"a kumquat and a lemon {generator.getrandbits(128):x} here" for _ in range(3000)]
    (tmp_path / "in" / "large.txt").write_text("\n".join(lines))
    command = [sys.executable, "-c", DISK_FULL, str(tmp_path / "in"), str(tmp_path / "out")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"Could not write to {tmp_path / 'out'}: File too large" in said
    after = read_output(tmp_path / "out")
    assert {name: after[name] for name in before} == before
    assert CorpusSummary.load(tmp_path / "out").num_words > 2


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
    with pytest.raises(ValueError, match=r"has no column 'text', only \['body'\]"):
        build_corpus(tmp_path / "a.jsonl", tmp_path / "out", **QUIET)
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


def test_line_of_100_megabytes_needs_little_memory(tmp_path):
    with open(tmp_path / "a.txt", "wb") as file:
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\na kumquat is here\n")
    code = (
        "import resource, sys; from bertram_hf.corpus import build_corpus; import bertram_hf.corpus_steps\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "s = build_corpus(sys.argv[1], sys.argv[2], lower_case=True, words=['kumquat'], show_progress=False)\n"
        "print(s.num_long_lines, s.num_words, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.txt"), str(tmp_path / "out")]
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
