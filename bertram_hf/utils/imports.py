"""Imports: what to install if a package is missing, and what to do once a module is there."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Any

PACKAGE = f"{__name__.partition('.')[0]}."
# Modules of packages that are not always installed, and the extra of pyproject.toml that brings them.
EXTRAS = {
    **dict.fromkeys(("datatrove", "loguru", "pyarrow", "xxhash"), "corpus"),
    **dict.fromkeys(("accelerate", "yaml"), "train"),
    **dict.fromkeys(("lemminflect", "matplotlib", "nltk", "scipy", "wordfreq"), "evaluation"),
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


def when_imported(module: str, act: Callable[[ModuleType], None]) -> None:
    """Calls `act` with a module as soon as it is imported by anybody; at once if it is there already.

    While modules of this package are being imported, which may be what imports the other one, `act` waits for them: so
    it can import them itself.

    Example:
        >>> when_imported("json", lambda module: print(module.__name__))
        json
    """
    if not any(isinstance(finder, _OwnImports) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OwnImports())
    if module in sys.modules:
        _act_when_whole(lambda: act(sys.modules[module]))
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
                _act_when_whole(lambda: self.act(module))

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


class _OwnImports(MetaPathFinder):
    """Finds this package's modules as Python would without it, and knows how many of them are being executed."""

    num_executing = 0
    waiting: list[Callable[[], None]] = []

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the module's own spec, whose loader lets those act in the end that wait for it."""
        if not fullname.startswith(PACKAGE):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_act(module: ModuleType) -> None:
                _OwnImports.num_executing += 1
                try:
                    execute(module)
                finally:
                    _OwnImports.num_executing -= 1
                while not self.num_executing and self.waiting:
                    self.waiting.pop(0)()

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


def _act_when_whole(act: Callable[[], None]) -> None:
    """Acts as soon as no module of this package is half imported."""
    if _OwnImports.num_executing:
        _OwnImports.waiting.append(act)
    else:
        act()
