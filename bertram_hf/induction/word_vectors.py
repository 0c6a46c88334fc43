"""Induced vectors as a small file that can be kept, shared and loaded again."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub import hf_hub_download
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ..utils.files import read_json, refuse_missing_folder, write_whole
from ..utils.hub import push_saved

VECTORS_NAME = "word_vectors.safetensors"
METADATA_NAME = "word_vectors.json"
FORMAT = 1
MISSPELT_SHARE = 0.5  # of a known word in a vector, above which the vector's word is taken for its misspelling
NORMS_AT_ONCE = 1000  # vectors that fit into a processor's cache
# What is known of words, by word.
DETAILS = (
    "context_weights",
    "used_contexts",
    "dropped_contexts",
    "failed",
    "look_alikes",
    "reliability",
    "agreement",
    "misleading",
)


@dataclass
class WordVectors:
    """Vectors of words in one model's input embedding space.

    Attributes:
        words: W different words.
        embeddings: (W, H).
        embedding_fingerprint: Names the embedding space; see `embedding_fingerprint`. None if it is not known.
        context_weights: For each word the weights of the contexts that were used, in their order.
        used_contexts: For each word the indices of the contexts that were used.
        dropped_contexts: For each word why contexts, by index, were not used.
        failed: Words that got no vector, and why.
        look_alikes: For each word that may be a misspelling, the shares of known words in its vector, largest first.
        encoder: Name of the encoder whose embedding space it is, if it is known.
        reliability: For each word the cosine that its vector is expected to have with the true one, from 0 to 1, if the
            model estimates that.
        agreement: For each word the cosine between its vector and what its pieces say alone, minus the vocabulary's
            mean, if the model reads pieces.
        misleading: Words whose pieces say something else than the vector, by the model's `misleading_agreement`, each
            with True.

    Example:
        >>> vectors = WordVectors(["kumquat"], torch.ones(1, 3))
        >>> vectors["kumquat"]
        tensor([1., 1., 1.])
        >>> "quokka" in vectors, len(vectors)
        (False, 1)
    """

    words: list[str]
    embeddings: torch.Tensor
    embedding_fingerprint: str | None = None
    context_weights: Mapping[str, torch.Tensor] = field(default_factory=dict)
    used_contexts: dict[str, list[int]] = field(default_factory=dict)
    dropped_contexts: dict[str, dict[int, str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    look_alikes: dict[str, dict[str, float]] = field(default_factory=dict)
    encoder: str | None = None
    reliability: dict[str, float] = field(default_factory=dict)
    agreement: dict[str, float] = field(default_factory=dict)
    misleading: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.words = list(self.words)
        self.embeddings = torch.as_tensor(self.embeddings)
        if self.embeddings.ndim != 2 or len(self.embeddings) != len(self.words):
            raise ValueError(
                f"Expected one row of embeddings for each of {len(self.words)} words; "
                f"got a tensor of shape {tuple(self.embeddings.shape)}."
            )
        if not self.embeddings.is_floating_point():
            raise ValueError(f"Expected embeddings of floating-point numbers; got {self.embeddings.dtype}.")
        self._rows = {word: row for row, word in enumerate(self.words)}
        if len(self._rows) != len(self.words):
            twice = next(word for row, word in enumerate(self.words) if self._rows[word] != row)
            raise ValueError(f"Each word may stand once; {twice!r} stands more often.")
        # A finite norm, which is quickly found, means finite numbers; a norm that is not finite may be an overflow.
        for row in (~self.norms().isfinite()).nonzero():
            if not self.embeddings[row].isfinite().all():
                raise ValueError(f"The vector of {self.words[row]!r} holds NaN or infinity. Check the model's weights.")

    @classmethod
    def from_dict(
        cls, vectors: Mapping[str, torch.Tensor | Sequence[float]], *, embedding_fingerprint: str | None = None
    ) -> "WordVectors":
        """Makes word vectors of a mapping from words to vectors of one size."""
        rows = [torch.as_tensor(vector, dtype=torch.float32) for vector in vectors.values()]
        sizes = {tuple(row.shape) for row in rows}
        if len(sizes) > 1:
            raise ValueError(f"All vectors must have one size; got {sorted(sizes)}.")
        embeddings = torch.stack(rows) if rows else torch.empty(0, 0)
        return cls(list(vectors), embeddings, embedding_fingerprint=embedding_fingerprint)

    def __getitem__(self, word: str) -> torch.Tensor:
        if word in self._rows:
            return self.embeddings[self._rows[word]]
        reason = f" It failed: {self.failed[word]}" if word in self.failed else ""
        raise KeyError(f"There is no vector for {word!r} among {len(self)} words.{reason}")

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        words = ", ".join(f"{word:.40}" for word in self.words[:5]) + (", ..." if len(self) > 5 else "")
        return f"WordVectors({len(self)} words x {self.embeddings.shape[1]}: {words})"

    def select(self, words: Iterable[str]) -> "WordVectors":
        """Returns the vectors of some words, in the order given, with all that is known of them.

        Raises:
            KeyError: If a word has no vector, with its name.

        Example:
            >>> vectors = WordVectors(["kumquat", "quokka"], torch.eye(2))
            >>> vectors.select(["quokka"]).embeddings
            tensor([[0., 1.]])
        """
        words = list(words)
        for word in words:
            self[word]  # raises if there is none
        known: dict[str, Any] = {name: getattr(self, name) for name in DETAILS}
        return WordVectors(
            words,
            self.embeddings[[self._rows[word] for word in words]],
            embedding_fingerprint=self.embedding_fingerprint,
            encoder=self.encoder,
            **{name: {word: of[word] for word in words if word in of} for name, of in known.items()},
        )

    def misspellings(self) -> set[str]:
        """Returns the words that are taken for misspellings: more than half of their vector is that of a known word.

        Example:
            >>> vectors = WordVectors(["hte", "kumquat"], torch.eye(2), look_alikes={"hte": {"the": 0.9}})
            >>> vectors.misspellings()
            {'hte'}
        """
        return {word for word in self.words if max(self.look_alikes.get(word, {}).values(), default=0) > MISSPELT_SHARE}

    def replacing(self) -> set[str]:
        """Returns the words that are better replaced by their vectors than read beside them: misspellings, and words
        whose pieces mislead, such as invented names, because they do not agree with the vector.

        Example:
            >>> vectors = WordVectors(["zarvo", "kumquat"], torch.eye(2), misleading={"zarvo": True})
            >>> vectors.replacing()
            {'zarvo'}
        """
        return {word for word in self.words if self.misleading.get(word)} | self.misspellings()

    def unreliable(self, minimum: float) -> set[str]:
        """Returns the words whose vectors are known to be less reliable than `minimum`. A misspelling is not among
        them, as its vector is that of a known word.

        Example:
            >>> vectors = WordVectors(["quokka", "kumquat"], torch.eye(2), reliability={"quokka": 0.1, "kumquat": 0.5})
            >>> vectors.unreliable(0.3)
            {'quokka'}
        """
        return {word for word in self.words if self.reliability.get(word, 1.0) < minimum} - self.misspellings()

    @classmethod
    def join(cls, parts: Sequence["WordVectors"]) -> "WordVectors":
        """Returns the vectors of several in one, with all that is known of them.

        Raises:
            ValueError: If they are of different embedding spaces, or a word stands in two of them.

        Example:
            >>> WordVectors.join([WordVectors([word], torch.ones(1, 2)) for word in ("kumquat", "quokka")])
            WordVectors(2 words x 2: kumquat, quokka)
        """
        spaces = {part.embedding_fingerprint for part in parts}
        if len(spaces) > 1:
            raise ValueError(f"Expected vectors of one embedding space; got those of {', '.join(map(str, spaces))}.")
        filled = [part for part in parts if len(part)] or list(parts[:1])
        details: dict[str, Any] = {
            name: {key: value for part in parts for key, value in getattr(part, name).items()} for name in DETAILS
        }
        return cls(
            [word for part in filled for word in part.words],
            torch.cat([part.embeddings for part in filled]) if filled else torch.empty(0, 0),
            spaces.pop() if spaces else None,
            **details,
            encoder=filled[0].encoder if filled else None,
        )

    def norms(self) -> torch.Tensor:
        """Returns the norms (W,) of the vectors, in single precision."""
        norms = self.embeddings.new_empty(len(self), dtype=torch.float32)
        vectors = self.embeddings.detach()
        for part, out in zip(vectors.split(NORMS_AT_ONCE), norms.split(NORMS_AT_ONCE), strict=True):
            torch.linalg.vector_norm(part.float(), dim=1, out=out)
        return norms

    def to_dict(self) -> dict[str, torch.Tensor]:
        """Returns a mapping from words to vectors."""
        return dict(zip(self.words, self.embeddings, strict=True))

    def to_numpy(self) -> np.ndarray:
        """Returns the embeddings (W, H) in single precision."""
        return self.embeddings.float().cpu().numpy()

    def save_word2vec(self, path: str | os.PathLike) -> None:
        """Writes the word2vec text format, as `gensim.models.KeyedVectors.load_word2vec_format` reads it.

        If that fails, a file that was there before stays.
        White space inside a term becomes "_", since the format separates by spaces.

        Raises:
            ValueError: If two words become the same.
        """
        keys = ["_".join(word.split()) for word in self.words]
        if len(set(keys)) != len(keys):
            raise ValueError('Two words are the same once their white space is written as "_"; rename one of them.')
        with write_whole(path) as (unfinished,), open(unfinished, "w", encoding="utf-8") as file:
            file.write(f"{len(self)} {self.embeddings.shape[1]}\n")
            for key, row in zip(keys, self.to_numpy(), strict=True):
                file.write(key + " " + " ".join(map(repr, row.tolist())) + "\n")

    def save_pretrained(self, save_directory: str | os.PathLike) -> None:
        """Writes a safetensors file with the numbers and a JSON file with the rest.

        If that fails, vectors that were there before stay.
        """
        folder = Path(save_directory)
        empty = self.embeddings.new_empty(0)
        weights = [self.context_weights.get(word, empty).cpu() for word in self.words]
        tensors = {
            "embeddings": self.embeddings.cpu().contiguous(),
            "context_weights": torch.cat(weights) if weights else empty.cpu(),
        }
        metadata = {
            "format": FORMAT,
            "words": self.words,
            "embedding_fingerprint": self.embedding_fingerprint,
            "num_weights": [len(weight) for weight in weights],
            "used_contexts": self.used_contexts,
            "dropped_contexts": self.dropped_contexts,
            "failed": self.failed,
            "look_alikes": self.look_alikes,
            "encoder": self.encoder,
            "reliability": self.reliability,
            "agreement": self.agreement,
            "misleading": self.misleading,
        }
        with write_whole(folder / VECTORS_NAME, folder / METADATA_NAME) as (vectors_file, metadata_file):
            save_file(tensors, vectors_file, metadata={"format": "pt"})
            metadata_file.write_text(json.dumps(metadata), encoding="utf-8")

    @classmethod
    def from_pretrained(cls, path_or_repo: str | os.PathLike, **hub_arguments: Any) -> "WordVectors":
        """Reads what `save_pretrained` wrote, from a folder or from the Hub.

        Args:
            path_or_repo: Folder or Hub name.
            hub_arguments: Passed to `huggingface_hub.hf_hub_download`, such as `revision` or `token`.

        Raises:
            OSError: If there is no such folder, nor such a repository, or a file is missing in it.
            ValueError: If a file is damaged or of another format.
        """
        source = os.fspath(path_or_repo)
        if "/" not in source and not os.path.exists(source):  # a name on the Hub has a user
            raise FileNotFoundError(f"There is no folder {source}. Check the path; on the Hub, write user/name.")
        refuse_missing_folder(source)

        def locate(name: str) -> Path:
            if not os.path.isdir(source):
                return Path(hf_hub_download(source, name, **hub_arguments))
            if not os.path.isfile(path := os.path.join(source, name)):
                raise FileNotFoundError(f"Expected word vectors in {source}; it has no {name}. Save them again.")
            return Path(path)

        metadata = read_metadata(locate(METADATA_NAME))
        try:
            tensors = load_file(locate(VECTORS_NAME))
        except SafetensorError as error:
            raise ValueError(f"{VECTORS_NAME} in {source} is damaged: {error}. Save the vectors again.") from error
        missing = [name for name in ("embeddings", "context_weights") if name not in tensors]
        if missing:
            raise ValueError(f"{VECTORS_NAME} in {source} has no {' and no '.join(missing)}. Save the vectors again.")
        num_weights, stored = metadata["num_weights"], tensors["context_weights"]
        is_whole = len(num_weights) == len(metadata["words"]) and stored.shape == (sum(num_weights),)
        if not is_whole or any(number < 0 for number in num_weights):
            raise ValueError(
                f"{METADATA_NAME} in {source} counts context weights of {len(num_weights)} words, {sum(num_weights)} "
                f"in all; there are {len(metadata['words'])} words and a tensor of shape {tuple(stored.shape)}. The "
                "files are not of one save: save the vectors again."
            )
        vectors = cls(
            metadata["words"],
            tensors["embeddings"],
            embedding_fingerprint=metadata["embedding_fingerprint"],
            used_contexts=metadata["used_contexts"],
            dropped_contexts={
                word: {int(index): reason for index, reason in reasons.items()}
                for word, reasons in metadata["dropped_contexts"].items()
            },
            failed=metadata["failed"],
            look_alikes=metadata["look_alikes"],
            encoder=metadata["encoder"],
            reliability=metadata["reliability"],
            agreement=metadata["agreement"],
            misleading=metadata["misleading"],
        )
        vectors.context_weights = StoredWeights(vectors._rows, stored, num_weights)
        return vectors

    def push_to_hub(self, repo_id: str, *, private: bool | None = None, token: str | bool | None = None) -> str:
        """Uploads the vectors to a model repository on the Hub and returns its address."""
        return push_saved(self, repo_id, private=private, token=token)


class StoredWeights(Mapping[str, torch.Tensor]):
    """The weights of contexts by word, cut out of one tensor when asked for: a million tensors would take a gigabyte.

    Args:
        rows: The row of each word.
        weights: The weights of all contexts, row by row.
        num_weights: For each row how many there are.
    """

    def __init__(self, rows: Mapping[str, int], weights: torch.Tensor, num_weights: Sequence[int]) -> None:
        self.rows, self.weights = rows, weights
        self.bounds = np.cumsum([0, *num_weights])

    def __getitem__(self, word: str) -> torch.Tensor:
        row = self.rows[word]
        return self.weights[self.bounds[row] : self.bounds[row + 1]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def read_metadata(path: Path) -> dict[str, Any]:
    """Reads the JSON file of saved vectors.

    Raises:
        ValueError: If it is of another format, or a field is missing or of another type.
    """
    metadata = read_json(path)
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{path} must have the format {FORMAT}; got {metadata.get('format')!r}. Save the vectors again, or install "
            "the version of bertram_hf that wrote them."
        )
    metadata = {
        "look_alikes": {},
        "encoder": None,
        "reliability": {},
        "agreement": {},
        "misleading": {},
    } | metadata  # which were added later
    checks: dict[str, Callable[[Any], bool]] = {
        "words": lambda value: _is_list(value, str),
        "num_weights": lambda value: _is_list(value, int),
        "embedding_fingerprint": _is_text_or_none,
        "used_contexts": lambda value: _maps(value, lambda indices: _is_list(indices, int)),
        "dropped_contexts": lambda value: _maps(value, _is_reasons),
        "failed": lambda value: _maps(value, lambda reason: isinstance(reason, str)),
        "look_alikes": lambda value: _maps(value, _is_shares),
        "encoder": _is_text_or_none,
        "reliability": _is_shares,
        "agreement": _is_shares,
        "misleading": lambda value: _maps(value, lambda is_so: isinstance(is_so, bool)),
    }
    for name, check in checks.items():
        if name not in metadata or not check(metadata[name]):
            found = f"{metadata[name]!r:.80}" if name in metadata else "nothing"
            raise ValueError(f"{path}: the field {name!r} is missing or damaged; got {found}. Save the vectors again.")
    return metadata


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(type(item) is kind for item in value)


def _maps(value: Any, check: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(map(check, value.values()))


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_reasons(value: Any) -> bool:
    return _maps(value, lambda reason: isinstance(reason, str)) and all(index.isdecimal() for index in value)


def _is_shares(value: Any) -> bool:
    return _maps(value, lambda share: type(share) in (int, float))
