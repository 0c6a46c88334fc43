"""Rare substitutes of the words of a data set, from WordNet and from lists of misspellings."""

import logging
from collections.abc import Iterable, Mapping, Sequence

from transformers import PreTrainedTokenizerBase

from ..words.pieces import PieceReader
from .misspellings import read_all_misspellings
from .substitutions import Substitutions
from .synonyms import find_synonyms

logger = logging.getLogger(__name__)


def find_substitutes(
    words: Iterable[str],
    counts: Mapping[str, int],
    tokenizer: PreTrainedTokenizerBase,
    *,
    synonyms: bool = True,
    misspellings: Sequence[str] = (),
    given: Sequence[str] = (),
    max_count: int = 100,
    only_unknown: bool = True,
    show_progress: bool = True,
) -> Substitutions:
    """Finds substitutes of words that are rare in a corpus and, unless `only_unknown` is false, unknown to a model.

    In a corpus as large as the paper's, rare words are unknown by themselves; in a small one a word that the model
    knows well, and has a token for, may be rare. How many are left out for that is logged.

    Args:
        words: Words in lower case.
        counts: How often words occur in the corpus, in lower case; 0 if not listed.
        tokenizer: The model's.
        synonyms: Whether WordNet's synonyms are substitutes; see `find_synonyms`.
        misspellings: `"codespell"`, `"nlpaug"`, or TSV files of words and misspellings.
        given: More TSV files, of words, substitutes and kinds.
        max_count: Substitutes occur fewer times.
        only_unknown: Whether the tokenizer must cut substitutes into several pieces.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Raises:
        ValueError: If a substitute is a special token.

    Example:
        >>> find_substitutes(["friend"], {}, tokenizer, synonyms=False, misspellings=["nlpaug"])
        Substitutions(1 words: 35 misspelling)
    """
    words = dict.fromkeys(words)
    found = Substitutions()
    if synonyms:
        found |= find_synonyms(words, counts, max_count=max_count, show_progress=show_progress)
    for known in [*read_all_misspellings(misspellings), *map(Substitutions.read, given)]:
        occurring = Substitutions(entry for entry in known.entries() if entry[0] in words)
        found |= occurring.keep_rare(counts, max_count=max_count)
    special = sorted({substitute for _, substitute, _ in found.entries()} & set(tokenizer.all_special_tokens))
    if special:
        raise ValueError(f"Expected words as substitutes; {special[0]!r} is a special token of the model. Drop it.")
    if not only_unknown:
        return found
    reader = PieceReader(tokenizer)
    substitutes = sorted({substitute for _, substitute, _ in found.entries()})
    unknown = {
        substitute
        for substitute, pieces in zip(substitutes, reader.split(substitutes), strict=True)
        if reader.breaks_up(pieces, 2)
    }
    if len(unknown) < len(substitutes):
        logger.info(
            "%d of %d rare substitutes are left out: the tokenizer has a token for them.",
            len(substitutes) - len(unknown),
            len(substitutes),
        )
    return Substitutions(entry for entry in found.entries() if entry[1] in unknown)
