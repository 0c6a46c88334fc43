"""Paths of one machine, which nobody else should read."""

import re
from collections.abc import Mapping
from pathlib import PureWindowsPath
from typing import Any

ROOT = r"(?:file:/*|~\w*|[A-Za-z]:|\.{1,2})?(?:(?<!:)[/\\]{2}|[/\\])"  # "/", "~/", "C:\", "../", "\\server"
# A path inside a text, up to its last part, white space only after a backslash; "https://", "and/or", "</s>" are none.
PATH_IN_TEXT = re.compile(rf"(?<![\w/.<]){ROOT}(?:(?:[^\s/\\]|\\[ ])+[/\\]+)*(?=[\w.~-])")
QUOTED_PATH = re.compile(rf"""(?<=(["'])){ROOT}[^"'\n]*(?=\1)""")
WHOLE_PATH = re.compile(rf"{ROOT}[^\n]*")


def hide_paths(value: Any) -> Any:
    """Returns a JSON value in which paths of one machine have become their last part.

    Example:
        >>> hide_paths({"corpus": "/home/anna/my news.txt", "command": "bertram train ~/a/recipe.yaml --seed=1"})
        {'corpus': 'my news.txt', 'command': 'bertram train recipe.yaml --seed=1'}
    """
    if isinstance(value, Mapping):
        return {hide_paths(key): hide_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hide_paths(item) for item in value]
    if not isinstance(value, str):
        return value
    if WHOLE_PATH.fullmatch(value) and not re.search(r"\s(?:[/\\~.-]|\w:)", value):
        return _last_part(value)
    return PATH_IN_TEXT.sub("", QUOTED_PATH.sub(lambda match: _last_part(match[0]), value))


def _last_part(path: str) -> str:
    return PureWindowsPath(path).name  # which knows both kinds of separators
