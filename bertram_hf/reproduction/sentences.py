"""What vectors are worth through the frozen encoder, by sentence embeddings: definitions of words, and rated terms."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..evaluation.definitions import DefinitionRetrieval
from ..evaluation.terms import TermSimilarity, read_rated_terms
from ..induction.definitions import add_definitions
from ..induction.word_lines import read_word_lines
from ..induction.word_vectors import WordVectors
from ..injection.word_index import WordIndex, find_unusable
from ..processing_context import is_uncased
from ..training.data import read_definitions, read_words
from ..utils.hashing import derive_seed
from ..words.families import word_family
from ..words.pieces import PieceReader
from ..words.rare import find_rare_words
from ..words.splitting import normalize_spelling, split_words
from .recipe import DefinitionTask, EvaluatedSystem, TermTask
from .resources import Resources
from .systems import PLAIN

logger = logging.getLogger(__name__)


class DefinitionBenchmark:
    """The work on the retrieval of definitions; words and definitions are the same for all systems.

    Args:
        resources: The encoder and the systems.
        task: The words, their definitions and contexts.
    """

    def __init__(self, resources: Resources, task: DefinitionTask) -> None:
        self.resources, self.task = resources, task
        # By model and seed: systems that differ in the mode share them.
        self._defined: dict[tuple[str, int], WordVectors] = {}

    @cached_property
    def definitions(self) -> dict[str, list[str]]:
        """The definitions of all words, without those that hold a word of the same family.

        Raises:
            ValueError: If there are none.
        """
        lower_case = self.resources.lower_case
        excluded = [word for path in self.task.excluded for word in read_words(path, lower_case)]
        found = {
            word: [text for text in dict.fromkeys(texts) if text.strip()]
            for word, texts in read_definitions(self.task.definitions, lower_case, excluded).items()
        }
        found = {word: texts for word, texts in found.items() if texts}
        if not found:
            raise ValueError(
                f"definitions: expected words in {self.task.definitions} with definitions that hold no word of their "
                "own family; found none. Give another file, or fewer words in excluded."
            )
        return found

    @cached_property
    def contexts(self) -> dict[str, list[str]]:
        """The contexts of the words that are drawn.

        Raises:
            ValueError: If no word has several pieces, a definition and contexts enough.
        """
        candidates = keep_usable(find_broken_words(self.definitions, self.resources.tokenizer), self.resources)
        path, least = self.task.definitions, self.task.min_contexts
        if not candidates:
            raise ValueError(
                f"definitions: expected words of several pieces, letters only; none of the {len(self.definitions)} "
                f"defined words of {path} is."
            )
        found = self.resources.find_contexts([self.task.corpus], candidates, self.resources.work / "definitions")
        words = draw_words(
            [word for word in candidates if found.num_contexts[word] >= least], self.task.num_words, self.task.seed
        )
        if not words:
            raise ValueError(
                f"definitions: expected words with at least {least} contexts in the corpus; none of {len(candidates)} "
                f"words of several pieces in {path} has so many. Lower min_contexts, or give more text."
            )
        if len(words) < self.task.num_words:
            logger.warning("definitions: %d words were asked for; only %d fit.", self.task.num_words, len(words))
        return {word: found.get(word) for word in words}

    @cached_property
    def retrieval(self) -> DefinitionRetrieval:
        """The words with all definitions among which they search."""
        own = {word: self.definitions[word] for word in self.contexts}
        num_own = len({text for texts in own.values() for text in texts})
        others = draw_others(self.definitions, own, self.task.num_definitions - num_own, self.task.seed)
        retrieval = DefinitionRetrieval(self.resources.embedder, own, others)
        if len(retrieval.texts) < self.task.num_definitions:
            logger.warning(
                "definitions: %d definitions were asked for; there are only %d.",
                self.task.num_definitions,
                len(retrieval.texts),
            )
        return retrieval

    @cached_property
    def extra(self) -> dict[str, list[str]]:
        """One definition of the second file for each word that has one there; not one of those that are searched."""
        found: dict[str, list[str]] = {}
        if self.task.extra_definitions is None:
            return found
        for spelling, texts in read_word_lines(self.task.extra_definitions)[1].items():
            word = normalize_spelling(spelling, self.resources.lower_case)
            if word in self.contexts and word not in found:
                own = {_simplify(text) for text in self.definitions[word]}
                new = [text for text in texts if text.strip() and _simplify(text) not in own]
                found |= {word: new[:1]} if new else {}
        if not found:
            raise ValueError(
                f"definitions: expected definitions in {self.task.extra_definitions} of some of the "
                f"{len(self.contexts)} words that are drawn; there are none but those that are searched."
            )
        return found

    def evaluate(self, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
        """Scores one system."""
        retrieval = self.retrieval
        facts: dict[str, Any] = {
            "num_words": len(retrieval.words),
            "num_words_asked": self.task.num_words,
            "num_definitions": len(retrieval.texts),
        }
        if system.model == PLAIN:
            facts["scores"] = [retrieval.score(retrieval.plain[None], contexts=0).to_dict()]
            ranks = retrieval.plain
        else:
            drawn = self.resources.draw_vectors("definitions", self.task, self.contexts, system, seed)
            scores = retrieval.evaluate(
                drawn.replay(), mode=system.mode, num_contexts=drawn.numbers, num_draws=drawn.num_draws
            )
            facts |= {"num_left_plain": len(drawn.failed), "scores": [score.to_dict() for score in scores]}
            ranks = retrieval.rank(self._define(system, seed), system.mode) if self.extra else retrieval.plain
        if self.extra:
            score = retrieval.score(ranks[None], contexts=1, words=list(self.extra))
            facts["extra_scores"] = {"definition": score.to_dict()}
        return facts

    def _define(self, system: EvaluatedSystem, seed: int) -> WordVectors:
        """Returns a system's vectors from one definition of the second file each."""
        key = (system.model, seed)
        if key not in self._defined:
            source = self.resources.vectors_of(system, seed)
            contexts = add_definitions({}, self.extra)
            self._defined[key] = source.induce(contexts, show_progress=self.resources.show_progress)
        return self._defined[key]

    def describe(self, row: Mapping[str, Any]) -> str:
        """Returns what a reader must know of the words, from one of the rows."""
        text = ""
        if row["num_words"] < row["num_words_asked"]:
            text += f"{row['num_words_asked']} words were asked for; {row['num_words']} fit.\n"
        if "extra_scores" in row:
            number = row["extra_scores"]["definition"]["num_words"]
            text += f"Column definition: a definition of another dictionary is the only context; {number} words.\n"
        return text


class TermBenchmark:
    """The work on rated terms; the rare words are the same for all systems.

    Args:
        resources: The encoder and the systems.
        task: The terms and the contexts of their rare words.
    """

    def __init__(self, resources: Resources, task: TermTask) -> None:
        self.resources, self.task = resources, task

    @cached_property
    def similarity(self) -> TermSimilarity:
        """The pairs."""
        return TermSimilarity(self.resources.embedder, read_rated_terms(self.task.pairs))

    @cached_property
    def contexts(self) -> dict[str, list[str]]:
        """The contexts of the rare words in the terms; a word that never occurs has none.

        Raises:
            ValueError: If there are no rare words.
        """
        terms = list(dict.fromkeys(term for pair in self.similarity.pairs for term in (pair.first, pair.second)))
        rare = find_rare_words(terms, self.resources.tokenizer, min_length=1, show_progress=False)
        words = sorted(keep_usable(rare.words, self.resources))
        if not words:
            raise ValueError(
                f"terms: expected terms with words of several pieces in {self.task.pairs}; {len(terms)} terms have "
                "none, so that nothing would be injected."
            )
        found = self.resources.find_contexts(self.task.sources, words, self.resources.work / "terms")
        return {word: found.get(word) for word in words}

    def evaluate(self, system: EvaluatedSystem, seed: int) -> dict[str, Any]:
        """Scores one system."""
        similarity = self.similarity
        facts: dict[str, Any] = {
            "num_pairs": len(similarity.pairs),
            "num_words": len(self.contexts),
            "num_without_contexts": sum(not texts for texts in self.contexts.values()),
        }
        if system.model == PLAIN:
            return facts | {"scores": [similarity.score(similarity.plain[None], contexts=0).to_dict()]}
        drawn = self.resources.draw_vectors("terms", self.task, self.contexts, system, seed)
        scores = similarity.evaluate(
            drawn.replay(), mode=system.mode, num_contexts=drawn.numbers, num_draws=drawn.num_draws
        )
        return facts | {"num_left_plain": len(drawn.failed), "scores": [score.to_dict() for score in scores]}

    def describe(self, row: Mapping[str, Any]) -> str:
        """Returns what a reader must know of the words, from one of the rows."""
        return (
            f"{row['num_without_contexts']} of {row['num_words']} rare words have no contexts: their vectors come from "
            "the spelling alone; a model that reads contexts only leaves them as they are.\n"
        )


def find_broken_words(words: Iterable[str], tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Returns the words, of letters only, that a tokenizer breaks into pieces, by alphabet."""
    reader = PieceReader(tokenizer)
    candidates = sorted(word for word in words if word.isalpha())
    return [
        word for word, pieces in zip(candidates, reader.split(candidates), strict=True) if reader.breaks_up(pieces, 2)
    ]


def keep_usable(words: Sequence[str], resources: Resources) -> list[str]:
    """Returns the words that can be injected: of those that are one to the tokenizer the first, no special tokens."""
    index = WordIndex(ignore_case=is_uncased(resources.tokenizer))
    unusable = find_unusable(words, index, {index.key(token) for token in resources.tokenizer.all_special_tokens})
    return [word for word in words if word not in unusable]


def draw_words(words: Iterable[str], number: int, seed: int) -> list[str]:
    """Draws words, one of a family, by alphabet. A hash decides, so that fewer words are some of more words.

    Example:
        >>> draw_words(["quokka", "kumquat", "kumquats"], 2, seed=0)
        ['kumquats', 'quokka']
    """
    chosen: dict[str, str] = {}
    for word in sorted(set(words), key=lambda word: (derive_seed(seed, "word", word), word)):
        chosen.setdefault(word_family(word), word)
    return sorted(list(chosen.values())[:number])


def draw_others(
    definitions: Mapping[str, Sequence[str]], own: Mapping[str, Sequence[str]], number: int, seed: int
) -> list[str]:
    """Draws at most so many definitions of words that are of no family of given words.

    Args:
        definitions: For each word its definitions.
        own: The given words with their definitions, which are not drawn.
        number: How many; none if it is negative.
        seed: Seed of the draw.
    """
    families = {word_family(word) for word in own}
    taken = {text for texts in own.values() for text in texts}
    others = {text for word, texts in definitions.items() if word_family(word) not in families for text in texts}
    drawn = sorted(others - taken, key=lambda text: (derive_seed(seed, "definition", text), text))
    return drawn[: max(0, number)]


def _simplify(text: str) -> tuple[str, ...]:
    """Returns the words of a text, by which two are compared."""
    return tuple(split_words(text.casefold()))
