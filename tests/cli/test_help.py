"""What users meet before any work is done: help, version, and what that costs."""

import subprocess
import sys

import pytest

from bertram_hf.cli.main import COMMANDS

NAMES = [module.__name__.rpartition(".")[2].replace("_", "-") for module in COMMANDS]
MEASURE = """
import resource, sys
try:
    if sys.argv[1:] != ["import"]:
        from bertram_hf.cli.main import main
        main(sys.argv[1:])
    else:
        import bertram_hf
except SystemExit as exit:
    assert exit.code == 0
usage = resource.getrusage(resource.RUSAGE_SELF)
heavy = {"torch", "transformers", "datasets", "numpy", "pyarrow"} & sys.modules.keys()
print(usage.ru_utime + usage.ru_stime, ",".join(sorted(heavy)) or "none")
"""


@pytest.mark.parametrize(
    "arguments", [["import"], ["--help"], ["--version"], *([name, "--help"] for name in NAMES)], ids=" ".join
)
def test_help_is_light(arguments):
    seconds = []
    for _ in range(3):
        command = [sys.executable, "-c", MEASURE, *arguments]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        time, heavy = output.splitlines()[-1].split()
        assert heavy == "none"
        seconds.append(float(time))
    assert min(seconds) < 0.5


@pytest.mark.parametrize("module", ["configuration_bertram", "modeling_context", "modeling_bertram", "induction"])
def test_each_module_can_be_imported_first_and_the_auto_classes_know_bertram_then(module):
    code = f"import bertram_hf.{module}; from transformers import AutoConfig, AutoModel, AutoProcessor\n"
    code += "from bertram_hf import BertramConfig; assert AutoConfig.for_model('bertram').model_type == 'bertram'\n"
    code += "print(AutoModel._model_mapping[BertramConfig].__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "BertramModel\n"), done.stderr
