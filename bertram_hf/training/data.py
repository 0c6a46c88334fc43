"""From a recipe to training words: their contexts, counts and target vectors, and the words that are held out."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..approximation.approximate import approximate_vectors
from ..corpus.build import check_case
from ..corpus.contexts import CorpusContexts, build_source
from ..induction.word_vectors import WordVectors
from ..modeling_slim import embedding_fingerprint
from ..processing_context import is_uncased
from ..utils.files import read_word_file
from ..words.families import drop_families, split_by_family, word_family
from ..words.pieces import PieceReader, vocabulary_words
from ..words.splitting import normalize_spelling
from .recipe import Recipe

logger = logging.getLogger(__name__)


@dataclass
class TrainingData:
    """Words to train on and words to evaluate with; no family stands on two sides.

    Attributes:
        contexts: The contexts of all of them.
        train: Training words.
        development: Words that watch the training.
        heldout: Words that the trained models are scored on, each of one piece.
        heldout_contexts: Where the contexts of these come from.
        targets: The target vectors of all of them.
        num_approximated: How many training words have approximated targets.
    """

    contexts: CorpusContexts
    train: list[str]
    development: list[str]
    heldout: list[str]
    heldout_contexts: CorpusContexts
    targets: WordVectors
    num_approximated: int


def prepare_data(
    recipe: Recipe, encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, show_progress: bool = True
) -> TrainingData:
    """Builds the corpora and targets of a recipe, as far as they are not there already.

    Raises:
        ValueError: If no word is left to train on.
    """
    output, lower_case = Path(recipe.output), is_uncased(tokenizer)
    sources = [*recipe.corpora, *([recipe.heldout.corpus] if recipe.heldout.corpus is not None else [])]
    check_case([source.folder for source in sources if source.folder is not None], lower_case)
    fingerprint = embedding_fingerprint(encoder.get_input_embeddings().weight)
    given = read_targets(recipe.targets.vectors, fingerprint)
    heldout = read_words(recipe.heldout.words, lower_case)
    excluded = [word for path in recipe.heldout.excluded for word in read_words(path, lower_case)]
    reader = PieceReader(tokenizer)
    vocabulary = vocabulary_words(reader) if recipe.targets.whole_vocabulary else []
    heldout_source = recipe.heldout.corpus
    sampled = sorted({*vocabulary, *(heldout if heldout_source is None else [])})
    building: dict[str, Any] = {"lower_case": lower_case, "seed": recipe.seed, "show_progress": show_progress}
    folders = [
        build_source(source, output / f"corpus-{index}", words=sampled, **building)
        for index, source in enumerate(recipe.corpora)
    ]
    contexts = heldout_contexts = CorpusContexts(folders)
    if heldout_source is not None and heldout:
        folder = build_source(
            heldout_source, output / "corpus-heldout", words=heldout, frequent_words=False, **building
        )
        heldout_contexts = CorpusContexts([folder])

    chosen = recipe.targets
    candidates = [
        word
        for word in sorted(contexts)
        if len(word) >= chosen.min_length and contexts.num_contexts[word] >= max(1, chosen.min_contexts)
    ]
    candidates = drop_families(candidates, [*heldout, *excluded])
    pieces = dict(zip(candidates, reader.split(candidates), strict=True))
    single = {word: ids[0] for word, ids in pieces.items() if len(ids) == 1 and ids[0] != tokenizer.unk_token_id}
    min_count = min(source.min_count for source in recipe.corpora)
    several = [word for word, ids in pieces.items() if len(ids) > 1 and contexts.counts[word] >= min_count]
    several.sort(key=lambda word: (-contexts.counts[word], word))
    several = [word for word in several if chosen.approximate or word in given][: chosen.approximate_max_words]
    if not chosen.whole_vocabulary:
        single = {word: token for word, token in single.items() if contexts.counts[word] >= min_count}

    table = encoder.get_input_embeddings().weight.detach().float().cpu()
    scored = [word for word in heldout if word in heldout_contexts]
    scored_pieces = reader.split(scored) if scored else []
    known = {word: ids[0] for word, ids in zip(scored, scored_pieces, strict=True) if len(ids) == 1}
    if len(known) < len(heldout):
        logger.warning(
            "%d of %d held-out words have no context or no token of their own; they are not scored.",
            len(heldout) - len(known),
            len(heldout),
        )
    words, vectors = [*single, *known], table[[*single.values(), *known.values()]]
    without_target = [word for word in several if word not in given]
    if without_target:
        approximated = approximate_vectors(
            encoder,
            tokenizer,
            without_target,
            output=output / "approximation",
            errors="skip",
            show_progress=show_progress,
            **{"seed": recipe.seed, **chosen.approximation},
        )
        given |= dict(zip(approximated.words, approximated.embeddings.float(), strict=True))
        several = [word for word in several if word in given]  # some may have failed
    if several:
        words, vectors = [*words, *several], torch.cat([vectors, torch.stack([given[word] for word in several])])
    train_words = [*single, *several]
    if not train_words:
        raise ValueError(
            "No word is left to train on. Give more text, or lower min_count of corpora and min_contexts of targets."
        )
    split = split_by_family(train_words, recipe.heldout.development_share, seed=recipe.seed)
    check_no_leak(split.train, [*split.heldout, *heldout, *excluded])
    in_training = set(split.train)
    return TrainingData(
        contexts,
        split.train,
        split.heldout,
        list(known),
        heldout_contexts,
        WordVectors(words, vectors, fingerprint),
        num_approximated=sum(word in in_training for word in several),
    )


def read_targets(sources: Sequence[str], fingerprint: str) -> dict[str, torch.Tensor]:
    """Reads target vectors.

    Args:
        sources: Folders or Hub names of `WordVectors`; of a word that stands twice the first one counts.
        fingerprint: That of the encoder's embeddings.

    Raises:
        ValueError: If they are vectors of another encoder.
    """
    targets: dict[str, torch.Tensor] = {}
    for source in sources:
        vectors = WordVectors.from_pretrained(source)
        if vectors.embedding_fingerprint != fingerprint:
            raise ValueError(
                f"targets.vectors: {source} holds vectors for embeddings {vectors.embedding_fingerprint}, the encoder "
                f"has {fingerprint}. Give those that were made for this encoder."
            )
        targets = dict(zip(vectors.words, vectors.embeddings.float(), strict=True)) | targets
    return targets


def check_no_leak(train: Sequence[str], heldout: Sequence[str]) -> None:
    """Raises a ValueError if a training word is of the family of a held-out word."""
    families = {word_family(word): word for word in heldout}
    leaks = [(word, families[word_family(word)]) for word in train if word_family(word) in families]
    if leaks:
        word, relative = leaks[0]
        raise ValueError(
            f"{len(leaks)} training words are of the family of a held-out word, such as {word!r} of {relative!r}. "
            "Remove them from the training words."
        )


def read_words(path: str | None, lower_case: bool) -> list[str]:
    """Reads a file of words, one on each line; no words if there is no file."""
    if path is None:
        return []
    return list(dict.fromkeys(normalize_spelling(word, lower_case) for word in read_word_file(path)))
