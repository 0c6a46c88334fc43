"""The code that `trust_remote_code=True` runs: copies of the core beside a saved model."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from transformers.dynamic_module_utils import get_relative_import_files

from ..configuration_bertram import BertramConfig
from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..utils.files import read_json, write_whole
from ..utils.names import CONFIG_NAME, PROCESSOR_NAME

# The classes that the Auto classes of Transformers look for, by the file that names them.
AUTO_CLASSES: dict[str, dict[str, type]] = {
    CONFIG_NAME: {"AutoConfig": BertramConfig, "AutoModel": BertramModel},
    PROCESSOR_NAME: {"AutoProcessor": BertramProcessor},
}


def list_code_files(folder: Path) -> list[Path]:
    """Returns the files of this package that `save_pretrained` copies beside a model, a processor or both."""
    classes = [found for name in _saved_names(folder) for found in AUTO_CLASSES[name].values()]
    files = {Path(str(sys.modules[found.__module__].__file__)) for found in classes}
    return sorted(files | {Path(needed) for file in files for needed in get_relative_import_files(file)})


def has_remote_code(folder: Path) -> bool:
    """Whether a saved model or processor loads with `trust_remote_code=True` where this package is missing."""
    return all((folder / file.name).is_file() for file in list_code_files(folder)) and all(
        _auto_map(name).items() <= (read_json(folder / name).get("auto_map") or {}).items()
        for name in _saved_names(folder)
    )


def add_remote_code(folder: str | os.PathLike) -> list[str]:
    """Adds this package's code to a saved model or processor; `save_pretrained` does so too.

    Args:
        folder: A saved model, processor, or both. Code files in it are overwritten, weights are not touched.

    Returns:
        The names of the code files.

    Example:
        >>> add_remote_code("my-bertram")
        ['configuration_bertram.py', 'modeling_bertram.py', ...]
    """
    folder = Path(folder)
    for name in _saved_names(folder):
        content = read_json(folder / name)
        content["auto_map"] = (content.get("auto_map") or {}) | _auto_map(name)
        with write_whole(folder / name) as (unfinished,):  # in the layout of Transformers
            unfinished.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    files = list_code_files(folder)
    for file in files:
        shutil.copyfile(file, folder / file.name)
    return [file.name for file in files]


def _saved_names(folder: Path) -> list[str]:
    return [name for name in AUTO_CLASSES if (folder / name).is_file()]


def _auto_map(name: str) -> dict[str, Any]:
    classes = AUTO_CLASSES[name].items()
    return {auto_class: f"{found.__module__.split('.')[-1]}.{found.__name__}" for auto_class, found in classes}
