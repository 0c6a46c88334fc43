"""The files of a saved injector, beside those of the model and the tokenizer that it wraps."""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from transformers import AutoTokenizer, PreTrainedTokenizerBase
from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

from ..induction.word_vectors import WordVectors
from ..processing_context import is_uncased
from ..utils.files import read_json, refuse_missing_folder, write_json
from .tokenizer import Mode, check_mode, splice_tokenizer
from .word_index import WordIndex

SETTINGS_NAME = "injector.json"
PACKS_FOLDER = "word_packs"
HUB_ARGUMENTS = ("revision", "token", "cache_dir", "local_files_only", "force_download")


@dataclass(frozen=True)
class InjectorSettings:
    """How an injector was made.

    Attributes:
        model_class: Name of the wrapped model's class.
        mode: How words are spliced in.
        packs: Names of the packs of vectors, in the order in which they were added.
        train_vectors: Whether the vectors are trained.
        freeze_embeddings: Whether the model's input embeddings are frozen.
        fine_tuned: Whether the input embeddings are others than those that the vectors were made for.
        tokenizer_class: Name of the tokenizer's class; None in older files, where tokenizer_config.json has it.
        first_id: The id of the first vector; None in older files.
    """

    model_class: str
    mode: Mode
    packs: list[str]
    train_vectors: bool
    freeze_embeddings: bool
    fine_tuned: bool = False
    tokenizer_class: str | None = None
    first_id: int | None = None

    def save(self, folder: Path) -> None:
        """Writes the settings."""
        write_json(folder / SETTINGS_NAME, asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "InjectorSettings":
        """Returns the settings of the injector that was saved in `folder`.

        Raises:
            ValueError: If there is none, or its settings are damaged.
        """
        path = folder / SETTINGS_NAME
        if not path.is_file():
            raise ValueError(
                f"{folder} holds no injector: it has no {SETTINGS_NAME}. Save the whole with injector.save_pretrained; "
                "a tokenizer without words is injector.plain_tokenizer."
            )
        found = read_json(path)
        names = [field.name for field in fields(cls)]
        missing = [field.name for field in fields(cls) if field.default is MISSING and field.name not in found]
        if missing:
            raise ValueError(
                f"{path}: expected {', '.join(missing)}; got none. Save the injector again, in a new folder."
            )
        settings = cls(**{name: found[name] for name in names if name in found})
        try:
            settings.check()
        except ValueError as error:
            raise ValueError(f"{path}: {error} Save the injector again, in a new folder.") from error
        return settings

    def check(self) -> None:
        """Raises ValueError if a setting is of the wrong type, or unknown."""
        flags = (self.train_vectors, self.freeze_embeddings, self.fine_tuned)
        if not isinstance(self.model_class, str) or not all(isinstance(flag, bool) for flag in flags):
            raise ValueError(
                f"Expected a name as model_class, and true or false as the last three; got {asdict(self)}."
            )
        if not isinstance(self.tokenizer_class, str | None) or type(self.first_id) not in (int, type(None)):
            raise ValueError(
                f"Expected a name as tokenizer_class and an id as first_id; got {self.tokenizer_class!r} and "
                f"{self.first_id!r}."
            )
        if not isinstance(self.packs, list) or not all(isinstance(name, str) for name in self.packs):
            raise ValueError(f"Expected a list of names as packs; got {self.packs!r:.80}.")
        check_mode(self.mode)
        for name in self.packs:
            check_pack_name(name)


def check_pack_name(name: str) -> None:
    """Raises ValueError unless a name can be that of a pack, and so of its folder."""
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"A pack's name is letters, digits, '_', '-' and '.', as it becomes a folder's; got {name!r}.")


def save_packs(folder: Path, packs: Mapping[str, WordVectors], *, earlier: list[str]) -> None:
    """Writes packs of vectors, each in a folder of its own, and deletes the earlier ones that are not among them."""
    for name in set(earlier) - set(packs):
        shutil.rmtree(folder / PACKS_FOLDER / name, ignore_errors=True)
    for name, vectors in packs.items():
        vectors.save_pretrained(folder / PACKS_FOLDER / name)


def load_packs(folder: Path, names: list[str]) -> dict[str, WordVectors]:
    """Reads packs of vectors."""
    return {name: WordVectors.from_pretrained(folder / PACKS_FOLDER / name) for name in names}


def find_folder(name: str | os.PathLike, kwargs: dict[str, Any]) -> Path:
    """Returns the folder of a saved injector, downloaded if need be.

    Args:
        name: A folder, or a name on the Hub.
        kwargs: Arguments of a `from_pretrained`. Those that say where it is are taken out.

    Raises:
        FileNotFoundError: If the name can only be that of a folder, and there is none.
    """
    refuse_missing_folder(os.fspath(name))
    place = {key: kwargs.pop(key) for key in HUB_ARGUMENTS if key in kwargs}
    subfolder = kwargs.pop("subfolder", None) or ""
    folder = Path(name)
    return (folder if folder.is_dir() else Path(snapshot_download(str(name), **place))) / subfolder


def load_plain_tokenizer(folder: Path, *inputs: Any, **kwargs: Any) -> PreTrainedTokenizerBase:
    """Loads the tokenizer of a saved injector as it was before.

    Raises:
        ValueError: If its class is not one of Transformers.
    """
    name = InjectorSettings.load(folder).tokenizer_class
    tokenizer_class = AutoTokenizer if name is None else tokenizer_class_from_name(name)
    if tokenizer_class is None:
        raise ValueError(
            f"{name} is no class of Transformers. Load the tokenizer with its own class, then: "
            "bertram_hf.injection.inject_saved(folder, model, tokenizer)."
        )
    tokenizer = tokenizer_class.from_pretrained(folder, *inputs, **kwargs)
    tokenizer.init_kwargs.pop("auto_map", None)  # that of the injected one
    return tokenizer


def load_tokenizer(folder: Path, *inputs: Any, **kwargs: Any) -> PreTrainedTokenizerBase:
    """Loads the tokenizer of a saved injector, which puts the ids of words as the model beside it knows them.

    Raises:
        ValueError: If there is no injector beside the tokenizer.
    """
    settings = InjectorSettings.load(folder)
    if settings.first_id is None:
        raise ValueError(f"{folder / SETTINGS_NAME}: expected first_id; got none. Save the injector again.")
    plain = load_plain_tokenizer(folder, *inputs, **kwargs)
    tokenizer = splice_tokenizer(plain, WordIndex(ignore_case=is_uncased(plain)), [], settings.first_id, settings.mode)
    backend = tokenizer._tokenizer
    for vectors in load_packs(folder, settings.packs).values():
        rows = range(len(backend.words), len(backend.words) + len(vectors))
        backend.add_words(dict(zip(vectors.words, rows, strict=True)), vectors.replacing())
    return tokenizer
