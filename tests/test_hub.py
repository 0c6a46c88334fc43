import os
import subprocess
import sys

import torch
from loopback_hub import LoopbackHub
from safetensors.torch import load_file
from tiny_models import FAMILIES
from transformers import AutoConfig, AutoModelForSequenceClassification

from bertram_hf import BertramEmbeddingInjector, WordVectors, induce_vectors

CONTEXTS = {"kumquat": ["a kumquat, please", "the kumquat tree"], "quokka": ["a small quokka"]}
TEXTS = ["the kumquat, a small tree", "a quokka and the old town"]

# The scripts run in a folder with what the test saved there.
PUSHER = """
from transformers import AutoModel
from bertram_hf import BertramEmbeddingInjector, BertramModel, BertramProcessor, WordVectors

model, processor = BertramModel.from_pretrained("model"), BertramProcessor.from_pretrained("model")
model.push_to_hub("user/bertram-add-bert-base")
processor.push_to_hub("user/bertram-add-bert-base")

AutoModel.from_pretrained("encoder").push_to_hub("user/tiny-bert")
slim = BertramModel.from_encoder("user/tiny-bert", mode="add", form_vocab_size=model.config.form_vocab_size)
slim.load_state_dict(model.state_dict())
slim.save_pretrained("slim", include_encoder=False, push_to_hub=True, repo_id="user/bertram-slim")
processor.save_pretrained("slim", push_to_hub=True, repo_id="user/bertram-slim")

WordVectors.from_pretrained("vectors").push_to_hub("user/fruit-words")
BertramEmbeddingInjector.from_pretrained("injector").push_to_hub("user/fruit-classifier")
"""
DOWNLOAD_MODELS = """
from safetensors.torch import save_file
from transformers import AutoModel, AutoProcessor

vectors = {}
for name in ("user/bertram-add-bert-base", "user/bertram-slim"):
    model = AutoModel.from_pretrained(name, trust_remote_code=trust_remote_code)
    processor = AutoProcessor.from_pretrained(name, trust_remote_code=trust_remote_code)
    assert type(model).__module__.startswith("transformers_modules." if trust_remote_code else "bertram_hf.")
    assert model.config.encoder_name_or_path == (None if name == "user/bertram-add-bert-base" else "user/tiny-bert")
    batch = processor(["kumquat", "quokka"], [["a kumquat, please", "the kumquat tree"], ["a small quokka"]])
    vectors[name] = model(**batch).word_embeddings.detach()
"""
DOWNLOADER = f"""
import torch
from bertram_hf import BertramEmbeddingInjector, WordVectors

trust_remote_code = False
{DOWNLOAD_MODELS}
save_file(vectors, "with-package.safetensors")
WordVectors.from_pretrained("user/fruit-words").save_pretrained("downloaded-vectors")
injector = BertramEmbeddingInjector.from_pretrained("user/fruit-classifier")
with torch.no_grad():
    logits = injector(**injector.tokenizer({TEXTS}, padding=True, return_tensors="pt")).logits
save_file({{"logits": logits}}, "logits.safetensors")
"""
DOWNLOADER_WITHOUT_THE_PACKAGE = f"""
import sys
sys.modules["bertram_hf"] = None  # any import of the package fails

trust_remote_code = True
{DOWNLOAD_MODELS}
save_file(vectors, "without-package.safetensors")
"""


def run(script, *, hub, folder, home):
    """Runs a script in a process of its own, as huggingface_hub reads its settings when it is imported."""
    settings = {
        "HF_ENDPOINT": hub.endpoint,
        "HF_HOME": str(folder / home),
        "HF_TOKEN": "dummy",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_OFFLINE": "0",
        "NO_PROXY": "127.0.0.1",
    }
    process = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | settings,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, f"unknown requests: {hub.unknown}\n{process.stderr}"
    assert not hub.unknown


def make_vectors():
    return WordVectors(
        ["kumquat", "quokka"],
        torch.randn(2, FAMILIES["bert"]["hidden_size"]) * 0.1,
        context_weights={"kumquat": torch.tensor([0.25, 0.75]), "quokka": torch.ones(1)},
        used_contexts={"kumquat": [0, 2], "quokka": [0]},
        dropped_contexts={"kumquat": {1: "word not found"}},
        failed={"numbat": "no contexts"},
    )


def make_injector(tokenizer, vectors):
    """Returns an injector with two packs around a tiny classifier."""
    config = AutoConfig.for_model("bert", **FAMILIES["bert"], vocab_size=641, num_labels=3)
    classifier = AutoModelForSequenceClassification.from_config(config).eval()
    injector = BertramEmbeddingInjector(classifier, tokenizer, vectors.select(["kumquat"]), mode="slash")
    injector.add(vectors.select(["quokka"]), "animals")
    return injector


def test_what_is_pushed_comes_back_the_same(make_pair, make_encoder, bert_tokenizer, tmp_path):
    model, processor = make_pair("add")
    model.save_pretrained(tmp_path / "model")
    processor.save_pretrained(tmp_path / "model")
    make_encoder().save_pretrained(tmp_path / "encoder")
    vectors = make_vectors()
    vectors.save_pretrained(tmp_path / "vectors")
    injector = make_injector(bert_tokenizer, vectors)
    injector.save_pretrained(tmp_path / "injector")

    with LoopbackHub() as hub:
        run(PUSHER, hub=hub, folder=tmp_path, home="pusher")
        full, slim = hub.repos["user/bertram-add-bert-base"], hub.repos["user/bertram-slim"]
        assert set(slim) == set(full)
        assert len(slim["model.safetensors"]) < len(full["model.safetensors"])
        assert "word_packs/animals/word_vectors.safetensors" in hub.repos["user/fruit-classifier"]
        run(DOWNLOADER, hub=hub, folder=tmp_path, home="downloader")
        run(DOWNLOADER_WITHOUT_THE_PACKAGE, hub=hub, folder=tmp_path, home="other-downloader")

    expected = induce_vectors(model, processor, CONTEXTS).embeddings
    for downloader in ("with-package", "without-package"):
        for repo, induced in load_file(tmp_path / f"{downloader}.safetensors").items():
            assert torch.allclose(induced, expected, atol=1e-5, rtol=1e-5), f"{repo} {downloader}"
    downloaded = WordVectors.from_pretrained(tmp_path / "downloaded-vectors")
    assert torch.equal(downloaded.embeddings, vectors.embeddings)
    assert torch.equal(downloaded.context_weights["kumquat"], vectors.context_weights["kumquat"])
    for field in ("words", "used_contexts", "dropped_contexts", "failed"):
        assert getattr(downloaded, field) == getattr(vectors, field)
    with torch.no_grad():
        logits = injector(**injector.tokenizer(TEXTS, padding=True, return_tensors="pt")).logits
    torch.testing.assert_close(load_file(tmp_path / "logits.safetensors")["logits"], logits)
