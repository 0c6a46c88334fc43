"""An evaluation recipe: everything that `bertram reproduce` needs to know, as one YAML file."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..corpus.settings import CorpusSource
from ..evaluation.wnlampro import BANDS
from ..injection.tokenizer import Mode, check_mode
from ..utils.settings import load_settings
from .rows import file_name

TEXTS, PROBE = "texts", "probe"  # rows beside those of systems: what a rarified set and a built probe hold


@dataclass(frozen=True)
class EvaluatedSystem:
    """One row of a table.

    Args:
        name: The name that tables and figures show.
        model: `"plain"` for the model as it is; `"pieces"` for the mean of a word's pieces; a preset that the training
            recipe trains, such as `"bertram-add"`; the folder or Hub name of a trained model; or `"original"`, in
            rarified data only, for the vector of the word that was replaced, which no system can know: a bound.
        mode: How vectors are injected; see [`BertramEmbeddingInjector`].
        indomain: Whether the texts of the test set, without labels, serve as contexts too.
    """

    name: str
    model: str
    mode: Mode = "replace"
    indomain: bool = False

    def __post_init__(self) -> None:
        check_mode(self.mode)


@dataclass(frozen=True)
class RecoveryTask:
    """Recovery of held-out words; see `word_recovery`.

    Args:
        words: A file of words of one piece, one on each line, that no system has been trained on.
        corpus: Where their contexts come from.
        num_contexts: Numbers of contexts to try.
        num_draws: How many random choices of contexts are averaged.
    """

    words: str
    corpus: CorpusSource
    num_contexts: list[int] = field(default_factory=lambda: [0, 1, 2, 4, 8, 16, 32])
    num_draws: int = 4


@dataclass(frozen=True)
class MisspellingTask:
    """Recovery of known words from their misspellings; see `misspelling_recovery`.

    Args:
        sources: Where misspellings come from: `codespell`, `nlpaug` or TSV files.
        corpus: Where the contexts of the words come from.
        max_words: At most so many words, drawn at random.
        num_contexts: Numbers of contexts to try.
        num_draws: How many random choices of contexts are averaged.
    """

    sources: list[str]
    corpus: CorpusSource
    max_words: int | None = 1000
    num_contexts: list[int] = field(default_factory=lambda: [0, 1, 4, 16])
    num_draws: int = 2


@dataclass(frozen=True)
class SimilarityTask:
    """Similarity as people rate it; see `word_similarity`.

    Args:
        pairs: A file of a known word, a rare word and a rating on each line.
        corpus: Where the contexts of the rare words come from.
        num_contexts: Numbers of contexts to try.
        num_draws: How many random choices of contexts are averaged.
    """

    pairs: str
    corpus: CorpusSource
    num_contexts: list[int] = field(default_factory=lambda: [1, 2, 4, 8, 16, 32, 64, 128])
    num_draws: int = 4


@dataclass(frozen=True)
class DefinitionTask:
    """A bare rare word must find its own definition among many; see `DefinitionRetrieval`.

    Words have several pieces, letters only, contexts, and a definition without a word of their own family; of a family
    there is one. Definitions with a word of the family are left out.

    Args:
        definitions: A file of JSON lines, each with a `word` and its `definitions`.
        corpus: Where the contexts of the words come from.
        num_words: How many words are drawn.
        num_definitions: Among how many definitions they search: their own, and as many of other words as are missing.
        num_contexts: Numbers of contexts to try.
        num_draws: How many random choices of contexts are averaged.
        min_contexts: A word must have so many.
        extra_definitions: A second file of definitions, such as of another dictionary: of each word that it has, the
            first definition is given as the only context, for a column of its own.
        excluded: Files of words whose families are left out.
        seed: Seed of the choice of words and of definitions of other words.
    """

    definitions: str
    corpus: CorpusSource
    num_words: int = 500
    num_definitions: int = 2000
    num_contexts: list[int] = field(default_factory=lambda: [1, 4, 16])
    num_draws: int = 4
    min_contexts: int = 16
    extra_definitions: str | None = None
    excluded: list[str] = field(default_factory=list)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num_words < 1 or self.num_definitions < 2:
            raise ValueError(
                f"definitions: expected at least 1 word and 2 definitions; got num_words={self.num_words} and "
                f"num_definitions={self.num_definitions}."
            )
        check_numbers("definitions", self.num_contexts, self.num_draws)


@dataclass(frozen=True)
class TermTask:
    """Similarity of terms as people rate it, by sentence embeddings; see `TermSimilarity`.

    Args:
        pairs: A file of two terms and a rating on each line, with tabs between.
        corpus: Where the contexts of the rare words, those with several pieces, come from; or
        corpora: several such sources.
        num_contexts: Numbers of contexts to try.
        num_draws: How many random choices of contexts are averaged.
    """

    pairs: str
    corpus: CorpusSource | None = None
    corpora: list[CorpusSource] = field(default_factory=list)
    num_contexts: list[int] = field(default_factory=lambda: [1, 4, 16])
    num_draws: int = 4

    def __post_init__(self) -> None:
        if (self.corpus is None) == (not self.corpora):
            raise ValueError("terms: expected a corpus, or corpora, for the contexts of rare words; give one of both.")
        check_numbers("terms", self.num_contexts, self.num_draws)

    @property
    def sources(self) -> list[CorpusSource]:
        """Where contexts come from."""
        return self.corpora if self.corpus is None else [self.corpus]


@dataclass(frozen=True)
class WnlamproTask:
    """A masked language model, asked about rare words; see `wnlampro`.

    Args:
        model: Folder or Hub name of a masked language model with the encoder's input embeddings; or
        texts: text files, or patterns of them, on which the encoder is given a head; see `masked_lm`.
        max_steps: Steps of that training.
        heldout_words: File of words that are never masked in it, so that it can serve as an encoder of a BERTRAM that
            is tested on them.
        probe: A file in the format of WNLaMPro; by default one is built from WordNet and the counts of `corpora`.
        max_entries: Of the built one, for each relation and frequency band.
        wordnet: Folder of WordNet's plain files for it; by default where WordNet is installed.
        bands: The frequency bands that are asked.
    """

    model: str | None = None
    texts: list[str] = field(default_factory=list)
    max_steps: int = 1000
    heldout_words: str | None = None
    probe: str | None = None
    max_entries: int = 250
    wordnet: str | None = None
    bands: list[str] = field(default_factory=lambda: ["rare", "medium"])

    def __post_init__(self) -> None:
        if (self.model is None) == (not self.texts):
            raise ValueError("wnlampro: expected a masked language model, or texts to train one; give one of the two.")
        unknown = [band for band in self.bands if band not in BANDS]
        if unknown or not self.bands:
            raise ValueError(f"wnlampro.bands: expected some of {', '.join(BANDS)}; got {self.bands}.")


@dataclass(frozen=True)
class RarifiedTask:
    """A classification set to be rarified; see `rarification`.

    Args:
        name: The name that tables and figures show.
        inputs: Its files: TSV, CSV, JSONL or Parquet; or
        dataset: its name on the Hub, `[name]`, `[name, config]` or `[name, config, split]`.
        text_column: The column of texts.
        pair_column: The column of second texts, for text pairs.
        label_column: The column of labels.
        max_length: Inputs of the classifier are cut to so many tokens.
        max_texts: At most so many texts, drawn at random.
        synonyms: Whether WordNet's synonyms are substitutes.
        misspellings: Where misspellings come from: `codespell`, `nlpaug` or a TSV file; none if empty.
        misspelling_share: How likely a word may be replaced by a misspelling.
        substitutions: TSV files of your own: word, substitute and, if you like, its kind.
        max_count: A substitute is rare if it occurs less often in `corpora`.
        only_unknown: Whether substitutes that the tokenizer has a token for are left out. In a small corpus a word that
            the model knows well may be rare; the paper, with a large one, counts only.
        max_masked: At most so many words of a text are replaced.
        trainer: Fields of `TrainingArguments` for the classifier.
    """

    name: str
    inputs: list[str] = field(default_factory=list)
    dataset: list[str] = field(default_factory=list)
    text_column: str = "text"
    pair_column: str | None = None
    label_column: str = "label"
    max_length: int = 128
    max_texts: int | None = None
    synonyms: bool = True
    misspellings: list[str] = field(default_factory=list)
    misspelling_share: float = 0.1
    substitutions: list[str] = field(default_factory=list)
    max_count: int = 100
    only_unknown: bool = True
    max_masked: int = 5
    trainer: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NaturalTask:
    """A classification set as it is; see [`TextClassification`]. The rare words of its training texts are injected.

    Args:
        name: The name that tables show.
        inputs: Files of training texts: TSV, CSV, JSONL or Parquet; or
        dataset: its name on the Hub, `[name]`, `[name, config]` or `[name, config, split]`.
        test_inputs: Files of texts to classify; by default half of the texts is held out for that.
        text_column: The column of texts.
        label_column: The column of labels.
        max_texts: At most so many texts of each part, drawn at random.
        min_texts: A word must stand in so many training texts.
        max_length: Texts are cut after so many tokens, as sentence-transformers does with its encoders.
    """

    name: str
    inputs: list[str] = field(default_factory=list)
    dataset: list[str] = field(default_factory=list)
    test_inputs: list[str] = field(default_factory=list)
    text_column: str = "text"
    label_column: str = "label"
    max_texts: int | None = None
    min_texts: int = 2
    max_length: int = 256


@dataclass(frozen=True)
class EvaluationRecipe:
    """An evaluation recipe.

    Args:
        encoder: Name or folder of the encoder.
        output: Folder for results: a README with tables and figures, and the rows behind them.
        work: Folder for all that is made on the way: models, corpora, classifiers, rows.
        systems: The rows of the tables.
        training: A training recipe that trains the presets among the systems, once for each seed.
        seeds: Seeds of training, of classifiers and of rarification.
        corpora: Where contexts and counts of rare words come from, in WNLaMPro and in rarified data.
        max_contexts: Contexts of a rare word that are read at most.
        recovery: Recovery of held-out words.
        misspellings: Recovery of known words from their misspellings.
        similarity: Similarity as people rate it.
        definitions: Retrieval of the definitions of rare words, by sentence embeddings.
        terms: Similarity of terms as people rate it, by sentence embeddings.
        wnlampro: Clozes about rare words.
        rarified: Classification sets.
        natural: Classification sets that are not rarified.

    Example:
        >>> systems = [EvaluatedSystem("BERTRAM", "my-bertram")]
        >>> EvaluationRecipe("bert-base-uncased", output="results", work="work", systems=systems).max_contexts
        64
    """

    encoder: str
    output: str
    work: str
    systems: list[EvaluatedSystem]
    training: str | None = None
    seeds: list[int] = field(default_factory=lambda: [0, 1, 2])
    corpora: list[CorpusSource] = field(default_factory=list)
    max_contexts: int = 64
    recovery: RecoveryTask | None = None
    misspellings: MisspellingTask | None = None
    similarity: SimilarityTask | None = None
    definitions: DefinitionTask | None = None
    terms: TermTask | None = None
    wnlampro: WnlamproTask | None = None
    rarified: list[RarifiedTask] = field(default_factory=list)
    natural: list[NaturalTask] = field(default_factory=list)

    def __post_init__(self) -> None:
        for what, names in (
            ("systems", [TEXTS, PROBE, *(system.name for system in self.systems)]),
            ("rarified", [task.name for task in self.rarified]),
            ("natural", [task.name for task in self.natural]),
        ):
            of_file: dict[str, str] = {}
            for name in names:
                file = file_name(name)
                if file in of_file:
                    raise ValueError(
                        f"{what}: expected names that differ in letters or digits (a to z, 0 to 9), as files are named "
                        f"by them; got {of_file[file]!r} and {name!r}."
                    )
                of_file[file] = name
        if not self.systems or not self.seeds:
            raise ValueError("systems and seeds: expected at least one of each; got none.")
        if (self.rarified or self.wnlampro) and not self.corpora:
            raise ValueError("corpora: needed for contexts and counts of rare words; got none.")

    @classmethod
    def load(cls, path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> "EvaluationRecipe":
        """Reads a YAML file; see `load_settings`."""
        return load_settings(cls, path, overrides)


def check_numbers(task: str, num_contexts: Sequence[int], num_draws: int) -> None:
    """Raises a ValueError if a task has no number of contexts, or one that cannot be drawn."""
    if not num_contexts or min(num_contexts) < 0 or num_draws < 1:
        raise ValueError(
            f"{task}: expected numbers of contexts from 0 on and at least 1 draw; got "
            f"num_contexts={list(num_contexts)} and num_draws={num_draws}."
        )
