import json
import os
import shutil
import subprocess
import sys

import torch
from safetensors.torch import load_file
from support.loopback_hub import LoopbackHub
from support.tiny_injection import make_injector, make_vectors

from bertram_hf import WordVectors, induce_vectors

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

# Runs commands, keeps what they print, and downloads what they uploaded.
COMMAND_RUNNER = """
import contextlib, io, json
from huggingface_hub import snapshot_download
from bertram_hf.cli import main

answers = {}
for name, arguments in json.load(open("commands.json")).items():
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(arguments)
    answers[name] = [code, out.getvalue(), err.getvalue()]
json.dump(answers, open("answers.json", "w"))
for folder in ("my-bertram", "vectors", "injector", "without-code", "processor"):
    revision = "try" if folder == "processor" else None
    snapshot_download(f"user/{folder}", revision=revision, local_dir=f"back/{folder}")
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


def list_files(folder):
    """Returns the files of a folder with their contents, without those that huggingface_hub keeps for itself."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".cache" not in path.relative_to(folder).parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_push_command_uploads_every_kind_of_folder(make_pair, bert_tokenizer, tmp_path):
    model, processor = make_pair("add")
    model.save_pretrained(tmp_path / "my-bertram")
    processor.save_pretrained(tmp_path / "my-bertram")
    processor.save_pretrained(tmp_path / "processor")
    vectors = make_vectors()
    vectors.save_pretrained(tmp_path / "vectors")
    make_injector(bert_tokenizer, vectors).save_pretrained(tmp_path / "injector")
    expected = {name: list_files(tmp_path / name) for name in ("my-bertram", "processor", "vectors", "injector")}
    for name in ("checkpoint-10/optimizer.pt", "checkpoint-10/model.safetensors", "runs/a/events.1", ".git/config"):
        (tmp_path / "my-bertram" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "my-bertram" / name).write_text("must stay")
    (tmp_path / "my-bertram" / "training_args.bin").write_text("must stay")
    shutil.copytree(tmp_path / "my-bertram", tmp_path / "without-code", ignore=shutil.ignore_patterns("*.py", "runs"))
    commands = {
        "card": ["card", "my-bertram", "--name", "user/my-bertram"],
        "model": ["push", "my-bertram", "user/my-bertram", "--private"],  # as --help shows
        "again": ["push", "my-bertram", "user/my-bertram", "--json"],
        "processor": ["push", "processor", "user/processor", "--revision", "try", "--message", "A try"],
        "branch": ["push", "processor", "user/processor", "--revision", "try", "--json"],
        "vectors": ["push", "vectors", "user/vectors"],
        "injector": ["push", "injector", "user/injector"],
        "code": ["push", "without-code", "user/without-code"],
        "forbidden": ["push", "vectors", "stranger/vectors"],
        "no right": ["push", "vectors", "expired/vectors"],
        "broken": ["push", "vectors", "broken/vectors"],
        "bad name": ["push", "vectors", "a/b/c"],
    }
    (tmp_path / "commands.json").write_text(json.dumps(commands))
    with LoopbackHub() as hub:
        hub.refusals = {"stranger": 403, "expired": 401, "broken": 400}
        run(COMMAND_RUNNER, hub=hub, folder=tmp_path, home="home")
        assert set(hub.repos["user/processor"]) == set()
    answers = json.loads((tmp_path / "answers.json").read_text())

    card = (tmp_path / "my-bertram" / "README.md").read_bytes()
    for name, files in expected.items():
        assert list_files(tmp_path / "back" / name) == (files | {"README.md": card} if name == "my-bertram" else files)
    assert list_files(tmp_path / "back" / "without-code") == expected["my-bertram"]
    assert "Note: Added 11 code files and auto_map to without-code, for trust_remote_code=True." in answers["code"][1]
    for name in ("code", "card", "model", "again", "processor", "branch", "vectors", "injector"):
        assert answers[name][0] == 0, answers[name]
    num_files = len(expected["my-bertram"]) + 1
    assert answers["model"][1] == f"Uploaded {num_files} files to {hub.endpoint}/user/my-bertram\n"
    summary = json.loads(answers["again"][1])
    assert set(summary["files"]) == {*expected["my-bertram"], "README.md"}
    assert summary["url"] == f"{hub.endpoint}/user/my-bertram"
    assert f"{hub.endpoint}/user/processor/tree/try\n" in answers["processor"][1]
    assert "Note: There is no model beside the processor." in answers["processor"][1]
    assert "Note: There is no README.md. `bertram card vectors` writes one." in answers["vectors"][1]

    for name, message in {
        "forbidden": "Expected a token that may write to stranger/vectors; the Hub answered 403. Run `hf auth login`",
        "no right": "Expected a token that may write to expired/vectors; the Hub answered 401. Run `hf auth login`",
        "broken": "The upload to broken/vectors failed: ",
        "bad name": "Repo id must be in the form",
    }.items():
        code, out, err = answers[name]
        assert (code, out) == (1, "")
        assert err.startswith(f"bertram: error: {message}"), err
        assert err.count("\n") == 1, err
