"""Files: written whole or not at all, and read with errors that name them."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout


@contextmanager
def write_whole(*paths: str | os.PathLike[str]) -> Iterator[list[Path]]:
    """Gives the block other names to write under, and moves what it wrote to `paths` in the end.

    If the block fails or is killed, or the disk is full, what was there before stays. Processes that write the same
    files do not disturb each other. Files are moved in the order given: put the one that others rely on last. A folder
    is moved as a whole, in place of one that is there.

    Example:
        >>> with write_whole("a.txt", "b.txt") as (first, second):
        ...     _ = first.write_text("kumquat"), second.write_text("quokka")
        >>> Path("a.txt").read_text()
        'kumquat'
    """
    targets = [Path(path) for path in paths]
    for target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = [target.with_name(f"{target.name}.{os.getpid()}.tmp") for target in targets]
    for path in unfinished:
        _delete(path)  # of a killed process with the same number
    try:
        yield unfinished
        for path, target in zip(unfinished, targets, strict=True):
            if path.is_dir() and target.exists():
                replaced = target.with_name(f"{target.name}.{os.getpid()}.old")
                target.rename(replaced)
                path.rename(target)
                _delete(replaced)
            else:
                os.replace(path, target)
    finally:
        for path in unfinished:
            _delete(path)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file, whole or not at all."""
    with write_whole(path) as (unfinished,):
        unfinished.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Returns the JSON object in a file.

    Raises:
        ValueError: If there is none.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} must hold JSON; it cannot be read: {error}. Save the folder again.") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold a JSON object; got {type(value).__name__}. Save the folder again.")
    return value


@contextmanager
def only_writer(output: str | os.PathLike[str]) -> Iterator[None]:
    """Runs the block unless another process runs one for the same output. A killed process leaves nothing locked.

    Raises:
        ValueError: If another process writes the output.
    """
    path = Path(f"{os.fspath(output).rstrip('/')}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise ValueError(
            f"Expected {output} to be written by one process; another one is writing it. Wait for that one, or give "
            "another output."
        ) from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # before the release, after which it may be another process's
        lock.release()


def refuse_missing_folder(name: str) -> None:
    """Raises if a name can only be that of a local folder, and there is none, so that nobody looks for it on the Hub.

    Raises:
        FileNotFoundError: If there is nothing of this name.
        NotADirectoryError: If it is a file.

    Example:
        >>> refuse_missing_folder("./no-such-folder")
        Traceback (most recent call last):
        FileNotFoundError: There is no folder ./no-such-folder. Check the path.
        >>> refuse_missing_folder("user/my-bertram")  # may be on the Hub
    """
    if os.path.isfile(name):
        raise NotADirectoryError(f"Expected a folder; {name} is a file. Give the folder that save_pretrained wrote.")
    parent, slash, _ = name.rpartition("/")
    is_local = "\\" in name or name.startswith((".", "~", "/")) or name.endswith("/") or "/" in parent
    if (is_local or (slash and os.path.isdir(parent))) and not os.path.isdir(name):
        raise FileNotFoundError(f"There is no folder {name}. Check the path.")


def read_utf8(path: str | os.PathLike[str]) -> str:
    """Reads a text file, without a byte-order mark.

    Raises:
        ValueError: If it is not UTF-8; the message names the file.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Expected UTF-8 text in {path}; got {error}. Convert it (iconv -f ENCODING -t UTF-8)."
        ) from error


def read_word_file(path: str | os.PathLike[str]) -> list[str]:
    """Reads a file of words, one on each line; blank lines and outer spaces are left out.

    Raises:
        ValueError: If it is not UTF-8.

    Example:
        >>> read_word_file("words.txt")
        ['kumquat', 'New York']
    """
    return [line.strip() for line in read_utf8(path).splitlines() if line.strip()]
