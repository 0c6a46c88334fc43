"""The systems that are compared: where each takes the vectors of rare words from."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..configuration_bertram import BertramConfig
from ..evaluation.recovery import POOL_FACTOR
from ..induction.draws import ContextDraws
from ..induction.induce import induce_vectors
from ..induction.piece_vectors import mean_piece_vectors
from ..induction.word_vectors import WordVectors
from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..training.recipe import SET_AFTER_TRAINING
from ..utils.files import read_json
from ..utils.models import half_precision

PLAIN, PIECES, ORIGINAL = "plain", "pieces", "original"


class VectorSource:
    """Vectors of rare words from one system.

    Args:
        model: `"pieces"`, or the folder or Hub name of a trained model.
        encoder: The encoder, which slim checkpoints do not hold.
        tokenizer: Its tokenizer.

    Example:
        >>> source = VectorSource("my-bertram", encoder, tokenizer)
        >>> source.induce({"kumquat": ["She peeled a kumquat."]}).words
        ['kumquat']
    """

    def __init__(self, model: str, encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.encoder, self.tokenizer = encoder, tokenizer
        self.model: BertramModel | None = None
        if model != PIECES:
            self.model = BertramModel.from_pretrained(model, encoder=encoder).eval().to(encoder.device)
            self.model.encoder_dtype = half_precision("auto", encoder.device)  # as in training
            self.processor = BertramProcessor.from_pretrained(model)

    def induce(self, contexts: Mapping[str, Sequence[str]], *, show_progress: bool = True) -> WordVectors:
        """Returns the vectors of words. A word that cannot have one, such as a word without contexts for a model that
        reads nothing else, keeps its pieces, as in the paper; it is listed in `failed`."""
        if self.model is None:
            return mean_piece_vectors(self.encoder, self.tokenizer, list(contexts))
        return induce_vectors(self.model, self.processor, contexts, errors="skip", show_progress=show_progress)

    def draws(
        self, contexts: Mapping[str, Sequence[str]], *, max_contexts: int, seed: int, show_progress: bool = True
    ) -> tuple[list[str], Callable[[int], torch.Tensor]]:
        """Returns words, and a function that induces their vectors (W, H) from a random choice of so many contexts."""
        if self.model is None:
            vectors = mean_piece_vectors(self.encoder, self.tokenizer, list(contexts))
            return vectors.words, lambda number: vectors.embeddings
        drawn = ContextDraws(
            self.model, self.processor, contexts, max_contexts=max_contexts, seed=seed, show_progress=show_progress
        )
        return drawn.words, drawn.induce

    def draw_vectors(
        self, contexts: Mapping[str, Sequence[str]], *, max_contexts: int, seed: int, show_progress: bool = True
    ) -> Callable[[int], WordVectors]:
        """Returns a function that induces vectors, ready to be injected, from a random choice of so many contexts."""
        if self.model is None:
            vectors = mean_piece_vectors(self.encoder, self.tokenizer, list(contexts))
            return lambda number: vectors
        return ContextDraws(
            self.model, self.processor, contexts, max_contexts=max_contexts, seed=seed, show_progress=show_progress
        ).induce_words

    def reads_contexts(self) -> bool:
        """Whether contexts make a difference."""
        return self.model is not None and self.model.config.has_context

    def choose_numbers(self, num_contexts: Sequence[int]) -> list[int]:
        """Returns the numbers of contexts that make a difference: 0 alone if none does, and 0 not for a model that
        reads nothing else."""
        if self.model is None or not self.model.config.has_context:
            return [0]
        return [number for number in num_contexts if number or self.model.config.has_form]


class DrawnVectors:
    """Vectors of one system from random choices of contexts, which serve every mode of injection.

    Args:
        source: The system.
        contexts: For each word its contexts.
        num_contexts: Numbers of contexts to try.
        num_draws: How many choices are made for each number.
        seed: Seed of all choices.
        show_progress: Whether to show progress bars.

    Attributes:
        numbers: The numbers that make a difference; 0 alone if none does.
        num_draws: How many choices were made; one if contexts make no difference.
        failed: Words that got no vector.

    Raises:
        ValueError: If the system reads contexts only and is to be tried without any.
    """

    def __init__(
        self,
        source: VectorSource,
        contexts: Mapping[str, Sequence[str]],
        *,
        num_contexts: Sequence[int],
        num_draws: int,
        seed: int,
        show_progress: bool,
    ) -> None:
        self.numbers = source.choose_numbers(num_contexts)
        self.num_draws = num_draws if source.reads_contexts() else 1
        if not self.numbers:
            raise ValueError(
                f"num_contexts: expected a number above 0, as the model reads contexts only; got {list(num_contexts)}."
            )
        draw = source.draw_vectors(
            contexts, max_contexts=POOL_FACTOR * max(num_contexts), seed=seed, show_progress=show_progress
        )
        self._vectors = {
            number: [draw(number) for _ in range(self.num_draws if number else 1)] for number in self.numbers
        }
        self.failed = {word for drawn in self._vectors.values() for vectors in drawn for word in vectors.failed}

    def replay(self) -> Callable[[int], WordVectors]:
        """Returns a function that gives the vectors for a number of contexts, at each call the next ones."""
        remaining = {number: iter(drawn) for number, drawn in self._vectors.items()}
        return lambda number: next(remaining[number])


@cache
def name_model(model: str) -> str:
    """Names a model by its weights, and what is set after training, if it is a folder; else by its name."""
    weights, config = Path(model) / "model.safetensors", Path(model) / "config.json"
    if not weights.is_file():
        return model
    digest = hashlib.sha256(weights.read_bytes())
    found = read_json(config) if config.is_file() else {}
    if found.get("piece_strength") is not None:
        defaults = {name: getattr(BertramConfig, name) for name in (*SET_AFTER_TRAINING, "reliability")}
        values = {name: found.get(name, default) for name, default in defaults.items()}
        digest.update(json.dumps([value for name, value in values.items() if value != defaults[name]]).encode())
    return digest.hexdigest()[:32]
