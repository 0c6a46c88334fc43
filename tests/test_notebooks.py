"""The notebooks of `examples/notebooks` run, and what is stored in them is what they give."""

import json
import re
import sys
from pathlib import Path

import pytest

NAMES = ["a-domain-in-ten-minutes", "fine-tuning", "quickstart-search"]
FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
MACHINE = re.compile(r"(?<![\w.])/(home|root|tmp|usr|work|Users|private|opt)/|[A-Z]:\\|site-packages/")
SAME = "same"  # cells whose outputs do not depend on the machine


def read_cells(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def is_code(cell):
    return cell["cell_type"] == "code"


def shown(cell):
    """What a code cell shows, by kind."""
    outputs = ((output.get("data") or {output["name"]: output["text"]}) for output in cell["outputs"])
    return [{kind: "".join(text) for kind, text in output.items()} for output in outputs]


def test_all_notebooks_are_tested():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_stored_outputs_are_clean(name):
    cells = read_cells(name)
    code = [cell for cell in cells if is_code(cell)]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for output in (output for cell in code for output in shown(cell)):
        assert "stderr" not in output
        assert not MACHINE.search(str(output))


@pytest.mark.parametrize("name", NAMES)
def test_headings_are_in_order(name):
    text = "\n".join("".join(cell["source"]) for cell in read_cells(name) if not is_code(cell))
    levels = [len(marks) for marks in re.findall(r"^(#+) ", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.M)]
    assert levels[0] == 1
    assert set(levels[1:]) == {2}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_notebooks_give_what_is_stored(name, tmp_path):
    for package in ("nbclient", "ipykernel"):
        pytest.importorskip(package, reason=f"needs {package}: pip install nbclient ipykernel")
    from support.run_notebooks import run_notebook

    stored = [cell for cell in read_cells(name) if is_code(cell)]
    run = run_notebook(FOLDER / f"{name}.ipynb", tmp_path)
    assert run.metadata.language_info.version == sys.version.split()[0]
    for before, now in zip(stored, filter(is_code, run.cells), strict=True):
        assert [set(output) for output in shown(now)] == [set(output) for output in shown(before)]
        if SAME in now.metadata.get("tags", ()):
            assert shown(now) == shown(before)
