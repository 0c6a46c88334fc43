"""The inputs of a stage of training: tokenised contexts, cached features, targets."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from ..corpus.contexts import ContextsOf
from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..utils.distributed import join_processes
from .batches import WordCollator
from .contexts import EncodedContexts
from .data import TrainingData
from .features import cache_features
from .pieces import PieceCollator, PieceCuts, without_pieces
from .recipe import PieceStageSettings, Recipe, StageSettings


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
    if isinstance(settings, PieceStageSettings):
        cuts = PieceCuts(processor, [*data.train, *data.development], hard_share=settings.hard_share, seed=recipe.seed)
        can_be_cut = set(cuts.words)
        words = [word for word in data.train if word in can_be_cut]
    masking = processor if cuts is None else without_pieces(processor)
    train, development = (
        _encode(masking, words, data, Path(recipe.output) / "tokens" / f"{name}-{processor.prefix}", show_progress)
        if config.has_context and words
        else EncodedContexts.without_contexts(words)
        for words, name in (
            (words or data.train, "train"),
            ([word for word in data.development if cuts is None or word in can_be_cut], "development"),
        )
    )
    if forms is not None:  # a word may have lost all its contexts
        row_of = {word: row for row, word in enumerate(data.train)}
        forms = forms[[row_of[word] for word in train.words]]
    # Of development words the hard cuts, so that one number is watched.
    cuts_of = {True: cuts and cuts.select(train.words), False: cuts and cuts.select(development.words).harden()}
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
                cuts=cuts_of[contexts is train],
                seed=recipe.seed,
                show_progress=show_progress,
            )
            for contexts in (train, development)
        ]
    makers: list[WordCollator] = []
    for contexts, feature, form in zip((train, development), features, (forms, None), strict=True):
        if len(contexts.words):
            targets = torch.stack([data.targets[word] for word in contexts.words])
            own_cuts = cuts_of[contexts is train]
            makers.append(
                WordCollator(processor, contexts, targets, feature, form)
                if own_cuts is None
                else PieceCollator(processor, contexts, targets, feature, cuts=own_cuts)
            )
    return makers


def _encode(
    processor: BertramProcessor, words: Sequence[str], data: TrainingData, folder: Path, show_progress: bool
) -> EncodedContexts:
    """Tokenises the contexts of words, once for all processes."""
    with join_processes().main_process_first():
        return EncodedContexts.build(processor, ContextsOf(words, data.contexts), folder, show_progress=show_progress)
