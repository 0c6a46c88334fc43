"""The rooms of the package: what stands where, and who may import whom."""

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "bertram_hf"
# A package imports only what stands above it; the core, the files of remote code, imports nothing but itself.
ORDER = (
    *("utils", "core", "conversion", "words", "induction", "injection", "corpus", "approximation", "evaluation"),
    *("adaptation", "training", "rarification", "masked_lm", "reproduction", "cards", "app", "cli"),
)
CORE = (
    *("configuration_bertram", "modeling_bertram", "modeling_context", "modeling_form", "modeling_look_alikes"),
    *("modeling_slim", "processing_bertram", "processing_context", "processing_look_alikes", "processing_words"),
    "tokenization_form",
)
OUTSIDE = ("__init__", "version", "sentence_embedding")  # read by all, or imports all, or a path of old saved models
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str:
    first = module.split(".")[0]
    return "core" if first in CORE else first


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imports_of(path: Path) -> set[str]:
    """Returns the modules of this package that a file imports, wherever in it."""
    found: set[str] = set()
    parents = name_of(path).split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = parents[: len(parents) - node.level + 1]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {".".join([*base, name]) for name in names}
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("bertram_hf"):
            found.add(str(node.module).removeprefix("bertram_hf").lstrip(".") or "__init__")
    return found


@pytest.mark.parametrize("path", [path for path in MODULES if name_of(path) not in OUTSIDE], ids=name_of)
def test_imports_run_one_way(path):
    room = room_of(name_of(path))
    for module in imports_of(path):
        if module not in OUTSIDE:
            assert ORDER.index(room_of(module)) <= ORDER.index(room), f"{name_of(path)} imports {module}"
        if room in ("core", "utils"):
            assert room_of(module) == room, f"{name_of(path)} imports {module}, which is not in {room}"


def test_the_core_is_flat_and_light():
    for name in CORE:
        for node in ast.walk(ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                # Transformers finds the files to copy by this form alone.
                assert node.level == 1, name
                assert "." not in (node.module or "."), name
            if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
                package = (node.names[0].name if isinstance(node, ast.Import) else str(node.module)).split(".")[0]
                allowed = {"torch", "transformers", "huggingface_hub", "safetensors", "numpy", *sys.stdlib_module_names}
                allowed |= {"rapidfuzz"} if name == "processing_look_alikes" else set()
                assert package in allowed, f"{name} imports {package}"


def test_nothing_else_lies_at_the_top_and_no_package_is_a_pile():
    top = {path.stem for path in PACKAGE.glob("*.py")}
    assert top == {*CORE, *OUTSIDE, "conversion"}
    for folder in {path.parent for path in MODULES} - {PACKAGE}:
        assert folder.name in ORDER
        assert len(list(folder.glob("[!_]*.py"))) <= 15, folder.name


def test_no_module_imports_another_in_a_circle():
    graph = {name_of(path): imports_of(path) for path in MODULES if path.stem != "__init__"}
    finished: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join([*trail, module])
        if module not in finished:
            for other in graph.get(module, ()):
                visit(other, (*trail, module))
            finished.add(module)

    for module in graph:
        visit(module, ())
