"""A baked encoder runs in ONNX Runtime and OpenVINO, which know nothing of this package."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from bertram_hf import BertramEmbeddingInjector, bake

pytest.importorskip("onnxscript")
TRITON = Path(__file__).parents[2] / "examples" / "deploy" / "config.pbtxt"
TRITON_TYPES = {"tensor(int64)": "TYPE_INT64", "tensor(float)": "TYPE_FP32"}
TEXTS = ["a kumquat tree", "no rare word here", "kumquat"]


@pytest.fixture(params=["replace", "slash"])
def exported(request, make_encoder, gapless_tokenizer, tmp_path):
    """Returns the path of a baked model, its inputs for texts, and a function that compares its states of these with
    the injector's."""
    encoder = make_encoder("bert", vocab_size=len(gapless_tokenizer))
    vectors = {"kumquat": torch.randn(encoder.config.hidden_size) * 0.1}
    baked, tokenizer = bake(encoder, gapless_tokenizer, vectors, mode=request.param)
    batch = dict(tokenizer(["a kumquat", "an old tree"], padding=True, return_tensors="pt"))
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens")}
    path = str(tmp_path / "model.onnx")
    torch.onnx.export(
        baked,
        kwargs=batch,
        f=path,
        input_names=list(batch),
        output_names=["last_hidden_state"],
        dynamic_shapes=dict.fromkeys(batch, axes),
        dynamo=True,
        verbose=False,
    )
    injector = BertramEmbeddingInjector(encoder, gapless_tokenizer, vectors, mode=request.param)
    spliced = injector.tokenizer(TEXTS, padding=True, return_tensors="pt")
    is_token = spliced["attention_mask"].bool().numpy()
    with torch.no_grad():
        expected = injector(**spliced).last_hidden_state.numpy()

    def compare(found):
        np.testing.assert_allclose(found[is_token], expected[is_token], atol=1e-4)

    return path, dict(tokenizer(TEXTS, padding=True, return_tensors="np")), compare


def test_a_baked_encoder_gives_the_same_in_onnx_runtime(exported):
    onnxruntime = pytest.importorskip("onnxruntime")
    path, given, compare = exported
    session = onnxruntime.InferenceSession(path)
    named = re.findall(r'name: "(\w+)" data_type: (\w+) dims: \[ -1', TRITON.read_text())
    described = {
        (tensor.name, TRITON_TYPES[tensor.type])
        for tensor in (*session.get_inputs(), *session.get_outputs()[:1])  # a pooler's output is left
    }
    assert set(named) == described
    compare(session.run(["last_hidden_state"], given)[0])


def test_a_baked_encoder_gives_the_same_in_openvino(exported):
    openvino = pytest.importorskip("openvino")
    path, given, compare = exported
    model = openvino.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    compare(model(given)["last_hidden_state"])
