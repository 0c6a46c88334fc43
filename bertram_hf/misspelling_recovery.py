"""Recovery of known words from their misspellings, as people make them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random

import torch
from transformers import PreTrainedTokenizerBase

from .evaluated_systems import VectorSource
from .pieces import PieceReader
from .substitutions import Substitutions
from .word_matching import WordPattern, normalize_text
from .word_recovery import POOL_FACTOR, RecoveryScore, score_draws


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
        misspelling: [
            misspelling.join(WordPattern(word, ignore_case=True).split(normalize_text(text))) for text in contexts[word]
        ]
        for misspelling, word in meant.items()
    }


def evaluate_misspellings(
    source: VectorSource,
    contexts: Mapping[str, Sequence[str]],
    true: Mapping[str, torch.Tensor],
    *,
    vocabulary: torch.Tensor,
    num_contexts: Sequence[int],
    num_draws: int = 1,
    seed: int = 0,
    show_progress: bool = True,
) -> list[RecoveryScore]:
    """Induces vectors of misspellings and ranks the embeddings of the words that are meant.

    Args:
        source: Where vectors come from.
        contexts: For each misspelling its contexts.
        true: For each misspelling the embedding (H,) of the word that is meant.
        vocabulary: (V, H), the encoder's input embeddings.
        num_contexts: Numbers of contexts to try.
        num_draws: How many random choices of contexts are averaged.
        seed: Seed of these choices.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Returns:
        One score for each number of contexts; one for 0 if contexts make no difference.
    """
    words, induce = source.draws(
        contexts, max_contexts=POOL_FACTOR * max(num_contexts), seed=seed, show_progress=show_progress
    )
    targets = torch.stack([true[word] for word in words]).float()
    return score_draws(source.model, induce, targets, vocabulary, num_contexts=num_contexts, num_draws=num_draws)
