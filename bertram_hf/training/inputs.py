"""The inputs of a stage of training: tokenised contexts, targets, and cached features.

Features are what a frozen encoder says of each context, computed once and kept on disk.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from accelerate import PartialState

from ..corpus.contexts import ContextsOf
from ..induction.batching import encode_tokens
from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor, pad_rows
from ..tokenization_form import NO_UNIT
from ..utils.distributed import join_processes
from ..utils.hashing import derive_seed, fingerprint, hash_model, hash_weights
from ..utils.models import in_eval_mode
from ..utils.progress import progress_bar
from .batches import WordCollator
from .contexts import EncodedContexts
from .data import TrainingData
from .pieces import PieceCollator, PieceCuts, Probes, without_pieces
from .recipe import PieceStageSettings, Recipe, StageSettings

FORMAT_VERSION = 2
CONTEXTS_PER_WINDOW = 8192


def prepare_inputs(
    model: BertramModel,
    processor: BertramProcessor,
    settings: StageSettings,
    *,
    data: TrainingData,
    recipe: Recipe,
    words: Sequence[str] | None = None,
    forms: torch.Tensor | None = None,
    show_progress: bool = True,
) -> list[WordCollator]:
    """Returns what makes a stage's inputs: of training words and, if there are any, of development words.

    What was tokenised or computed for an earlier stage or run is read again.

    Args:
        model: The model, which has the frozen parts whose outputs are cached.
        processor: Its processor.
        settings: How the stage is trained.
        data: Words, contexts and targets.
        recipe: The recipe, for where things are kept and the seed.
        words: Some of the training words; all by default.
        forms: (W, H), form vectors of all training words, in place of the model's own.
        show_progress: Whether to show progress bars.
    """
    config = model.config
    reads_form = config.encoder_reads_form
    cuts: PieceCuts | None = None
    development_words: Sequence[str] = data.development
    if isinstance(settings, PieceStageSettings):
        untargeted = sorted(data.untargeted, key=lambda word: derive_seed(recipe.seed, "untargeted", word))
        cuts = PieceCuts(
            processor,
            [*data.train, *(untargeted[: settings.max_untargeted] if settings.has_probes else ()), *data.development],
            hard_share=settings.hard_share,
            random_share=settings.random_share,
            hidden_share=settings.hidden_share,
            seed=recipe.seed,
        )
        in_development = set(data.development)
        words = [word for word in cuts.words if word not in in_development]
        development_words = [word for word in cuts.words if word in in_development]
    train, development = (
        _encode(processor, words, data, Path(recipe.output) / "tokens" / f"{name}-{processor.prefix}", show_progress)
        if config.has_context and words
        else EncodedContexts.without_contexts(words)
        for words, name in ((words or data.train, "train"), (development_words, "development"))
    )
    if forms is not None:  # a word may have lost all its contexts
        row_of = {word: row for row, word in enumerate(data.train)}
        forms = forms[[row_of[word] for word in train.words]]
    # Of development words the hard cuts, so that one number is watched.
    cuts_of = [cuts and cuts.select(train.words), cuts and cuts.select(development.words).harden()]
    can_cache = config.freeze_encoder and (config.freeze_form or not reads_form)
    features: list[np.ndarray | None] = [None, None]
    if config.has_context and settings.cache and can_cache:
        features = [
            cache_features(
                model,
                processor,
                contexts,
                recipe.features or Path(recipe.output) / "features",
                dtype=settings.cache_dtype,  # type: ignore[arg-type]
                form_embeddings=forms if contexts is train and reads_form else None,
                form_dropout=settings.cached_form_dropout and contexts is train,
                cuts=own_cuts,
                seed=recipe.seed,
                show_progress=show_progress,
            )
            for contexts, own_cuts in zip((train, development), cuts_of, strict=True)
        ]
    known = data.targets.to_dict()
    no_target = torch.full_like(data.targets.embeddings[0], torch.nan)
    makers: list[WordCollator] = []
    for contexts, feature, form, own_cuts in zip((train, development), features, (forms, None), cuts_of, strict=True):
        if not len(contexts.words):
            continue
        targets = torch.stack([known.get(word, no_target) for word in contexts.words])
        if own_cuts is None:
            makers.append(WordCollator(processor, contexts, targets, feature, form))
            continue
        probes = None
        if contexts is train and isinstance(settings, PieceStageSettings) and settings.has_probes:
            definitions = [data.definitions.get(word, []) for word in contexts.words]
            probes = Probes(own_cuts, contexts, definitions, seed=recipe.seed)
        makers.append(PieceCollator(processor, contexts, targets, feature, cuts=own_cuts, probes=probes))
    return makers


def _encode(
    processor: BertramProcessor, words: Sequence[str], data: TrainingData, folder: Path, show_progress: bool
) -> EncodedContexts:
    """Tokenises the contexts of words, once for all processes; for mode pieces with definitions behind them."""
    contexts = ContextsOf(words, data.contexts, data.definitions if processor.pieces else None)
    with join_processes().main_process_first():
        return EncodedContexts.build(without_pieces(processor), contexts, folder, show_progress=show_progress)


@torch.inference_mode()
def cache_features(
    model: BertramModel,
    processor: BertramProcessor,
    contexts: EncodedContexts,
    folder: str | os.PathLike,
    *,
    dtype: Literal["float16", "float32"] = "float16",
    form_embeddings: torch.Tensor | None = None,
    form_dropout: bool = False,
    cuts: PieceCuts | None = None,
    seed: int = 0,
    show_progress: bool = True,
) -> np.ndarray:
    """Returns `model.encode_contexts` of all contexts, (C, hidden), memory-mapped.

    The file's name is a hash of all that the features depend on: the encoder's weights, the contexts, the mode and, if
    the mode reads it, the form part's weights. Something else makes another file, so a stale one is never read. A run
    that was killed goes on where it was; several processes (`torchrun`) share the work.

    Args:
        model: The model; its encoder must be frozen and, if its mode reads the form, its form part too.
        processor: Its processor.
        contexts: The tokenised contexts.
        folder: Where features are kept.
        dtype: Half precision halves the space; its rounding is far below the differences between contexts.
        form_embeddings: For modes that read the form: (W, H), the form vectors of the words; by default the model's.
        form_dropout: For modes that read the form: whether each context sees a form vector that lacks some n-grams
            (`config.ngram_dropout` of them, one draw for each context, the same in all epochs) or, as in induction, the
            whole one.
        cuts: For mode pieces: how words are cut. Each context is read with one draw, the same in all epochs.
        seed: Seed of that draw.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Raises:
        ValueError: If a part that the features depend on is being trained.
    """
    config = model.config
    reads_form = config.encoder_reads_form
    if not config.freeze_encoder or (reads_form and not config.freeze_form):
        raise ValueError(
            f"Features of mode {config.mode!r} cannot be cached while the "
            f"{'form part' if config.freeze_encoder else 'encoder'} is trained. Freeze it, or train with cache: false."
        )
    settings = {
        "version": FORMAT_VERSION,
        "contexts": contexts.key,
        "encoder": hash_model(model.encoder),
        "mode": config.mode if reads_form or cuts is not None else "context",
        "context_encoder": config.context_encoder,
        "context_layers": config.context_layers,
        "dtype": dtype,
        "size": config.context_size,
    }
    if reads_form:
        if form_embeddings is None:
            settings["form"] = hash_weights(model.form_encoder)
            settings["form_vocabulary"] = hashlib.sha256(
                "\n".join(processor.form.vocab if processor.form else []).encode()
            ).hexdigest()
            settings["form_dropout"] = [config.ngram_dropout, seed] if form_dropout else None
        else:
            settings["form"] = hashlib.sha256(form_embeddings.numpy().tobytes()).hexdigest()
    if cuts is not None:
        settings["cuts"] = cuts.key
    name = fingerprint(settings, sort_keys=True)
    path, done_path = Path(folder) / f"{name}.npy", Path(folder) / f"{name}.done.npy"
    num_windows = -(-len(contexts) // CONTEXTS_PER_WINDOW)
    process = PartialState()
    if process.is_main_process and not done_path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _make_array(path, np.dtype(dtype), (len(contexts), config.context_size))
        (Path(folder) / f"{name}.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
        np.lib.format.open_memmap(done_path, "w+", np.uint8, (num_windows,)).flush()
    process.wait_for_everyone()
    features = np.lib.format.open_memmap(path, "r+")
    done = np.lib.format.open_memmap(done_path, "r+")
    own = range(process.process_index, num_windows, process.num_processes)
    windows = [window for window in own if not done[window]]
    if windows:
        with in_eval_mode(model):
            for window in progress_bar(
                windows,
                desc="Encoding contexts",
                unit_scale=CONTEXTS_PER_WINDOW,
                unit="context",
                show_progress=show_progress,
            ):
                rows = np.arange(window * CONTEXTS_PER_WINDOW, min((window + 1) * CONTEXTS_PER_WINDOW, len(contexts)))
                form = None
                if form_embeddings is not None:
                    form = form_embeddings[contexts.owners(rows)].to(model.device)
                elif reads_form:
                    form = _form_of_contexts(model, processor, contexts, rows, form_dropout, seed + window)
                input_ids, num_pieces = [contexts.input_ids(row) for row in rows], None
                positions = contexts.mask_positions[rows].tolist()
                if cuts is not None:
                    input_ids, positions, num_pieces = cuts.write(cuts.draw(contexts.owners(rows), rows), input_ids)
                encoded = encode_tokens(model, processor, input_ids, positions, form, num_pieces=num_pieces)
                stored = encoded.to(torch.from_numpy(features[:0]).dtype).cpu()
                if not stored.isfinite().all():
                    raise ValueError(
                        f"Expected features that fit into {dtype}; some are infinite or not a number. "
                        "Use cache_dtype: float32, or check the encoder's weights."
                    )
                features[rows[0] : rows[-1] + 1] = stored.numpy()
                features.flush()
                done[window] = 1  # only now: a window that is not marked is computed again
                done.flush()
    process.wait_for_everyone()
    return np.load(path, mmap_mode="r")


def _make_array(path: Path, dtype: np.dtype, shape: tuple[int, int]) -> None:
    """Makes a file for an array and takes its space on disk: a disk that is full later would kill the process.

    Raises:
        OSError: If there is not enough space, which is then as it was.
    """
    np.lib.format.open_memmap(path, "w+", dtype, shape).flush()
    if not hasattr(os, "posix_fallocate"):
        return
    size = path.stat().st_size
    try:
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        path.unlink()
        raise OSError(
            f"The features of {shape[0]:,} contexts need {size / 1e9:.2f} GB in {path.parent}: {error.strerror}. Free "
            "some, set `features` to a folder on another disk, or train with cache: false."
        ) from error


def _form_of_contexts(
    model: BertramModel,
    processor: BertramProcessor,
    contexts: EncodedContexts,
    rows: np.ndarray,
    form_dropout: bool,
    seed: int,
) -> torch.Tensor:
    """Returns the form vector (rows, H) of each context's word."""
    words, word_indices = np.unique(contexts.owners(rows), return_inverse=True)
    form_ids = pad_rows([processor.encode_form(contexts.words[word]) for word in words], NO_UNIT).to(model.device)
    if not form_dropout:
        return model.encode_forms(form_ids)[word_indices]
    form_encoder = model.form_encoder
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        form_encoder.train()
        embeddings = form_encoder(form_ids[word_indices])
        form_encoder.eval()
    return embeddings
