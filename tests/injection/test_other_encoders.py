"""Models of sentence-transformers that are no SentenceTransformer are injected into by the same call."""

import pytest
import sentence_transformers
import torch
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification

from bertram_hf.injection import bake_sentence_transformer, inject_sentence_transformer

RARE, PLAIN = "the old quokka", "the old town"
HEADS = {
    "CrossEncoder": (AutoModelForSequenceClassification, {"num_labels": 1}),
    "SparseEncoder": (AutoModelForMaskedLM, {}),
    "MultiVectorEncoder": (AutoModel, {}),
}


def run(model, text):
    """Returns what a model makes of a text, as one dense tensor."""
    if type(model).__name__ == "CrossEncoder":
        return torch.as_tensor(model.predict([("a tree", text)]))
    found = torch.as_tensor(model.encode([text])[0])
    return found.to_dense() if found.is_sparse else found


@pytest.fixture(params=HEADS)
def model(request, gapless_tokenizer, make_encoder, tmp_path):
    model_class = getattr(sentence_transformers, request.param, None)
    if model_class is None:
        pytest.skip(f"this version of sentence-transformers has no {request.param}")
    head, fields = HEADS[request.param]
    torch.manual_seed(0)
    config = make_encoder("bert", vocab_size=len(gapless_tokenizer)).config.to_dict() | fields
    head.from_config(AutoConfig.for_model(**config)).eval().save_pretrained(tmp_path / "model")
    gapless_tokenizer.save_pretrained(tmp_path / "model")
    return model_class(str(tmp_path / "model"), device="cpu")


@pytest.mark.parametrize("mode", ["slash", "replace"])
def test_rare_words_are_injected_saved_and_loaded(model, tmp_path, mode):
    injected = inject_sentence_transformer(model, {"quokka": torch.randn(32)}, mode)
    torch.testing.assert_close(run(injected, PLAIN), run(model, PLAIN))
    before, after = run(model, RARE), run(injected, RARE)
    assert before.shape != after.shape or not torch.equal(before, after)
    injected.save_pretrained(str(tmp_path / "injected"))
    loaded = type(model)(str(tmp_path / "injected"), trust_remote_code=True, device="cpu")
    torch.testing.assert_close(run(loaded, RARE), after)


def test_baked_models_give_the_same(model):
    vectors = {"quokka": torch.randn(32)}
    for mode in ("replace", "slash"):
        injected = inject_sentence_transformer(model, vectors, mode)
        if mode == "slash" and type(model).__name__ != "CrossEncoder":
            with pytest.raises(ValueError, match=f"got {type(model).__name__}"):
                bake_sentence_transformer(model, vectors, mode)
        elif type(model).__name__ != "SparseEncoder":  # whose sparse vector has a place for each token
            torch.testing.assert_close(
                run(bake_sentence_transformer(model, vectors, mode), RARE), run(injected, RARE), atol=1e-5, rtol=1e-4
            )
