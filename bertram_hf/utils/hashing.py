"""Names for what a result depends on: files, weights, settings."""

import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

MODEL_FILE = "config.json"
MAX_BYTES_READ = 1 << 24  # a longer file is known by its size
# What a configuration says beside how the network computes.
NOT_COMPUTED = ("_name_or_path", "architectures", "transformers_version", "dtype", "id2label", "label2id")


def fingerprint(content: Any, *, sort_keys: bool = False, default: Callable[[Any], Any] | None = None) -> str:
    """Returns a short name for nested lists, mappings, texts and numbers, as JSON writes them.

    Args:
        content: What to name.
        sort_keys: Whether the order of a mapping does not matter.
        default: What JSON writes of other objects; by default they are refused.

    Example:
        >>> fingerprint(["kumquat", 3])
        'e38a22a415261fe087d9e61455afbb8d'
    """
    return hash_text(json.dumps(content, sort_keys=sort_keys, default=default))


def hash_text(text: str) -> str:
    """Returns a short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def derive_seed(*parts: object, num_bytes: int = 8) -> int:
    """Returns a number that depends on some texts and numbers alone, as a seed or to draw a share of them.

    Example:
        >>> derive_seed(0, "fold", "river") % 5
        3
    """
    return int.from_bytes(hashlib.sha256(" ".join(map(str, parts)).encode()).digest()[:num_bytes], "big")


def describe_files(settings: Any) -> dict[str, str]:
    """Returns a short name for the content of each file, folder and pattern that nested settings name and that is here,
    models left out.

    Example:
        >>> list(describe_files({"inputs": ["words.txt"], "seed": 0}))
        ['words.txt']
    """
    found = {name: _hash_files(name) for name in _list_strings(settings)}
    return {name: digest for name, digest in sorted(found.items()) if digest is not None}


def _list_strings(settings: Any) -> Iterator[str]:
    if isinstance(settings, str):
        yield settings
    elif isinstance(settings, Mapping):
        for value in settings.values():
            yield from _list_strings(value)
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from _list_strings(value)


def _hash_files(name: str) -> str | None:
    """Returns a hash of files' names and contents, None if there are none."""
    if os.path.isfile(os.path.join(name, MODEL_FILE)):
        return None  # a model is known by its weights, whatever else lies beside them
    if os.path.isdir(name):
        paths = sorted(path for path in Path(name).rglob("*") if path.is_file())
    else:
        paths = [Path(path) for path in sorted(glob.glob(name)) or [name] if os.path.isfile(path)]
    if not paths:
        return None
    digest = blake2b(digest_size=16)
    for path in paths:
        facts = path.stat()
        digest.update(path.name.encode("utf-8", "surrogateescape"))
        digest.update(_hash_file(path, facts.st_size, facts.st_mtime_ns))
    return digest.hexdigest()


@cache
def _hash_file(path: Path, size: int, time: int) -> bytes:
    """Returns a hash of a file, which is read once unless its size or time changes."""
    content = path.read_bytes() if size <= MAX_BYTES_READ else b""
    return blake2b(f"{size} ".encode() + content, digest_size=16).digest()


def hash_weights(module: nn.Module) -> str:
    """Returns a hash of all weights of a module."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def hash_model(model: PreTrainedModel) -> str:
    """Returns a hash of a model's weights and of its configuration, which says what is done with them."""
    config = {name: value for name, value in model.config.to_dict().items() if name not in NOT_COMPUTED}
    return hashlib.sha256((hash_weights(model) + json.dumps(config, sort_keys=True, default=str)).encode()).hexdigest()
