"""Imports: what to install if a package is missing, and what to do once a module is there."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

# Modules of packages that are not always installed, and the extra of pyproject.toml that brings them.
EXTRAS = {
    **dict.fromkeys(("datatrove", "loguru", "pyarrow", "xxhash"), "corpus"),
    **dict.fromkeys(("accelerate", "yaml"), "train"),
    **dict.fromkeys(("lemminflect", "matplotlib", "nltk", "scipy", "sklearn", "wordfreq"), "evaluation"),
    "gradio": "app",
    "rich": "demo",
    "sentence_transformers": "sentence-transformers",
}


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Says which extra to install if a package is missing that the block imports.

    Args:
        extra: Name of the extra.
        what: What it is needed for; begins the message.

    Raises:
        ImportError: With a message for people.

    Example:
        >>> with needs_extra("evaluation", "A figure"):
        ...     import no_such_package
        Traceback (most recent call last):
        ImportError: A figure needs no_such_package, which is missing. Run: pip install "bertram-hf[evaluation]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(
            f'{what} needs {error.name}, which is missing. Run: pip install "bertram-hf[{extra}]"'
        ) from error


def import_lazily(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Returns a `__getattr__` for a package that imports its public names when they are first used.

    Args:
        package: The package's `__name__`.
        modules: Its modules, each with the names that it gives to the package.

    Example:
        >>> import_lazily("json", {"decoder": ["JSONDecodeError"]})("JSONDecodeError").__name__
        'JSONDecodeError'
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f".{module_of[name]}", package), name)

    return get


def when_imported(module: str, act: Callable[[ModuleType], None]) -> None:
    """Calls `act` with a module as soon as it is imported by anybody; at once if it is there already.

    Example:
        >>> when_imported("json", lambda module: print(module.__name__))
        json
    """
    if module in sys.modules:
        act(sys.modules[module])
    else:
        sys.meta_path.insert(0, _ImportWatcher(module, act))


class _ImportWatcher(MetaPathFinder):
    """Finds one module as Python would without it, and acts once that is executed."""

    def __init__(self, module: str, act: Callable[[ModuleType], None]) -> None:
        self.module, self.act = module, act

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the module's own spec, whose loader acts in the end."""
        if fullname != self.module:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_act(module: ModuleType) -> None:
                execute(module)
                self.act(module)

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec
