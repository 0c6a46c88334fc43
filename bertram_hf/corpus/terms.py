"""Finding words that are no single token."""

from collections import defaultdict
from itertools import pairwise

from ..processing_words import WordPattern, fixed_beginning, folded_spellings, run_pattern


class TermFinder:
    """Finds words that are no single token ("New York", "C++", "42"), exactly as the processor does.

    Example:
        >>> TermFinder(["new york"], ignore_case=True).find("In New York.", "in new york.")
        [('new york', 3, 1)]
    """

    def __init__(self, terms: list[str], *, ignore_case: bool) -> None:
        self._ignore_case = ignore_case
        self._patterns: dict[str, WordPattern] = {}
        # Each term, and what it surely begins with, by its first run and the key of its second; "" if it has none.
        self._by_runs: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
        for term in terms:
            spellings = folded_spellings(term) if ignore_case else {term}
            if len(spellings) > 1:  # the pattern tells
                self._by_runs[""][""].append((term, ""))
                continue
            (spelling,) = spellings
            first, second, *_ = *run_pattern(spelling).findall(spelling), "", ""
            self._by_runs[first][run_key(second)].append((term, fixed_beginning(spelling)))

    def find(self, sentence: str, folded: str) -> list[tuple[str, int, int]]:
        """Returns the terms in a sentence: each with its first position and how often it occurs."""
        candidates: set[tuple[str, str]] = set()
        for first, second in pairwise(["", *run_pattern(folded).findall(folded), ""]):
            if terms := self._by_runs.get(first):
                candidates.update(terms.get("", ()), terms.get(run_key(second), ()))
        found = []
        for term, beginning in sorted(candidates):
            if beginning in folded:
                segments = self._pattern(term).split(sentence)
                if len(segments) > 1:
                    found.append((term, len(segments[0]), len(segments) - 1))
        return found

    def may_begin_in(self, stretch: str) -> bool:
        """Whether a stretch holds the first run of a term, so that its sentence may hold the term."""
        return "" in self._by_runs or not self._by_runs.keys().isdisjoint(run_pattern(stretch).findall(stretch))

    def has(self, term: str, text: str) -> bool:
        """Whether a term stands in a text."""
        return next(self._pattern(term).find_all(text), None) is not None

    def _pattern(self, term: str) -> WordPattern:
        """Returns how to match a term; compiled at first use, since most terms of a long list are never met."""
        if term not in self._patterns:
            self._patterns[term] = WordPattern(term, ignore_case=self._ignore_case)
        return self._patterns[term]


def run_key(run: str) -> str:
    """Returns one key for all runs that are the same to `re.IGNORECASE`, and perhaps for more.

    Example:
        >>> run_key("İſ"), run_key("ıs"), run_key("is")
        ('is', 'is', 'is')
    """
    return run.replace("İ", "i").casefold().replace("ı", "i")
