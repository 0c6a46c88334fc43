"""The model that a user already has: a sentence-transformers model, or any encoder of Transformers."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub.errors import HFValidationError
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import cached_file

from ..evaluation.embedding import SentenceEmbedder
from ..induction.word_vectors import WordVectors
from ..injection.injector import BertramEmbeddingInjector
from ..utils.files import refuse_missing_folder
from ..utils.imports import needs_extra
from ..utils.models import half_precision
from ..utils.names import Mode
from .embedders import Embedder, SentenceTransformerEmbedder

MODULES_NAME = "modules.json"  # of a sentence-transformers model
MAX_LENGTH = 256  # tokens of a document that is embedded by a plain encoder


@dataclass(frozen=True)
class UserModel:
    """A model that is to learn words.

    Attributes:
        name: Its name or folder.
        encoder: The encoder inside.
        tokenizer: Its tokenizer.
        sentence_transformer: The whole model, if it is one of sentence-transformers.
    """

    name: str
    encoder: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    sentence_transformer: Any = None

    @classmethod
    def load(cls, model: Any, *, device: str | None = None) -> "UserModel":
        """Loads a model by its name or folder, or takes a loaded `SentenceTransformer`.

        Raises:
            OSError: If there is no such model.
            TypeError: If it is something else.
        """
        if isinstance(model, str | os.PathLike):
            name = os.fspath(model)
            refuse_missing_folder(name)
            if not _is_sentence_transformer(name):
                encoder = AutoModel.from_pretrained(name).eval().to(device or "cpu")
                return cls(name, encoder, AutoTokenizer.from_pretrained(name))
            with needs_extra("sentence-transformers", f"{name} is a sentence-transformers model; loading it"):
                from sentence_transformers import SentenceTransformer
            model = SentenceTransformer(name, device=device)
        elif not hasattr(model, "encode") or not hasattr(model, "similarity_fn_name"):
            raise TypeError(
                "Expected the name or folder of a model, or a SentenceTransformer; got "
                f"{type(model).__name__}. Save the model and give its folder."
            )
        else:
            name = getattr(model.model_card_data, "base_model", None) or "a SentenceTransformer"
        return cls(name, model[0].model, model[0].tokenizer, model)

    def make_embedder(self, *, show_progress: bool = True) -> Embedder:
        """Returns what embeds texts as the model's users do, in half precision where the device is fast at it."""
        dtype = half_precision("auto", self.encoder.device)
        if self.sentence_transformer is not None:
            return SentenceTransformerEmbedder(self.sentence_transformer, dtype=dtype, show_progress=show_progress)
        return SentenceEmbedder(
            self.encoder, self.tokenizer, max_length=MAX_LENGTH, dtype=dtype, show_progress=show_progress
        )

    def save(self, vectors: WordVectors, mode: Mode, folder: Path) -> None:
        """Saves the model with vectors injected, to be loaded as the model itself is; as it is if there are none."""
        if self.sentence_transformer is not None:
            from ..injection.sentence_transformers import inject_sentence_transformer

            model = self.sentence_transformer
            injected = inject_sentence_transformer(model, vectors, mode) if len(vectors) else model
            injected.save_pretrained(str(folder), create_model_card=False)
            return
        if not len(vectors):
            self.encoder.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
            return
        injector = BertramEmbeddingInjector(self.encoder, self.tokenizer, vectors, mode)
        try:
            injector.save_pretrained(folder)
        finally:
            injector.remove()


def _is_sentence_transformer(name: str) -> bool:
    """Whether a folder or repository holds a sentence-transformers model."""
    if os.path.isdir(name):
        return (Path(name) / MODULES_NAME).is_file()
    try:
        return cached_file(name, MODULES_NAME, _raise_exceptions_for_missing_entries=False) is not None
    except HFValidationError as error:
        raise OSError(f"Expected the name of a model on the Hub or a folder; got {name!r}. {error}") from error
