"""Ways to teach a model the words of a domain, for the tasks beside this file, and what they gain."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from bertram_hf import BertramEmbeddingInjector, WordVectors
from bertram_hf.evaluation.statistics import bootstrap_interval
from bertram_hf.induction import mean_piece_vectors
from bertram_hf.utils.names import Mode

NEW_TOKENS = "new tokens"
# Of every fine-tuning: half precision on the processor, and no files or bars.
TRAINING: dict[str, Any] = {"bf16": True, "use_cpu": True, "warmup_steps": 0.1}
TRAINING |= {"save_strategy": "no", "report_to": "none", "disable_tqdm": True, "logging_strategy": "no"}
Systems = dict[str, tuple[WordVectors | None, Mode]]


def new_tokens(encoder: PreTrainedModel, own: WordVectors) -> WordVectors:
    """Returns vectors of the same words as Transformers makes them of new tokens: the mean of the vocabulary."""
    mean = encoder.get_input_embeddings().weight.detach().mean(dim=0)
    return WordVectors(own.words, mean.expand(len(own), -1).clone(), own.embedding_fingerprint)


def read_systems(folder: str, plain: SentenceTransformer) -> Systems:
    """Returns the vectors of each system, and how they are injected.

    Args:
        folder: What `bertram adapt` wrote for the plain model.
        plain: That model.
    """
    injector = SentenceTransformer(folder, trust_remote_code=True, device="cpu")[0].injector
    own = injector.pack()
    encoder = plain[0].model
    pieces = mean_piece_vectors(encoder, plain[0].tokenizer, own.words)
    return {
        "plain": (None, "replace"),
        "bertram-pieces, auto": (own, "auto"),
        "bertram-pieces, replace": (own, "replace"),
        "mean of pieces, slash": (pieces, "slash"),
        NEW_TOKENS: (new_tokens(encoder, own), "replace"),
    }


def inject(
    model: Any, tokenizer: PreTrainedTokenizerBase, vectors: WordVectors | None, mode: Mode, *, trained: bool
) -> tuple[Any, PreTrainedTokenizerBase]:
    """Returns a model and a tokenizer that know the vectors, ready for the Trainer."""
    if vectors is None:
        return model, tokenizer
    injector = BertramEmbeddingInjector(model, tokenizer, vectors, mode, freeze_embeddings=False, train_vectors=trained)
    return injector, injector.tokenizer


def compare(score: Callable[[Any, np.ndarray], float], plain: Any, found: Any, num_items: int) -> dict[str, float]:
    """Returns the score of a system, and its gain over the plain model with a 95% interval by paired bootstrap.

    Args:
        score: Takes the answers of a system, and which items (N,) count.
        plain: The plain model's answers.
        found: The system's answers.
        num_items: N.
    """

    def gain(items: np.ndarray) -> float:
        return score(found, items) - score(plain, items)

    everything = np.arange(num_items)
    low, high = bootstrap_interval(num_items, gain)
    scores = {"score": score(found, everything), "gain": gain(everything), "low": low, "high": high}
    return {name: round(float(value), 4) for name, value in scores.items()}
