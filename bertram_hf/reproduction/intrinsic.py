"""What induced vectors are worth by themselves: each such task of `bertram reproduce`, for one system and seed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..configuration_bertram import PRESETS
from ..evaluation.misspellings import evaluate_misspellings
from ..evaluation.recovery import POOL_FACTOR, evaluate_recovery
from ..evaluation.similarity import evaluate_similarity, read_rated_pairs
from ..induction.piece_vectors import mean_piece_vectors
from ..rarification.misspellings import read_all_misspellings
from ..rarification.substitutions import Substitutions
from ..training.data import read_words
from ..words.families import word_family
from ..words.pieces import PieceReader
from ..words.splitting import replace_word
from .recipe import EvaluatedSystem, MisspellingTask, RecoveryTask, SimilarityTask
from .resources import Resources


def choose_misspellings(
    lists: Iterable[Substitutions], tokenizer: PreTrainedTokenizerBase, *, max_words: int | None = None, seed: int = 0
) -> dict[str, str]:
    """Returns misspellings that the tokenizer has no token for, each with the word that is meant, which it has.

    Args:
        lists: Words and their misspellings.
        tokenizer: The encoder's.
        max_words: At most so many words, each with one of its misspellings, drawn at random; by default all.
        seed: Seed of the draw.
    """
    reader = PieceReader(tokenizer)
    pairs = sorted({(word, misspelling) for known in lists for word, misspelling, _ in known.entries()})
    times = Counter(misspelling for _, misspelling in pairs)
    pairs = [pair for pair in pairs if times[pair[1]] == 1]  # what stands for two words stands for neither
    word_pieces, pieces = (reader.split([pair[side] for pair in pairs]) for side in (0, 1))
    random = Random(seed)
    chosen: dict[str, list[str]] = {}
    for (word, misspelling), known, unknown in zip(pairs, word_pieces, pieces, strict=True):
        if not reader.breaks_up(known, 2) and reader.breaks_up(unknown, 2):
            chosen.setdefault(word, []).append(misspelling)
    words = sorted(chosen)
    if max_words is not None and max_words < len(words):
        words = sorted(random.sample(words, max_words))
    return {random.choice(chosen[word]): word for word in words}


def misspell_contexts(meant: Mapping[str, str], contexts: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Returns the contexts of each word with its misspelling in its place, by misspelling.

    Example:
        >>> misspell_contexts({"kumqat": "kumquat"}, {"kumquat": ["A kumquat, please."]})
        {'kumqat': ['A kumqat, please.']}
    """
    return {
        misspelling: [replace_word(text, word, misspelling) for text in contexts[word]]
        for misspelling, word in meant.items()
    }


def recover_words(resources: Resources, task: RecoveryTask, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
    """Recovery of held-out words."""
    words = read_words(task.words, resources.lower_case)
    check_heldout(resources, system, words)
    contexts = {word: texts for word, texts in resources.contexts_of(task.corpus, words, "recovery").items() if texts}
    if not contexts:
        raise ValueError(f"recovery: expected words that occur in its corpus; none of {len(words)} does.")
    source = resources.vectors_of(system, seed)
    assert source.model is not None
    scores = evaluate_recovery(
        source.model,
        source.processor,
        contexts,
        mean_piece_vectors(resources.encoder, resources.tokenizer, list(contexts)),  # each is one piece
        vocabulary=resources.vocabulary,
        num_contexts=task.num_contexts,
        num_draws=task.num_draws,
        seed=seed,
        show_progress=resources.show_progress,
    )
    return {"num_words": len(contexts), "scores": [score.to_dict() for score in scores]}


def check_heldout(resources: Resources, system: EvaluatedSystem, words: Sequence[str]) -> None:
    """Raises a ValueError unless words have a true embedding, and a system that is trained here has not seen it."""
    reader = PieceReader(resources.tokenizer)
    several = [word for word, ids in zip(words, reader.split(words), strict=True) if reader.breaks_up(ids, 2)]
    if several:
        raise ValueError(
            f"recovery: expected words of one piece, whose embeddings are known; {len(several)} of {len(words)} have "
            f"several, such as {several[0]!r}. Leave them out."
        )
    if system.model not in PRESETS:
        return
    heldout = resources.training_recipe([system.model], 0).heldout
    unseen = {word_family(word) for word in read_words(heldout.words, resources.lower_case)}
    unseen |= {word_family(word) for path in heldout.excluded for word in read_words(path, resources.lower_case)}
    seen = [word for word in words if word_family(word) not in unseen]
    if seen:
        raise ValueError(
            f"recovery: expected words that {resources.recipe.training} holds out; {len(seen)} of {len(words)} may be "
            f"trained on, such as {seen[0]!r}. Name the file under heldout.words or heldout.excluded there."
        )


def recover_misspelt(resources: Resources, task: MisspellingTask, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
    """Recovery of known words from their misspellings."""
    meant = choose_misspellings(read_all_misspellings(task.sources), resources.tokenizer, max_words=task.max_words)
    contexts = resources.contexts_of(task.corpus, sorted(meant.values()), "misspellings")
    if not any(contexts.values()):
        raise ValueError(f"misspellings: expected words that occur in its corpus; none of {len(contexts)} does.")
    meant = {misspelling: word for misspelling, word in meant.items() if contexts[word]}
    embeddings = mean_piece_vectors(resources.encoder, resources.tokenizer, sorted(meant.values()))  # each is one piece
    source = resources.vectors_of(system, seed)
    misspelt = misspell_contexts(meant, contexts)
    most = POOL_FACTOR * max(task.num_contexts)
    words, induce = source.draws(misspelt, max_contexts=most, seed=seed, show_progress=resources.show_progress)
    scores = evaluate_misspellings(
        source.model,
        words,
        induce,
        {misspelling: embeddings[word] for misspelling, word in meant.items()},
        vocabulary=resources.vocabulary,
        num_contexts=task.num_contexts,
        num_draws=task.num_draws,
    )
    return {"num_words": len(meant), "scores": [score.to_dict() for score in scores]}


def rate_similarity(resources: Resources, task: SimilarityTask, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
    """Similarity as people rate it."""
    pairs = read_rated_pairs(task.pairs, lower_case=resources.lower_case)
    contexts = resources.contexts_of(task.corpus, list(dict.fromkeys(pair.rare_word for pair in pairs)), "similarity")
    source = resources.vectors_of(system, seed)
    words, induce = source.draws(
        contexts, max_contexts=max(task.num_contexts), seed=seed, show_progress=resources.show_progress
    )
    reads_contexts = source.reads_contexts()
    scores = evaluate_similarity(
        pairs,
        mean_piece_vectors(resources.encoder, resources.tokenizer, list(dict.fromkeys(pair.word for pair in pairs))),
        words,
        induce,
        vocabulary_mean=resources.vocabulary.mean(dim=0),
        num_contexts=task.num_contexts if reads_contexts else task.num_contexts[:1],
        num_draws=task.num_draws if reads_contexts else 1,
    )
    return {
        "num_words": len(contexts),
        "num_pairs": len(pairs),
        "reads_contexts": reads_contexts,
        "scores": [score.to_dict() for score in scores],
    }
