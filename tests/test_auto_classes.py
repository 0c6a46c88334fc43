import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, AutoProcessor

from bertram_hf import BertramConfig, BertramModel, BertramProcessor, induce_vectors
from bertram_hf.training.record import save_model

CONTEXTS = {"kumquat": ["a kumquat, please", "the kumquat tree"], "quokka": ["a small quokka"]}

WITHOUT_THE_PACKAGE = """
import json, sys
sys.modules["bertram_hf"] = None  # any import of the package fails
from transformers import AutoConfig, AutoModel, AutoProcessor
config = AutoConfig.from_pretrained(sys.argv[1], trust_remote_code=True)
model = AutoModel.from_pretrained(sys.argv[1], trust_remote_code=True)
processor = AutoProcessor.from_pretrained(sys.argv[1], trust_remote_code=True)
batch = processor(["kumquat", "quokka"], [["a kumquat, please", "the kumquat tree"], ["a small quokka"]])
print(json.dumps({
    "module": type(model).__module__, "mode": config.mode, "vectors": model(**batch).word_embeddings.tolist()
}))
"""


@pytest.fixture
def saved(make_pair, tmp_path):
    model, processor = make_pair("add")
    model.save_pretrained(tmp_path / "model")
    processor.save_pretrained(tmp_path / "model")
    return model, processor, tmp_path / "model"


def test_auto_classes_load_what_was_saved(saved):
    model, processor, folder = saved
    assert isinstance(AutoConfig.from_pretrained(folder), BertramConfig)
    loaded, loaded_processor = AutoModel.from_pretrained(folder), AutoProcessor.from_pretrained(folder)
    assert isinstance(loaded, BertramModel)
    assert isinstance(loaded_processor, BertramProcessor)
    assert not loaded.training
    expected = induce_vectors(model, processor, CONTEXTS)
    actual = induce_vectors(loaded, loaded_processor, CONTEXTS)
    assert torch.equal(actual.embeddings, expected.embeddings)
    assert actual.embedding_fingerprint == expected.embedding_fingerprint == loaded.config.embedding_fingerprint


@pytest.mark.parametrize("slim", [False, True])
def test_remote_code_works_without_the_package(make_pair, make_encoder, tmp_path, slim):
    model, processor = make_pair("add")
    if slim:
        make_encoder().save_pretrained(tmp_path / "encoder")
        model.config.encoder_name_or_path = str(tmp_path / "encoder")
    model.save_pretrained(tmp_path / "model", include_encoder=not slim)
    processor.save_pretrained(tmp_path / "model")
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_PACKAGE, str(tmp_path / "model")],
        env=os.environ | {"HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout.splitlines()[-1])
    assert result["module"].startswith("transformers_modules.")
    assert result["mode"] == "add"
    expected = induce_vectors(model, processor, CONTEXTS).embeddings
    torch.testing.assert_close(torch.tensor(result["vectors"]), expected, atol=1e-5, rtol=1e-5)


def test_slim_checkpoint_takes_the_right_encoder_only(make_pair, make_encoder, tmp_path):
    model, processor = make_pair("add")
    model.save_pretrained(tmp_path / "slim", include_encoder=False)
    assert not any(key.startswith("encoder.") for key in load_file(tmp_path / "slim" / "model.safetensors"))
    assert model.config.encoder_included
    with pytest.raises(ValueError, match="names none"):
        AutoModel.from_pretrained(tmp_path / "slim")
    loaded = AutoModel.from_pretrained(tmp_path / "slim", encoder=make_encoder("bert"))
    expected = induce_vectors(model, processor, CONTEXTS).embeddings
    torch.testing.assert_close(induce_vectors(loaded, processor, CONTEXTS).embeddings, expected, atol=1e-5, rtol=1e-5)
    assert not any(parameter.requires_grad for parameter in loaded.encoder.parameters())
    wrong = make_encoder("bert")
    wrong.get_input_embeddings().weight.data[3] += 1
    with pytest.raises(ValueError, match=f"belongs to an encoder with embeddings {model.config.embedding_fingerprint}"):
        AutoModel.from_pretrained(tmp_path / "slim", encoder=wrong)


def test_layers_can_be_saved_without_the_embeddings(make_pair, make_encoder, tmp_path):
    model, _ = make_pair("add")
    with torch.no_grad():
        for name, parameter in model.encoder.named_parameters():
            if "layer" in name:
                parameter += 0.1  # as if trained, but for the embeddings
    with pytest.raises(ValueError, match=r'True, False or "layers"; got \'layer\''):
        model.save_pretrained(tmp_path, include_encoder="layer")
    save_model(model, tmp_path, dtype="float32", save_layers=True)
    saved = {key for key in load_file(tmp_path / "model.safetensors") if key.startswith("encoder.")}
    table = "encoder.embeddings.word_embeddings.weight"
    assert saved == {key for key in model.state_dict() if key.startswith("encoder.")} - {table}
    loaded = AutoModel.from_pretrained(tmp_path, encoder=make_encoder("bert"))
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name


def test_slim_checkpoint_loads_its_encoder_by_name(make_pair, make_encoder, tmp_path):
    make_encoder("roberta").save_pretrained(tmp_path / "encoder")
    model = BertramModel.from_encoder(tmp_path / "encoder", mode="context")
    assert model.config.encoder_name_or_path == str(tmp_path / "encoder")
    model.save_pretrained(tmp_path / "slim", include_encoder=False)
    loaded = AutoModel.from_pretrained(tmp_path / "slim")
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name


def test_form_model_has_no_encoder_to_save(make_pair, tmp_path):
    model, processor = make_pair("form")
    model.save_pretrained(tmp_path, include_encoder=False)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert list(loaded.state_dict()) == ["form_encoder.embeddings.weight"]
    assert loaded.config.embedding_fingerprint == model.config.embedding_fingerprint
    assert torch.equal(
        induce_vectors(loaded, processor, CONTEXTS).embeddings, induce_vectors(model, processor, CONTEXTS).embeddings
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_dtype_device_map_and_attention_reach_the_encoder(saved, dtype):
    _, _, folder = saved
    loaded = AutoModel.from_pretrained(folder, dtype=dtype, device_map="cpu", attn_implementation="eager")
    assert {parameter.dtype for parameter in loaded.parameters()} == {dtype}
    assert loaded.encoder.config._attn_implementation == "eager"
    assert not any(parameter.requires_grad for parameter in loaded.encoder.parameters())


def test_damaged_weights_are_refused(saved):
    _, _, folder = saved
    weights = load_file(folder / "model.safetensors")
    weights["output_map.weight"][0, 0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"output_map\.weight of this checkpoint holds NaN"):
        AutoModel.from_pretrained(folder)


def test_truncated_weights_are_refused(saved):
    _, _, folder = saved
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged or was not written to the end"):
        AutoModel.from_pretrained(folder)


def test_an_unknown_mode_in_a_config_file_is_named(saved):
    _, _, folder = saved
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"mode": "deep"}))
    with pytest.raises(ValueError, match=r"mode must be one of form, context, shallow.*got 'deep'"):
        AutoModel.from_pretrained(folder)


def test_a_form_vocabulary_that_does_not_fit_the_weights_is_named(saved):
    model, _, folder = saved
    state = json.loads((folder / "form_vocab.json").read_text())
    state["vocab"] = state["vocab"][:-3]
    (folder / "form_vocab.json").write_text(json.dumps(state))
    with pytest.raises(ValueError, match="Use the processor that was saved with the model"):
        induce_vectors(model, AutoProcessor.from_pretrained(folder), CONTEXTS)
