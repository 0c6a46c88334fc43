"""Rare synonyms of words, from WordNet (Section 5.3, "Downstream Task Datasets").

The paper uses the library *pattern* to keep part of speech and inflection. It is not maintained any more; LemmInflect
takes its place.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..utils.imports import needs_extra
from ..utils.progress import progress_bar
from ..words.families import word_family
from ..words.splitting import normalize_counts
from .substitutions import Kind, Substitutions
from .wordnet import open_wordnet

if TYPE_CHECKING:
    from nltk.corpus.reader import WordNetCorpusReader
    from nltk.corpus.reader.wordnet import Synset

# WordNet's parts of speech and those of LemmInflect; of senses that are equally frequent, the first is taken.
PARTS_OF_SPEECH = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}
BASE_TAGS = {"NOUN": "NN", "VERB": "VB", "ADJ": "JJ", "ADV": "RB"}
SAME_AS_BASE = "VBP"  # "I walk"
COMPARISONS = ("JJR", "JJS", "RBR", "RBS")
# WordNet has no function words: what it has under their spelling is rare in texts ("in" the inch, "he" helium).
FUNCTION_WORDS = frozenset(
    """
    a about above across after against all along also although am among an and another any anybody anyone anything are
    around as at back be because been before behind being below beneath beside besides between beyond both but by can
    cannot could d did do does doing done down during each either else enough even ever every everybody everyone
    everything except few for from get gets getting given got had has have having he hence her here hers herself him
    himself his how however i if in inside instead into is it its itself just least less like ll m many may me might
    mine more most much must my myself near neither never no nobody none nor not nothing now of off on once one ones
    only onto or other others ought our ours ourselves out outside over own past per perhaps quite rather re s same
    shall she should since so some somebody someone something still such t than that the their theirs them themselves
    then there therefore these they this those though through throughout thus till to together too toward towards under
    unless until up upon us ve very via was we well were what whatever when whenever where whereas wherever whether
    which whichever while who whoever whole whom whose why will with within without would yes yet you your yours
    yourself yourselves
    """.split()  # noqa: SIM905 (a list literal would be three times as long)
)


class WordSense(NamedTuple):
    """The sense in which a word is used most: its base form, LemmInflect's part of speech, and WordNet's synset."""

    base: str
    part_of_speech: str
    synset: "Synset"


def find_synonyms(
    words: Iterable[str],
    counts: Mapping[str, int],
    *,
    max_count: int = 100,
    wordnet: "WordNetCorpusReader | None" = None,
    show_progress: bool = True,
) -> Substitutions:
    """Finds rare synonyms that can stand in the place of words.

    A synonym belongs to the most frequent sense of the word, over all parts of speech and all its base forms, by the
    counts of WordNet. It is given the inflection of the word ("vineyards": "vineries"). Where the form of the word does
    not tell its inflection ("walked"), the synonym must have one form for all that it may be. Adjectives and adverbs
    are compared only if LemmInflect knows their comparative.

    Synonyms are single words of letters, in lower case, that are rare, and of another family than the word (not
    "Iraqi" for "Iraq"). Function words have none.

    Args:
        words: Words, such as those of a data set.
        counts: How often words occur in a corpus; 0 if not listed. Spellings that differ in case are added up.
        max_count: Synonyms occur fewer times. The paper has 100, and 1000 for MNLI-1000.
        wordnet: WordNet, if it is not to be opened by `open_wordnet`.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Returns:
        The synonyms, all of kind `"wordnet"`, in the order of the words and of WordNet.

    Raises:
        ImportError: If NLTK or LemmInflect is missing.
        FileNotFoundError: If there is no WordNet.

    Example:
        >>> wordnet = open_wordnet("wordnet")  # a folder with WordNet's files
        >>> [synonym.text for synonym in find_synonyms(["improved"], {"bettered": 500}, wordnet=wordnet)["improved"]]
        ['ameliorated', 'meliorated']
    """
    finder = SynonymFinder(open_wordnet() if wordnet is None else wordnet)
    frequent = {word for word, count in normalize_counts(counts, lower_case=True).items() if count >= max_count}
    kind: Kind = "wordnet"
    return Substitutions(
        (word, synonym, kind)
        for word in progress_bar(
            list(dict.fromkeys(word.lower() for word in words)),
            desc="Finding synonyms",
            unit="word",
            show_progress=show_progress,
        )
        for synonym in finder.find(word)
        if synonym not in frequent
    )


class SynonymFinder:
    """Finds synonyms of the same inflection, frequent or not.

    Args:
        wordnet: WordNet, as NLTK reads it.

    Raises:
        ImportError: If LemmInflect is missing.
    """

    def __init__(self, wordnet: "WordNetCorpusReader") -> None:
        with needs_extra("evaluation", "Inflecting synonyms"):
            import lemminflect
        self.lemminflect = lemminflect
        self.wordnet = wordnet

    def find(self, word: str) -> list[str]:
        """Returns the synonyms of a word, in lower case; none if WordNet does not have it."""
        word = word.lower()
        if not word.isalpha() or word in FUNCTION_WORDS:
            return []
        sense = self.most_frequent_sense(word)
        if sense is None:
            return []
        tags = self.possible_tags(word, sense.base, sense.part_of_speech)
        found: dict[str, None] = {}
        for name in sense.synset.lemma_names():
            synonym = name.lower()
            if synonym.isalpha() and word_family(synonym) != word_family(word):
                forms = {self.inflect(synonym, sense.part_of_speech, tag) for tag in tags}
                form = forms.pop() if len(forms) == 1 else None
                if form is not None and form.isalpha() and form != word:
                    found[form] = None
        return list(found)

    def most_frequent_sense(self, word: str) -> WordSense | None:
        """Returns the sense that WordNet counts most often, of all base forms that the word may belong to."""
        best, best_count = None, -1
        for base, pos in self._bases(word):
            if not self.possible_tags(word, base, PARTS_OF_SPEECH[pos]):
                continue  # a guess, as "own" for "owner"
            # A base form has its senses by falling count in WordNet, so that the first one is enough.
            for synset in self.wordnet.synsets(base, pos):
                counts = [lemma.count() for lemma in synset.lemmas() if lemma.name().lower() == base]
                if counts:
                    if max(counts) > best_count:
                        best, best_count = WordSense(base, PARTS_OF_SPEECH[pos], synset), max(counts)
                    break
        return best

    def possible_tags(self, word: str, base: str, part_of_speech: str) -> list[str]:
        """Returns the Penn tags that a word may have as a form of a base form; none if it is no such form.

        Example:
            >>> finder.possible_tags("walked", "walk", "VERB")  # doctest: +SKIP
            ['VBD', 'VBN']
        """
        base_tag = BASE_TAGS[part_of_speech]
        if word == base and part_of_speech != "VERB":  # LemmInflect has "time" as a plural too
            return [base_tag]
        inflections = {base_tag: (base,)} | self._inflections(base, part_of_speech)
        return [tag for tag, forms in inflections.items() if word in forms and tag != SAME_AS_BASE]

    def inflect(self, base: str, part_of_speech: str, tag: str) -> str | None:
        """Returns a form of a word, or None if it has no such form."""
        if tag == BASE_TAGS[part_of_speech]:
            return base
        forms = self._inflections(base, part_of_speech, guess=tag not in COMPARISONS).get(tag)
        return forms[0] if forms else None

    def _bases(self, word: str) -> Iterator[tuple[str, str]]:
        for pos, part_of_speech in PARTS_OF_SPEECH.items():
            bases = (word, self.wordnet.morphy(word, pos), *self.lemminflect.getLemma(word, part_of_speech))
            for base in dict.fromkeys(bases):
                if base:
                    yield base.lower(), pos

    def _inflections(self, base: str, part_of_speech: str, *, guess: bool = True) -> dict[str, tuple[str, ...]]:
        forms = self.lemminflect.getAllInflections(base, part_of_speech)
        if not forms and guess:  # rare words are often unknown; their forms are regular
            forms = self.lemminflect.getAllInflectionsOOV(base, part_of_speech)
        if "VBD" in forms:  # LemmInflect leaves out a participle that is the same
            forms = {"VBN": forms["VBD"]} | forms
        return forms
