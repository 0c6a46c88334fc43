"""Vectors of a long run, kept batch by batch, so that a run that was killed goes on where it was."""

import json
import logging
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from ..induction.word_vectors import METADATA_NAME
from ..utils.files import read_json, write_json, write_whole
from ..utils.hashing import fingerprint

logger = logging.getLogger(__name__)
SETTINGS_NAME = "approximation.json"
BATCHES_NAME = "batches"


class FinishedBatches:
    """The batches that are done, each in a file of its own that appears whole or not at all.

    Raises:
        ValueError: If the folder holds other vectors than those of a run with this encoder.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder / BATCHES_NAME
        settings_path, vectors_path = folder / SETTINGS_NAME, folder / METADATA_NAME
        old_settings = read_json(settings_path) if settings_path.exists() else {}
        if vectors_path.exists():
            found = read_json(vectors_path)["embedding_fingerprint"]
            if found != settings["embedding_fingerprint"] or old_settings.get("encoder") != settings["encoder"]:
                raise ValueError(
                    f"{folder} holds vectors that this run would overwrite: expected approximated ones of this encoder "
                    f"(embeddings {settings['embedding_fingerprint']}), found "
                    f"{'those of another encoder' if old_settings else 'others'} ({found}). Give another folder."
                )
        self.folder.mkdir(parents=True, exist_ok=True)
        if old_settings == settings:
            return
        if old_settings:
            changed = sorted(name for name in settings if old_settings.get(name) != settings[name])
            logger.warning(f"{folder} was made with other settings ({', '.join(changed)}); all words begin anew.")
            for path in self.folder.glob("*.safetensors"):
                path.unlink()
        write_json(settings_path, settings)

    def load(self, pieces: dict[str, list[int]]) -> dict[str, torch.Tensor]:
        """Returns the finished vectors of those words that have the same pieces as then."""
        vectors: dict[str, torch.Tensor] = {}
        for path in sorted(self.folder.glob("*.safetensors")):
            with safe_open(path, framework="pt") as file:
                metadata, embeddings = file.metadata(), file.get_tensor("embeddings")
            entries = zip(json.loads(metadata["words"]), json.loads(metadata["pieces"]), embeddings, strict=True)
            vectors.update({word: row for word, word_pieces, row in entries if pieces.get(word) == word_pieces})
        return vectors

    def write(self, words: list[str], pieces: list[list[int]], embeddings: torch.Tensor) -> None:
        """Keeps the vectors of a batch."""
        metadata = {"words": json.dumps(words), "pieces": json.dumps(pieces)}
        with write_whole(self.folder / f"{fingerprint(words)}.safetensors") as (unfinished,):
            save_file({"embeddings": embeddings.contiguous()}, unfinished, metadata=metadata)
