import copy
import errno
import json
import os

import numpy as np
import pytest
import torch

from bertram_hf.training import inputs as feature_cache
from bertram_hf.training.contexts import EncodedContexts
from bertram_hf.training.inputs import cache_features

CONTEXTS = [
    ("kumquat", ["she peeled a kumquat", "the kumquat tree near the old river", "an old kumquat"]),
    ("qualm", [f"a {word} qualm of the king" for word in ("small", "large", "new", "young", "old", "dark")]),
    ("aquatic", [f"the {word} aquatic animal" for word in ("red", "green", "blue", "white")]),
]
NUM_CONTEXTS = 13


@pytest.fixture
def make_parts(make_pair, tmp_path):
    """Returns a function that builds a model, its processor and tokenised contexts."""

    def make(mode="context", contexts=CONTEXTS, **fields):
        model, processor = make_pair(mode, **{"freeze_form": mode in ("add", "replace")} | fields)
        encoded = EncodedContexts.build(processor, contexts, tmp_path / f"tokens-{mode}", show_progress=False)
        return model, processor, encoded

    return make


def cache(parts, tmp_path, **settings):
    return cache_features(*parts, tmp_path / "features", show_progress=False, **{"dtype": "float32"} | settings)


def encode_one_by_one(model, processor, contexts):
    rows = []
    with torch.no_grad():
        for row, word in enumerate(contexts.owners(np.arange(len(contexts)))):
            padded = processor.pad_contexts([contexts.input_ids(row)], [int(contexts.mask_positions[row])])
            form = None
            if model.config.has_form:
                form = model.encode_forms(torch.tensor([processor.encode_form(contexts.words[word])]))
            rows.append(model.encode_contexts(**padded, form_embeddings=form)[0])
    return torch.stack(rows).numpy()


@pytest.mark.parametrize(
    ("mode", "fields"),
    [
        ("context", {}),
        ("context", {"context_layers": "all"}),
        ("context", {"context_encoder": "bag-of-words"}),
        ("shallow", {}),
        ("add", {}),
        ("replace", {}),
    ],
)
def test_cached_features_are_what_the_model_encodes(make_parts, tmp_path, mode, fields):
    parts = make_parts(mode, **fields)
    expected = encode_one_by_one(*parts)
    features = cache(parts, tmp_path)
    assert len(features) == NUM_CONTEXTS
    np.testing.assert_allclose(features, expected, atol=1e-5)
    half = cache(parts, tmp_path, dtype="float16")
    assert half.dtype == np.float16
    np.testing.assert_array_equal(half, features.astype(np.float16))


def test_form_vectors_that_are_given_are_read(make_parts, tmp_path):
    model, processor, contexts = parts = make_parts("add")
    forms = torch.randn(3, 32)
    given = cache(parts, tmp_path, form_embeddings=forms)
    owners = contexts.owners(np.arange(NUM_CONTEXTS))
    padded = processor.pad_contexts(
        [contexts.input_ids(row) for row in range(NUM_CONTEXTS)], contexts.mask_positions.tolist()
    )
    with torch.no_grad():
        expected = model.encode_contexts(**padded, form_embeddings=forms[owners])
    np.testing.assert_allclose(given, expected.numpy(), atol=1e-5)
    assert not np.allclose(given, cache(parts, tmp_path))


def test_form_dropout_is_drawn_once_for_each_context(make_parts, tmp_path):
    parts = make_parts("add", ngram_dropout=0.5)
    whole, dropped = cache(parts, tmp_path), cache(parts, tmp_path, form_dropout=True)
    assert not np.allclose(whole, dropped)
    again = cache_features(*parts, tmp_path / "elsewhere", dtype="float32", form_dropout=True, show_progress=False)
    np.testing.assert_array_equal(again, dropped)
    assert not np.allclose(cache(parts, tmp_path, form_dropout=True, seed=1), dropped)
    assert not parts[0].training


@pytest.mark.parametrize("part", ["encoder", "form", "contexts", "mode", "dtype", "vocabulary"])
def test_stale_cache_is_never_read(make_parts, tmp_path, part):
    model, processor, _ = parts = make_parts("add")
    before = np.array(cache(parts, tmp_path))
    settings = {}
    if part == "encoder":
        with torch.no_grad():
            model.encoder.encoder.layer[0].output.dense.weight[0, 0] += 1.0
    elif part == "form":
        with torch.no_grad():
            model.form_encoder.embeddings.weight[2] += 1.0
    elif part == "contexts":
        parts = make_parts("add", [("kumquat", ["he peeled a kumquat", *CONTEXTS[0][1][1:]]), *CONTEXTS[1:]])
    elif part == "mode":
        parts = make_parts("replace")
    elif part == "dtype":
        settings["dtype"] = "float16"
    else:
        processor.form.vocab[2], processor.form.vocab[3] = processor.form.vocab[3], processor.form.vocab[2]
    cache(parts, tmp_path, **settings)
    assert len(list((tmp_path / "features").glob("*.json"))) == 2
    if part in ("encoder", "form"):
        np.testing.assert_allclose(cache(parts, tmp_path), encode_one_by_one(*parts), atol=1e-5)
        assert not np.allclose(cache(parts, tmp_path), before)


def test_parts_that_features_do_not_depend_on_share_a_cache(make_parts, tmp_path):
    cache(make_parts("context"), tmp_path)
    model, processor, contexts = make_parts("shallow")
    with torch.no_grad():
        model.form_encoder.embeddings.weight.add_(1.0)
        model.output_map.weight.add_(1.0)
    cache((model, processor, contexts), tmp_path)
    assert len(list((tmp_path / "features").glob("*.json"))) == 1


def test_interrupted_cache_goes_on(make_parts, tmp_path, monkeypatch):
    monkeypatch.setattr(feature_cache, "CONTEXTS_PER_WINDOW", 5)
    parts = make_parts("add")
    whole = np.array(cache(parts, tmp_path))
    (done_path,) = (tmp_path / "features").glob("*.done.npy")
    done, features = (np.lib.format.open_memmap(path, "r+") for path in (done_path, _features_path(done_path)))
    assert done.tolist() == [1, 1, 1]
    done[1] = 0
    features[5:10] = np.nan  # as a kill may leave them
    features[0] = 7.0  # a window that is done is not computed again
    done.flush()
    features.flush()
    resumed = cache(parts, tmp_path)
    np.testing.assert_allclose(resumed[5:], whole[5:], atol=1e-6)
    np.testing.assert_array_equal(resumed[0], 7.0)
    np.testing.assert_array_equal(resumed[1:5], whole[1:5])
    assert np.load(done_path).tolist() == [1, 1, 1]


def _features_path(done_path):
    return done_path.with_name(done_path.name.replace(".done", ""))


def test_windows_change_nothing(make_parts, tmp_path, monkeypatch):
    parts = make_parts("add")
    whole = cache(parts, tmp_path)
    monkeypatch.setattr(feature_cache, "CONTEXTS_PER_WINDOW", 4)
    split = cache_features(*parts, tmp_path / "split", dtype="float32", show_progress=False)
    np.testing.assert_allclose(split, whole, atol=1e-6)


def test_features_of_a_trained_part_are_not_cached(make_parts, tmp_path):
    with pytest.raises(ValueError, match="mode 'add' cannot be cached while the form part is trained"):
        cache(make_parts("add", freeze_form=False), tmp_path)
    with pytest.raises(ValueError, match="cannot be cached while the encoder is trained"):
        cache(make_parts("context", freeze_encoder=False), tmp_path)
    assert len(cache(make_parts("shallow", freeze_form=False), tmp_path)) == NUM_CONTEXTS


def test_model_in_training_mode_is_cached_without_dropout_and_left_so(make_parts, tmp_path):
    parts = make_parts("add")
    parts[0].train()
    features = cache(parts, tmp_path)
    assert parts[0].training
    np.testing.assert_allclose(features, encode_one_by_one(*parts), atol=1e-5)


def test_encoded_contexts_are_those_of_the_processor(make_parts):
    _, processor, contexts = make_parts("add")
    entries = processor.encode([word for word, _ in CONTEXTS], [texts for _, texts in CONTEXTS])
    assert contexts.words == [word for word, _ in CONTEXTS]
    assert contexts.num_contexts.tolist() == [3, 6, 4]
    assert contexts.owners(np.array([0, 2, 3, 8, 9, 12])).tolist() == [0, 0, 1, 1, 2, 2]
    assert [contexts.input_ids(row) for row in range(13)] == [ids for entry in entries for ids in entry.input_ids]
    assert contexts.mask_positions.tolist() == [position for entry in entries for position in entry.mask_positions]


def test_contexts_without_their_word_are_dropped_and_counted(make_pair, tmp_path, caplog):
    _, processor = make_pair("add")
    entries = [("kumquat", ["a kumquat", "a lemon", "an orange"]), ("qualm", ["a lemon"]), ("king", ["the king"])]
    contexts = EncodedContexts.build(processor, entries, tmp_path / "tokens", show_progress=False)
    assert contexts.words == ["kumquat", "king"]
    assert contexts.num_contexts.tolist() == [1, 1]
    assert contexts.dropped == {"kumquat": 2, "qualm": 1}
    assert "3 contexts of 2 words do not hold their word" in caplog.text
    with pytest.raises(ValueError, match="No word has a context that contains it"):
        EncodedContexts.build(processor, [("qualm", ["a lemon"])], tmp_path / "none", show_progress=False)


def test_contexts_are_tokenised_again_only_if_they_or_the_processor_change(make_pair, tmp_path):
    def build(mode="add", contexts=CONTEXTS, **fields):
        _, processor = make_pair(mode, **fields)
        encoded = EncodedContexts.build(processor, contexts, tmp_path / "tokens", show_progress=False)
        return encoded.key, (tmp_path / "tokens" / "tokens.bin").stat().st_ino

    first = build()
    assert build() == first
    keys = {first[0]}
    for changes in ({"max_length": 12}, {"mode": "replace"}, {"contexts": CONTEXTS[:2]}, {"contexts": CONTEXTS[::-1]}):
        key, _ = build(**changes)
        assert key not in keys
        keys.add(key)
        assert json.loads((tmp_path / "tokens" / "contexts.json").read_text())["key"] == key


def test_tokenising_that_was_killed_begins_anew(make_pair, tmp_path):
    _, processor = make_pair("add")
    (tmp_path / "tokens.123456.tmp").mkdir()
    (tmp_path / "tokens.123456.tmp" / "tokens.bin").write_bytes(b"half")
    contexts = EncodedContexts.build(processor, CONTEXTS, tmp_path / "tokens", show_progress=False)
    assert len(contexts) == NUM_CONTEXTS
    assert not (tmp_path / "tokens.123456.tmp").exists()


def test_same_weights_in_another_network_have_other_features(make_parts, tmp_path):
    model, processor, contexts = parts = make_parts()
    first = cache(parts, tmp_path)
    config = copy.deepcopy(model.config)
    config.text_config.hidden_act = "relu"
    other = type(model)(config)
    other.load_state_dict(model.state_dict())
    second = cache((other.eval(), processor, contexts), tmp_path)
    assert not np.allclose(first, second)
    np.testing.assert_allclose(second, encode_one_by_one(other, processor, contexts), atol=1e-5)


def test_features_beyond_half_precision_are_refused(make_parts, tmp_path):
    parts = make_parts()
    with torch.no_grad():
        parts[0].encoder.encoder.layer[-1].output.LayerNorm.weight.mul_(1e6)
    assert np.isfinite(cache(parts, tmp_path)).all()
    with pytest.raises(ValueError, match=r"Expected features that fit into float16.*cache_dtype: float32"):
        cache(parts, tmp_path, dtype="float16")


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system cannot reserve space")
def test_full_disk_is_told_before_anything_is_encoded(make_parts, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match=r"features of 13 contexts need .* GB in .*No space left.*cache: false"):
        cache(make_parts(), tmp_path)
    assert not list((tmp_path / "features").iterdir())
