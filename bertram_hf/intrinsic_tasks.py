"""What induced vectors are worth by themselves: each such task of `bertram reproduce`, for one system and seed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .configuration_bertram import PRESETS
from .evaluated_systems import EvaluatedSystem
from .evaluation_recipe import MisspellingTask, RecoveryTask, SimilarityTask
from .misspelling_recovery import choose_misspellings, evaluate_misspellings, misspell_contexts
from .misspellings import read_all_misspellings
from .piece_vectors import mean_piece_vectors
from .pieces import PieceReader
from .training_data import read_words
from .word_families import word_family
from .word_recovery import evaluate_recovery
from .word_similarity import evaluate_similarity, read_rated_pairs

if TYPE_CHECKING:
    from .reproduction import Reproduction


def recover_words(run: "Reproduction", task: RecoveryTask, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
    """Recovery of held-out words."""
    words = read_words(task.words, run.lower_case)
    check_heldout(run, system, words)
    contexts = {word: texts for word, texts in run.contexts_of(task.corpus, words, "recovery").items() if texts}
    if not contexts:
        raise ValueError(f"recovery: expected words that occur in its corpus; none of {len(words)} does.")
    source = run.vectors_of(system, seed)
    assert source.model is not None
    scores = evaluate_recovery(
        source.model,
        source.processor,
        contexts,
        mean_piece_vectors(run.encoder, run.tokenizer, list(contexts)),  # each is one piece
        vocabulary=run.vocabulary,
        num_contexts=task.num_contexts,
        num_draws=task.num_draws,
        seed=seed,
        show_progress=run.show_progress,
    )
    return {"num_words": len(contexts), "scores": [score.to_dict() for score in scores]}


def check_heldout(run: "Reproduction", system: EvaluatedSystem, words: Sequence[str]) -> None:
    """Raises a ValueError unless words have a true embedding, and a system that is trained here has not seen it."""
    reader = PieceReader(run.tokenizer)
    several = [word for word, ids in zip(words, reader.split(words), strict=True) if reader.breaks_up(ids, 2)]
    if several:
        raise ValueError(
            f"recovery: expected words of one piece, whose embeddings are known; {len(several)} of {len(words)} have "
            f"several, such as {several[0]!r}. Leave them out."
        )
    if system.model not in PRESETS:
        return
    heldout = run.training_recipe([system.model], 0).heldout
    unseen = {word_family(word) for word in read_words(heldout.words, run.lower_case)}
    unseen |= {word_family(word) for path in heldout.excluded for word in read_words(path, run.lower_case)}
    seen = [word for word in words if word_family(word) not in unseen]
    if seen:
        raise ValueError(
            f"recovery: expected words that {run.recipe.training} holds out; {len(seen)} of {len(words)} may be "
            f"trained on, such as {seen[0]!r}. Name the file under heldout.words or heldout.excluded there."
        )


def recover_misspelt(run: "Reproduction", task: MisspellingTask, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
    """Recovery of known words from their misspellings."""
    meant = choose_misspellings(read_all_misspellings(task.sources), run.tokenizer, max_words=task.max_words)
    contexts = run.contexts_of(task.corpus, sorted(meant.values()), "misspellings")
    if not any(contexts.values()):
        raise ValueError(f"misspellings: expected words that occur in its corpus; none of {len(contexts)} does.")
    meant = {misspelling: word for misspelling, word in meant.items() if contexts[word]}
    embeddings = mean_piece_vectors(run.encoder, run.tokenizer, sorted(meant.values()))  # each is one piece
    scores = evaluate_misspellings(
        run.vectors_of(system, seed),
        misspell_contexts(meant, contexts),
        {misspelling: embeddings[word] for misspelling, word in meant.items()},
        vocabulary=run.vocabulary,
        num_contexts=task.num_contexts,
        num_draws=task.num_draws,
        seed=seed,
        show_progress=run.show_progress,
    )
    return {"num_words": len(meant), "scores": [score.to_dict() for score in scores]}


def rate_similarity(run: "Reproduction", task: SimilarityTask, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
    """Similarity as people rate it."""
    pairs = read_rated_pairs(task.pairs, lower_case=run.lower_case)
    contexts = run.contexts_of(task.corpus, list(dict.fromkeys(pair.rare_word for pair in pairs)), "similarity")
    source = run.vectors_of(system, seed)
    words, induce = source.draws(
        contexts, max_contexts=max(task.num_contexts), seed=seed, show_progress=run.show_progress
    )
    reads_contexts = source.reads_contexts()
    scores = evaluate_similarity(
        pairs,
        mean_piece_vectors(run.encoder, run.tokenizer, list(dict.fromkeys(pair.word for pair in pairs))),
        words,
        induce,
        vocabulary_mean=run.vocabulary.mean(dim=0),
        num_contexts=task.num_contexts if reads_contexts else task.num_contexts[:1],
        num_draws=task.num_draws if reads_contexts else 1,
    )
    return {
        "num_words": len(contexts),
        "num_pairs": len(pairs),
        "reads_contexts": reads_contexts,
        "scores": [score.to_dict() for score in scores],
    }
