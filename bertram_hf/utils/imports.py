"""Imports: what to install if a package is missing, and what to do once a module is there."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

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


def when_imported(module: str, act: Callable[[ModuleType], None], *, waiting_for: str | None = None) -> None:
    """Calls `act` with a module as soon as it is imported by anybody; at once if it is there already.

    Args:
        module: Name of the module.
        act: What to do.
        waiting_for: A package. If one of its modules is the one that imports `module`, and so is only half there,
            `act` waits for it; it may then import any module of the package.

    Example:
        >>> when_imported("json", lambda module: print(module.__name__))
        json
    """
    watcher = _ImportWatcher(module, act, waiting_for)
    if module in sys.modules:
        watcher.act_on(module)
    else:
        sys.meta_path.insert(0, watcher)


class _ImportWatcher(MetaPathFinder):
    """Finds modules as Python would without it, and acts once the one that is watched for is executed."""

    def __init__(self, module: str, act: Callable[[ModuleType], None], package: str | None) -> None:
        self.module, self.act, self.package = module, act, package

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the own spec of the module, or of one of the package, whose loader acts in the end."""
        if fullname != self.module and not fullname.startswith(f"{self.package}."):
            return None
        others = sys.meta_path[sys.meta_path.index(self) + 1 :]
        found = (finder.find_spec(fullname, path, target) for finder in others if hasattr(finder, "find_spec"))
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_act(module: ModuleType) -> None:
                execute(module)
                self.act_on(fullname)

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec

    def act_on(self, executed: str) -> None:
        """Acts if the module is there and no other module of the package is half there."""
        if self.module not in sys.modules or self._is_importing(self.module, executed):
            return
        own = [name for name in list(sys.modules) if name.startswith(f"{self.package}.")]
        if any(self._is_importing(name, executed) for name in own):
            return
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self.act(sys.modules[self.module])

    @staticmethod
    def _is_importing(name: str, executed: str) -> bool:
        return name != executed and getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False)
