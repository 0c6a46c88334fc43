import subprocess
import sys
from pathlib import Path

import bertram_hf

ROOT = Path(bertram_hf.__file__).parent
# Each process is forked from one that has not loaded an Auto class, so that the module is the first that needs one.
IMPORT_EACH = """
import os, sys
import datasets, torch, transformers.configuration_utils
assert not any(name.startswith("transformers.models.auto.") for name in sys.modules)
for module in sys.argv[1:]:
    process = os.fork()
    if not process:
        try:
            __import__(module)
            from transformers import AutoConfig, AutoModel, AutoProcessor
            from bertram_hf import BertramConfig, BertramModel, BertramProcessor
            assert AutoConfig.for_model("bertram").__class__ is BertramConfig
            assert AutoModel._model_mapping[BertramConfig] is BertramModel
        except BaseException as error:
            print(module, repr(error), flush=True)
        os._exit(0)
    os.waitpid(process, 0)
"""


def test_each_package_and_core_file_can_be_imported_first():
    packages = [path.parent.name for path in ROOT.glob("*/__init__.py")]
    files = [path.stem for path in ROOT.glob("*.py") if path.stem != "__init__"]
    modules = [f"bertram_hf.{name}" for name in sorted(packages + files)]
    assert len(modules) > 20

    run = subprocess.run([sys.executable, "-c", IMPORT_EACH, *modules], capture_output=True, text=True, timeout=280)

    assert run.returncode == 0, run.stderr
    assert run.stdout == ""
