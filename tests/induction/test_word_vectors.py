import errno
import json
import os
from pathlib import Path

import gensim
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from bertram_hf import WordVectors, embedding_fingerprint, induce_vectors


@pytest.fixture
def vectors(make_pair):
    contexts = {"kumquat": ["a kumquat", "no", "the kumquat tree"], "new york": ["in New York"], "q😀": []}
    return induce_vectors(*make_pair("add"), contexts)


def test_reloaded_equals_saved(vectors, tmp_path):
    vectors.failed = {"x": "why"}
    vectors.save_pretrained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["word_vectors.json", "word_vectors.safetensors"]
    loaded = WordVectors.from_pretrained(tmp_path)
    assert loaded.words == vectors.words
    assert torch.equal(loaded.embeddings, vectors.embeddings)
    for word in vectors:
        assert torch.equal(loaded.context_weights[word], vectors.context_weights[word])
    for name in ("used_contexts", "dropped_contexts", "embedding_fingerprint", "failed"):
        assert getattr(loaded, name) == getattr(vectors, name)


def test_behaves_like_a_small_mapping(vectors):
    assert "kumquat" in vectors
    assert "quokka" not in vectors
    assert list(vectors) == ["kumquat", "new york", "q😀"]
    assert repr(vectors) == "WordVectors(3 words x 32: kumquat, new york, q😀)"
    assert torch.equal(vectors.to_dict()["kumquat"], vectors["kumquat"])
    assert np.array_equal(vectors.to_numpy()[0], vectors["kumquat"].numpy())
    with pytest.raises(KeyError, match="no vector for 'quokka' among 3 words"):
        vectors["quokka"]


def test_selected_words_keep_what_is_known_of_them(vectors, tmp_path):
    selected = vectors.select(word for word in ["q😀", "kumquat"])
    assert selected.words == ["q😀", "kumquat"]
    assert selected.embedding_fingerprint == vectors.embedding_fingerprint
    for word in selected:
        assert torch.equal(selected[word], vectors[word])
        assert torch.equal(selected.context_weights[word], vectors.context_weights[word])
        assert selected.used_contexts[word] == vectors.used_contexts[word]
    assert selected.dropped_contexts == {"kumquat": {1: "word not found"}}
    assert set(selected.used_contexts) == {"q😀", "kumquat"}
    assert vectors.select([]).embeddings.shape == (0, 32)
    with pytest.raises(KeyError, match="no vector for 'quokka' among 3 words"):
        vectors.select(["kumquat", "quokka"])


def test_gensim_reads_the_word2vec_file(vectors, tmp_path):
    vectors.save_word2vec(tmp_path / "vectors.txt")
    loaded = gensim.models.KeyedVectors.load_word2vec_format(tmp_path / "vectors.txt")
    assert loaded.index_to_key == ["kumquat", "new_york", "q😀"]
    assert np.array_equal(loaded.vectors, vectors.to_numpy())


def test_words_that_the_text_format_cannot_tell_apart_are_refused(tmp_path):
    with pytest.raises(ValueError, match="rename one"):
        WordVectors(["new york", "new_york"], torch.zeros(2, 3)).save_word2vec(tmp_path / "vectors.txt")


def test_bad_vectors_are_named():
    with pytest.raises(ValueError, match=r"each of 2 words; got a tensor of shape \(3, 4\)"):
        WordVectors(["a", "b"], torch.zeros(3, 4))
    with pytest.raises(ValueError, match="'a' stands more often"):
        WordVectors(["a", "b", "a"], torch.zeros(3, 4))
    with pytest.raises(ValueError, match="vector of 'b' holds NaN"):
        WordVectors(["a", "b"], torch.tensor([[0.0], [float("nan")]]))
    with pytest.raises(ValueError, match="one size"):
        WordVectors.from_dict({"a": [1.0], "b": [1.0, 2.0]})


def test_empty_vectors_can_be_saved(tmp_path):
    WordVectors([], torch.empty(0, 5)).save_pretrained(tmp_path)
    assert len(WordVectors.from_pretrained(tmp_path)) == 0


def test_fingerprint_names_the_space_and_not_the_dtype(make_encoder):
    weight = make_encoder().get_input_embeddings().weight
    fingerprint = embedding_fingerprint(weight)
    assert fingerprint == embedding_fingerprint(weight.half()) == embedding_fingerprint(weight.bfloat16())
    assert fingerprint != embedding_fingerprint(weight * 2)
    assert fingerprint != embedding_fingerprint(-weight)
    assert fingerprint != embedding_fingerprint(weight[:-1])


def test_failed_saving_leaves_the_vectors_that_were_there(tmp_path, monkeypatch):
    WordVectors.from_dict({"kumquat": [1.0, 2.0]}).save_pretrained(tmp_path)

    def fill_the_disk(self, *args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", fill_the_disk)
        with pytest.raises(OSError, match="No space left"):
            WordVectors.from_dict({"quokka": [3.0, 4.0]}).save_pretrained(tmp_path)
    assert WordVectors.from_pretrained(tmp_path).words == ["kumquat"]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_failed_word2vec_file_leaves_the_one_that_was_there(tmp_path):
    path = tmp_path / "vectors.txt"
    WordVectors.from_dict({"kumquat": [1.0]}).save_word2vec(path)
    with pytest.raises(UnicodeEncodeError):
        WordVectors.from_dict({"quokka": [1.0], "\ud800": [2.0]}).save_word2vec(path)
    assert path.read_text() == "1 1\nkumquat 1.0\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "must have the format 1; got 2"),
        ({"format": None}, "must have the format 1; got None"),
        ({"words": None}, "the field 'words' is missing or damaged; got None"),
        ({"words": ["kumquat", "new york", 3]}, "the field 'words'"),
        ({"words": "abc"}, "the field 'words'"),
        ({"num_weights": [2, 1]}, "The files are not of one save"),
        ({"num_weights": [3, 1, -1]}, "The files are not of one save"),
        ({"num_weights": [9, 1, 0]}, "The files are not of one save"),
        ({"num_weights": [2.0, 1.0, 0.0]}, "the field 'num_weights'"),
        ({"used_contexts": {"kumquat": 1}}, "the field 'used_contexts'"),
        ({"dropped_contexts": {"kumquat": ["x"]}}, "the field 'dropped_contexts'"),
        ({"dropped_contexts": {"kumquat": {"x": "why"}}}, "the field 'dropped_contexts'"),
        ({"failed": []}, "the field 'failed'"),
        ({"look_alikes": {"kumquat": {"quat": "much"}}}, "the field 'look_alikes'"),
        ({"encoder": 3}, "the field 'encoder'"),
        ({"words": ["kumquat"], "num_weights": [3]}, r"each of 1 words; got a tensor of shape \(3, 32\)"),
    ],
)
def test_damaged_metadata_is_one_clear_error(vectors, tmp_path, changes, message):
    vectors.save_pretrained(tmp_path)
    path = tmp_path / "word_vectors.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | changes))
    with pytest.raises(ValueError, match=message):
        WordVectors.from_pretrained(tmp_path)


def test_missing_fields_are_named_and_those_that_came_later_may_be_missing(vectors, tmp_path):
    vectors.save_pretrained(tmp_path)
    path = tmp_path / "word_vectors.json"
    content = json.loads(path.read_text())
    for name in content.keys() - {"format"}:
        path.write_text(json.dumps({key: value for key, value in content.items() if key != name}))
        if name in ("look_alikes", "encoder", "reliability", "agreement", "misleading"):
            assert WordVectors.from_pretrained(tmp_path).words == vectors.words
        else:
            with pytest.raises(ValueError, match=f"the field '{name}' is missing or damaged; got nothing"):
                WordVectors.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (None, "word_vectors.safetensors in .* is damaged"),
        ({"embeddings": torch.zeros(1, 2)}, "has no context_weights. Save"),
        ({"context_weights": torch.zeros(0)}, "has no embeddings. Save"),
        (
            {"embeddings": torch.zeros(1, 2, dtype=torch.long), "context_weights": torch.zeros(0)},
            "Expected embeddings of floating-point numbers; got torch.int64",
        ),
    ],
)
def test_damaged_tensors_are_one_clear_error(tmp_path, tensors, message):
    WordVectors.from_dict({"kumquat": [1.0, 2.0]}).save_pretrained(tmp_path)
    path = tmp_path / "word_vectors.safetensors"
    if tensors is None:
        path.write_bytes(path.read_bytes()[:50])
    else:
        save_file(tensors, path)
    with pytest.raises(ValueError, match=message):
        WordVectors.from_pretrained(tmp_path)


def test_missing_folders_and_files_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("nowhere", "./nowhere", str(tmp_path / "nowhere")):
        with pytest.raises(FileNotFoundError, match=f"There is no folder {name}"):
            WordVectors.from_pretrained(name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"Expected word vectors in empty; it has no word_vectors\.json"):
        WordVectors.from_pretrained("empty")
