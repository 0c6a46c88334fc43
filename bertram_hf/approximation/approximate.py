"""One vector that does in an encoder what a word's several pieces do (one-token approximation)."""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..induction.checks import refuse_failing_words
from ..induction.word_vectors import WordVectors
from ..modeling_context import check_encoder_reads_embeddings, check_encoder_type
from ..modeling_slim import embedding_fingerprint
from ..processing_context import tokenize_plain
from ..utils.hashing import hash_model
from ..utils.models import half_precision, in_eval_mode
from ..utils.names import DEFAULT_ITERATIONS, Precision
from ..utils.progress import progress_bar
from .objective import OneTokenObjective, Templates, TemplateSampler
from .optimizers import Evaluate, minimize_adam, minimize_lbfgs
from .resumable import FinishedBatches

FORMAT_VERSION = 2
# Longest step of L-BFGS as a share of the mean norm of the encoder's embeddings.
MAX_STEP = 0.2
# Room that a word leaves in the encoder's positions: template, special tokens, RoBERTa's offset.
RESERVED_POSITIONS = 16


def approximate_vectors(
    encoder: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    words: Iterable[str],
    *,
    output: str | os.PathLike | None = None,
    optimizer: Literal["lbfgs", "adam"] = "lbfgs",
    iterations: int | None = None,
    num_templates: int = 8,
    learning_rate: float = 1e-3,
    tolerance: float = 1e-3,
    batch_size: int = 128,
    seed: int = 0,
    dtype: Precision | None = None,
    errors: Literal["raise", "skip"] = "raise",
    show_progress: bool = True,
) -> WordVectors:
    """Finds, for words of several pieces, the vector with which the encoder computes the same around the word.

    This is one-token approximation (Schick and Schütze, 2020), which makes training targets of words that are frequent
    in a corpus but have no token of their own. It reads no contexts: the word stands between random words. A word's
    vector depends on the seed and the word, not on the other words, but for rounding.

    The released setting is `optimizer="adam", iterations=4000, tolerance=0` (8,000 for RoBERTa), with a new template in
    each iteration. There the loss is the mean over a batch, here each word's own, so that Adam's epsilon counts less
    (up to 1e-3 in a vector after 200 steps); and RoBERTa's random words are whole words here.

    The default, L-BFGS over a few fixed templates, takes a fraction of the time: half of its iterations see one
    template and compare half of the layers, half of the rest two other templates and three quarters of the layers, and
    so on. So most of the way is cheap (early layers lead to the vector in fewer steps, too), and the end is not fitted
    to one template.

    Args:
        encoder: Any encoder that takes `inputs_embeds`, on any device; it is run in eval mode and not changed.
        tokenizer: Its tokenizer.
        words: The words; one that stands twice is approximated once. A word of one piece is treated as if its
            embedding were unknown, which tells how good the approximation is.
        output: Folder to write. Each finished batch is kept there, so that a run that was killed goes on where it was,
            with the same result; the vectors of words that were there before are not computed again. With other
            settings or another encoder, all begins anew, with a warning; finished vectors of another encoder are not
            overwritten.
        optimizer: `"lbfgs"`, or `"adam"` as released.
        iterations: Steps for each word at most. Default: 48 for L-BFGS, 4,000 for Adam.
        num_templates: How many templates the last iterations of L-BFGS see; Adam sees a new one in each iteration.
        learning_rate: Of Adam.
        tolerance: A word is finished when its loss falls by less than this share; 0 always does all iterations.
        batch_size: Words that are computed at a time; they have the same number of pieces.
        seed: Seed of the random words.
        dtype: Precision in which the encoder is run; the vectors have single precision. Default: `"auto"` for L-BFGS
            with an encoder in single precision, which is bfloat16 where the device is fast at it; else the encoder's
            own.
        errors: Whether a word that cannot have a vector raises, before anything is computed, or is left out and listed
            in `WordVectors.failed`.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Returns:
        The vectors in the order of the words.

    Raises:
        WordError: If a word is empty, only unknown pieces to the tokenizer, or longer than the encoder's input. The
            message lists all such words.
        ValueError: If the encoder or a number does not fit, or `output` holds finished vectors of another encoder.

    Example:
        >>> encoder = AutoModel.from_pretrained("bert-base-uncased")
        >>> tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
        >>> approximate_vectors(encoder, tokenizer, ["kumquat", "quokka"], iterations=4)
        WordVectors(2 words x 768: kumquat, quokka)
    """
    if isinstance(words, str):
        raise TypeError(f"Expected a list of words; got the text {words!r}. Put it into a list.")
    if optimizer not in DEFAULT_ITERATIONS:
        raise ValueError(f"optimizer must be one of {', '.join(DEFAULT_ITERATIONS)}; got {optimizer!r}.")
    iterations = DEFAULT_ITERATIONS[optimizer] if iterations is None else iterations
    for name, number in (("iterations", iterations), ("num_templates", num_templates), ("batch_size", batch_size)):
        if number < 1:
            raise ValueError(f"{name} must be positive; got {number}.")
    encoder = encoder.base_model
    _check_encoder(encoder, tokenizer)
    table = encoder.get_input_embeddings().weight
    words = list(dict.fromkeys(words))
    pieces, failed = _split_words(encoder, tokenizer, words)
    if errors == "raise":
        refuse_failing_words(failed, len(words))
    if dtype is None:
        dtype = "auto" if optimizer == "lbfgs" and encoder.dtype == torch.float32 else "float32"
    half = half_precision(dtype, encoder.device)
    sampler = TemplateSampler(tokenizer, num_embeddings=len(table), seed=seed)
    fingerprint = embedding_fingerprint(table)
    settings = {
        "version": FORMAT_VERSION,
        "embedding_fingerprint": fingerprint,
        "encoder": hash_model(encoder),
        "candidates": hashlib.sha256(json.dumps(sampler.candidate_ids).encode()).hexdigest(),
        "optimizer": optimizer,
        "iterations": iterations,
        "num_templates": num_templates if optimizer == "lbfgs" else None,
        "learning_rate": learning_rate if optimizer == "adam" else None,
        "tolerance": tolerance,
        "seed": seed,
        "dtype": str(half or encoder.dtype),
    }
    finished = None if output is None else FinishedBatches(Path(output), settings)
    vectors: dict[str, torch.Tensor] = {} if finished is None else finished.load(pieces)

    max_step = MAX_STEP * table.detach().float().norm(dim=1).mean().item()
    num_layers = encoder.config.num_hidden_layers - 1
    stages = plan_stages(iterations, num_templates, num_layers) if optimizer == "lbfgs" else []
    objective = OneTokenObjective(encoder, half)

    def approximate(batch: list[str]) -> torch.Tensor:
        piece_ids = torch.tensor([pieces[word] for word in batch], device=encoder.device)
        evaluate = make_evaluate(objective, sampler, batch, piece_ids, stages)
        start = start_vectors(objective, piece_ids)
        if optimizer == "adam":
            minimized = minimize_adam(
                evaluate, start, learning_rate=learning_rate, iterations=iterations, tolerance=tolerance
            )
        else:
            steps = [stage.iterations for stage in stages]
            minimized = minimize_lbfgs(evaluate, start, max_step=max_step, stages=steps, tolerance=tolerance)
        return minimized.rows.cpu()

    progress = progress_bar(
        total=len(pieces),
        initial=len(vectors),
        desc="Approximating vectors",
        unit="word",
        show_progress=show_progress,
    )
    with in_eval_mode(encoder), progress:
        for batch in _batches(pieces, batch_size):
            batch = [word for word in batch if word not in vectors]
            if not batch:
                continue
            embeddings = approximate(batch)
            if finished is not None:
                finished.write(batch, [pieces[word] for word in batch], embeddings)
            vectors.update(zip(batch, embeddings, strict=True))
            progress.update(len(batch))
    kept = [word for word in words if word in pieces]
    embeddings = torch.stack([vectors[word] for word in kept]) if kept else torch.empty(0, table.shape[1])
    result = WordVectors(kept, embeddings, fingerprint, failed=failed)
    if output is not None:
        result.save_pretrained(output)
    return result


@dataclass(frozen=True)
class Stage:
    """A part of the way with L-BFGS.

    Attributes:
        iterations: Steps of a word at most.
        num_templates: Over how many fixed templates the loss is averaged; no other stage sees them.
        num_layers: How many layers are compared, from the first.
    """

    iterations: int
    num_templates: int
    num_layers: int


def plan_stages(iterations: int, num_templates: int, num_layers: int) -> list[Stage]:
    """Divides the iterations: each stage has half of those that are left, and the last one, in which all templates and
    layers count, the rest.

    Example:
        >>> for stage in plan_stages(48, 8, num_layers=5):
        ...     print(stage)
        Stage(iterations=24, num_templates=1, num_layers=3)
        Stage(iterations=12, num_templates=2, num_layers=4)
        Stage(iterations=6, num_templates=4, num_layers=5)
        Stage(iterations=6, num_templates=8, num_layers=5)
    """
    stages: list[Stage] = []
    while 2 ** len(stages) < num_templates and iterations > 1:
        share = min(1.0, 0.5 + 0.25 * len(stages))
        stages.append(Stage(iterations // 2, 2 ** len(stages), math.ceil(share * num_layers)))
        iterations -= iterations // 2
    return [*stages, Stage(iterations, num_templates, num_layers)]


def start_vectors(objective: OneTokenObjective, piece_ids: torch.Tensor) -> torch.Tensor:
    """Returns where the search begins, (W, H): the mean of the pieces' embeddings, or zero for words of one piece."""
    embeddings = objective.embeddings(piece_ids).detach().float()  # (W, pieces, H)
    return embeddings.mean(dim=1) if piece_ids.shape[1] > 1 else torch.zeros_like(embeddings[:, 0])


def make_evaluate(
    objective: OneTokenObjective,
    sampler: TemplateSampler,
    words: Sequence[str],
    piece_ids: torch.Tensor,
    stages: Sequence[Stage],
) -> Evaluate:
    """Returns the functions to minimise.

    Args:
        objective: The loss of one template.
        sampler: Draws templates.
        words: W words.
        piece_ids: (W, pieces).
        stages: Of L-BFGS; the run with the pieces is done once for each of their templates. Empty: a new template in
            each iteration.
    """

    def read(rows: Sequence[int], number: int) -> tuple[Templates, list[torch.Tensor]]:
        templates = sampler.draw([words[row] for row in rows], number)
        return templates, objective.read_pieces(piece_ids[torch.tensor(rows)], templates)

    def evaluate_new(vectors: torch.Tensor, rows: torch.Tensor, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        return objective.evaluate(vectors, *read(rows.tolist(), number))

    @lru_cache(maxsize=1)
    def read_stage(stage: int) -> list[tuple[Templates, list[torch.Tensor]]]:
        first = sum(earlier.num_templates for earlier in stages[:stage])
        drawn = [read(range(len(words)), first + number) for number in range(stages[stage].num_templates)]
        return [(templates, targets[: stages[stage].num_layers + 1]) for templates, targets in drawn]

    def evaluate_fixed(vectors: torch.Tensor, rows: torch.Tensor, stage: int) -> tuple[torch.Tensor, torch.Tensor]:
        losses, gradients = torch.zeros(len(vectors), device=vectors.device), torch.zeros_like(vectors)
        fixed = read_stage(stage)
        for templates, targets in fixed:
            loss, gradient = objective.evaluate(
                vectors, templates.select(rows.cpu()), [states[rows] for states in targets]
            )
            losses, gradients = losses + loss / len(fixed), gradients + gradient / len(fixed)
        return losses, gradients

    return evaluate_fixed if stages else evaluate_new


def _check_encoder(encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    check_encoder_type(type(encoder), encoder.config)
    check_encoder_reads_embeddings(encoder)
    num_embeddings = encoder.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > num_embeddings:
        raise ValueError(
            f"The tokenizer has {len(tokenizer)} tokens, the encoder {num_embeddings} embeddings. "
            "Use the tokenizer that was saved with the encoder."
        )
    if encoder.config.num_hidden_layers < 2:
        raise ValueError(
            f"Expected an encoder of two or more layers, since the last one is not compared; "
            f"{type(encoder).__name__} has {encoder.config.num_hidden_layers}."
        )


def _split_words(
    encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, words: Sequence[str]
) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Returns the pieces of the words as they stand after a space, and why words have none that can be used."""
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"Expected words as strings; got {word!r} of type {type(word).__name__}.")
    max_pieces = getattr(encoder.config, "max_position_embeddings", 0) - RESERVED_POSITIONS
    pieces: dict[str, list[int]] = {}
    failed: dict[str, str] = {}
    # A byte-level piece that is only the space counts: the encoder sees it in texts, too.
    all_ids = tokenize_plain(tokenizer, [f" {word}" for word in words])
    for word, ids in zip(words, all_ids, strict=True):
        if not word.strip() or not ids:
            failed[word] = f"{word!r} is empty."
        elif set(ids) == {tokenizer.unk_token_id}:
            failed[word] = f"{word!r:.80} is only {tokenizer.unk_token} to the tokenizer, so there is nothing to copy."
        elif 0 < max_pieces < len(ids):
            failed[word] = f"{word!r:.80} has {len(ids)} pieces; the encoder has room for {max_pieces}."
        else:
            pieces[word] = ids
    return pieces, failed


def _batches(pieces: dict[str, list[int]], batch_size: int) -> Iterator[list[str]]:
    """Yields batches of words that have the same number of pieces."""
    groups: dict[int, list[str]] = {}
    for word, ids in pieces.items():
        groups.setdefault(len(ids), []).append(word)
    for group in groups.values():
        for start in range(0, len(group), batch_size):
            yield group[start : start + batch_size]
