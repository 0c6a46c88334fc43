"""A probe of WNLaMPro's kind from WordNet and word counts of your corpus.

It has the format and the relations of the published data set, so that readers and scores are the same; the rules by
which entries are chosen are ours, and scores on it cannot be compared with published ones:

- antonym: adjectives; targets are antonyms, or for a word that has none, those of the adjectives it is similar to.
- hypernym: nouns; targets are hypernyms, at most 4 steps up and at least 3 below WordNet's root.
- cohyponym: nouns; targets are other nouns with the same direct hypernym, unless that has more than 50 hyponyms.
- corruption: a misspelling, by one edit, of a frequent word, which is the target.

Words are of lower-case letters only. Keyword and target are looked up in their 2 most frequent senses. Targets are
frequent words that the model has a token for and that mostly are of the relation's part of speech; the 20 most frequent
ones if there are more.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..evaluation.wnlampro import (
    BANDS,
    FREQUENT_COUNT,
    MEDIUM_COUNT,
    RELATIONS,
    AnnotatedWord,
    Relation,
    WnlamproEntry,
    frequency_band,
)
from ..utils.imports import needs_extra
from ..utils.progress import progress_bar
from ..words.families import split_by_family

if TYPE_CHECKING:
    from nltk.corpus.reader import WordNetCorpusReader

MAX_SENSES = 2
MAX_HYPERNYM_STEPS = 4
MIN_HYPERNYM_DEPTH = 3  # less deep are "entity", "object" and the like
MAX_HYPONYMS = 50  # what more words than that are, such as "person", makes them no likely pair
MAX_TARGETS = 20
MIN_CORRUPTED_LENGTH = 5  # of a shorter word too little is left
NUM_CORRUPTION_TRIALS = 20
POS_OF_TYPE = {"1": "n", "2": "v", "3": "a", "4": "r"}  # numbers in WordNet's sense keys
PARTS_OF_SPEECH: dict[Relation, str] = {"antonym": "a", "hypernym": "n", "cohyponym": "n"}


@dataclass(frozen=True)
class Probe:
    """A probe, and how it came about.

    Attributes:
        entries: The entries, by relation and band.
        num_tried: By relation, how many keywords were tried until there were enough entries.
        num_without_targets: How many of these were left out, because WordNet has no target for them, or for a
            corruption because no misspelling was found that is not a word.
    """

    entries: list[WnlamproEntry]
    num_tried: dict[str, int]
    num_without_targets: dict[str, int]


def build_probe(
    wordnet: "WordNetCorpusReader",
    counts: Mapping[str, int],
    vocabulary_words: Iterable[str],
    *,
    seed: int = 0,
    max_entries: int = 250,
    dev_share: float = 0.2,
    min_count: int = 1,
    min_target_count: int = FREQUENT_COUNT,
    zipf_frequency: Callable[[str], float] | None = None,
    show_progress: bool = True,
) -> Probe:
    """Builds a probe of WNLaMPro's kind; see the top of this file for the rules.

    Args:
        wordnet: From [`open_wordnet`].
        counts: How often words, in lower case, occur in the corpus that contexts are taken from.
        vocabulary_words: Words that the model has a token for, such as `vocabulary_words(PieceReader(tokenizer))`.
        seed: Another seed gives other entries and another split.
        max_entries: At most so many for each relation and band of frequency.
        dev_share: Expected share of word families whose entries are `dev`; the others are `test`. A misspelling goes
            with the family of its word.
        min_count: Keywords, other than misspellings, that are rarer are left out: no context is known of them.
        min_target_count: Targets that are rarer are left out.
        zipf_frequency: Gives the Zipf frequency of a word; by default wordfreq's.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Raises:
        ImportError: If wordfreq is missing and `zipf_frequency` not given.
        ValueError: If no entry can be built.

    Example:
        >>> probe = build_probe(open_wordnet(), counts, vocabulary_words(PieceReader(tokenizer)))  # doctest: +SKIP
        >>> write_wnlampro(probe.entries, "probe.txt")  # doctest: +SKIP
    """
    if max_entries < 1:
        raise ValueError(f"max_entries must be at least 1; got {max_entries}.")
    zipf = zipf_frequency or _wordfreq_zipf()
    targets = {word for word in vocabulary_words if is_plain(word) and counts.get(word, 0) >= min_target_count}
    finder = TargetFinder(wordnet, counts, targets)
    tried: Counter[str] = Counter()
    without: Counter[str] = Counter()
    found: list[tuple[Relation, str, str, list[str]]] = []  # relation, keyword, part of speech, targets
    progress = progress_bar(desc="Building the probe", unit="keyword", show_progress=show_progress)
    with progress:
        for relation, pos in PARTS_OF_SPEECH.items():
            lemmas = sorted(name for name in set(wordnet.all_lemma_names(pos=pos)) if is_plain(name))
            keywords = [word for word in lemmas if counts.get(word, 0) >= min_count]
            for band in BANDS:
                draw = random.Random(f"{seed} {relation} {band}")
                in_band = [word for word in keywords if frequency_band(counts.get(word, 0)) == band]
                num_missing = max_entries
                for word in draw.sample(in_band, len(in_band)):
                    if num_missing == 0:
                        break
                    tried[relation] += 1
                    progress.update()
                    if words := finder.find(word, relation):
                        found.append((relation, word, pos, words))
                        num_missing -= 1
                    else:
                        without[relation] += 1
    corruptions = _corrupt_words(finder, random.Random(f"{seed} corruption"), max_entries, tried, without)
    found += [("corruption", wrong, finder.part_of_speech(word), [word]) for wrong, word in corruptions]
    if not found:
        raise ValueError(
            f"Expected words that WordNet, the counts ({len(counts)} words) and the model's vocabulary share; no entry "
            f"can be built from {len(targets)} possible targets. Give counts in lower case, or of more text."
        )
    # A misspelling has no family of its own.
    heads = [words[0] if relation == "corruption" else keyword for relation, keyword, _, words in found]
    dev = set(split_by_family(heads, dev_share, seed=seed).heldout)

    def annotate(word: str, pos: str) -> AnnotatedWord:
        return AnnotatedWord(word, pos, round(zipf(word), 2), counts.get(word, 0))

    entries = [
        WnlamproEntry(
            id=f"{relation}-{number:05d}",
            split="dev" if head in dev else "test",
            keyword=annotate(keyword, pos),
            relation=relation,
            targets=tuple(annotate(word, pos) for word in words),
        )
        for number, (head, (relation, keyword, pos, words)) in enumerate(zip(heads, found, strict=True))
    ]
    return Probe(entries, *({str(name): number[name] for name in RELATIONS} for number in (tried, without)))


class TargetFinder:
    """Finds in WordNet the words, of those that may be targets, that stand in a relation to a word."""

    def __init__(self, wordnet: "WordNetCorpusReader", counts: Mapping[str, int], targets: set[str]) -> None:
        self.wordnet, self.counts, self.targets = wordnet, counts, targets
        self._num_tagged = count_tagged(wordnet)
        self._known_senses: dict[tuple[str, str], list[Any]] = {}  # NLTK reads files for each

    def find(self, word: str, relation: Relation) -> list[str]:
        """Returns the targets, most frequent first."""
        senses = self._senses(word, PARTS_OF_SPEECH[relation])
        synonyms = {name for sense in senses for name in sense.lemma_names()}
        if relation == "antonym":
            names = set(self._antonyms(word, senses))
        elif relation == "hypernym":
            names = {name for sense in senses for synset in self._hypernyms(sense) for name in self._names(synset)}
        else:
            parents = {parent for sense in senses for parent in sense.hypernyms()}
            families = [parent.hyponyms() for parent in parents]
            siblings = {child for family in families if len(family) <= MAX_HYPONYMS for child in family}
            siblings = siblings.difference(senses)
            names = {name for synset in siblings for name in self._names(synset)}
        names = {name for name in names & self.targets if name not in synonyms}
        return sorted(names, key=lambda name: (-self.counts.get(name, 0), name))[:MAX_TARGETS]

    def is_known(self, word: str) -> bool:
        """Whether this is a word: a target, one of WordNet's, an inflected form of these, or not rare."""
        return word in self.targets or self.counts.get(word, 0) >= MEDIUM_COUNT or bool(self.wordnet.synsets(word))

    def part_of_speech(self, word: str) -> str:
        """Returns the part of speech that a word mostly has, by WordNet's counts; that of an unknown word is "n"."""
        bases = {pos: self.wordnet.morphy(word, pos) for pos in POS_OF_TYPE.values()}
        numbers = {pos: self._num_tagged[base, pos] for pos, base in bases.items() if base is not None}
        return max(numbers, key=numbers.__getitem__) if numbers else "n"

    def _senses(self, word: str, pos: str) -> list[Any]:
        if (word, pos) not in self._known_senses:
            # NLTK also looks under the base form, "glasses" under "glass"; only senses of the word itself are meant.
            senses = [sense for sense in self.wordnet.synsets(word, pos) if word in sense.lemma_names()]
            self._known_senses[word, pos] = senses[:MAX_SENSES]
        return self._known_senses[word, pos]

    def _names(self, synset: Any) -> Iterator[str]:
        """Yields the words that mean this synset in one of their most frequent senses."""
        for name in synset.lemma_names():
            if name not in self.targets or self.part_of_speech(name) != _plain_pos(synset):
                continue
            if synset in self._senses(name, _plain_pos(synset)):
                yield name

    def _antonyms(self, word: str, senses: list[Any]) -> list[str]:
        own = [lemma for sense in senses for lemma in sense.lemmas() if lemma.name() == word]
        direct = [antonym.name() for lemma in own for antonym in lemma.antonyms()]
        similar = [lemma for sense in senses for head in sense.similar_tos() for lemma in head.lemmas()]
        return direct or [antonym.name() for lemma in similar for antonym in lemma.antonyms()]

    def _hypernyms(self, sense: Any) -> Iterator[Any]:
        for synset in sense.closure(lambda synset: synset.hypernyms(), depth=MAX_HYPERNYM_STEPS):
            if synset.min_depth() >= MIN_HYPERNYM_DEPTH:
                yield synset


def count_tagged(wordnet: "WordNetCorpusReader") -> Counter[tuple[str, str]]:
    """Returns how often words with a part of speech were met in the texts that WordNet's makers tagged.

    NLTK gives these numbers sense by sense, which would take minutes.
    """
    numbers: Counter[tuple[str, str]] = Counter()
    with wordnet.open("cntlist.rev") as lines:
        for line in lines:  # such as "academy%1:14:00:: 2 3": sense key, number of the sense, count
            key, _, count = line.split()
            lemma, _, rest = key.partition("%")
            numbers[lemma, POS_OF_TYPE.get(rest[0], "a")] += int(count)  # "5" is a satellite adjective
    return numbers


def corrupt_spelling(word: str, draw: random.Random) -> str:
    """Returns a word with one edit after its first letter: two letters swapped, one left out, doubled or changed.

    Example:
        >>> corrupt_spelling("resignation", random.Random(0))
        'resignabion'
    """
    place = draw.randrange(1, len(word))
    before, letter, after = word[:place], word[place], word[place + 1 :]
    edit = draw.choice(("swap", "drop", "double", "change"))
    if edit == "swap":
        return before + after[:1] + letter + after[1:]
    if edit == "drop":
        return before + after
    if edit == "double":
        return before + letter + letter + after
    return before + draw.choice("abcdefghijklmnopqrstuvwxyz") + after


def _plain_pos(synset: Any) -> str:
    """Returns the part of speech; satellite adjectives ("s") are adjectives."""
    return synset.pos().replace("s", "a")


def is_plain(word: str) -> bool:
    """Whether a word is of lower-case letters only."""
    return word.isalpha() and word.islower()


def _corrupt_words(
    finder: TargetFinder, draw: random.Random, max_entries: int, tried: Counter[str], without: Counter[str]
) -> list[tuple[str, str]]:
    """Returns misspellings, all different, with their words; notes how many words were tried and gave none."""
    words = sorted(word for word in finder.targets if len(word) >= MIN_CORRUPTED_LENGTH)
    result: dict[str, str] = {}
    for word in draw.sample(words, len(words)):
        if len(result) == max_entries:
            break
        tried["corruption"] += 1
        trials = (corrupt_spelling(word, draw) for _ in range(NUM_CORRUPTION_TRIALS))
        wrong = next((trial for trial in trials if trial not in result and not finder.is_known(trial)), None)
        if wrong is None:
            without["corruption"] += 1
        else:
            result[wrong] = word
    return list(result.items())


def _wordfreq_zipf() -> Callable[[str], float]:
    with needs_extra("evaluation", "A probe built without `zipf_frequency`"):
        from wordfreq import zipf_frequency
    return lambda word: zipf_frequency(word, "en")
