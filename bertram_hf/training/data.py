"""From a recipe to training words: their contexts, counts and target vectors, and the words that are held out."""

import logging
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..approximation.approximate import approximate_vectors
from ..configuration_bertram import PRESETS
from ..corpus.build import check_case
from ..corpus.contexts import CorpusContexts, build_source
from ..induction.word_lines import read_word_lines
from ..induction.word_vectors import WordVectors
from ..modeling_slim import embedding_fingerprint
from ..processing_context import is_uncased
from ..utils.files import read_word_file
from ..words.families import drop_families, split_by_family, word_family
from ..words.pieces import PieceReader, vocabulary_words
from ..words.splitting import normalize_spelling, split_words
from .recipe import Recipe

logger = logging.getLogger(__name__)
MAX_DEFINITIONS = 8  # of a word; of more, some from all senses


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
        definitions: The definitions of training words and of `untargeted`.
        untargeted: Words of several pieces that have contexts and no target; only mode pieces is trained on these.
    """

    contexts: CorpusContexts
    train: list[str]
    development: list[str]
    heldout: list[str]
    heldout_contexts: CorpusContexts
    targets: WordVectors
    num_approximated: int
    definitions: dict[str, list[str]] = field(default_factory=dict)
    untargeted: list[str] = field(default_factory=list)


def prepare_data(
    recipe: Recipe, encoder: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, show_progress: bool = True
) -> TrainingData:
    """Builds the corpora and targets of a recipe, as far as they are not there already.

    Raises:
        ValueError: If no word is left to train on.
    """
    lower_case, reader = is_uncased(tokenizer), PieceReader(tokenizer)
    table = encoder.get_input_embeddings().weight
    fingerprint = embedding_fingerprint(table)
    given = read_targets(recipe.targets.vectors, fingerprint)
    heldout = read_words(recipe.heldout.words, lower_case)
    excluded = [word for path in recipe.heldout.excluded for word in read_words(path, lower_case)]
    contexts, heldout_contexts = build_contexts(
        recipe, reader, heldout, lower_case=lower_case, show_progress=show_progress
    )
    single, several = choose_words(recipe, reader, contexts, [*heldout, *excluded], given)
    known = find_known(reader, heldout, heldout_contexts)
    without_target = [word for word in several if word not in given]
    if without_target:
        approximated = approximate_vectors(
            encoder,
            tokenizer,
            without_target,
            output=Path(recipe.output) / "approximation",
            errors="skip",
            show_progress=show_progress,
            **{"seed": recipe.seed, **recipe.targets.approximation},
        )
        given |= dict(zip(approximated.words, approximated.embeddings.float(), strict=True))
        several = [word for word in several if word in given]  # some may have failed
    train_words = [*single, *several]
    if not train_words:
        raise ValueError(
            "No word is left to train on. Give more text, or lower min_count of corpora and min_contexts of targets."
        )
    vectors = table.detach().float().cpu()[[*single.values(), *known.values()]]
    if several:
        vectors = torch.cat([vectors, torch.stack([given[word] for word in several])])
    split = split_by_family(train_words, recipe.heldout.development_share, seed=recipe.seed)
    check_no_leak(split.train, [*split.heldout, *heldout, *excluded])
    in_training = set(split.train)
    definitions = {
        word: texts[:: -(-len(texts) // MAX_DEFINITIONS)]
        for word, texts in read_definitions(
            recipe.definitions, lower_case, [*split.heldout, *heldout, *excluded]
        ).items()
    }
    return TrainingData(
        contexts,
        split.train,
        split.heldout,
        list(known),
        heldout_contexts,
        WordVectors([*single, *known, *several], vectors, fingerprint),
        num_approximated=sum(word in in_training for word in several),
        definitions=definitions,
        untargeted=choose_untargeted(recipe, reader, contexts, set(train_words), [*split.heldout, *heldout, *excluded])
        if any(PRESETS[preset]["mode"] == "pieces" for preset in recipe.systems)
        else [],
    )


def read_definitions(path: str | None, lower_case: bool, excluded: Sequence[str]) -> dict[str, list[str]]:
    """Reads the definitions of words whose families are not excluded; none if there is no file."""
    definitions: dict[str, list[str]] = {}
    if path is None:
        return definitions
    families = {word_family(word) for word in excluded}
    for spelling, texts in read_word_lines(path)[1].items():
        word = normalize_spelling(spelling, lower_case)
        family = word_family(word)
        if family not in families:
            told = [text for text in texts if family not in map(word_family, split_words(text))]
            definitions.setdefault(word, []).extend(told)
    return {word: texts for word, texts in definitions.items() if texts}


def build_contexts(
    recipe: Recipe, reader: PieceReader, heldout: Sequence[str], *, lower_case: bool, show_progress: bool
) -> tuple[CorpusContexts, CorpusContexts]:
    """Returns the contexts of training words and those of held-out words, from corpora that are built if need be."""
    output, heldout_source = Path(recipe.output), recipe.heldout.corpus
    sources = [*recipe.corpora, *([heldout_source] if heldout_source is not None else [])]
    check_case([source.folder for source in sources if source.folder is not None], lower_case)
    vocabulary = vocabulary_words(reader) if recipe.targets.whole_vocabulary else []
    sampled = sorted({*vocabulary, *(heldout if heldout_source is None else [])})
    building: dict[str, Any] = {"lower_case": lower_case, "seed": recipe.seed, "show_progress": show_progress}
    contexts = CorpusContexts(
        [
            build_source(source, output / f"corpus-{index}", words=sampled, **building)
            for index, source in enumerate(recipe.corpora)
        ]
    )
    if heldout_source is None or not heldout:
        return contexts, contexts
    folder = build_source(heldout_source, output / "corpus-heldout", words=heldout, frequent_words=False, **building)
    return contexts, CorpusContexts([folder])


def find_candidates(recipe: Recipe, contexts: CorpusContexts) -> list[str]:
    """Returns the words that are long enough and have enough contexts, in alphabetical order."""
    min_length, min_contexts = recipe.targets.min_length, max(1, recipe.targets.min_contexts)
    return [
        word for word in sorted(contexts) if len(word) >= min_length and contexts.num_contexts[word] >= min_contexts
    ]


def choose_words(
    recipe: Recipe,
    reader: PieceReader,
    contexts: CorpusContexts,
    excluded: Sequence[str],
    given: Container[str],
) -> tuple[dict[str, int], list[str]]:
    """Chooses the words to train on.

    Args:
        recipe: The recipe.
        reader: Reads words in pieces.
        contexts: The contexts of all words.
        excluded: Words whose families are left out.
        given: Words that have a target.

    Returns:
        Words of one piece, each with its token, and words of several pieces, the most frequent first.
    """
    chosen, min_count = recipe.targets, min(source.min_count for source in recipe.corpora)
    candidates = drop_families(find_candidates(recipe, contexts), excluded)
    pieces = dict(zip(candidates, reader.split(candidates), strict=True))
    frequent = {word for word in candidates if contexts.counts[word] >= min_count}
    single = {
        word: ids[0]
        for word, ids in pieces.items()
        if len(ids) == 1 and ids[0] != reader.tokenizer.unk_token_id and (chosen.whole_vocabulary or word in frequent)
    }
    several = [
        word
        for word, ids in pieces.items()
        if len(ids) > 1 and word in frequent and (chosen.approximate or word in given)
    ]
    several.sort(key=lambda word: (-contexts.counts[word], word))
    return single, several[: chosen.approximate_max_words]


def choose_untargeted(
    recipe: Recipe, reader: PieceReader, contexts: CorpusContexts, known: Container[str], excluded: Sequence[str]
) -> list[str]:
    """Returns words of several pieces that have enough contexts, in alphabetical order.

    Args:
        recipe: The recipe.
        reader: Reads words in pieces.
        contexts: The contexts of all words.
        known: Words that have a target.
        excluded: Words whose families are left out.
    """
    lower_case = is_uncased(reader.tokenizer)
    spellings = {word for path in recipe.heldout.excluded_spellings for word in read_words(path, lower_case)}
    candidates = [
        word
        for word in find_candidates(recipe, contexts)
        if word.isalpha() and word not in known and word not in spellings
    ]
    candidates = drop_families(candidates, excluded)
    pieces = reader.split(candidates) if candidates else []
    return [word for word, ids in zip(candidates, pieces, strict=True) if len(ids) > 1]


def find_known(reader: PieceReader, heldout: Sequence[str], contexts: CorpusContexts) -> dict[str, int]:
    """Returns the held-out words that can be scored, those with contexts and a token of their own, with that token."""
    words = [word for word in heldout if word in contexts]
    pieces = reader.split(words) if words else []
    known = {word: ids[0] for word, ids in zip(words, pieces, strict=True) if len(ids) == 1}
    if len(known) < len(heldout):
        logger.warning(
            "%d of %d held-out words have no context or no token of their own; they are not scored.",
            len(heldout) - len(known),
            len(heldout),
        )
    return known


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
