"""Injected sentence-transformers models; needs `pip install bertram-hf[sentence-transformers]`."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, WordWeights
from transformers import PreTrainedConfig

from ..induction.word_vectors import WordVectors
from .baking import SLASH, bake
from .configuration import InjectedConfig
from .injector import BertramEmbeddingInjector, inject_saved
from .saving import InjectorSettings
from .tokenizer import Mode
from .unknown_words import UnknownWords

# Poolings that can leave a token out by its weight alone.
WEIGHTED_POOLINGS = {"cls", "lasttoken", "mean", "mean_sqrt_len_tokens"}


class InjectedTransformer(Transformer):
    """The first module of a `SentenceTransformer`, with an injector around its encoder.

    It is made by [`inject_sentence_transformer`] and by loading what that was saved as. Weights keep their names.
    """

    @property
    def injector(self) -> BertramEmbeddingInjector:
        """The injector, for packs of words: `add`, `remove_pack`, `pack`, `disabled`."""
        return self._injector[0]

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Runs the encoder, and hands `Pooling` a mask without the slashes and vectors that were added to words."""
        features = super().forward(features, **kwargs)
        if "input_ids" in features and "attention_mask" in features:
            mask = self.injector.pooling_mask(features["input_ids"], features["attention_mask"])
            features["attention_mask"] = mask
        return features

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Saves encoder and tokenizer as without an injector, and beside them its packs and settings."""
        self.injector.save_pretrained(output_path, safe_serialization=safe_serialization)
        self.save_config(output_path)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> "InjectedTransformer":
        """Loads what `save` wrote, from a folder or the Hub; `SentenceTransformer(path)` calls this.

        Raises:
            ValueError: If the folder holds no injector.
        """
        place = (model_name_or_path, subfolder, token, cache_folder, revision, local_files_only)
        folder = Path(cls.load_dir_path(*place) or model_name_or_path)
        InjectorSettings.load(folder)  # before the encoder is loaded: is there an injector at all?
        transformer = super().load(*place, *args, **kwargs)
        transformer._install(inject_saved(folder, transformer.model, transformer.processor))
        return transformer

    def _load_config(self, *args: Any, **kwargs: Any) -> tuple[PreTrainedConfig, bool]:
        """Returns the encoder's own configuration, so that the encoder is loaded without an injector around it."""
        config, is_peft_model = super()._load_config(*args, **kwargs)
        return config.wrapped() if isinstance(config, InjectedConfig) else config, is_peft_model

    def _install(self, injector: BertramEmbeddingInjector) -> None:
        self._injector = [injector]  # in a list, so that it is no submodule: it holds the encoder a second time
        self.processor = injector.tokenizer


def inject_sentence_transformer(
    model: SentenceTransformer,
    vectors: WordVectors | Mapping[str, torch.Tensor],
    mode: Mode = "auto",
    *,
    induce_unknown: UnknownWords | None = None,
) -> SentenceTransformer:
    """Returns a copy of a sentence-transformers model that represents rare words by their vectors.

    The given model stays as it is. A text without a word is embedded exactly as before, bit for bit if its batch is
    padded as before; so an index needs new embeddings only for texts that contain a word. The copy saves itself with
    `save_pretrained`; where bertram_hf is installed, `SentenceTransformer(path, trust_remote_code=True)` loads it.
    sentence-transformers wants that flag for every module that is not its own.

    Args:
        model: A text model whose first module is sentence-transformers' `Transformer`: also a `CrossEncoder`,
            `SparseEncoder` or `MultiVectorEncoder`.
        vectors: Vectors for the model's encoder.
        mode: See [`BertramEmbeddingInjector`].
        induce_unknown: How words are read that stand in no pack, such as misspellings. Not saved with the model.

    Returns:
        The copy; `copy[0].injector` adds and removes packs of words.

    Raises:
        ValueError: If the model cannot be injected into, or the vectors do not fit it.

    Example:
        >>> from sentence_transformers import CrossEncoder, SentenceTransformer
        >>> injected = inject_sentence_transformer(SentenceTransformer("bert-base-uncased"), vectors)
        >>> injected.encode(["A kumquat."]).shape
        (1, 768)
    """
    transformer = _text_transformer(model)
    injected = InjectedTransformer.__new__(InjectedTransformer)
    copies: dict[int, Any] = {id(transformer): injected}  # deepcopy then puts it in the first module's place
    injected.__setstate__(copy.deepcopy(transformer.__dict__, copies))
    injected._prompt_length_mapping.clear()  # a prompt may contain a word
    injected._install(
        BertramEmbeddingInjector(injected.model, injected.processor, vectors, mode, induce_unknown=induce_unknown)
    )
    return copy.deepcopy(model, copies)


def bake_sentence_transformer(
    model: SentenceTransformer, vectors: WordVectors | Mapping[str, torch.Tensor], mode: Mode = "auto"
) -> SentenceTransformer:
    """Returns a copy of a sentence-transformers model that knows words by itself; see [`bake`].

    What it saves needs neither bertram_hf nor `trust_remote_code`. Slashes beside words are tokens of their own, which
    sentence-transformers' `WordWeights` leaves out of the mean.

    Args:
        model: A text model whose first module is sentence-transformers' `Transformer`; it stays as it is.
        vectors: Vectors for the model's encoder.
        mode: See [`BertramEmbeddingInjector`].

    Raises:
        ValueError: If the model cannot be baked into, or words cannot become tokens.

    Example:
        >>> from sentence_transformers import CrossEncoder, SentenceTransformer
        >>> baked = bake_sentence_transformer(SentenceTransformer("bert-base-uncased"), vectors)
        >>> baked.tokenizer.tokenize("a kumquat")[-1]
        '⟦kumquat⟧'
    """
    transformer = _text_transformer(model)
    encoder, tokenizer = bake(transformer.model, transformer.processor, vectors, mode=mode)
    copies: dict[int, Any] = {id(transformer.model): encoder, id(transformer.processor): tokenizer}
    baked = copy.deepcopy(model, copies)
    baked[0]._prompt_length_mapping.clear()  # a prompt may contain a word
    if SLASH not in tokenizer.get_vocab() or isinstance(model, CrossEncoder):  # which pools nothing
        return baked
    _check_pooling(model)
    tokens: list[str] = tokenizer.convert_ids_to_tokens(list(range(encoder.get_input_embeddings().num_embeddings)))
    weights = WordWeights([token or "" for token in tokens], {SLASH: 0.0}).to(model.device)
    first, *others = baked
    baked._modules = {str(number): module for number, module in enumerate([first, weights, *others])}
    return baked


def _check_pooling(model: SentenceTransformer) -> None:
    """Raises a ValueError if the slashes beside words would take part in what a model gives."""
    (pooling,) = [module for module in model if isinstance(module, Pooling)] or [None]
    if pooling is None:
        found = type(model).__name__
    else:
        modes = {pooling.pooling_mode} if isinstance(pooling.pooling_mode, str) else set(pooling.pooling_mode)
        if modes <= WEIGHTED_POOLINGS and pooling.include_prompt:
            return
        found = ", ".join(sorted(modes - WEIGHTED_POOLINGS)) or "include_prompt=False"
    raise ValueError(
        f"Expected a pooling that can leave tokens out by their weight ({', '.join(sorted(WEIGHTED_POOLINGS))}, with "
        f'the prompt); got {found}. Bake with mode="replace", or keep the injected model.'
    )


def _text_transformer(model: SentenceTransformer) -> Transformer:
    """Returns the first module of a model.

    Raises:
        ValueError: If vectors cannot be injected into it.
    """
    transformer = model[0]
    if isinstance(transformer, InjectedTransformer):
        raise ValueError("This model has an injector already. Add the vectors with `model[0].injector.add`.")
    if type(transformer) is not Transformer:
        raise ValueError(f"The first module must be a Transformer; got {type(transformer).__name__}.")
    if transformer.backend != "torch" or transformer.processor is not transformer.tokenizer:
        raise ValueError(
            f"Expected a text model with the backend torch; got {type(transformer.processor).__name__} and the "
            f"backend {transformer.backend}. Load the model without `backend`, or take a text-only model."
        )
    return transformer
