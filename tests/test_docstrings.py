"""Examples of docstrings run as they stand, and every public name has one."""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest
from support.doctest_names import names_for, write_files

import bertram_hf

PACKAGE = Path(bertram_hf.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py") if ">>>" in path.read_text(encoding="utf-8"))
PACKAGES = ["bertram_hf", *sorted(f"bertram_hf.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py"))]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Their examples take minutes, so that they are skipped; these tests do what the examples show.
TESTED_ELSEWHERE = {
    "Reproduction": "reproduction/test_stored_results.py",
    "rarify": "rarification/test_rarify.py",
    "train_masked_lm_head": "masked_lm/test_train.py",
    "train_recipe": "training/test_run.py",
}


class Finder(doctest.DocTestFinder):
    """Finds the examples of decorated functions too."""

    def _from_module(self, module, object):
        return super()._from_module(module, inspect.unwrap(object) if callable(object) else object)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docstrings")
    write_files(folder)
    return folder


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_examples_of_a_module_run(path, folder, monkeypatch):
    monkeypatch.chdir(folder)
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    failures: list[str] = []
    for test in Finder().find(module, module.__name__):
        source = "".join(example.source for example in test.examples if not is_skipped(example))
        if source:
            test.globs = {**vars(module), **names_for(source, folder)}
            doctest.DocTestRunner(verbose=False, optionflags=OPTIONS).run(test, out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_have_examples_that_run(package):
    module = importlib.import_module(package)
    without = []
    for name in getattr(module, "__all__", ()):
        thing = getattr(module, name)
        if not callable(thing) or name in TESTED_ELSEWHERE:
            continue
        examples = doctest.DocTestParser().get_examples(inspect.unwrap(thing).__doc__ or "")
        if not any(not is_skipped(example) for example in examples):
            without.append(name)
    assert not without


@pytest.mark.parametrize(("name", "path"), TESTED_ELSEWHERE.items())
def test_names_that_are_tested_elsewhere_are(name, path):
    assert name in (Path(__file__).parent / path).read_text(encoding="utf-8")


def is_skipped(example):
    return example.options.get(doctest.SKIP, False)
