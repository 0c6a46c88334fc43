"""Which BERTRAM checkpoint goes with an encoder."""

import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import scan_cache_dir
from huggingface_hub.errors import CacheNotFound

from ..configuration_bertram import BertramConfig, read_json_file
from ..utils.names import CONFIG_NAME

IN_CLONE = Path(__file__).parents[2] / "model_cards"
INSTALLED = Path(sysconfig.get_path("data")) / "share" / "bertram_hf"  # as pyproject.toml says
PREFERRED_MODE = "pieces"  # of several that fit: its vectors are better


def find_checkpoint(encoder: str, fingerprint: str | None = None) -> str:
    """Returns the folder of a BERTRAM model for an encoder, among those that are on this machine.

    It looks into `model_cards/` of the working folder and of a clone of bertram_hf, among what was installed with
    bertram_hf, and into the cache of the Hub.

    Args:
        encoder: The encoder's name, with or without that of its owner.
        fingerprint: Of the encoder's input embeddings (see `embedding_fingerprint`), if its name says nothing.

    Raises:
        ValueError: If there is none, with what to do.

    Example:
        >>> Path(find_checkpoint("sentence-transformers/all-MiniLM-L6-v2")).name
        'bertram-pieces-all-MiniLM-L6-v2'
    """
    others: dict[str, str] = {}
    fitting: list[tuple[bool, str]] = []
    for folder in _candidates():
        try:
            config = read_json_file(folder / CONFIG_NAME)
        except (ValueError, OSError):  # damaged, or no model
            continue
        if config.get("model_type") != BertramConfig.model_type:
            continue
        name = str(config.get("encoder_name_or_path"))
        if config.get("embedding_fingerprint") == fingerprint if fingerprint else _last(name) == _last(encoder):
            fitting.append((config.get("mode") != PREFERRED_MODE, str(folder)))
        else:
            others[name] = str(folder)
    if fitting:
        return min(fitting)[1]
    there = f"those that are here are for {', '.join(sorted(others))}" if others else "there is none on this machine"
    raise ValueError(
        f"Expected a BERTRAM checkpoint for {encoder}; {there}. Name one that you have (bertram=, --bertram), or train "
        f"one from text alone: write recipe.yaml with `encoder: {encoder}`, `systems: [bertram-pieces]` and your "
        "corpora, and run `bertram train recipe.yaml` (docs/train.md)."
    )


def _last(name: str) -> str:
    return Path(name).name.lower()


def _candidates() -> Iterator[Path]:
    """Yields folders that may hold a BERTRAM model."""
    for folder in dict.fromkeys([Path("model_cards").resolve(), IN_CLONE, INSTALLED]):
        yield from sorted(path.parent for path in folder.glob(f"*/{CONFIG_NAME}"))
    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return
    for repository in sorted(repositories, key=lambda found: found.repo_id):
        if repository.repo_type == "model":
            for revision in sorted(repository.revisions, key=lambda found: -found.last_modified):
                if os.path.isfile(revision.snapshot_path / CONFIG_NAME):
                    yield Path(revision.snapshot_path)
