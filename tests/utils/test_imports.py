import os
import subprocess
import sys

import pytest

import bertram_hf

REGISTERED = """
import sys
exec(sys.argv[1])
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoProcessor, AutoTokenizer
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING
from bertram_hf import BertramConfig, BertramModel
from bertram_hf.injection import InjectedConfig
assert CONFIG_MAPPING["bertram"] is BertramConfig
assert AutoModel._model_mapping[BertramConfig] is BertramModel
assert BertramConfig in PROCESSOR_MAPPING
assert CONFIG_MAPPING["bertram-injected"] is InjectedConfig
assert InjectedConfig in AutoModel._model_mapping
assert InjectedConfig in AutoModelForMaskedLM._model_mapping
assert InjectedConfig in TOKENIZER_MAPPING
"""


# Each is the first to be imported, and may so be half there when Transformers loads the Auto classes.
@pytest.mark.parametrize(
    "statement",
    [
        *(f"from bertram_hf import {names[0]}" for names in bertram_hf._MODULES.values()),
        "from bertram_hf.injection.auto import make_loader",
        "import transformers.models.auto.modeling_auto, bertram_hf",
    ],
)
def test_any_name_can_be_the_first_import_and_the_auto_classes_know_all(statement):
    process = subprocess.run(
        [sys.executable, "-c", REGISTERED, statement], env=os.environ, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr


def test_the_package_and_its_injection_import_no_torch():
    script = "import sys, bertram_hf, bertram_hf.injection; assert 'torch' not in sys.modules; dir(bertram_hf)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'bertram_hf' has no attribute 'kumquat'"):
        bertram_hf.kumquat  # noqa: B018
