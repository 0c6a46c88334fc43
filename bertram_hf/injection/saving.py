"""The files of a saved injector, beside those of the model and the tokenizer that it wraps."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from ..induction.word_vectors import WordVectors
from ..utils.files import read_json, write_json
from .tokenizer import Mode, check_mode

SETTINGS_NAME = "injector.json"
PACKS_FOLDER = "word_packs"


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
    """

    model_class: str
    mode: Mode
    packs: list[str]
    train_vectors: bool
    freeze_embeddings: bool
    fine_tuned: bool = False

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
            raise ValueError(f"{folder} holds no injector: it has no {SETTINGS_NAME}.")
        found = read_json(path)
        names = [field.name for field in fields(cls)]
        missing = [name for name in names if name not in found and name != "fine_tuned"]
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
