"""A baked encoder runs in ONNX Runtime, which knows nothing of this package."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from bertram_hf import BertramEmbeddingInjector, bake

pytest.importorskip("onnxscript")
onnxruntime = pytest.importorskip("onnxruntime")
TRITON = Path(__file__).parents[2] / "examples" / "deploy" / "config.pbtxt"
TRITON_TYPES = {"tensor(int64)": "TYPE_INT64", "tensor(float)": "TYPE_FP32"}
TEXTS = ["a kumquat tree", "no rare word here", "kumquat"]


@pytest.mark.parametrize("mode", ["replace", "slash"])
def test_a_baked_encoder_gives_the_same_in_onnx_runtime(make_encoder, gapless_tokenizer, tmp_path, mode):
    encoder = make_encoder("bert", vocab_size=len(gapless_tokenizer))
    vectors = {"kumquat": torch.randn(encoder.config.hidden_size) * 0.1}
    baked, tokenizer = bake(encoder, gapless_tokenizer, vectors, mode=mode)
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
    session = onnxruntime.InferenceSession(path)
    named = re.findall(r'name: "(\w+)" data_type: (\w+) dims: \[ -1', TRITON.read_text())
    exported = {
        (tensor.name, TRITON_TYPES[tensor.type])
        for tensor in (*session.get_inputs(), *session.get_outputs()[:1])  # a pooler's output is left
    }
    assert set(named) == exported
    injector = BertramEmbeddingInjector(encoder, gapless_tokenizer, vectors, mode=mode)
    given = tokenizer(TEXTS, padding=True, return_tensors="pt")
    (found,) = session.run(["last_hidden_state"], {name: value.numpy() for name, value in given.items()})
    spliced = injector.tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = injector(**spliced).last_hidden_state
    is_token = spliced["attention_mask"].bool().numpy()
    np.testing.assert_allclose(found[is_token], expected.numpy()[is_token], atol=1e-4)
