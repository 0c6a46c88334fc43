"""JSON files, which are there whole or not at all, with an object in each."""

import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file at once: a kill leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def read_json(path: Path) -> dict[str, Any]:
    """Returns the JSON object in a file.

    Raises:
        ValueError: If there is none.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must hold JSON; it cannot be read: {error}. Save the folder again.") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold a JSON object; got {type(value).__name__}. Save the folder again.")
    return value
