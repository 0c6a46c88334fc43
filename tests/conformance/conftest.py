"""Makes the tests of the installed Transformers importable as `transformers_suite`."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch
from fetch_suite import PACKAGE_NAME, SUITE_FOLDER, VERSION

if not (SUITE_FOLDER / PACKAGE_NAME).is_dir():
    raise FileNotFoundError(
        f"The conformance tests need the tests of Transformers {VERSION}, which are not in {SUITE_FOLDER}. "
        "Run: python tests/conformance/fetch_suite.py"
    )
sys.path.insert(0, str(SUITE_FOLDER))

# The source archive holds the files of Transformers' top test folder, but not these, which they import.
ABSENT_MODULES = {
    f"{PACKAGE_NAME}.exporters.test_export": {"ExportTesterMixin": type("ExportTesterMixin", (), {})},
    f"{PACKAGE_NAME}.generation.test_utils": {"GenerationTesterMixin": type("GenerationTesterMixin", (), {})},
    f"{PACKAGE_NAME}.utils.test_configuration_utils": {"config_common_kwargs": {}},
    "fetch_hub_objects_for_ci": {"url_to_local_path": str},
}
for module_name, content in ABSENT_MODULES.items():
    module = ModuleType(module_name, "Stands in for a file that the source archive of Transformers leaves out.")
    vars(module).update(content)
    sys.modules[module_name] = module


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Threads slow tiny tensors down, most of all on busy cores."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)
