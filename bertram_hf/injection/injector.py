"""Injection of word vectors into a model that somebody already has."""

import copy
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn
from transformers import AutoConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..induction.word_vectors import DETAILS, WordVectors
from ..modeling_slim import embedding_fingerprint
from ..processing_context import is_uncased
from ..utils.hub import push_saved
from .baking import TokenStyle, bake_words
from .configuration import InjectedConfig, mark_config
from .embedding import InjectedEmbedding
from .policy import MIN_RELIABILITY, divide_by_mode
from .saving import (
    SETTINGS_NAME,
    InjectorSettings,
    check_pack_name,
    find_folder,
    load_packs,
    load_plain_tokenizer,
    save_packs,
)
from .tokenizer import Mode, SplicingBackend, splice_tokenizer
from .unknown_words import MetWords, UnknownWords
from .word_index import WordIndex, find_unusable

logger = logging.getLogger(__name__)
DEFAULT_PACK = "default"
MAX_LISTED = 10
# A vector whose norm is so many times above the largest or below the smallest of the vocabulary is suspicious.
NORM_MARGIN = 2.0
_CHANGE = threading.RLock()  # held while words are added to any injector, or taken away


class BertramEmbeddingInjector(PreTrainedModel):
    """Wraps a model so that rare words in raw text are represented by their induced vectors.

    The wrapped model is changed in place, in its input embeddings only; `remove` undoes it. The `tokenizer` is a copy
    of the one given that puts ids of its own where the words stand; only texts that contain a word are touched.

    Args:
        model: Any encoder model with any head.
        tokenizer: Its tokenizer.
        vectors: Vectors, as [`WordVectors`] or a mapping from words to tensors.
        mode: `"slash"` keeps the word's pieces and adds a slash and the vector (Section 5.3 of the paper); `"replace"`
            puts the vector in place of the pieces; `"auto"` replaces misspellings and words whose pieces mislead
            (`WordVectors.replacing`), adds to all other words, and leaves words as they are whose vectors are known to
            be unreliable (`WordVectors.unreliable`; how many is logged).
        freeze_embeddings: Whether the model's input embeddings are frozen, as in the paper; else vectors stop fitting.
        train_vectors: Whether the vectors themselves are trained.
        fine_tuned: Whether the model was fine-tuned, input embeddings included, from the one that the vectors are for.
            Then its embedding space has another fingerprint, though it has hardly moved, and is not asked for.
        induce_unknown: How words are read that are met in texts and stand in no pack, such as misspellings; by default
            as the model reads them. Not saved with the injector.

    Raises:
        ValueError: If the vectors do not fit the model: other embedding space or size, NaN, a special token as a word,
            or two words that the tokenizer cannot tell apart.

    Example:
        >>> injector = BertramEmbeddingInjector(classifier, tokenizer, vectors)
        >>> batch = injector.tokenizer(["A kumquat."], return_tensors="pt")
        >>> injector(**batch).logits.shape
        torch.Size([1, 2])
    """

    base_model_prefix = "model"
    accepts_loss_kwargs = False
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        vectors: WordVectors | Mapping[str, torch.Tensor],
        mode: Mode = "auto",
        *,
        freeze_embeddings: bool = True,
        train_vectors: bool = False,
        fine_tuned: bool = False,
        induce_unknown: UnknownWords | None = None,
    ) -> None:
        embedding = model.get_input_embeddings()
        if isinstance(embedding, InjectedEmbedding):
            raise ValueError("This model has an injector already. Add the vectors to it, or remove it first.")
        if type(embedding) is not nn.Embedding:
            raise ValueError(
                f"{type(model).__name__} has input embeddings of the type {type(embedding).__name__}; "
                "only a plain nn.Embedding can be injected into."
            )
        super().__init__(model.config)
        self.mode = mode
        self.packs: dict[str, dict[str, int]] = {}  # for each pack the rows of its words
        self._details: dict[str, dict[str, Any]] = {}  # what else is known of the words of each pack
        self._index = WordIndex(ignore_case=is_uncased(tokenizer))
        self._special_tokens = {self._index.key(token) for token in tokenizer.all_special_tokens}
        self._fingerprint = None if fine_tuned else embedding_fingerprint(embedding.weight)
        self._embedding_size = embedding.embedding_dim
        norms = embedding.weight.detach().float().norm(dim=1)
        norms = norms[norms > 0]  # the padding token's may be zero
        self._norm_range = (norms.min().item() / NORM_MARGIN, norms.max().item() * NORM_MARGIN)
        self.plain_tokenizer = tokenizer
        first_id = max(embedding.num_embeddings, len(tokenizer))
        self.tokenizer = splice_tokenizer(tokenizer, self._index, [], first_id, mode)
        pack = self._check_pack(vectors)  # before the model is touched
        InjectedEmbedding(model, first_id, trainable=train_vectors)  # sets itself into the model
        self.model = model
        if freeze_embeddings:
            embedding.weight.requires_grad_(False)
        self.register_state_dict_post_hook(_strip_prefix)
        self.register_load_state_dict_pre_hook(_restore_prefix)
        if len(pack):
            self._add_checked(pack, DEFAULT_PACK)
        self._met_rows: list[int] = []
        self.induce_unknown = induce_unknown

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.induce_unknown = self._induce_unknown  # a copy meets words of its own

    def __repr__(self) -> str:
        packs = ", ".join(f"{name} ({len(rows):,})" for name, rows in self.packs.items()) or "none"
        words = f"{len(self._index.rows):,} words"
        return f"{type(self).__name__}({type(self.model).__name__}, mode={self.mode!r}, {words}, packs: {packs})"

    @property
    def table(self) -> InjectedEmbedding:
        """The model's input embeddings with the table of vectors.

        Raises:
            RuntimeError: If the injector was removed from the model.
        """
        table = self.model.get_input_embeddings()
        if not hasattr(table, "first_id"):  # which wrappers around it, such as PEFT's, hand on
            raise RuntimeError("This injector was removed from its model. Make a new one to inject words again.")
        return table

    @property
    def backend(self) -> SplicingBackend:
        """The tokenizer's backend, which finds the words."""
        return self.tokenizer._tokenizer

    @property
    def induce_unknown(self) -> UnknownWords | None:
        """How words are read that stand in no pack; it may be changed, and None switches it off."""
        return self._induce_unknown

    @induce_unknown.setter
    def induce_unknown(self, unknown: UnknownWords | None) -> None:
        with _CHANGE:
            self._change_unknown(unknown)

    def _change_unknown(self, unknown: UnknownWords | None) -> None:
        for row in self._met_rows:
            self._free_row(row)
        self._induce_unknown = unknown
        if unknown is None:
            self.table.release(self._met_rows)
            self.backend.meet, self._met_rows = None, []
            return
        fingerprint = unknown.model.embedding_fingerprint()
        if self._fingerprint is not None and fingerprint != self._fingerprint:
            raise ValueError(
                f"The BERTRAM model of induce_unknown is for the embedding space {fingerprint}; this model has "
                f"{self._fingerprint}. Take one for this model."
            )
        if len(self._met_rows) < unknown.max_words:
            self.table.release(self._met_rows)
            empty = torch.zeros(unknown.max_words, self._embedding_size, dtype=self.table.vectors.dtype)
            self._met_rows = self.table.add(empty, torch.zeros(unknown.max_words, dtype=torch.bool))
            self.backend.words += [""] * (self.table.num_rows - len(self.backend.words))
            for row in self._met_rows:
                self.backend.words[row] = ""
        self.backend.meet = MetWords(unknown, self._put_met, self._met_rows[: unknown.max_words])

    def _free_row(self, row: int) -> None:
        """Takes a word that was met away."""
        if word := self.backend.words[row]:
            self._index.remove(word, row)
        self.backend.words[row] = ""
        self.backend.respelled.pop(row, None)
        self.backend.in_place.discard(row)

    def _put_met(self, rows: dict[str, int], right: dict[str, str], vectors: WordVectors | None) -> None:
        """Gives words that were met their rows, unless they stand in a pack."""
        with _CHANGE:
            self._put_words(rows, right, vectors)

    def _put_words(self, rows: dict[str, int], right: dict[str, str], vectors: WordVectors | None) -> None:
        beside = divide_by_mode(vectors, self.mode)[0] if vectors is not None else set()
        for word, row in rows.items():
            self._free_row(row)
            if self._index.key(word) in self._index.rows:
                continue
            self.backend.words[row] = word
            if word in right:
                self.backend.respelled[row] = right[word]
            elif vectors is not None:
                with torch.no_grad():
                    self.table.vectors[row] = vectors[word].to(self.table.vectors)
                self.table.is_beside[row] = word in beside
                if word not in beside:
                    self.backend.in_place.add(row)
            self._index.add(word, row)

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        start_positions: torch.Tensor | None = None,
        end_positions: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Runs the wrapped model; arguments that are not given are not passed on. Returns the model's own outputs.

        A label that is an injected word, as a masked language model may get, cannot be predicted and is ignored.
        """
        given = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
            "inputs_embeds": inputs_embeds,
            "labels": labels,
            "start_positions": start_positions,
            "end_positions": end_positions,
        }
        return self.model(**{name: value for name, value in given.items() if value is not None}, **kwargs)

    def pooling_mask(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the mask with which a mean over `last_hidden_state` is to be taken.

        A slash that was added to a word says nothing; in a mean it would take a share of its own.

        Args:
            input_ids: (..., T), from `injector.tokenizer`.
            attention_mask: (..., T); all tokens count if it is not given.

        Returns:
            (..., T), the attention mask without added slashes.

        Example:
            >>> batch = injector.tokenizer(["A kumquat."], return_tensors="pt")
            >>> mask = injector.pooling_mask(batch["input_ids"], batch["attention_mask"])
            >>> mask.sum() < batch["attention_mask"].sum()
            tensor(True)
        """
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        return mask.masked_fill(self.table.find_slashes(input_ids, self.backend.slash[0]), 0)

    def add(self, vectors: WordVectors | Mapping[str, torch.Tensor], name: str) -> None:
        """Adds a pack of vectors, or swaps the pack of this name. A word of several packs has the vector added last.

        Other threads may tokenise and run the model meanwhile. Encodings made earlier stay valid as long as the packs
        of their words are there, and until the next `add` after that, which may give the rows of words that are gone to
        others. A saved injector numbers its words anew when it is loaded.

        Args:
            vectors: The vectors.
            name: The pack's name. That of the vectors with which the injector was made is "default".
        """
        check_pack_name(name)
        pack = self._check_pack(vectors)
        with _CHANGE:
            earlier = self.packs.pop(name, {})
            self._add_checked(pack, name)
            self._forget(earlier)
            self.table.end_rest()

    def _add_checked(self, pack: WordVectors, name: str) -> None:
        beside, unreliable = divide_by_mode(pack, self.mode)
        if unreliable:
            logger.warning(
                f"{len(unreliable)} of {len(pack)} words are left as they are, as the reliability of their vectors is "
                f"below {MIN_RELIABILITY}: {', '.join(map(repr, sorted(unreliable)[:5]))}. Give more contexts, or "
                'inject them all the same with mode="slash".'
            )
            pack = pack.select(word for word in pack.words if word not in unreliable)
        # The vectors first: a word that another thread finds must have its own.
        rows = self.table.add(pack.embeddings, torch.tensor([word in beside for word in pack.words], dtype=torch.bool))
        self.packs[name] = dict(zip(pack.words, rows, strict=True))
        self._details[name] = {detail: getattr(pack, detail) for detail in ("encoder", *DETAILS)}
        self.backend.add_words(self.packs[name], set(pack.words) - beside)

    def remove_pack(self, name: str) -> None:
        """Takes a pack away; words that an earlier pack has too get its vector again.

        Raises:
            KeyError: If there is no such pack.
        """
        with _CHANGE:
            if name not in self.packs:
                raise KeyError(f"There is no pack {name!r}. Packs: {', '.join(self.packs) or 'none'}.")
            del self._details[name]
            self._forget(self.packs.pop(name))

    def _forget(self, rows: Mapping[str, int]) -> None:
        """Takes the words of a pack away."""
        for word, row in rows.items():
            self._index.remove(word, row)
        self.table.release(rows.values())

    @contextmanager
    def disabled(self) -> Iterator[None]:
        """Inside this block the tokenizer leaves all words as they are."""
        was_enabled, self.backend.enabled = self.backend.enabled, False
        try:
            yield
        finally:
            self.backend.enabled = was_enabled

    def pack(self, name: str = DEFAULT_PACK) -> WordVectors:
        """Returns the vectors of a pack as they are now, which training may have changed, as the embeddings may."""
        return self._pack(name, embedding_fingerprint(self.table.weight))

    def _pack(self, name: str, fingerprint: str) -> WordVectors:
        rows = list(self.packs[name].values())
        embeddings = self.table.vectors.detach()[rows].cpu()
        return WordVectors(list(self.packs[name]), embeddings, embedding_fingerprint=fingerprint, **self._details[name])

    def _check_pack(self, vectors: WordVectors | Mapping[str, torch.Tensor]) -> WordVectors:
        """Returns the vectors as [`WordVectors`], or raises if they cannot be injected; warns of wild norms."""
        pack = vectors if isinstance(vectors, WordVectors) else WordVectors.from_dict(vectors)
        if self._fingerprint is not None and pack.embedding_fingerprint not in (None, self._fingerprint):
            raise ValueError(
                f"The vectors belong to the embedding space {pack.embedding_fingerprint}; this model has "
                f"{self._fingerprint}. Induce them with a BERTRAM for this model; if it was fine-tuned from the model "
                "that they are for, say fine_tuned=True."
            )
        size = self._embedding_size
        if len(pack) and pack.embeddings.shape[1] != size:
            raise ValueError(f"The vectors have {pack.embeddings.shape[1]} dimensions, the model's embeddings {size}.")
        unusable = find_unusable(pack.words, self._index, self._special_tokens)
        if unusable:
            listed = "\n".join(f"- {word!r:.40} {reason}" for word, reason in list(unusable.items())[:MAX_LISTED])
            raise ValueError(
                f"{len(unusable)} of {len(pack)} words cannot be injected:\n{listed}\n"
                "Leave them out; `InjectionPolicy().select(vectors, tokenizer)` does."
            )
        norms = pack.norms()
        low, high = self._norm_range
        wild = [pack.words[row] for row in ((norms < low) | (norms > high)).nonzero()]
        if wild:
            logger.warning(
                f"{len(wild)} of {len(pack)} vectors have norms far outside the vocabulary's, {low:.2g} to {high:.2g} "
                f"with a margin: {', '.join(map(repr, wild[:5]))}. The model may not understand them."
            )
        return pack

    def remove(self) -> PreTrainedModel:
        """Takes the injector out of the model and returns the model as it was given."""
        self.table.uninstall(self.model)
        return self.model

    def bake(
        self, save_directory: str | os.PathLike, *, token_style: TokenStyle = "word"
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Writes an ordinary checkpoint and tokenizer that need no bertram_hf, and returns both; see [`bake`]."""
        listed = [row for row in self._index.rows.values() if row not in self._met_rows]
        words = {self.backend.words[row]: row for row in listed}
        rows = list(words.values())
        vectors = WordVectors(list(words), self.table.vectors.detach()[rows])
        is_beside = self.table.is_beside[rows].tolist()
        beside = {word for word, beside in zip(words, is_beside, strict=True) if beside}
        plain = copy.deepcopy(self.model)
        plain.get_input_embeddings().uninstall(plain)
        model, tokenizer = bake_words(plain, self.plain_tokenizer, vectors, beside, token_style=token_style)
        model.save_pretrained(save_directory)
        tokenizer.save_pretrained(save_directory)
        return model, tokenizer

    def save_pretrained(self, save_directory: str | os.PathLike, **kwargs: Any) -> None:
        """Saves the wrapped model, its tokenizer, and beside them the packs and settings.

        With bertram_hf imported, `AutoModel*`, `AutoTokenizer` and `pipeline` load the folder as well. Packs that an
        earlier save left in the folder, and that are no longer there, are deleted.
        """
        if kwargs.pop("push_to_hub", False):
            raise ValueError("push_to_hub would upload the model without its packs. Use injector.push_to_hub(repo_id).")
        folder = Path(save_directory)
        earlier = InjectorSettings.load(folder).packs if (folder / SETTINGS_NAME).is_file() else []
        self.model.save_pretrained(folder, **kwargs)
        mark_config(folder, type(self.model).__name__)
        self.tokenizer.save_pretrained(folder)
        fingerprint = embedding_fingerprint(self.table.weight)
        save_packs(folder, {name: self._pack(name, fingerprint) for name in self.packs}, earlier=earlier)
        settings = InjectorSettings(
            model_class=type(self.model).__name__,
            mode=self.mode,
            packs=list(self.packs),
            train_vectors=self.table.trainable,
            freeze_embeddings=not self.table.weight.requires_grad,
            fine_tuned=fingerprint != self._fingerprint,
            tokenizer_class=type(self.plain_tokenizer).__name__,
            first_id=self.table.first_id,
        )
        settings.save(folder)

    @classmethod
    def from_pretrained(
        cls, pretrained_model_name_or_path: str | os.PathLike, *model_args: Any, **kwargs: Any
    ) -> "BertramEmbeddingInjector":
        """Loads what `save_pretrained` wrote, from a folder or the Hub; arguments are passed to the wrapped model's.

        Raises:
            ValueError: If the folder holds no injector, or one of a model of another package.
        """
        folder = find_folder(pretrained_model_name_or_path, kwargs)
        name = InjectorSettings.load(folder).model_class
        model_class = getattr(transformers, name, None)
        if model_class is None:
            raise ValueError(
                f"{name} is no class of Transformers. Load the model with its own class, then: "
                "bertram_hf.injection.inject_saved(folder, model, tokenizer)."
            )
        if "config" not in kwargs:
            for_weights = {name: kwargs.pop(name) for name in ("dtype", "quantization_config") if name in kwargs}
            config, kwargs = AutoConfig.from_pretrained(folder, return_unused_kwargs=True, **kwargs)
            kwargs |= for_weights | {"config": config.wrapped() if isinstance(config, InjectedConfig) else config}
        model = model_class.from_pretrained(folder, *model_args, **kwargs)
        return inject_saved(folder, model, load_plain_tokenizer(folder))

    def push_to_hub(self, repo_id: str, *, private: bool | None = None, token: str | bool | None = None) -> str:
        """Uploads the whole, packs included, to a model repository on the Hub and returns its address."""
        return push_saved(self, repo_id, private=private, token=token)


def inject_saved(
    folder: str | os.PathLike, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> BertramEmbeddingInjector:
    """Injects the packs that were saved in `folder` into a model that is already loaded, and its tokenizer.

    Example:
        >>> injector.save_pretrained("my-classifier")
        >>> saved = inject_saved("my-classifier", classifier, tokenizer)
        >>> saved.tokenizer("a kumquat").input_ids == injector.tokenizer("a kumquat").input_ids
        True
    """
    folder = Path(folder)
    if isinstance(tokenizer._tokenizer, SplicingBackend):  # as `AutoTokenizer` loads it from the folder
        tokenizer = copy.copy(tokenizer)
        tokenizer._tokenizer = tokenizer._tokenizer.rust
    settings = InjectorSettings.load(folder)
    injector = BertramEmbeddingInjector(
        model,
        tokenizer,
        {},
        settings.mode,
        freeze_embeddings=settings.freeze_embeddings,
        train_vectors=settings.train_vectors,
        fine_tuned=settings.fine_tuned,
    )
    for name, vectors in load_packs(folder, settings.packs).items():
        injector.add(vectors, name)
    return injector


def _strip_prefix(module: nn.Module, state_dict: dict[str, Any], prefix: str, metadata: Any) -> None:
    """Names weights as the wrapped model does, so that checkpoints of the injector are checkpoints of the model.

    Inside of another module, such as a `PeftModel`, weights are named as that expects.
    """
    if prefix:
        return
    _rename(state_dict, {key: key.removeprefix("model.") for key in state_dict})


def _restore_prefix(module: nn.Module, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Undoes `_strip_prefix` before weights are loaded."""
    if prefix:
        return
    _rename(state_dict, {key: f"model.{key}" for key in state_dict})


def _rename(state_dict: dict[str, Any], names: Mapping[str, str]) -> None:
    renamed = {names[key]: value for key, value in state_dict.items()}
    state_dict.clear()
    state_dict.update(renamed)
