"""Checkpoints that are damaged: each is refused with one error that names the file."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from bertram_hf import BertramModel, BertramProcessor
from bertram_hf.processing_look_alikes import LookAlikes

JSON_FILES = ("config.json", "processor_config.json", "form_vocab.json", "look_alikes.json")
WRONG_VALUES = ("odd", [], {}, -1, [[3]], {"model_type": []})
# What may be missing or anything: it does not change a vector, or another value is refused elsewhere.
FREE_KEYS = {"architectures", "auto_map", "dtype", "encoder_name_or_path", "processor_class", "transformers_version"}


@pytest.fixture
def folder(make_pair, tmp_path):
    model, processor = make_pair("add", look_alikes=True)
    processor.look_alikes = LookAlikes(["lemon", "melon", "castle"], [11, 12, 13])
    model.save_pretrained(tmp_path / "whole")
    processor.save_pretrained(tmp_path / "whole")
    return tmp_path / "whole"


def load(folder, **options):
    return BertramModel.from_pretrained(folder, **options), BertramProcessor.from_pretrained(folder)


def damaged_texts(name, text):
    """Yields kinds of damage and what the file then holds."""
    content = json.loads(text)
    yield "empty", ""
    yield "truncated", text[: len(text) // 2]
    yield "no object", "[1, 2]"
    yield "no value", "null"
    yield "nested deeply", '{"a":' * 100_000 + "1" + "}" * 100_000
    yield "nested", json.dumps(content)[:-1] + ', "a":' + "[" * 200 + "]" * 200 + "}"
    yield "not UTF-8", text.encode("utf-16")
    for key in content.keys() - FREE_KEYS:
        if name != "config.json" or key in ("mode", "text_config", "context_layers", "form_vocab_size", "model_type"):
            yield f"no {key}", json.dumps({other: value for other, value in content.items() if other != key})
        for value in WRONG_VALUES if key != "model_type" else ():
            if type(value) is not type(content[key]) or key == "text_config":
                yield f"{key}: {value}", json.dumps(content | {key: value})


def edit_weights(folder, edit, **metadata):
    """Changes the weights of a saved model in place."""
    weights = load_file(folder / "model.safetensors")
    edit(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"} | metadata)


def remove(name):
    return lambda weights: weights.pop(name)


def change(name, function):
    return lambda weights: weights.update({name: function(weights[name]).contiguous()})


def test_a_whole_checkpoint_loads(folder):
    model, processor = load(folder)
    batch = processor(["kumquat", "lemno"], [["a kumquat, please"], []])
    assert torch.isfinite(model(**batch).word_embeddings).all()


@pytest.mark.parametrize("name", JSON_FILES)
def test_damaged_json_is_refused_with_the_name_of_the_file(folder, name):
    path = folder / name
    text = path.read_text(encoding="utf-8")
    for damage, damaged in damaged_texts(name, text):
        path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
        with pytest.raises((ValueError, OSError)) as caught:  # noqa: PT012 (says what was loaded)
            load(folder)
            pytest.fail(f"{name} loads: {damage}")
        assert name in str(caught.value), f"{damage}: {caught.value!r}"
        assert "Strict" not in type(caught.value).__name__, damage


WEIGHT_DAMAGE = {
    r"must hold the weights that config\.json describes; it lacks output_map\.weight\.": remove("output_map.weight"),
    r"it lacks vocabulary_mean\.": remove("vocabulary_mean"),
    r"it has also second_map\.weight\.": lambda weights: weights.update({"second_map.weight": torch.ones(2, 2)}),
    r"must hold floating-point weights; these are whole numbers: output_map\.weight\.": change(
        "output_map.weight", torch.Tensor.long
    ),
    r"weight output_map\.weight in model\.safetensors must have the shape \[32, 32\] .*; got \[5, 32\]": change(
        "output_map.weight", lambda weight: weight[:5]
    ),
    r"weight vocabulary_mean of this checkpoint holds NaN": change("vocabulary_mean", torch.Tensor.log),
}


@pytest.mark.parametrize("slim", [False, True])
@pytest.mark.parametrize("message", WEIGHT_DAMAGE)
def test_weights_that_do_not_fit_are_refused(folder, make_encoder, message, slim):
    options = {"encoder": make_encoder()} if slim else {}
    if slim:
        BertramModel.from_pretrained(folder).save_pretrained(folder, include_encoder=False)
    AutoModel.from_pretrained(folder, **options)
    edit_weights(folder, WEIGHT_DAMAGE[message])
    for model_class in (AutoModel, BertramModel):
        with pytest.raises(ValueError, match=message) as caught:
            model_class.from_pretrained(folder, **options)
        assert "model.safetensors" in str(caught.value)


def test_an_encoder_without_all_its_weights_is_refused(folder, make_encoder):
    name = "encoder.layer.1.output.dense.weight"
    edit_weights(folder, remove(f"encoder.{name}"))
    with pytest.raises(ValueError, match=rf"it lacks encoder\.{name}\."):
        AutoModel.from_pretrained(folder)
    make_encoder().save_pretrained(folder / "encoder")
    edit_weights(folder / "encoder", remove(name))
    edit_weights(folder, lambda weights: [weights.pop(key) for key in list(weights) if key.startswith("encoder.")])
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"encoder_included": False}))
    with pytest.raises(ValueError, match=rf"encoder must have all its weights; it lacks encoder\.{name}\."):
        AutoModel.from_pretrained(folder, encoder=folder / "encoder")


def test_surplus_weights_of_the_encoder_are_ignored(folder):
    expected = AutoModel.from_pretrained(folder).state_dict()
    edit_weights(folder, lambda weights: weights.update({"encoder.pooler.dense.bias": torch.ones(32)}))
    loaded = AutoModel.from_pretrained(folder).state_dict()
    assert loaded.keys() == expected.keys()
    assert all(torch.equal(loaded[name], value) for name, value in expected.items())


def test_weights_of_another_framework_are_refused(folder):
    edit_weights(folder, lambda weights: None, format="tf")
    with pytest.raises(ValueError, match=r"model\.safetensors must hold PyTorch weights .*; got format 'tf'"):
        AutoModel.from_pretrained(folder)


@pytest.mark.parametrize("content", [b"", b"not weights at all", b"\xff" * 100])
def test_files_that_hold_no_weights_are_refused(folder, content):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged or was not written to the end"):
        AutoModel.from_pretrained(folder)


def test_a_sharded_checkpoint_loads_and_its_damaged_index_is_refused(folder):
    model = AutoModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="100KB")
    index = folder / "model.safetensors.index.json"
    loaded = AutoModel.from_pretrained(folder)
    assert all(torch.equal(loaded.state_dict()[name], value) for name, value in model.state_dict().items())
    for damaged in ("", "[]", "{}", '{"weight_map": 1}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": "none"}}'):
        index.write_text(damaged)
        with pytest.raises((ValueError, OSError), match=r"model\.safetensors\.index\.json|a file named none"):
            AutoModel.from_pretrained(folder)


def test_a_processor_without_its_settings_is_refused(folder):
    (folder / "processor_config.json").unlink()
    with pytest.raises(OSError, match=r"processor_config\.json"):
        BertramProcessor.from_pretrained(folder)


def test_missing_weights_can_be_asked_for(folder):
    edit_weights(folder, remove("output_map.weight"))
    _, loading_info = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert loading_info["missing_keys"] == {"output_map.weight"}
