"""One call that induces the vectors of many words."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch

from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..utils.models import half_precision, in_eval_mode
from ..utils.names import Precision
from ..utils.paths import hide_paths
from ..utils.progress import progress_bar
from .batching import CPU_TOKENS_PER_BATCH, GPU_TOKENS_PER_BATCH, ContextWindows, encode_words
from .checks import check_processor_fits, find_failing_words, refuse_failing_words
from .definitions import add_definitions
from .reliability import assess_vectors
from .word_vectors import WordVectors

logger = logging.getLogger(__name__)
SMALLEST_SHARE = 0.01  # of a look-alike in a vector, to be told
IGNORED_BY_FORM_MODEL = "the model reads the form only"


@torch.inference_mode()
def induce_vectors(
    model: BertramModel,
    processor: BertramProcessor,
    contexts: Mapping[str, Sequence[str]],
    *,
    definitions: Mapping[str, Sequence[str]] | None = None,
    max_tokens_per_batch: int | None = None,
    errors: Literal["raise", "skip"] = "raise",
    look_alikes: bool = True,
    dtype: Precision | None = None,
    show_progress: bool = True,
    warn: bool = True,
) -> WordVectors:
    """Induces one vector for each word.

    Contexts of different words share batches, sorted by length. The token limit bounds the memory of the encoder; the
    result does not depend on it. What is kept per context is one vector until its word is done.

    Args:
        model: The model, on any device; it is run in eval mode.
        processor: Its processor.
        contexts: For each word the texts that contain it; an empty list for spelling alone.
        definitions: For each word texts about it that need not hold it, such as "a small sour citrus fruit". They count
            as further contexts behind the others.
        max_tokens_per_batch: Limit of padded tokens in a batch. Default: 1,024 on a CPU, 32,768 elsewhere.
        errors: Whether a word that cannot have a vector raises, before anything is computed, or is left out and listed
            in `WordVectors.failed`.
        look_alikes: Whether words may be taken for misspellings, by a model that has learnt that.
        dtype: Precision in which the encoder is run; all else keeps the model's own. Default: bfloat16 on a GPU that is
            fast at it, the model's own elsewhere. `"auto"` is bfloat16 on processors that are fast at it, too.
        show_progress: Whether a run of more than a few seconds shows a progress bar.
        warn: Whether to warn of words that stand in none of their contexts, and of a processor for another mode.
            Single contexts that were not used are listed in `WordVectors.dropped_contexts`.

    Returns:
        The vectors, in the order of `contexts`.

    Raises:
        WordError: If a word cannot have a vector: it is empty, a context-only model has no context with it, or
            white-space matching fails where the released code does. The message lists all such words.
        ValueError: If the processor does not fit the model.

    Example:
        >>> vectors = induce_vectors(model, processor, {"kumquat": ["She peeled a kumquat."]})
        >>> vectors["kumquat"].shape
        torch.Size([768])
    """
    if not isinstance(contexts, Mapping):
        raise TypeError(f"Expected a mapping from words to lists of contexts; got {type(contexts).__name__}.")
    if definitions is not None:
        contexts = add_definitions(contexts, definitions)
    if max_tokens_per_batch is None:
        max_tokens_per_batch = CPU_TOKENS_PER_BATCH if model.device.type == "cpu" else GPU_TOKENS_PER_BATCH
    if max_tokens_per_batch < 1:
        raise ValueError(f"max_tokens_per_batch must be positive; got {max_tokens_per_batch}.")
    if errors not in ("raise", "skip"):
        raise ValueError(f"errors must be raise or skip; got {errors!r}.")
    check_processor_fits(model, processor, warn=warn)
    failed = find_failing_words(model, processor, contexts)
    if errors == "raise":
        refuse_failing_words(failed, len(contexts))
    with in_eval_mode(model), encoder_in(model, dtype):
        vectors = _induce(model, processor, contexts, failed, max_tokens_per_batch, look_alikes, show_progress)
    vectors.encoder = hide_paths(model.config.encoder_name_or_path)
    if warn and model.config.has_context:
        lost = [word for word in vectors.dropped_contexts if not vectors.used_contexts[word]]
        if lost:
            logger.warning(
                f"{len(lost)} words stand in none of their contexts, such as {', '.join(map(repr, lost[:5]))}; their "
                "vectors come from the spelling alone. Give texts that contain the word as it is written."
            )
    return vectors


@contextmanager
def encoder_in(model: BertramModel, precision: Precision | None) -> Iterator[None]:
    """Runs the block with the model's encoder in another precision, by default in half precision on a GPU."""
    before = model.encoder_dtype
    if precision is None and before is None and model.device.type == "cuda" and model.dtype == torch.float32:
        precision = "auto"
    if precision is not None:
        model.encoder_dtype = half_precision(precision, model.device)
    try:
        yield
    finally:
        model.encoder_dtype = before


def _induce(
    model: BertramModel,
    processor: BertramProcessor,
    contexts: Mapping[str, Sequence[str]],
    failed: dict[str, str],
    max_tokens: int,
    mix_look_alikes: bool,
    show_progress: bool,
) -> WordVectors:
    config = model.config
    words = [word for word in contexts if word not in failed]
    form_embeddings: Any = encode_words(model, processor, words, max_tokens) if config.has_form else None
    if not config.has_context:
        ignored = {
            word: dict.fromkeys(range(len(contexts[word])), IGNORED_BY_FORM_MODEL) for word in words if contexts[word]
        }
        return WordVectors(
            words, form_embeddings.cpu(), model.embedding_fingerprint(), dropped_contexts=ignored, failed=failed
        )
    word_embeddings: list[torch.Tensor] = []
    weights: dict[str, torch.Tensor] = {}
    found_alike = processor.find_look_alikes(words) if mix_look_alikes else {}
    look_alikes = {name: tensor.to(model.device) for name, tensor in found_alike.items()}
    shares: dict[str, dict[str, float]] = {}
    assessed: dict[str, Any] = {}  # by the names of `DETAILS`

    def finish_words(end: int, rows: torch.Tensor, embeddings: torch.Tensor) -> None:
        """Finishes the words from the first unfinished one up to `end`."""
        start = len(weights)
        num_contexts = torch.bincount(rows - start, minlength=end - start)
        form = None if form_embeddings is None else form_embeddings[start:end]
        found = {name: tensor[start:end] for name, tensor in look_alikes.items()}
        counts = num_contexts.to(model.device)
        outputs: Any = model.finish(form, embeddings, counts, **found)
        if found:
            named = name_look_alikes(processor, words[start:end], found["look_alike_ids"], outputs.look_alike_weights)
            shares.update(named)
        readings = (form, embeddings, counts, outputs.word_embeddings)
        for name, values in assess_vectors(model, words[start:end], *readings).items():
            assessed.setdefault(name, {}).update(values)
        word_embeddings.append(outputs.word_embeddings.cpu())
        weights.update(zip(words[start:end], outputs.context_weights.cpu().split(num_contexts.tolist()), strict=True))

    rows = torch.empty(0, dtype=torch.long)
    embeddings = torch.empty(0, config.readings_size, dtype=model.dtype, device=model.device)
    with progress_bar(
        total=sum(len(contexts[word]) for word in words),
        desc="Inducing vectors",
        unit="context",
        show_progress=show_progress,
    ) as progress:
        windows = ContextWindows(
            model, processor, words, contexts, form_embeddings, max_tokens=max_tokens, progress=progress
        )
        for window_rows, encoded in windows:
            rows, embeddings = torch.cat([rows, window_rows]), torch.cat([embeddings, encoded])
            # The last word of the window may go on in the next one; all words before it are complete.
            num_complete = int((rows < rows[-1]).sum())
            finish_words(int(rows[-1]), rows[:num_complete], embeddings[:num_complete])
            rows, embeddings = rows[num_complete:], embeddings[num_complete:]
        finish_words(len(words), rows, embeddings)
    return WordVectors(
        words,
        torch.cat(word_embeddings),
        model.embedding_fingerprint(),
        context_weights=weights,
        used_contexts=windows.used,
        dropped_contexts=windows.dropped,
        failed=failed,
        look_alikes=shares,
        **assessed,
    )


def name_look_alikes(
    processor: BertramProcessor, words: Sequence[str], token_ids: torch.Tensor, shares: torch.Tensor
) -> dict[str, dict[str, float]]:
    """Returns, for each word, the known words with a share in its vector that is worth telling, largest first."""
    assert processor.look_alikes is not None
    named: dict[str, dict[str, float]] = {}
    shares, token_ids = shares.float().cpu(), token_ids.cpu()
    for row, column in (shares >= SMALLEST_SHARE).nonzero().tolist():
        name = processor.look_alikes.name(int(token_ids[row, column]))
        named.setdefault(words[row], {})[name] = round(shares[row, column].item(), 4)
    return {word: dict(sorted(known.items(), key=lambda item: -item[1])) for word, known in named.items()}
