"""Known words under invented names: how much of what a name hides do the vectors bring back?"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from random import Random
from typing import Any

import numpy as np

from ..evaluation.statistics import bootstrap_interval
from ..induction.draws import ContextDraws
from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..utils.names import Mode
from ..words.pieces import PieceReader
from ..words.splitting import replace_word
from .retrieval import Retrieval

ONSETS = ("b", "br", "d", "dr", "f", "fl", "g", "gr", "k", "kl", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "tr")
VOWELS, CODAS = ("a", "e", "i", "o", "u"), ("", "", "l", "m", "n", "r", "s", "x")
MAX_TRIES = 100
MAX_NAMES = 3  # in a query


@dataclass(frozen=True)
class CodeNameScore:
    """How well queries with an invented name find their documents, which have the word itself.

    Attributes:
        contexts: Sentences of each name that its vector comes from.
        known: Mean reciprocal rank with the word itself: what can be reached.
        renamed: The same with the name alone.
        left_out: The same with neither: what a vector gives that only takes misleading pieces away.
        injected: The same with the name and its vector.
        won_back: Share of the loss that the vectors win back: (injected - renamed) / (known - renamed).
        won_back_low: Lower end of its 95% confidence interval, by bootstrap over the queries.
        won_back_high: Upper end.
    """

    contexts: int
    known: float
    renamed: float
    left_out: float
    injected: float
    won_back: float
    won_back_low: float
    won_back_high: float

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields, rounded for reading."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def invent_names(words: Sequence[str], taken: Container[str], reader: PieceReader, *, seed: int = 0) -> dict[str, str]:
    """Returns an invented name for each word, which the tokenizer breaks up and nobody uses.

    Args:
        words: The words.
        taken: Words that are used, in lower case.
        reader: Of the tokenizer.
        seed: Another seed gives other names.

    Example:
        >>> names = invent_names(["fruit", "tree"], {"fruit", "tree"}, PieceReader(tokenizer))
        >>> len(set(names.values()))
        2
    """
    names: dict[str, str] = {}
    used: set[str] = set()
    for word in words:
        random = Random(f"{seed} {word}")
        for _ in range(MAX_TRIES):
            syllables = [random.choice(ONSETS) + random.choice(VOWELS) + random.choice(CODAS) for _ in range(3)]
            name = "".join(syllables)
            if name not in taken and name not in used and reader.breaks_up(reader.split([name])[0], 2):
                names[word] = name
                used.add(name)
                break
    return names


def choose_known_words(
    retrieval: Retrieval, counts: Mapping[str, int], words: Sequence[str], *, number: int, seed: int = 0
) -> dict[int, list[str]]:
    """Chooses queries and the words in them that get names: the three that are rarest in the texts.

    Args:
        retrieval: The queries.
        counts: How often words occur.
        words: Words that may get names.
        number: At most so many queries are chosen.
        seed: Seed of that choice.

    Returns:
        For each query that is chosen, by row, its words.
    """
    found = retrieval.find_words(words, ignore_case=True)
    rows = [row for row, own in enumerate(found) if own]
    rows.sort(key=lambda row: blake2b(f"{seed} {retrieval.pairs[row].query}".encode()).digest())
    return {
        row: sorted(found[row], key=lambda word: (counts.get(word, 0), word))[:MAX_NAMES]
        for row in sorted(rows[:number])
    }


def score_code_names(
    retrieval: Retrieval,
    model: BertramModel,
    processor: BertramProcessor,
    words: Mapping[int, Sequence[str]],
    names: Mapping[str, str],
    contexts: Mapping[str, Sequence[str]],
    *,
    mode: Mode = "auto",
    num_contexts: Sequence[int] = (1, 2, 4, 8, 16),
    seed: int = 0,
    show_progress: bool = True,
) -> list[CodeNameScore]:
    """Renames words in queries and contexts, not in documents, and measures what vectors of the names bring back.

    Args:
        retrieval: The queries and documents.
        model: A BERTRAM model.
        processor: Its processor.
        words: For each query that is used, by row, the words that are renamed in it.
        names: The name of each word.
        contexts: For each word sentences that hold it, from other texts.
        mode: How vectors are injected.
        num_contexts: Numbers of sentences to try.
        seed: Seed of the choice of sentences.
        show_progress: Whether to show progress bars.

    Returns:
        One score for each number of sentences; none if no query is used.
    """
    rows = np.array(sorted(words))
    if not len(rows):
        return []
    queries = _rename(retrieval, words, names)
    used = sorted({word for own in words.values() for word in own})
    renamed_contexts = {
        names[word]: [replace_word(text, word, names[word]) for text in contexts[word]] for word in used
    }
    draws = ContextDraws(
        model,
        processor,
        renamed_contexts,
        max_contexts=max(num_contexts),
        seed=seed,
        show_progress=show_progress,
    )
    vectors = [draws.induce_words(number) for number in num_contexts]
    del draws  # which takes far more memory than they
    known, renamed = retrieval.plain[rows], retrieval.rank(queries=queries)[rows]
    left_out = retrieval.rank(queries=_rename(retrieval, words, dict.fromkeys(used, "")))[rows]
    scores = []
    for number, induced in zip(num_contexts, vectors, strict=True):
        found = retrieval.rank(induced, mode, queries=queries)[rows]

        def won_back(items: np.ndarray, found: np.ndarray = found) -> float:
            return _share(known[items], renamed[items], found[items])

        low, high = bootstrap_interval(len(rows), won_back)
        scores.append(
            CodeNameScore(
                number,
                known=float(known.mean()),
                renamed=float(renamed.mean()),
                left_out=float(left_out.mean()),
                injected=float(found.mean()),
                won_back=_share(known, renamed, found),
                won_back_low=low,
                won_back_high=high,
            )
        )
    return scores


def _rename(retrieval: Retrieval, words: Mapping[int, Sequence[str]], names: Mapping[str, str]) -> list[str]:
    """Returns the queries, with some of their words renamed."""
    queries = [pair.query for pair in retrieval.pairs]
    for row, own in words.items():
        for word in own:
            queries[row] = replace_word(queries[row], word, names[word])
    return queries


def _share(known: np.ndarray, renamed: np.ndarray, found: np.ndarray) -> float:
    """Returns which share of a loss is won back; not a number if nothing was lost."""
    lost = float((known - renamed).mean())
    return float((found - renamed).mean()) / lost if lost > 0 else float("nan")
