"""Rare substitutes of the words of a data set, from WordNet and from lists of misspellings."""

from collections.abc import Iterable, Mapping, Sequence

from transformers import PreTrainedTokenizerBase

from .misspellings import DICTIONARIES, read_misspellings
from .pieces import PieceReader
from .substitutions import Substitutions
from .synonyms import find_synonyms


def find_substitutes(
    words: Iterable[str],
    counts: Mapping[str, int],
    tokenizer: PreTrainedTokenizerBase,
    *,
    synonyms: bool = True,
    misspellings: Sequence[str] = (),
    max_count: int = 100,
    show_progress: bool = True,
) -> Substitutions:
    """Finds substitutes of words that are rare in a corpus and unknown to a model.

    In a corpus as large as the paper's, rare words are unknown by themselves; in a small one a word that the model
    knows well, and has a token for, may be rare.

    Args:
        words: Words in lower case.
        counts: How often words occur in the corpus, in lower case; 0 if not listed.
        tokenizer: The model's; it must cut substitutes into several pieces.
        synonyms: Whether WordNet's synonyms are substitutes; see `find_synonyms`.
        misspellings: `"codespell"`, `"nlpaug"`, or TSV files of words and misspellings.
        max_count: Substitutes occur fewer times.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Example:
        >>> find_substitutes(["friend"], {}, tokenizer, synonyms=False, misspellings=["nlpaug"])  # doctest: +SKIP
        Substitutions(1 words: 5 misspelling)
    """
    words = dict.fromkeys(words)
    found = Substitutions()
    if synonyms:
        found |= find_synonyms(words, counts, max_count=max_count, show_progress=show_progress)
    for source in misspellings:
        known = read_misspellings(source) if source in DICTIONARIES else Substitutions.read(source, kind="misspelling")  # type: ignore[arg-type]
        occurring = Substitutions(entry for entry in known.entries() if entry[0] in words)
        found |= occurring.keep_rare(counts, max_count=max_count)
    reader = PieceReader(tokenizer)
    substitutes = sorted({substitute for _, substitute, _ in found.entries()})
    unknown = {
        substitute
        for substitute, pieces in zip(substitutes, reader.split(substitutes), strict=True)
        if reader.breaks_up(pieces, 2)
    }
    return Substitutions(entry for entry in found.entries() if entry[1] in unknown)
