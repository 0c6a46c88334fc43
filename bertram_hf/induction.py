"""One call that induces the vectors of many words."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from .configuration_bertram import BertramConfig
from .form_tokenization import NO_UNIT
from .machine_paths import hide_paths
from .modeling_bertram import BertramModel
from .processing_bertram import PREFIX_OF_MODE, WORD_NOT_FOUND, BertramProcessor, pad_rows
from .word_matching import WordError
from .word_vectors import WordVectors

logger = logging.getLogger(__name__)

# How many contexts are tokenised and sorted by length at a time.
CONTEXTS_PER_WINDOW = 8192
# Padded tokens per batch if the caller does not say: small batches stay in a processor's cache, a GPU wants large ones.
CPU_TOKENS_PER_BATCH = 1024
GPU_TOKENS_PER_BATCH = 32768
# An n-gram or character costs far less than a token that runs through the encoder.
FORM_UNITS_PER_TOKEN = 16
SECONDS_BEFORE_PROGRESS = 3
SMALLEST_SHARE = 0.01  # of a look-alike in a vector, to be told
IGNORED_BY_FORM_MODEL = "the model reads the form only"


@torch.inference_mode()
def induce_vectors(
    model: BertramModel,
    processor: BertramProcessor,
    contexts: Mapping[str, Sequence[str]],
    *,
    max_tokens_per_batch: int | None = None,
    errors: Literal["raise", "skip"] = "raise",
    look_alikes: bool = True,
    show_progress: bool = True,
) -> WordVectors:
    """Induces one vector for each word.

    Contexts of different words share batches, sorted by length. The token limit bounds the memory of the encoder; the
    result does not depend on it. What is kept per context is one vector until its word is done.

    Args:
        model: The model, on any device; it is run in eval mode.
        processor: Its processor.
        contexts: For each word the texts that contain it; an empty list for spelling alone.
        max_tokens_per_batch: Limit of padded tokens in a batch. Default: 1,024 on a CPU, 32,768 elsewhere.
        errors: Whether a word that cannot have a vector raises, before anything is computed, or is left out and listed
            in `WordVectors.failed`.
        look_alikes: Whether words may be taken for misspellings, by a model that has learnt that.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Returns:
        The vectors, in the order of `contexts`.

    Raises:
        WordError: If a word cannot have a vector: it is empty, a context-only model has no context with it, or
            white-space matching fails where the released code does. The message lists all such words.
        ValueError: If the processor does not fit the model.
    """
    if not isinstance(contexts, Mapping):
        raise TypeError(f"Expected a mapping from words to lists of contexts; got {type(contexts).__name__}.")
    if max_tokens_per_batch is None:
        max_tokens_per_batch = CPU_TOKENS_PER_BATCH if model.device.type == "cpu" else GPU_TOKENS_PER_BATCH
    if max_tokens_per_batch < 1:
        raise ValueError(f"max_tokens_per_batch must be positive; got {max_tokens_per_batch}.")
    if errors not in ("raise", "skip"):
        raise ValueError(f"errors must be raise or skip; got {errors!r}.")
    check_processor_fits(model, processor)
    failed = find_failing_words(model, processor, contexts)
    if errors == "raise":
        refuse_failing_words(failed, len(contexts))
    was_training = model.training
    model.eval()
    try:
        vectors = _induce(model, processor, contexts, failed, max_tokens_per_batch, look_alikes, show_progress)
    finally:
        model.train(was_training)
    vectors.encoder = hide_paths(model.config.encoder_name_or_path)
    num_dropped = sum(len(dropped) for dropped in vectors.dropped_contexts.values())
    if num_dropped and model.config.has_context:
        logger.warning(
            f"{num_dropped} contexts do not hold their word and were not used; see WordVectors.dropped_contexts."
        )
    return vectors


def refuse_failing_words(failed: Mapping[str, str], num_words: int) -> None:
    """Raises a WordError that says why words cannot have a vector, if there are any."""
    if failed:
        listed = "\n".join(f"- {reason}" for reason in list(failed.values())[:10])
        raise WordError(
            f"{len(failed)} of {num_words} words cannot have a vector:\n{listed}\n"
            'Mend them, or leave them out: errors="skip", on the command line --skip-errors.'
        )


def check_is_bertram(model: PreTrainedModel) -> None:
    """Raises a ValueError if the model is another one, such as the encoder that vectors are wanted for."""
    found = model.config.model_type
    if found != BertramConfig.model_type:
        raise ValueError(
            f"Expected a BERTRAM model; {model.name_or_path or type(model).__name__} is a {found} model. Give the "
            "folder of the BERTRAM model; the encoder that it was trained for is given as encoder= (--encoder)."
        )


def check_processor_fits(model: BertramModel, processor: BertramProcessor) -> None:
    """Raises a ValueError if the processor makes ids that the model has no weights for; warns if their modes differ."""
    check_is_bertram(model)
    config = model.config
    if config.has_form:
        num_units = None if processor.form is None else len(processor.form)
        if num_units != config.form_vocab_size:
            raise ValueError(
                f"The model has embeddings for {config.form_vocab_size} n-grams or characters; the processor's form "
                f"vocabulary has {num_units}. Use the processor that was saved with the model."
            )
    if config.look_alikes != (processor.look_alikes is not None):
        has, other = ("has", "knows no") if config.look_alikes else ("has no", "knows")
        raise ValueError(
            f"The model {has} weights for look-alikes, but the processor {other} words that others may be misspellings "
            "of. Use the processor that was saved with the model."
        )
    if not config.has_context:
        return
    num_embeddings = model.get_input_embeddings().weight.shape[0]
    if len(processor.tokenizer) > num_embeddings:
        raise ValueError(
            f"The tokenizer has {len(processor.tokenizer)} tokens, the encoder {num_embeddings} embeddings. "
            "Use the tokenizer that was saved with the model."
        )
    max_positions = getattr(config.text_config, "max_position_embeddings", None)
    if max_positions is not None and 0 < max_positions < processor.max_length:
        raise ValueError(
            f"The processor's max_length is {processor.max_length}, the encoder has {max_positions} positions. "
            "Set processor.max_length to at most that."
        )
    prefix = PREFIX_OF_MODE.get(config.mode, "none")
    if processor.prefix != prefix:
        logger.warning(
            f"The model's mode {config.mode!r} goes with the prefix {prefix!r}, but the processor writes "
            f"{processor.prefix!r}. This is how some released checkpoints were trained; otherwise it is a mistake."
        )


def find_failing_words(
    model: BertramModel, processor: BertramProcessor, contexts: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Returns why words cannot have a vector. Finding words is cheap, so it is done for all before the encoder runs."""
    failed: dict[str, str] = {}
    for word, word_contexts in contexts.items():
        try:
            if not model.config.has_form and len(word_contexts) == 0:
                raise WordError(f"{word!r} has no contexts, and a context-only model cannot do without.")
            located = processor.locate(word, word_contexts if model.config.has_context else [])
            if not model.config.has_form and not any(parts is not None for parts in located):
                raise WordError(f"None of the {len(located)} contexts of {word!r} holds it.")
        except WordError as error:
            failed[word] = str(error)
    return failed


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
    used: dict[str, list[int]] = {word: [] for word in words}
    dropped: dict[str, dict[int, str]] = {}
    word_embeddings: list[torch.Tensor] = []
    weights: dict[str, torch.Tensor] = {}
    found_alike = processor.find_look_alikes(words) if mix_look_alikes else {}
    look_alikes = {name: tensor.to(model.device) for name, tensor in found_alike.items()}
    shares: dict[str, dict[str, float]] = {}

    def finish_words(end: int, rows: torch.Tensor, embeddings: torch.Tensor) -> None:
        """Combines the words from the first unfinished one up to `end`."""
        start = len(weights)
        num_contexts = torch.bincount(rows - start, minlength=end - start)
        form = None if form_embeddings is None else form_embeddings[start:end]
        num_contexts_here = num_contexts.to(model.device)
        combined, context_weights = model.combine(form, embeddings, num_contexts_here)
        if look_alikes:
            found = {name: tensor[start:end] for name, tensor in look_alikes.items()}
            combined, found_shares = model.mix_look_alikes(combined, num_contexts_here, **found)
            shares.update(_name_look_alikes(processor, words[start:end], found["look_alike_ids"], found_shares))
        word_embeddings.append(combined.cpu())
        weights.update(zip(words[start:end], context_weights.cpu().split(num_contexts.tolist()), strict=True))

    located = _locate_all(processor, words, contexts, used, dropped)
    rows = torch.empty(0, dtype=torch.long)
    embeddings = torch.empty(0, config.context_size, dtype=model.dtype, device=model.device)
    total = sum(len(contexts[word]) for word in words)
    progress = tqdm(
        total=total,
        desc="Inducing vectors",
        unit="context",
        delay=SECONDS_BEFORE_PROGRESS,
        disable=not show_progress,
    )
    with progress:
        while window := list(islice(located, CONTEXTS_PER_WINDOW)):
            window_rows = torch.tensor([row for row, _ in window])
            form = None if form_embeddings is None else form_embeddings[window_rows.to(model.device)]
            tokens = processor.encode_located([parts for _, parts in window])
            encoded = encode_tokens(model, processor, *tokens, form, max_tokens=max_tokens, progress=progress)
            rows, embeddings = torch.cat([rows, window_rows]), torch.cat([embeddings, encoded])
            # The last word of the window may go on in the next one; all words before it are complete.
            num_complete = int((rows < rows[-1]).sum())
            finish_words(int(rows[-1]), rows[:num_complete], embeddings[:num_complete])
            rows, embeddings = rows[num_complete:], embeddings[num_complete:]
        finish_words(len(words), rows, embeddings)
    return WordVectors(
        words, torch.cat(word_embeddings), model.embedding_fingerprint(), weights, used, dropped, failed, shares
    )


def _name_look_alikes(
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


def _locate_all(
    processor: BertramProcessor,
    words: Sequence[str],
    contexts: Mapping[str, Sequence[str]],
    used: dict[str, list[int]],
    dropped: dict[str, dict[int, str]],
) -> Iterator[tuple[int, list[str | int]]]:
    """Yields each context that holds its word, with the word's row, and notes in `used` and `dropped` which did."""
    for row, word in enumerate(words):
        for index, parts in enumerate(processor.locate(word, contexts[word])):
            if parts is None:
                dropped.setdefault(word, {})[index] = WORD_NOT_FOUND
            else:
                used[word].append(index)
                yield row, parts


def encode_tokens(
    model: BertramModel,
    processor: BertramProcessor,
    input_ids: Sequence[list[int]],
    mask_positions: Sequence[int],
    form_embeddings: torch.Tensor | None,
    *,
    max_tokens: int | None = None,
    progress: tqdm | None = None,
) -> torch.Tensor:
    """Encodes tokenised contexts in batches sorted by length.

    Args:
        model: The model.
        processor: Its processor.
        input_ids: Token ids of C contexts, special tokens and prefix included.
        mask_positions: Where the word stands in each.
        form_embeddings: (C, H), the form vector of each context's word; None if the model has no form part.
        max_tokens: Limit of padded tokens in a batch.
        progress: A bar to move.

    Returns:
        (C, hidden) in the order given, on the model's device.
    """
    if max_tokens is None:
        max_tokens = CPU_TOKENS_PER_BATCH if model.device.type == "cpu" else GPU_TOKENS_PER_BATCH
    encoded = torch.empty(len(input_ids), model.config.context_size, dtype=model.dtype, device=model.device)
    for batch in length_sorted_batches([len(ids) for ids in input_ids], max_tokens):
        padded = processor.pad_contexts([input_ids[i] for i in batch], [mask_positions[i] for i in batch])
        rows = torch.tensor(batch, device=model.device)
        form = None if form_embeddings is None else form_embeddings[rows]
        inputs = {name: tensor.to(model.device) for name, tensor in padded.items()}
        encoded[rows] = model.encode_contexts(**inputs, form_embeddings=form)
        if progress is not None:
            progress.update(len(batch))
    return encoded


def encode_words(
    model: BertramModel, processor: BertramProcessor, words: Sequence[str], max_tokens: int = CPU_TOKENS_PER_BATCH
) -> torch.Tensor:
    """Returns the form vectors (W, H) of words."""
    form_ids = [processor.encode_form(word) for word in words]
    encoded = torch.empty(len(words), model.config.embedding_size, dtype=model.dtype, device=model.device)
    for batch in length_sorted_batches([len(ids) for ids in form_ids], FORM_UNITS_PER_TOKEN * max_tokens):
        padded = pad_rows([form_ids[i] for i in batch], NO_UNIT).to(model.device)
        encoded[torch.tensor(batch, device=model.device)] = model.encode_forms(padded)
    return encoded


def length_sorted_batches(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Yields batches of indices, longest first, of at most `max_tokens` after padding; a longer item stands alone."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and lengths[batch[0]] * (len(batch) + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
