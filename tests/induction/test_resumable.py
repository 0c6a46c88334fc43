import json
import os
import subprocess
import sys

import pytest
import torch

from bertram_hf import WordVectors, induce_vectors
from bertram_hf.induction import resumable as module
from bertram_hf.induction.resumable import ResumableInduction
from bertram_hf.processing_words import WordError

CONTEXTS = {
    "kumquat": ["she peeled a kumquat", "the kumquat tree", "none"],
    "qualm": ["a small qualm"],
    "quokka": [],
    "zebra": ["a zebra here"],
    "": ["an empty word"],
}


def test_parts_of_several_processes_are_joined(make_pair, tmp_path):
    model, processor = make_pair("add")
    expected = induce_vectors(model, processor, CONTEXTS, errors="skip", show_progress=False)
    for rank in (1, 0):
        parts = ResumableInduction(model, processor, CONTEXTS, tmp_path, words_per_part=2, errors="skip")
        parts.induce(rank=rank, num_processes=2, show_progress=False)
    found = parts.join()
    assert found.words == expected.words
    assert torch.allclose(found.embeddings, expected.embeddings, atol=1e-6)
    for name in ("used_contexts", "dropped_contexts", "failed", "embedding_fingerprint"):
        assert getattr(found, name) == getattr(expected, name), name
    assert list(found.context_weights) == list(expected.context_weights)


def test_what_is_done_is_not_done_again(make_pair, tmp_path, monkeypatch):
    model, processor = make_pair("add")
    contexts = {word: CONTEXTS[word] for word in ("kumquat", "qualm", "quokka")}
    done = []

    def count(model, processor, contexts, **options):
        if len(done) == 1:
            done.append("killed")
            raise KeyboardInterrupt
        done.append(list(contexts))
        return induce_vectors(model, processor, contexts, **options)

    monkeypatch.setattr(module, "induce_vectors", count)
    with pytest.raises(KeyboardInterrupt):
        ResumableInduction(model, processor, contexts, tmp_path, words_per_part=2).induce(show_progress=False)
    parts = ResumableInduction(model, processor, contexts, tmp_path, words_per_part=2)
    parts.induce(show_progress=False)
    assert done == [["kumquat", "qualm"], "killed", ["quokka"]]
    assert parts.join().words == list(contexts)
    # Other contexts, or another processor, are another result.
    for change in ({"qualm": ["the qualm"]}, {}):
        processor.max_length -= not change
        ResumableInduction(model, processor, contexts | change, tmp_path, words_per_part=2).induce(show_progress=False)
    assert done[3:] == [["kumquat", "qualm"], ["kumquat", "qualm"], ["quokka"]]


def test_bad_words_are_refused_before_anything_is_computed(make_pair, tmp_path):
    with pytest.raises(WordError, match=r"1 of 5 words cannot have a vector.*\n.*\n.*--skip-errors"):
        ResumableInduction(*make_pair("add"), CONTEXTS, tmp_path)


def test_joined_vectors_must_be_of_one_space():
    first, second = (WordVectors(["a"], torch.ones(1, 2), space) for space in ("x", "y"))
    with pytest.raises(ValueError, match="Expected vectors of one embedding space"):
        WordVectors.join([first, second])
    with pytest.raises(ValueError, match="'a' stands more often"):
        WordVectors.join([first, first])
    assert len(WordVectors.join([])) == 0


def test_two_processes_induce(make_pair, tmp_path):
    model, processor = make_pair("add")
    model.save_pretrained(tmp_path / "model")
    processor.save_pretrained(tmp_path / "model")
    contexts = {word: texts for word, texts in CONTEXTS.items() if word}
    lines = [json.dumps({"word": word, "contexts": texts}) for word, texts in contexts.items()]
    (tmp_path / "words.jsonl").write_text("\n".join(lines))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone"]
    command += ["-m", "bertram_hf.cli", "induce", "model", "words.jsonl", "out", "--words-per-part", "1", "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["words"] == 4  # printed by one of them
    expected = induce_vectors(model, processor, contexts, show_progress=False)
    found = WordVectors.from_pretrained(tmp_path / "out")
    assert found.words == expected.words
    assert torch.allclose(found.embeddings, expected.embeddings, atol=1e-5)
