"""From measured gains to a decision: what is injected, and how, and what a user is told."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ..induction.word_vectors import WordVectors
from ..utils.names import Mode
from .code_names import CodeNameScore
from .retrieval import Gain, Trials

MIN_QUERIES = 40  # fewer tell nothing
CONTEXT_GROUPS = ((1, 1), (2, 3), (4, 7), (8, None))
NUM_RELIABILITY_GROUPS = 3
MIN_CONTEXTS = 4  # of words in the careful way
NOTHING = "nothing"


@dataclass(frozen=True)
class Way:
    """A way to inject vectors.

    Attributes:
        name: As people read it.
        mode: How vectors are injected.
        choose: Returns the vectors that are injected.
    """

    name: str
    mode: Mode
    choose: Callable[[WordVectors], WordVectors]


@dataclass
class Verdict:
    """Whether injection helps, by a user's own texts.

    Attributes:
        helps: Whether it does; None if that is not known.
        way: The way that was chosen; None for no injection.
        tried: The gain of each way that was tried, on queries with an injected word; the first is the default.
        final: The gain of the chosen way, on queries that had no part in the choice.
        unrepeated: The same where a query's document is read without the sentences that repeat its injected words: a
            word that stands in both is found by its letters.
        by_contexts: Gains of the default way by the number of sentences of a query's least known word.
        by_reliability: The same by the reliability of its vector.
        simpler: The gains of simpler vectors, if they were measured.
        code_names: What vectors of invented names bring back.
        num_documents: Among how many documents queries searched.
    """

    helps: bool | None
    way: Way | None
    tried: list[Gain] = field(default_factory=list)
    final: Gain | None = None
    unrepeated: Gain | None = None
    by_contexts: list[Gain] = field(default_factory=list)
    by_reliability: list[Gain] = field(default_factory=list)
    simpler: list[Gain] = field(default_factory=list)
    code_names: list[CodeNameScore] = field(default_factory=list)
    num_documents: int = 0

    @property
    def decisive(self) -> Gain | None:
        """The gain that the verdict stands on."""
        return self.unrepeated if self.helps and self.final and self.final.gain_low <= 0 else self.final

    @property
    def is_loss(self) -> bool:
        """Whether one of the two gains is below zero."""
        return any(gain is not None and gain.gain_high < 0 for gain in (self.final, self.unrepeated))

    @property
    def is_gain(self) -> bool:
        """Whether one of the two gains is above zero, and neither below."""
        is_above = any(gain is not None and gain.gain_low > 0 for gain in (self.final, self.unrepeated))
        return is_above and not self.is_loss

    @property
    def way_name(self) -> str:
        """How the chosen way is called."""
        return self.way.name if self.way else NOTHING

    @property
    def headline(self) -> str:
        """One sentence for people."""
        if self.final is None or self.decisive is None:
            return (
                "Not judged: too few texts have a title or first sentence with an injected word "
                f"(at least {MIN_QUERIES} are needed)."
            )
        if self.helps and self.decisive is self.final:
            return f"It helps: queries with an injected word find their text better, {self.final.describe()}."
        if self.helps:
            return (
                "It helps where a text does not repeat the injected word of its query: "
                f"{self.decisive.describe()}. Where it does, there is no clear effect: {self.final.describe()}."
            )
        if self.way is None:
            return f"It does not help on these texts, so nothing is injected: {self.final.describe()}."
        return f"No clear effect on these texts: {self.final.describe()}."

    def to_dict(self) -> dict[str, Any]:
        """Returns what a report shows."""
        ways = [gain.to_dict() | {"chosen": self.way is not None and gain.name == self.way.name} for gain in self.tried]
        return {
            "helps": self.helps,
            "headline": self.headline,
            "mode": self.way.mode if self.way else NOTHING,
            "retrieval": {
                "metric": "MRR",
                "num_documents": self.num_documents,
                "num_queries": self.tried[0].num_queries if self.tried else 0,
                "final": self.decisive and self.decisive.to_dict(),
                "ways": ways,
                "by_repetition": [
                    gain.to_dict() | {"name": name}
                    for name, gain in (
                        ("texts as they are", self.final),
                        ("without the sentences that repeat the word", self.unrepeated),
                    )
                    if gain is not None
                ],
                "simpler": [gain.to_dict() for gain in self.simpler],
                "by_contexts": [gain.to_dict() for gain in self.by_contexts],
                "by_reliability": [gain.to_dict() for gain in self.by_reliability],
            },
            "code_names": {"points": [score.to_dict() for score in self.code_names]},
        }


def list_ways(vectors: WordVectors, num_contexts: Mapping[str, int], defined: Container[str] = ()) -> list[Way]:
    """Returns the ways to inject vectors, the default first, then those that inject less or otherwise."""
    misspellings = vectors.misspellings()

    def keep_known(given: WordVectors) -> WordVectors:
        kept = [
            word
            for word in given
            if num_contexts.get(word, 0) >= MIN_CONTEXTS or word in misspellings or word in defined
        ]
        return given.select(kept)

    def keep_replacing(given: WordVectors) -> WordVectors:
        replacing = given.replacing()
        return given.select([word for word in given if word in replacing])

    def everything(given: WordVectors) -> WordVectors:
        return given

    return [
        Way("vector beside the word, and in place of it where the pieces mislead", "auto", everything),
        Way(f"the same, words with {MIN_CONTEXTS} sentences or a definition", "auto", keep_known),
        Way("the same, only words whose pieces mislead", "auto", keep_replacing),
        Way("vector in place of the word", "replace", everything),
    ]


def judge(
    trials: Trials, vectors: WordVectors, num_contexts: Mapping[str, int], *, defined: Container[str] = ()
) -> Verdict:
    """Decides whether and how vectors are injected.

    The default way is taken if queries gain, either with documents as they are or without the sentences that repeat
    their words, and do not lose with the other. If not, other ways are tried: one is chosen on every other query, and
    judged on those between. A way that does harm is never chosen.

    Args:
        trials: Queries with these words.
        vectors: Vectors that are made without sentences of the documents.
        num_contexts: From how many sentences each was made.
        defined: Words of a glossary.
    """
    ways = list_ways(vectors, num_contexts, defined)
    verdict = Verdict(None, ways[0], num_documents=len(trials.retrieval.pairs))
    if len(trials) < MIN_QUERIES:
        return verdict
    ranks = {ways[0].name: trials.rank(vectors, ways[0].mode)}
    verdict.by_contexts, verdict.by_reliability = divide_gains(
        trials.plain[0], ranks[ways[0].name][0], trials.words, vectors, num_contexts
    )
    verdict.final, verdict.unrepeated = trials.compare(ways[0].name, ranks[ways[0].name])
    verdict.tried = [verdict.final]
    if verdict.is_gain:
        verdict.helps = True
        return verdict
    for way in ways[1:]:
        ranks[way.name] = trials.rank(way.choose(vectors), way.mode)
        verdict.tried.append(trials.compare(way.name, ranks[way.name])[0])
    choosing, judging = np.arange(0, len(trials), 2), np.arange(1, len(trials), 2)
    best = max(ways, key=lambda way: np.nanmean((ranks[way.name] - trials.plain)[:, choosing]))
    verdict.final, verdict.unrepeated = trials.compare(best.name, ranks[best.name], judging)
    is_harmful = not verdict.is_gain and (verdict.is_loss or (ranks[best.name] - trials.plain)[0].mean() < 0)
    verdict.way = None if is_harmful else best
    verdict.helps = False if is_harmful else verdict.is_gain or None
    return verdict


def divide_gains(
    plain: np.ndarray,
    injected: np.ndarray,
    words: Sequence[Sequence[str]],
    vectors: WordVectors,
    num_contexts: Mapping[str, int],
) -> tuple[list[Gain], list[Gain]]:
    """Returns the gains of groups of queries, by the sentences and by the reliability of their least known word.

    Args:
        plain: (Q,), reciprocal ranks without injection.
        injected: (Q,), the same with it.
        words: The injected words of each query.
        vectors: Their vectors.
        num_contexts: From how many sentences each was made.
    """
    by_contexts, by_reliability = [], []
    fewest = np.array([min(num_contexts.get(word, 0) for word in own) for own in words])
    for low, high in CONTEXT_GROUPS:
        kept = (fewest >= low) & (fewest <= (np.inf if high is None else high))
        if kept.any():
            name = (
                f"{low} or more sentences"
                if high is None
                else f"{low} to {high} sentences"
                if high > low
                else "1 sentence"
            )
            by_contexts.append(Gain.between(name, plain[kept], injected[kept]))
    if vectors.reliability:
        least = np.array([min(vectors.reliability.get(word, 0.0) for word in own) for own in words])
        limits = np.quantile(least, np.linspace(0, 1, NUM_RELIABILITY_GROUPS + 1))
        for number, (low, high) in enumerate(pairwise(limits)):
            kept = (least >= low) & ((least < high) | (number == NUM_RELIABILITY_GROUPS - 1))
            if kept.any():
                by_reliability.append(Gain.between(f"reliability {low:.2f} to {high:.2f}", plain[kept], injected[kept]))
    return by_contexts, by_reliability
